/* SPDX-License-Identifier: MIT */
#include "net/peers.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

struct tl_peer {
    struct tl_peer *next;
    uint64_t key;
    unsigned n;
};

/* IPv4, also when it comes mapped into IPv6, in the low half; the /64 of IPv6 as it stands. */
static uint64_t key_of(const struct sockaddr_storage *at)
{
    uint64_t key = 0;
    if (at->ss_family == AF_INET) {
        memcpy(&key, &((const struct sockaddr_in *)at)->sin_addr, 4);
    } else if (at->ss_family == AF_INET6) {
        const struct in6_addr *const v6 = &((const struct sockaddr_in6 *)at)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(v6))
            memcpy(&key, v6->s6_addr + 12, 4);
        else
            memcpy(&key, v6->s6_addr, 8);
    }
    return key;
}

static struct tl_peer **find(struct tl_peers *peers, uint64_t key)
{
    struct tl_peer **p = &peers->bucket[(key * 0x9e3779b97f4a7c15u >> 32) % TL_PEERS_BUCKETS];
    while (*p && (*p)->key != key)
        p = &(*p)->next;
    return p;
}

void tl_peers_init(struct tl_peers *peers, unsigned max, unsigned max_each)
{
    *peers = (struct tl_peers){.max = max, .max_each = max_each};
    pthread_mutex_init(&peers->lock, NULL);
}

void tl_peers_fini(struct tl_peers *peers)
{
    for (size_t i = 0; i < TL_PEERS_BUCKETS; i++) {
        for (struct tl_peer *p = peers->bucket[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    }
    pthread_mutex_destroy(&peers->lock);
}

bool tl_peers_add(struct tl_peers *peers, const struct sockaddr_storage *at)
{
    const uint64_t key = key_of(at);
    pthread_mutex_lock(&peers->lock);
    bool ok = peers->n < peers->max;
    if (ok) {
        struct tl_peer **const p = find(peers, key);
        if (!*p && (*p = calloc(1, sizeof **p)))
            (*p)->key = key;
        ok = *p && (*p)->n < peers->max_each;
        if (ok) {
            (*p)->n++;
            peers->n++;
        }
    }
    pthread_mutex_unlock(&peers->lock);
    return ok;
}

void tl_peers_remove(struct tl_peers *peers, const struct sockaddr_storage *at)
{
    pthread_mutex_lock(&peers->lock);
    struct tl_peer **const p = find(peers, key_of(at));
    if (*p) {
        peers->n--;
        if (!--(*p)->n) {
            struct tl_peer *const gone = *p;
            *p = gone->next;
            free(gone);
        }
    }
    pthread_mutex_unlock(&peers->lock);
}
