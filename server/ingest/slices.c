/* SPDX-License-Identifier: MIT */
/*
 * Call-stack slices of a range. Each index chunk tells the stack at its begin, so a short range
 * is exact; of a long one only the frames that live where chunks begin are shown, every n-th
 * chunk being looked at: those are the ones long enough to be seen.
 */
#include "ingest/jsontext.h"
#include "ingest/query.h"
#include "store/itemlog.h"
#include "store/stackmark.h"

#include <stdio.h>
#include <stdlib.h>

#define SLICES_MAX      4096
#define EXACT_POSITIONS (UINT64_C(2) << 20)
#define SAMPLES         1024

struct slice {
    uint64_t from, to; /* positions */
    uint64_t pc;
    uint32_t depth;
    uint32_t function;
    uint16_t exception;
    uint8_t kind;
};

struct slices {
    const struct tl_cut *cut;
    uint64_t from, to;
    struct slice *p;
    size_t n, cap;
    bool truncated;
    int result;
};

static int add_slice(struct slices *s, const struct tl_frame *frame, uint32_t depth, uint64_t end)
{
    if (end <= s->from || frame->insn >= s->to || end <= frame->insn)
        return TL_OK;
    if (s->n == SLICES_MAX) {
        s->truncated = true;
        return TL_LIMIT;
    }
    const int r = tl_grow(&s->p, &s->cap, s->n + 1, sizeof(*s->p));
    if (r < 0)
        return r;
    s->p[s->n++] = (struct slice){.from = frame->insn,
                                  .to = end,
                                  .pc = frame->pc,
                                  .depth = depth,
                                  .function = frame->function,
                                  .exception = frame->exception,
                                  .kind = frame->kind};
    return TL_OK;
}

static int on_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    return change == TL_FRAME_POP ? add_slice(context, frame, depth, insn) : TL_OK;
}

/* ---- exact ---------------------------------------------------------------------------------- */

static int follow(struct slices *s, struct tl_callstack *calls, const struct tl_walk *walk)
{
    int r = TL_OK;
    for (size_t i = 0; i < walk->n && r >= 0; i++) {
        calls->insns = walk->positions[i];
        r = tl_callstack_push(calls, &walk->items[i], 1);
    }
    return r;
}

static int exact(struct slices *s, const struct tl_image *image, struct tl_callstack *calls,
                 struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    /* From the begin of the chunk on, where the stack is known. */
    tl_cut_walk_begin(&walk, s->cut, s->from, s->to);
    walk.range.tail = false;
    const struct tl_chunk *chunk;
    int r = tl_cut_walk_peek(&walk, &chunk, fail);
    if (r >= 0 && chunk)
        walk.range.from = chunk->first;
    tl_callstack_init(calls, image, walk.range.from, on_frame, s);
    bool begun = false;
    uint64_t end = s->from;
    while (r >= 0 && (r = tl_cut_walk_next(&walk, fail)) >= 0) {
        tl_walk_functions(&walk.walk, image);
        if (!begun && walk.walk.stack.n > 0)
            r = tl_stackmark_decode(calls, walk.walk.stack);
        begun = true;
        if (r >= 0)
            r = follow(s, calls, &walk.walk);
        end = walk.at->first + walk.at->n;
    }
    tl_cut_walk_end(&walk);
    if (r == TL_EOF) {
        calls->insns = end < s->to ? end : s->to;
        r = tl_callstack_finish(calls);
    }
    return r;
}

/* ---- sampled -------------------------------------------------------------------------------- */

static int stack_at(struct tl_view *view, size_t chunk, struct tl_callstack *calls,
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
        r = tl_stackmark_decode(calls, (struct tl_bytes){item.data, item.n});
    tl_buf_fini(&log);
    return r;
}

static bool same_frame(const struct tl_frame *a, const struct tl_frame *b)
{
    return a->insn == b->insn && a->pc == b->pc;
}

/* Frames of `last` that `now` has no more ended between the two samples. */
static int compare_stacks(struct slices *s, const struct tl_callstack *last,
                          const struct tl_callstack *now, uint64_t end)
{
    uint32_t same = 0;
    while (same < last->depth && same < now->depth &&
           same_frame(&last->frames[same], &now->frames[same]))
        same++;
    int r = TL_OK;
    for (uint32_t i = last->depth; i-- > same && r >= 0;)
        r = add_slice(s, &last->frames[i], i, end);
    return r;
}

