/* SPDX-License-Identifier: MIT */
/*
 * Connections per client address, so that no single client can take all of them. An IPv6 client
 * usually has a whole /64, so that prefix counts as one address. Internally locked.
 */
#ifndef TL_NET_PEERS_H
#define TL_NET_PEERS_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct tl_peer {
    uint64_t address;
    unsigned n; /* connections, at least one */
};

struct tl_peers {
    pthread_mutex_t lock;
    unsigned max_each;
    unsigned max;
    unsigned n;
    /* At most `max`: a linear search is negligible compared with an accept(). */
    struct tl_peer *peers;
    size_t n_peers, cap;
};

/* At most `max` connections in total, and `max_each` per address. */
void tl_peers_init(struct tl_peers *peers, unsigned max, unsigned max_each);
void tl_peers_fini(struct tl_peers *peers);
/* Change the limits; existing connections stay. */
void tl_peers_limit(struct tl_peers *peers, unsigned max, unsigned max_each);
/* Count a connection from `at`. False: a limit is exceeded, or out of memory. */
TL_MUST_USE bool tl_peers_add(struct tl_peers *peers, const struct sockaddr_storage *at);
/* Stop counting a connection. */
void tl_peers_remove(struct tl_peers *peers, const struct sockaddr_storage *at);

#endif
