/* SPDX-License-Identifier: MIT */
/*
 * Times of calls, worked out plainly from all items of a stream at once: what is counted while
 * shards are made must be the same.
 */
#ifndef TL_TESTS_CALL_TWIN_H
#define TL_TESTS_CALL_TWIN_H

#include "flow/callstack.h"
#include "setup/format.h"
#include "shard/callindex.h"
#include "shard/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct twin_knot {
    uint8_t kind; /* of the item: TIME, CYCLES, GAP for breaks */
    uint8_t flags;
    uint64_t position, value;
    size_t changes; /* before it, as items came */
};

struct twin_change {
    uint64_t position;
    bool push;
    struct tl_frame frame;
};

struct twin {
    enum tl_protocol protocol;
    struct tl_callstack calls;
    struct tl_flow_now now;
    uint64_t position;
    struct twin_knot *knots;
    size_t n_knots, cap_knots;
    struct twin_change *changes;
    size_t n_changes, cap_changes;
    size_t first, last; /* knots that are the first and the last timestamp */
    bool timed;
};

static inline int twin_on_frame(void *context, enum tl_frame_change change,
                                const struct tl_frame *frame, uint32_t depth, uint64_t insn)
{
    struct twin *const t = context;
    (void)depth;
    assert_int_equal(tl_grow(&t->changes, &t->cap_changes, t->n_changes + 1, sizeof *t->changes),
                     TL_OK);
    t->changes[t->n_changes++] = (struct twin_change){insn, change == TL_FRAME_PUSH, *frame};
    return TL_OK;
}

static inline struct twin *twin_new(enum tl_protocol protocol, const struct tl_image *image)
{
    struct twin *const t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->protocol = protocol;
    tl_callstack_init(&t->calls, image, 0, twin_on_frame, t);
    return t;
}

static inline void twin_free(struct twin *t)
{
    free(t->knots);
    free(t->changes);
    free(t);
}

static inline void twin_knot(struct twin *t, const struct tl_item *item)
{
    struct twin_knot knot = {.kind = item->kind, .position = t->position, .changes = t->n_changes};
    switch (item->kind) {
    case TL_ITEM_TIME:
        knot.value = t->now.axis;
        t->first = t->timed ? t->first : t->n_knots;
        t->last = t->n_knots;
        t->timed = true;
        break;
    case TL_ITEM_CYCLES:
        knot.value = item->value;
        break;
    case TL_ITEM_GAP:
    case TL_ITEM_TRACE_ON:
        knot.kind = tl_item_is_break(t->protocol, item->kind) ? TL_ITEM_GAP : TL_ITEM_TRACE_ON;
        knot.flags = tl_bucket_flags(item);
        break;
    default:
        return;
    }
    assert_int_equal(tl_grow(&t->knots, &t->cap_knots, t->n_knots + 1, sizeof *t->knots), TL_OK);
    t->knots[t->n_knots++] = knot;
}

static inline void twin_push(struct twin *t, const struct tl_item *item)
{
    if (item->kind != TL_ITEM_BLOCK) {
        tl_flow_now_item(&t->now, item);
        twin_knot(t, item);
    }
    t->calls.insns = t->position;
    assert_int_equal(tl_callstack_push(&t->calls, item, 1), TL_OK);
    t->position +=
        item->kind == TL_ITEM_BLOCK ? item->n : tl_item_is_point(t->protocol, item->kind);
}

static inline void twin_items(struct twin *t, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].kind != TL_ITEM_PATH)
            twin_push(t, &items[i]);
        else
            for (uint32_t k = 0; k < items[i].n; k++) {
                const struct tl_item one = tl_path_item(&items[i], k);
                twin_push(t, &one);
            }
}

/* ---- times ---------------------------------------------------------------------------------- */

/* From one timestamp, which is knots[from], to the next. */
struct twin_span {
    const struct twin_knot *from, *to, *gap; /* NULL: none */
    enum tl_timed_kind kind;                 /* of a gap */
};

/* Whose time it is: of nothing that is missing, a thread's that was switched out is that. */
static inline enum tl_timed_kind twin_kind(uint8_t flags)
{
    const unsigned why = flags & ~(unsigned)(TL_FLAG_GAP | TL_FLAG_OPEN);
    if (why == TL_FLAG_OFF)
        return TL_TIMED_OFF;
    return why == TL_FLAG_SWITCHED_OUT || why == (TL_FLAG_OFF | TL_FLAG_SWITCHED_OUT)
               ? TL_TIMED_SWITCHED_OUT
               : TL_TIMED_LOST;
}

