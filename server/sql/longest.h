/* SPDX-License-Identifier: MIT */
/*
 * Where the longest calls of a section of a stream, by instructions, end, as far as what is stored
 * of its shards (shard/callindex.h) tells it, so that nothing else needs to be walked to have them.
 * Used by one thread; once they are found, any may read.
 */
#ifndef TL_SQL_LONGEST_H
#define TL_SQL_LONGEST_H

#include "lake/cut.h"
#include "shard/slowest.h"

/* Positions at which some of them may end. */
struct tl_longest_place {
    uint64_t from, to; /* inclusive */
};

struct tl_longest {
    uint64_t most;                   /* set by the caller: how many are wanted, at least 1 */
    struct tl_slow_call least;       /* none of them is less; its length is in instructions */
    size_t listed;                   /* calls that are known not to be less, at most `most` */
    struct tl_longest_place *places; /* in order, apart from each other */
    size_t n, cap;
};

/* Find them among the calls that begin at `from` or later, and end in [from, to), a section in
 * which all shards are stored. `function`: its name; NULL: of all functions. TL_NOMEM, TL_IO,
 * TL_BAD, TL_CANCELLED. */
TL_MUST_USE int tl_longest_find(struct tl_longest *longest, const struct tl_cut *cut, uint64_t from,
                                uint64_t to, const char *function, struct tl_fail *fail);
void tl_longest_fini(struct tl_longest *longest);
/* May some of them end at positions from `first` to `last`? */
bool tl_longest_may_end(const struct tl_longest *longest, uint64_t first, uint64_t last);

#endif
