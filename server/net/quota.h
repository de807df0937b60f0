/* SPDX-License-Identifier: MIT */
/*
 * Quotas: what a rig, or the holder of a token, may store and how fast it may send and ask. They
 * are written as "bytes=200G", "traces=1000", "rate=50M" (bytes per second), "calls=100" (per
 * second).
 */
#ifndef TL_NET_QUOTA_H
#define TL_NET_QUOTA_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* 0: no limit. */
struct tl_quota {
    uint64_t bytes;  /* raw bytes of all traces */
    uint64_t traces; /* number of traces */
    uint64_t rate;   /* pushed bytes per second */
    uint64_t calls;  /* requests per second; only of tokens */
};

/* Read one of the words above. TL_USAGE: it is none of them; TL_BAD: its value is none. */
TL_MUST_USE int tl_quota_add(struct tl_quota *quota, const char *word);
bool tl_quota_any(const struct tl_quota *quota);

/* Lets through so many things per second, and as many at once as come in one. Zero-initialised.
 * Thread-safe. */
struct tl_pace {
    atomic_llong next_ns; /* when the next one would be due */
};
/* Take `n` in any case; returns for how many ns the taker should pause. */
int64_t tl_pace_owe(struct tl_pace *pace, uint64_t rate, uint64_t n);

/* The holder of a token with a quota. References may be taken and released by any thread. */
struct tl_holder {
    atomic_uint refs;
    char name[80];
    struct tl_quota quota;
    struct tl_pace calls;
    atomic_ullong refused; /* calls */
};

/* NULL: out of memory. */
struct tl_holder *tl_holder_new(const char *name, const struct tl_quota *quota);
struct tl_holder *tl_holder_get(struct tl_holder *holder); /* both accept NULL */
void tl_holder_put(struct tl_holder *holder);
/* Count a request. False: there are too many, with a sentence in `why`. Accepts NULL. */
TL_MUST_USE bool tl_holder_call(struct tl_holder *holder, char *why, unsigned n);

#endif