static int sampled(struct slices *s, struct tl_callstack *last, struct tl_callstack *now,
                   struct tl_fail *fail)
{
    const uint64_t stride = (s->to - s->from) / SAMPLES;
    uint64_t next = 0;
    int r = TL_OK;
    last->depth = 0;
    s->truncated = true;
    for (size_t i = tl_cut_shard_at(s->cut, s->from); i < s->cut->n_rows && r >= 0; i++) {
        const struct tl_shard_row *row = &s->cut->rows[i];
        if (row->first >= s->to)
            break;
        if (row->first + row->n <= next)
            continue;
        struct tl_view *view = NULL;
        r = tl_cut_view(s->cut, i, &view, fail);
        for (size_t c = 0; r >= 0 && c < view->index.n_chunks; c++) {
            const uint64_t first = view->index.chunks[c].first;
            if (first < next || first >= s->to || first + view->index.chunks[c].n <= s->from)
                continue;
            r = stack_at(view, c, now, fail);
            if (r >= 0)
                r = compare_stacks(s, last, now, first);
            *last = *now;
            next = first + stride;
        }
        tl_view_put(view);
    }
    now->depth = 0;
    const uint64_t end = s->to < s->cut->end ? s->to : s->cut->end;
    return r < 0 ? r : compare_stacks(s, last, now, end);
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void name_slice(const struct slice *slice, const struct tl_image *image, char *out,
                       size_t size)
{
    const char *name = tl_function_name(image, slice->function);
    if (slice->kind == TL_FRAME_EXCEPTION)
        snprintf(out, size, "exception %u%s%s", slice->exception, *name ? " " : "", name);
    else if (*name)
        snprintf(out, size, "%s", name);
    else
        snprintf(out, size, "0x%llx", (unsigned long long)slice->pc);
}

static int write_json(struct slices *s, enum tl_range_unit axis, const struct tl_image *image,
                      struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_scale time = {0};
    int r = TL_OK;
    if (axis == TL_UNIT_TIME)
        r = tl_scale_open(&time, s->cut, TL_SCALE_TIME, false, s->from, s->to, fail);
    qsort(s->p, s->n, sizeof(*s->p), by_place);
    if (r >= 0)
        r = tl_buf_printf(out, "{\"truncated\":%s,\"slices\":[", s->truncated ? "true" : "false");
    for (size_t i = 0; i < s->n && r >= 0; i++) {
        const struct slice *slice = &s->p[i];
        uint64_t from = slice->from, to = slice->to;
        char name[256];
        if (axis == TL_UNIT_TIME &&
            (!tl_scale_value(&time, from, &from) || !tl_scale_value(&time, to, &to)))
            continue;
        name_slice(slice, image, name, sizeof(name));
        r = tl_buf_printf(out,
                          "%s\n{\"depth\":%u,\"from\":%llu,\"to\":%llu,\"name\":", i > 0 ? "," : "",
                          slice->depth, (unsigned long long)from, (unsigned long long)to);
        if (r >= 0)
            r = tl_json_text(out, name);
        if (r >= 0)
            r = tl_buf_add(out, "}", 1);
    }
    tl_scale_close(&time);
    return r < 0 ? r : tl_buf_add(out, "]}\n", 3);
}

int tl_lake_slices(struct tl_lake *lake, const char *trace, const char *stream,
                   enum tl_range_unit axis, uint64_t from, uint64_t to, struct tl_buf *json,
                   struct tl_fail *fail)
{
    struct tl_cut cut;
    int r = tl_cut_open(&cut, lake, trace, stream, fail);
    if (r < 0)
        return r;
    struct slices s = {.cut = &cut};
    const struct tl_image *image = tl_gen_image(cut.gen);
    struct tl_callstack *calls = calloc(2, sizeof(*calls));
    r = tl_cut_resolve(&cut, axis, from, to, &s.from, &s.to, fail);
    if (r >= 0 && !calls)
        r = TL_NOMEM;
    if (r >= 0) {
        tl_callstack_init(&calls[0], image, 0, on_frame, &s);
        tl_callstack_init(&calls[1], image, 0, on_frame, &s);
        r = s.to - s.from <= EXACT_POSITIONS ? exact(&s, image, calls, fail)
                                             : sampled(&s, &calls[0], &calls[1], fail);
        if (r == TL_LIMIT)
            r = TL_OK;
    }
    if (r >= 0)
        r = write_json(&s, axis, image, json, fail);
    free(s.p);
    free(calls);
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
