/* SPDX-License-Identifier: MIT */
/*
 * How many connections each address has, so that no single one takes all of them. An IPv6
 * client has a /64 to choose from, so that prefix counts as one address. Internally locked.
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
    struct tl_peer *peers; /* at most `max`: going over them is nothing beside an accept() */
    size_t n_peers, cap;
};

/* At most `max` connections in all, and `max_each` of one address. */
void tl_peers_init(struct tl_peers *peers, unsigned max, unsigned max_each);
void tl_peers_fini(struct tl_peers *peers);
/* From now on; those above it stay. */
void tl_peers_limit(struct tl_peers *peers, unsigned max, unsigned max_each);
/* Count a connection from `at`. False: it is one too many, or there is no memory. */
TL_MUST_USE bool tl_peers_add(struct tl_peers *peers, const struct sockaddr_storage *at);
/* A counted connection has ended. */
void tl_peers_remove(struct tl_peers *peers, const struct sockaddr_storage *at);

#endif
