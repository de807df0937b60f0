/* SPDX-License-Identifier: MIT */
/* Collecting the widest call-stack slices of a range, for slices.c and slices_time.c. */
#ifndef TL_QUERY_SLICES_H
#define TL_QUERY_SLICES_H

#include "lake/timed_walk.h"
#include "query/query.h"
#include "query/stacks.h"

struct tl_slice {
    uint64_t from, to;   /* positions */
    uint64_t begin, end; /* on the axis: positions or ticks; begin 0: not known yet */
    uint64_t pc;
    uint64_t low, high; /* until the end is exact: it lies in (low, high], both begins of chunks */
    uint32_t depth;
    uint32_t function;
    uint16_t exception;
    uint8_t kind;
    bool exact; /* `to` and `end` are exact */
};

struct tl_slicing {
    const struct tl_cut *cut;
    const struct tl_image *image;
    struct tl_axis axis; /* for ticks, how they are shown */
    uint64_t from, to;   /* positions of the range, clipped to the lane */
    uint64_t low, high;  /* the range on the axis */
    struct tl_slice *p;
    size_t n, cap;
    uint64_t resolution; /* every slice with more of the range than this is included */
    uint64_t narrowest;  /* of those that were kept when there were too many */
    bool truncated;
    struct tl_walk walk; /* of the chunk read last */
};

/* A slice of a frame at `depth` that ended before position `end`; on the axis the same. */
struct tl_slice tl_slice_of(const struct tl_frame *frame, uint32_t depth, uint64_t end);
/* Add it, if it is in the range and wide enough. TL_NOMEM. */
TL_MUST_USE int tl_slicing_add(struct tl_slicing *s, const struct tl_slice *slice);
/* Slices of up to `most` units of the axis may be missing. */
void tl_slicing_leave_out(struct tl_slicing *s, uint64_t most);

/* Add the slices of a range of time: all, by walking; or those that are visible in `columns`
 * columns. Then find begins that are not known yet. Errors as tl_timed_walk(). */
TL_MUST_USE int tl_slicing_walk_time(struct tl_slicing *s, struct tl_fail *fail);
TL_MUST_USE int tl_slicing_sample_time(struct tl_slicing *s, uint32_t columns,
                                       struct tl_callstack *last, struct tl_callstack *now,
                                       struct tl_fail *fail);
TL_MUST_USE int tl_slicing_find_begins(struct tl_slicing *s, struct tl_fail *fail);

#endif
