/* SPDX-License-Identifier: MIT */
/*
 * Counts the calls in a section of a stream, by paths and functions: of a shard while it is built
 * (build.c), or of a queried range (query/calltree.h). It is driven by the call stack maintained
 * there. Instructions are counted at once; for times, what happens is passed on to call_times.h.
 * Not thread-safe.
 */
#ifndef TL_BUILDER_CALL_COUNTER_H
#define TL_BUILDER_CALL_COUNTER_H

#include "builder/call_times.h"
#include "flow/callstack.h"
#include "shard/shardcalls.h"

struct tl_call_counter {
    bool counting; /* false: not begun, or out of memory */
    bool partial;  /* set by the owner: it began inside of a shard, only for the times of later ones
                    */
    struct tl_call_paths counts;
    uint64_t from;               /* positions before this are not counted */
    uint64_t plain_from;         /* leaves before this are not counted in the short way */
    uint64_t since;              /* instructions from here on are not counted yet */
    bool waits;                  /* an exception's handler has not begun; that exception: */
    uint16_t waiting;            /* its number */
    uint64_t waiting_at;         /* … and position */
    struct tl_callstack *calls;  /* NULL: not attached */
    struct tl_call_times *times; /* borrowed; NULL: only instructions are counted */
    uint32_t paths[TL_CALLSTACK_MAX + 1]; /* paths of the frames, outermost first; [0]: no caller */
};

/* Start counting into a zeroed counter at `position`, where the stack's frames are current; nothing
 * before `from` is counted. The stack's sink belongs to the counter until it ends. `times` may be
 * NULL; if not it has been told everything before. */
void tl_call_counter_begin(struct tl_call_counter *c, struct tl_callstack *calls,
                           struct tl_call_times *times, uint64_t position, uint64_t from);
/* An item told of an exception, or of trace that is missing. When memory runs out nothing is
 * counted any more. */
void tl_call_counter_news(struct tl_call_counter *c, const struct tl_item *item, uint64_t position);
/* The handler that is waited for does not come. */
void tl_call_counter_unseen(struct tl_call_counter *c);
#define TL_CALL_COUNTER_NEWS (1u << TL_ITEM_EXCEPTION | 1u << TL_ITEM_GAP | 1u << TL_ITEM_TRACE_ON)
/* An item that is not a BLOCK, at a position, before the stack has it; `now` is the state after it.
 * Then tl_call_counter_followed(). */
static inline void tl_call_counter_item(struct tl_call_counter *c, uint64_t position,
                                        const struct tl_flow_now *now, const struct tl_item *item)
{
    if (!c->times)
        return;
    if (item->kind == TL_ITEM_CYCLES &&
        tl_time_knots_quickly(&c->times->knots, position, item->value))
        return;
    if (c->waits && position > c->waiting_at)
        tl_call_counter_unseen(c);
    if (c->times && tl_call_times_wants(c->times, item))
        tl_call_times_item(c->times, c->calls, position, now, item);
}
/* The same item, after the stack has it: frames that it changed belong to what was told before. An
 * exception may be of an address that another one's handler, or a jump of one, has just reached. */
static inline void tl_call_counter_followed(struct tl_call_counter *c, uint64_t position,
                                            const struct tl_item *item)
{
    if (c->times && 1u << item->kind & TL_CALL_COUNTER_NEWS)
        tl_call_counter_news(c, item, position);
}
/* A number of gaps alike at a position. */
static inline void tl_call_counter_gaps(struct tl_call_counter *c, uint64_t position,
                                        const struct tl_flow_now *now, const struct tl_item *gap,
                                        size_t n)
{
    tl_call_counter_item(c, position, now, gap);
    if (c->times && c->times->known)
        c->times->knots.gaps += n - 1;
}
/* The stream ends at `position`: before tl_call_counter_end(). */
void tl_call_counter_finish(struct tl_call_counter *c, uint64_t position);
/* End at `position`. There is a result if c->counting is still true. */
void tl_call_counter_end(struct tl_call_counter *c, uint64_t position);
/* Then move the result to `out`, which is overwritten. */
void tl_call_counter_take(struct tl_call_counter *c, struct tl_shard_calls *out);
/* Free the contents and stop counting. Also called when memory runs out. */
void tl_call_counter_fini(struct tl_call_counter *c);

#endif
