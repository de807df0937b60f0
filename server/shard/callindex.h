/* SPDX-License-Identifier: MIT */
/*
 * What the calls of each function took in a section of a stream, by instructions and by time:
 * totals, extremes, distribution, and the longest ones exactly. Made while a shard is built
 * (builder/call_counter.h), stored with its call tree (calltree.h), and merged for longer sections.
 *
 * The two weights do not cover the same positions. Instructions are those of the shard. Time is
 * known only between timestamps, and what ran behind a shard's last one is counted in the next
 * shard: from position `from`, at the last timestamp before the shard or at the first of the
 * stream, to position `to`, at the last one in the shard. So the indexes of consecutive shards add
 * up without holes. Before the first timestamp of a stream and behind the last there is no time.
 * Calls that ended are counted where they ended, with their whole length.
 *
 * All zero: empty. Not thread-safe.
 */
#ifndef TL_SHARD_CALLINDEX_H
#define TL_SHARD_CALLINDEX_H

#include "base/numbers.h"
#include "shard/sketch.h"
#include "shard/slowest.h"
#include "shard/timedextent.h"

enum tl_call_weight { TL_BY_INSNS, TL_BY_TIME, TL_CALL_WEIGHTS };

/* Instructions, or ticks of the stream's axis (tl_flow_now.axis). */
struct tl_call_sums {
    uint64_t self;  /* in the function itself */
    uint64_t calls; /* that began: not those entered through a gap or a task switch */
    uint64_t ended; /* calls that ended; of these: */
    uint64_t total; /* including callees */
    uint64_t min, max;
    uint64_t longest; /* position of the first one of length `max` */
    struct tl_sketch lengths;
    struct tl_slowest slowest;
};

struct tl_function_calls {
    uint32_t function; /* index of the image's symbol, or TL_NO_FUNCTION */
    struct tl_call_sums by[TL_CALL_WEIGHTS];
};

struct tl_call_index {
    struct tl_function_calls *functions; /* in order of first occurrence */
    size_t n_functions, cap_functions;
    struct tl_numbers numbers; /* index of functions */
    struct tl_timed_extent extent;
    /* Set before bytes are decoded: read only what is wanted of them. */
    const uint8_t *only; /* of functions below `n_only` for which it is not 0; NULL: of all */
    size_t n_only;
    bool unlisted; /* without the longest calls */
};

void tl_call_index_fini(struct tl_call_index *index);
/* Number of the function in `functions`, added if missing. TL_NOMEM. */
TL_MUST_USE int64_t tl_call_index_function(struct tl_call_index *index, uint32_t function);
/* NULL: there is no such function. */
const struct tl_function_calls *tl_call_index_find(const struct tl_call_index *index,
                                                   uint32_t function);

/* Count a call that ended, which began at `position`, into sums that began as `TL_CALL_SUMS_OPEN`.
 * `ended`, `max` and `longest` follow at the end: tl_call_sums_close(). TL_NOMEM. */
#define TL_CALL_SUMS_OPEN ((struct tl_call_sums){.min = UINT64_MAX})
TL_MUST_USE static inline int tl_call_sums_end(struct tl_call_sums *sums, uint64_t position,
                                               uint64_t length)
{
    sums->total += length;
    sums->min = length < sums->min ? length : sums->min;
    const int r = tl_sketch_add(&sums->lengths, length);
    return r < 0 ? r : tl_slowest_add(&sums->slowest, position, length);
}
void tl_call_sums_close(struct tl_call_sums *sums);
/* Add closed sums of other calls. TL_NOMEM. */
TL_MUST_USE int tl_call_sums_add(struct tl_call_sums *into, const struct tl_call_sums *from);
void tl_call_sums_fini(struct tl_call_sums *sums);

/* Add `from`, the index of a later section of the stream. TL_NOMEM. */
TL_MUST_USE int tl_call_index_merge(struct tl_call_index *into, const struct tl_call_index *from);

/* Append the encoding. TL_NOMEM. */
TL_MUST_USE int tl_call_index_encode(const struct tl_call_index *index, struct tl_buf *out);
/* Read the extent alone, into one that is all zero. */
void tl_call_index_extent(struct tl_bytes bytes, struct tl_timed_extent *out);
/* Add what tl_call_index_encode() wrote for a later section of the stream, or to an empty index.
 * TL_NOTFOUND: it is damaged; TL_NOMEM. */
TL_MUST_USE int tl_call_index_decode(struct tl_call_index *index, struct tl_bytes bytes);

#endif
