/* SPDX-License-Identifier: MIT */
/*
 * Ends are stored as lengths, which are small numbers, and rare times only where there are any. One
 * piece of code for all that is counted in an extent, so that their sums agree.
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
    for (unsigned i = 0; i < TL_TIMED_KINDS; i++)
        into->missing[i] += next->missing[i];
}

void tl_timed_extent_span(struct tl_timed_extent *into, const struct tl_timed_span *span)
{
    if (!into->timed)
        into->begin = span->time;
    into->timed = true;
    into->end = span->end_time;
    if (span->kind != TL_TIMED_RUN)
        into->missing[span->kind] += span->end_time - span->time;
}

/* Bits of the first word. */
enum { E_TIMED = 1, E_SWITCHED_OUT = 2 };

int tl_timed_extent_put(const struct tl_timed_extent *x, struct tl_buf *out)
{
    const uint64_t switched_out = x->missing[TL_TIMED_SWITCHED_OUT];
    const uint64_t words[] = {(x->timed ? E_TIMED : 0u) | (switched_out ? E_SWITCHED_OUT : 0u),
                              x->from,
                              x->to - x->from,
                              x->begin,
                              x->end - x->begin,
                              x->missing[TL_TIMED_LOST],
                              x->missing[TL_TIMED_OFF],
                              switched_out};
    return tl_varint_add_all(out, words, !x->timed ? 1 : switched_out ? 8 : 7);
}

void tl_timed_extent_get(struct tl_timed_extent *x, struct tl_varint_reader *in)
{
    const uint64_t head = tl_varint_get(in);
    x->timed = head & E_TIMED;
    if (!x->timed)
        return;
    x->from = tl_varint_get(in);
    x->to = x->from + tl_varint_get(in);
    x->begin = tl_varint_get(in);
    x->end = x->begin + tl_varint_get(in);
    x->missing[TL_TIMED_LOST] = tl_varint_get(in);
    x->missing[TL_TIMED_OFF] = tl_varint_get(in);
    if (head & E_SWITCHED_OUT)
        x->missing[TL_TIMED_SWITCHED_OUT] = tl_varint_get(in);
}
