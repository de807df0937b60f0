/* SPDX-License-Identifier: MIT */
/*
 * Ends are stored as lengths, which are small numbers. One piece of code for all that is counted
 * in an extent, so that their sums agree.
 */
#include "shard/timedextent.h"

void tl_timed_extent_join(struct tl_timed_extent *into, const struct tl_timed_extent *next)
{
    if (!next->timed)
        return;
    if (!into->timed) {
        into->from = next->from;
        into->begin = next->begin;
    }
    into->timed = true;
    into->to = next->to;
    into->end = next->end;
    into->lost += next->lost;
    into->off += next->off;
}

void tl_timed_extent_span(struct tl_timed_extent *into, const struct tl_timed_span *span)
{
    if (!into->timed)
        into->begin = span->time;
    into->timed = true;
    into->end = span->end_time;
    if (span->kind != TL_TIMED_RUN)
        *(span->kind == TL_TIMED_LOST ? &into->lost : &into->off) += span->end_time - span->time;
}

int tl_timed_extent_put(const struct tl_timed_extent *x, struct tl_buf *out)
{
    const uint64_t words[] = {x->timed,          x->from, x->to - x->from, x->begin,
                              x->end - x->begin, x->lost, x->off};
    return tl_varint_add_all(out, words, x->timed ? 7 : 1);
}

void tl_timed_extent_get(struct tl_timed_extent *x, struct tl_varint_reader *in)
{
    x->timed = tl_varint_get(in) != 0;
    if (!x->timed)
        return;
    x->from = tl_varint_get(in);
    x->to = x->from + tl_varint_get(in);
    x->begin = tl_varint_get(in);
    x->end = x->begin + tl_varint_get(in);
    x->lost = tl_varint_get(in);
    x->off = tl_varint_get(in);
}
