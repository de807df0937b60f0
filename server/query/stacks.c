/* SPDX-License-Identifier: MIT */
/*
 * Finds the stack at a position from the one stored at the chunk's begin, and where a frame ends.
 * The end is sought in growing steps, then by bisection over chunk begins, because most calls are
 * short and some last for the whole trace.
 */
#include "query/stacks.h"

#include "shard/itemlog.h"
#include "shard/savedstack.h"

int tl_stack_at_chunk(const struct tl_view *view, size_t chunk, struct tl_callstack *calls,
                      struct tl_fail *fail)
{
    const struct tl_chunk *c = &view->index.chunks[chunk];
    struct tl_buf log = {0};
    struct tl_itemlog_reader reader;
    struct tl_item item;
    uint64_t position;
    int r = tl_view_items(view, chunk, &log, fail);
    calls->depth = 0;
    tl_itemlog_read(&reader, (struct tl_bytes){log.p, log.n}, c->at.offset,
                    c->at.has_time ? c->at.time : 0);
    if (r >= 0 && tl_itemlog_next(&reader, &item, &position) >= 0 && item.kind == TL_ITEM_STACK)
        r = tl_savedstack_decode(calls, (struct tl_bytes){item.data, item.n});
    tl_buf_fini(&log);
    return r;
}

int tl_stack_bisect(const struct tl_cut *cut, const struct tl_frame *frame, uint32_t depth,
                    uint64_t *low, uint64_t *high, struct tl_callstack *calls, struct tl_fail *fail)
{
    uint64_t after = *low + 1; /* the last chunk known to have it */
    int r = TL_OK;
    while (r >= 0 && after < *high) {
        const uint64_t middle = after + (*high - after) / 2;
        const size_t shard = tl_cut_shard_at(cut, middle);
        struct tl_view *view;
        if (shard == cut->n_rows || (r = tl_cut_view(cut, shard, &view, fail)) < 0)
            break;
        const size_t c = tl_shard_chunk_at(&view->index, middle);
        uint64_t first = *low, end = *high;
        if (c < view->index.n_chunks) {
            first = view->index.chunks[c].first;
            end = first + view->index.chunks[c].n;
        }
        if (first > *low)
            r = tl_stack_at_chunk(view, c, calls, fail);
        tl_view_put(view);
        if (r < 0)
            break;
        if (first <= *low ||
            (depth < calls->depth && tl_same_frame(&calls->frames[depth], frame))) {
            *low = first > *low ? first : *low;
            after = end > middle ? end : middle + 1;
        } else {
            *high = first;
        }
    }
    return r;
}

/* ---- walking -------------------------------------------------------------------------------- */

struct watch {
    const struct tl_frame *frame;
    uint32_t depth;
    bool ended;
    uint64_t end;
};

static int on_pop(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                  uint32_t depth, uint64_t insn)
{
    struct watch *const w = context;
    if (change != TL_FRAME_POP || depth != w->depth || !tl_same_frame(frame, w->frame))
        return TL_OK;
    w->ended = true;
    w->end = insn;
    return TL_EOF;
}

/* From the begin of the chunk that contains `from`, until the end or the sink stops. */
static int walk_calls(const struct tl_cut *cut, uint64_t from, uint64_t to, tl_frame_sink *sink,
                      void *context, struct tl_callstack *calls, struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, cut, from, to);
    walk.range.tail = false;
    const int r = tl_cut_walk_follow(&walk, calls, sink, NULL, context, fail);
    tl_cut_walk_end(&walk);
    return r;
}

int tl_stack_at(const struct tl_cut *cut, uint64_t position, struct tl_callstack *calls,
                struct tl_fail *fail)
{
    return walk_calls(cut, position, position + 1, NULL, NULL, calls, fail);
}

int tl_stack_end_chunk(const struct tl_cut *cut, const struct tl_frame *frame, uint32_t depth,
                       uint64_t *low, uint64_t *high, struct tl_callstack *calls,
                       struct tl_fail *fail)
{
    *high = cut->end;
    /* Most calls are short: look nearby first. */
    for (uint64_t step = TL_CHUNK_MARKERS; *low + step < *high; step *= 4) {
        struct tl_view *view;
        const size_t shard = tl_cut_shard_at(cut, *low + step);
        int r = tl_cut_view(cut, shard, &view, fail);
        if (r < 0)
            return r;
        const size_t c = tl_shard_chunk_at(&view->index, *low + step);
        const uint64_t first = view->index.chunks[c].first;
        r = tl_stack_at_chunk(view, c, calls, fail);
        tl_view_put(view);
        if (r < 0)
            return r;
        if (depth >= calls->depth || !tl_same_frame(&calls->frames[depth], frame)) {
            *high = first;
            break;
        }
        *low = first > *low ? first : *low;
    }
    return tl_stack_bisect(cut, frame, depth, low, high, calls, fail);
}

int tl_stack_end(const struct tl_cut *cut, const struct tl_frame *frame, uint32_t depth,
                 uint64_t position, uint64_t *end, struct tl_callstack *calls, struct tl_fail *fail)
{
    uint64_t low = position, high;
    struct watch w = {.frame = frame, .depth = depth};
    int r = tl_stack_end_chunk(cut, frame, depth, &low, &high, calls, fail);
    if (r >= 0)
        r = walk_calls(cut, low, high, on_pop, &w, calls, fail);
    /* Between two chunks it ends at the begin of the second. */
    *end = w.ended ? w.end : high;
    return r;
}
