/* SPDX-License-Identifier: MIT */
/*
 * Who uses how much of what the server has: connections, threads, waiting calls, memory. The one
 * place where it is decided whether a client may have more.
 *
 * A party is an address (of IPv6 a /64) or a token. An account is what a request is charged to: the
 * party of its address and, if it has a token, that of the token too. Of each resource a party may
 * have as much as is left free of it: one alone gets half, two a third each, and so on, so that
 * there is always something left for somebody else. Some resources have a fixed share instead.
 *
 * Thread-safe; counting takes no lock.
 */
#ifndef TL_NET_SHARES_H
#define TL_NET_SHARES_H

#include "base/buf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Callers by the role that a call requires: each kind has its own threads and memory. Health and
 * readiness are a kind of their own, which nothing else can use up. */
enum tl_role_class {
    TL_FOR_PUBLIC,
    TL_FOR_READ,
    TL_FOR_PUSH,
    TL_FOR_ADMIN,
    TL_FOR_HEALTH,
    TL_ROLE_CLASSES
};

#define TL_POOLS (TL_ROLE_CLASSES * 3) /* of threads: by class and enum tl_effort */

/* The resources. */
enum tl_use {
    TL_USE_CONNECTIONS,
    TL_USE_HTTP1,   /* HTTP/1.1 connections that have sent a request: each has a thread */
    TL_USE_GUESTS,  /* requests without permission, from their head to their answer */
    TL_USE_HEADS,   /* bytes: requests of HTTP/2 with their header fields */
    TL_USE_ANSWERS, /* bytes that clients have not taken yet */
    TL_USE_INBOUND, /* bytes of received messages and bodies, by class */
    TL_USE_CALLS = TL_USE_INBOUND + TL_ROLE_CLASSES, /* running and waiting calls, by pool */
    TL_USE_THREADS = TL_USE_CALLS + TL_POOLS,        /* running calls, by pool */
    TL_USES = TL_USE_THREADS + TL_POOLS
};

struct tl_party {
    struct tl_party *next;
    uint8_t key[17]; /* kind, then the address or the begin of the token's digest */
    unsigned refs;   /* guarded by tl_shares.lock */
    atomic_size_t used[TL_USES];
};

struct tl_resource {
    atomic_size_t all;  /* there is */
    atomic_size_t each; /* fixed share of a party; 0: as much as is left free */
    atomic_size_t used;
    atomic_ullong refused;
};

#define TL_SHARES_CHAINS 1024

struct tl_shares {
    pthread_mutex_t lock; /* guards the table */
    struct tl_party *chains[TL_SHARES_CHAINS];
    struct tl_resource of[TL_USES];
    /* Called once after `starved` was set and answers were taken by their clients. */
    void (*on_room)(void *context);
    void *context;
    atomic_bool starved; /* a call waits because its client does not take its answers */
};

struct tl_account {
    atomic_uint refs;
    struct tl_shares *shares;
    struct tl_party *address;
    struct tl_party *token; /* NULL: none */
};

void tl_shares_init(struct tl_shares *shares);
/* All accounts must be gone. */
void tl_shares_fini(struct tl_shares *shares);
/* Set how much there is, and a fixed share; what is in use stays. */
void tl_shares_limit(struct tl_shares *shares, unsigned use, size_t all, size_t each);

/* The account of an address. NULL: out of memory. */
struct tl_account *tl_account_new(struct tl_shares *shares, const struct sockaddr_storage *at);
/* The account of a token used from the address of `from`. NULL: out of memory. */
struct tl_account *tl_account_with_token(struct tl_account *from, const uint8_t digest[static 16]);
/* Is it of this token? */
bool tl_account_has_token(const struct tl_account *account, const uint8_t digest[static 16]);
struct tl_account *tl_account_get(struct tl_account *account);
void tl_account_put(struct tl_account *account); /* accepts NULL */

/* Whose turn it is among callers: the token, without one the address. */
static inline struct tl_party *tl_account_party(const struct tl_account *account)
{
    return account->token ? account->token : account->address;
}

/* Take `n` of a resource. False: a party has its share, or there is no more of it. */
TL_MUST_USE bool tl_account_take(struct tl_account *account, unsigned use, size_t n);
/* The same, for something that waits if it is refused. */
TL_MUST_USE bool tl_account_try(struct tl_account *account, unsigned use, size_t n);
/* Count `n` that are in use already. */
void tl_account_charge(struct tl_account *account, unsigned use, size_t n);
void tl_account_release(struct tl_account *account, unsigned use, size_t n);
/* Count for the token of `account` what is already counted for an address. */
TL_MUST_USE bool tl_account_take_too(struct tl_account *account, unsigned use);
void tl_account_release_too(struct tl_account *account, unsigned use);
/* Is what is charged within the shares? */
bool tl_account_within(const struct tl_account *account, unsigned use);

/* Would tl_account_try() give one more now? */
bool tl_account_room(const struct tl_account *account, unsigned use);
/* Is it so little of all that there is that nobody else could miss it? */
bool tl_account_little(const struct tl_account *account, unsigned use);

/* Why tl_account_take() refused, as a sentence: which share, how much, what to do. `what` names it,
 * "calls that read". Returns `out`. */
char *tl_account_say(const struct tl_account *account, unsigned use, const char *what, char *out,
                     size_t n);

/* Append Prometheus text. TL_NOMEM. */
TL_MUST_USE int tl_shares_metrics(const struct tl_shares *shares, struct tl_buf *out);

#endif