static inline struct twin_span twin_span(const struct twin *t, size_t from)
{
    struct twin_span s = {.from = &t->knots[from]};
    const struct twin_knot *on = NULL;
    uint8_t flags = 0;
    for (size_t i = from + 1; i < t->n_knots && !s.to; i++) {
        if (t->knots[i].kind == TL_ITEM_TRACE_ON && t->knots[i].position == s.from->position)
            on = &t->knots[i];
        if (t->knots[i].kind == TL_ITEM_TIME)
            s.to = &t->knots[i];
        if (t->knots[i].kind != TL_ITEM_GAP)
            continue;
        s.gap = s.gap ? s.gap : &t->knots[i];
        flags |= t->knots[i].flags;
        flags = flags ? flags : TL_FLAG_OFF;
    }
    if (on && !s.gap && s.to && s.to->position == s.from->position) { /* nothing has run since */
        s.gap = on;
        flags = TL_FLAG_OFF;
    }
    s.kind = twin_kind(flags);
    return s;
}

static inline uint64_t twin_floor(unsigned __int128 a, uint64_t b, uint64_t c)
{
    return c == 0 ? 0 : (uint64_t)(a * b / c);
}

/* By cycle counts: between the counts around the position. */
static inline uint64_t twin_counted(const struct twin_span *s, uint64_t position)
{
    const uint64_t p = s->from->position, end = s->to->position, t = s->from->value,
                   span = s->to->value - t;
    uint64_t all = 0, q = p, counts = 0, stride = 1, c = 0, i = 0;
    for (const struct twin_knot *k = s->from + 1; k < s->to; k++)
        if (k->kind == TL_ITEM_CYCLES && k->position > p) {
            all += k->value;
            q = k->position;
            counts++;
        }
    if (all == 0)
        return t + twin_floor(span, position - p, end - p);
    while (counts / stride > 4096)
        stride *= 2;
    const uint64_t u = twin_floor(span, q - p, end - p);
    uint64_t low = t, low_at = p, high = s->to->value, high_at = end;
    bool above = false;
    for (const struct twin_knot *k = s->from + 1; k < s->to && !above; k++) {
        if (k->kind != TL_ITEM_CYCLES || k->position == p)
            continue;
        c += k->value;
        if (++i % stride != 0 && i != counts)
            continue;
        above = k->position > position;
        *(above ? &high : &low) = t + twin_floor(u, c, all);
        *(above ? &high_at : &low_at) = k->position;
    }
    return low + twin_floor(high - low, position - low_at, high_at - low_at);
}

/* The knot of the last timestamp at or before a position, not before the first. */
static inline size_t twin_before(const struct twin *t, uint64_t position, size_t hint)
{
    size_t at = hint;
    for (size_t i = hint; i < t->n_knots && t->knots[i].position <= position; i++)
        if (t->knots[i].kind == TL_ITEM_TIME)
            at = i;
    return at;
}

static inline uint64_t twin_time(const struct twin *t, uint64_t position, size_t *hint)
{
    const size_t at = *hint = twin_before(t, position, *hint);
    const struct twin_span s = twin_span(t, at);
    if (s.to && s.gap)
        return position < s.gap->position ? s.from->value : s.to->value;
    if (position <= s.from->position || !s.to)
        return s.from->value;
    if (tl_protocol_has_own_clock(t->protocol))
        return s.from->value;
    return twin_counted(&s, position);
}

/* ---- calls ---------------------------------------------------------------------------------- */

struct twin_call {
    struct tl_frame frame;
    uint64_t time;
};

struct twin_result {
    struct tl_call_index index; /* of TL_BY_TIME */
    struct twin_call stack[TL_CALLSTACK_MAX];
    uint32_t depth;
    uint64_t *lengths[64]; /* of the calls of the first functions that ended */
    size_t n_lengths[64];
    uint64_t time;
    uint64_t gap; /* position of the last one: what passes there is of the same kind */
    enum tl_timed_kind gap_kind; /* RUN: lost, since it is not known */
    bool passed;                 /* it lies between two timestamps: */
    uint64_t before;             /* the time of what ended there */
};

