/* SPDX-License-Identifier: MIT */
/* A lake in memory for tests of the network and the services: it stores what is pushed, turns every
 * four bytes into one instruction, and can be made slow, full or faulty. */
#ifndef TL_TESTS_FAKE_LAKE_H
#define TL_TESTS_FAKE_LAKE_H

#include "lake.h"

#include <stdatomic.h>

struct fake_knobs {
    atomic_bool stall;      /* nothing becomes durable any more */
    atomic_int fail_append; /* enum tl_err that the next appends return; 0: none */
    atomic_uint slow_ms;    /* duration of each look-up */
    atomic_ullong appended; /* bytes accepted so far */
    atomic_uint ranges;     /* open now */
    atomic_uint after;      /* instructions that the next range does not yet see */
    atomic_bool hold;       /* find and verify run until they are cancelled, or this is cleared */
    atomic_uint held;       /* the number of those running now */
    atomic_uint cancelled;  /* the number of those cancelled so far */
    /* Ranges end with these bytes of a mapped file, in pieces of FAKE_STORED; NULL: none. */
    _Atomic(const uint8_t *) stored;
    atomic_size_t stored_n;
    atomic_uint pieces; /* pieces delivered and not yet released */
    atomic_uint given;  /* pieces delivered so far */
    /* Where a connection was lost last, and where last with bytes behind it. */
    atomic_ullong lost_at, rejoined;
    atomic_bool mute;   /* ranges deliver only their first piece until this is cleared */
    atomic_bool chatty; /* find and verify report as much as allowed, verify 8 MiB */
};
extern struct fake_knobs fake;

/* Each piece has one byte before it, 'B'. */
#define FAKE_STORED 100000

/* The bytes of a trace so far. Borrowed; not while it is being pushed. */
struct tl_bytes fake_lake_raw(struct tl_lake *lake, const char *trace);
/* Did the last explained push end with a message that contains these words? */
bool fake_lake_explained(struct tl_lake *lake, const char *words);

#endif
