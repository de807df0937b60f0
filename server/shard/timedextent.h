/* SPDX-License-Identifier: MIT */
/*
 * What a section of a stream has times for: from one timestamp to another, so that the extents of
 * consecutive shards follow each other without holes. Calls (callindex.h), exceptions and gaps
 * (timedrows.h) are counted in it.
 *
 * All zero: nothing. Not thread-safe.
 */
#ifndef TL_SHARD_TIMEDEXTENT_H
#define TL_SHARD_TIMEDEXTENT_H

#include "shard/timedspan.h"
#include "shard/varint.h"

struct tl_timed_extent {
    bool timed;          /* the following is known; false: the stream has no time so far */
    uint64_t from, to;   /* positions [from, to) of what has times */
    uint64_t begin, end; /* ticks: end - begin is the sum of all self times and: */
    uint64_t missing[TL_TIMED_KINDS]; /* ticks in which nothing is known to have run */
};

/* Add the extent that follows `into`. */
void tl_timed_extent_join(struct tl_timed_extent *into, const struct tl_timed_extent *next);
/* Add a span that follows `into`; `from` and `to` are set by whoever knows them. */
void tl_timed_extent_span(struct tl_timed_extent *into, const struct tl_timed_span *span);
/* Append the encoding. TL_NOMEM. */
TL_MUST_USE int tl_timed_extent_put(const struct tl_timed_extent *extent, struct tl_buf *out);
/* Read it into one that is all zero. */
void tl_timed_extent_get(struct tl_timed_extent *extent, struct tl_varint_reader *in);

#endif