static inline struct tl_call_sums *twin_sums(struct twin_result *r, uint32_t function)
{
    const int64_t place = tl_call_index_function(&r->index, function);
    assert_true(place >= 0);
    return &r->index.functions[place].by[TL_BY_TIME];
}

static inline void twin_run(struct twin_result *r, uint64_t time)
{
    assert_true(time >= r->time);
    twin_sums(r, r->depth > 0 ? r->stack[r->depth - 1].frame.function : TL_NO_FUNCTION)->self +=
        time - r->time;
    r->time = time;
}

static inline void twin_end(struct twin_result *r, const struct twin_call *call, uint64_t position)
{
    const bool before = r->passed && r->gap == position && call->frame.insn < position;
    const uint64_t length = (before ? r->before : r->time) - call->time;
    struct tl_call_sums *const sums = twin_sums(r, call->frame.function);
    if (!tl_frame_is_call(&call->frame))
        return;
    sums->total += length;
    sums->min = sums->ended == 0 || length < sums->min ? length : sums->min;
    if (sums->ended == 0 || length > sums->max ||
        (length == sums->max && call->frame.insn < sums->longest)) {
        sums->max = length;
        sums->longest = call->frame.insn;
    }
    sums->ended++;
    const uint32_t f = call->frame.function;
    if (f >= 64)
        return;
    r->lengths[f] = realloc(r->lengths[f], (r->n_lengths[f] + 1) * sizeof(uint64_t));
    assert_non_null(r->lengths[f]);
    r->lengths[f][r->n_lengths[f]++] = length;
}

static inline void twin_change(struct twin_result *r, const struct twin_change *c, bool counts)
{
    if (!c->push) {
        assert_true(r->depth > 0);
        const struct twin_call call = r->stack[--r->depth];
        if (counts)
            twin_end(r, &call, c->position);
        return;
    }
    r->stack[r->depth++] = (struct twin_call){c->frame, r->time};
    if (counts && tl_frame_is_call(&c->frame))
        twin_sums(r, c->frame.function)->calls++;
}

static inline void twin_lose(struct twin_result *r, const struct twin_span *s)
{
    twin_run(r, s->from->value);
    if (!r->passed || r->gap != s->gap->position)
        r->before = r->time;
    r->passed = true;
    r->gap = s->gap->position;
    r->gap_kind = s->kind;
    r->index.extent.missing[s->kind] += s->to->value - r->time;
    r->time = s->to->value;
}

/* Count everything. */
static inline void twin_count(const struct twin *t, struct twin_result *r)
{
    size_t i = 0, hint = t->first;
    *r = (struct twin_result){.index = {.extent.timed = t->timed}};
    if (!t->timed)
        return;
    for (size_t k = 0; k < t->first; k++)
        if (t->knots[k].kind == TL_ITEM_GAP || t->knots[k].kind == TL_ITEM_TRACE_ON)
            r->gap = t->knots[k].position;
    r->time = t->knots[t->first].value;
    r->index.extent.begin = r->time;
    for (; i < t->knots[t->first].changes; i++)
        twin_change(r, &t->changes[i], false);
    for (size_t k = t->first; k <= t->last; k++) {
        if (t->knots[k].kind != TL_ITEM_TIME)
            continue;
        const struct twin_span s = twin_span(t, k);
        const uint64_t end = s.to ? s.to->position : t->position;
        bool open = s.to && s.gap;
        for (; i < t->n_changes && t->changes[i].position < end; i++) {
            if (open && t->changes[i].position >= s.gap->position) {
                twin_lose(r, &s);
                open = false;
            }
            twin_run(r, twin_time(t, t->changes[i].position, &hint));
            twin_change(r, &t->changes[i], true);
        }
        if (open)
            twin_lose(r, &s);
        if (s.to && r->gap == s.to->position) { /* nothing has run since */
            r->index.extent.missing[r->gap_kind ? r->gap_kind : TL_TIMED_LOST] +=
                s.to->value - r->time;
            r->time = s.to->value;
        } else if (s.to) {
            twin_run(r, s.to->value);
        }
    }
    r->index.extent.end = r->time;
}

static inline void twin_result_free(struct twin_result *r)
{
    tl_call_index_fini(&r->index);
    for (size_t i = 0; i < 64; i++)
        free(r->lengths[i]);
    free(r);
}

#endif
