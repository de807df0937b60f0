/* SPDX-License-Identifier: MIT */
#include "net/peers.h"

#include "base/buf.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* IPv4 addresses, also mapped into IPv6, in the low half; otherwise the /64 of an IPv6 address. */
static uint64_t address_of(const struct sockaddr_storage *at)
{
    uint64_t address = 0;
    if (at->ss_family == AF_INET) {
        memcpy(&address, &((const struct sockaddr_in *)at)->sin_addr, 4);
    } else if (at->ss_family == AF_INET6) {
        const struct in6_addr *const v6 = &((const struct sockaddr_in6 *)at)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(v6))
            memcpy(&address, v6->s6_addr + 12, 4);
        else
            memcpy(&address, v6->s6_addr, 8);
    }
    return address;
}

/* NULL: it has no connection. */
static struct tl_peer *find(struct tl_peers *peers, uint64_t address)
{
    for (size_t i = 0; i < peers->n_peers; i++)
        if (peers->peers[i].address == address)
            return &peers->peers[i];
    return NULL;
}

void tl_peers_init(struct tl_peers *peers, unsigned max, unsigned max_each)
{
    *peers = (struct tl_peers){.max = max, .max_each = max_each};
    pthread_mutex_init(&peers->lock, NULL);
}

void tl_peers_fini(struct tl_peers *peers)
{
    free(peers->peers);
    pthread_mutex_destroy(&peers->lock);
}

void tl_peers_limit(struct tl_peers *peers, unsigned max, unsigned max_each)
{
    pthread_mutex_lock(&peers->lock);
    peers->max = max;
    peers->max_each = max_each;
    pthread_mutex_unlock(&peers->lock);
}

static bool add(struct tl_peers *peers, uint64_t address)
{
    struct tl_peer *peer = find(peers, address);
    if (peers->n >= peers->max || (peer ? peer->n : 0) >= peers->max_each)
        return false;
    if (!peer) {
        if (tl_grow(&peers->peers, &peers->cap, peers->n_peers + 1, sizeof *peer) < 0)
            return false;
        peer = &peers->peers[peers->n_peers++];
        *peer = (struct tl_peer){.address = address};
    }
    peer->n++;
    peers->n++;
    return true;
}

bool tl_peers_add(struct tl_peers *peers, const struct sockaddr_storage *at)
{
    pthread_mutex_lock(&peers->lock);
    const bool ok = add(peers, address_of(at));
    pthread_mutex_unlock(&peers->lock);
    return ok;
}

void tl_peers_remove(struct tl_peers *peers, const struct sockaddr_storage *at)
{
    pthread_mutex_lock(&peers->lock);
    struct tl_peer *const peer = find(peers, address_of(at));
    if (peer) {
        peers->n--;
        if (!--peer->n)
            *peer = peers->peers[--peers->n_peers];
    }
    pthread_mutex_unlock(&peers->lock);
}
