/* SPDX-License-Identifier: MIT */
/*
 * A lake in memory for tests of the network and the services: it keeps what is pushed, makes
 * one instruction of every four bytes, and can be told to be slow, full or broken.
 */
#ifndef TL_TESTS_FAKE_LAKE_H
#define TL_TESTS_FAKE_LAKE_H

#include "lake.h"

#include <stdatomic.h>

struct fake_knobs {
    atomic_bool stall;      /* nothing becomes durable any more */
    atomic_int fail_append; /* enum tl_err that the next appends return, 0: none */
    atomic_uint slow_ms;    /* each look-up takes so long */
    atomic_ullong appended; /* bytes taken so far */
    atomic_uint ranges;     /* open now */
    atomic_uint behind;     /* instructions that the next range does not see yet */
    atomic_bool hold;       /* find and verify go on until they are cancelled, or this ends */
    atomic_uint held;       /* of them now */
    atomic_uint cancelled;  /* of them so far */
    atomic_bool chatty;     /* they have as much to say as they may, and a report of 8 MiB */
};
extern struct fake_knobs fake;

/* The bytes that a trace has got so far. Borrowed; not while it is being pushed. */
struct tl_bytes fake_lake_raw(struct tl_lake *lake, const char *trace);
/* Was the last push that was explained ended with these words in it? */
bool fake_lake_explained(struct tl_lake *lake, const char *words);

#endif
