/* SPDX-License-Identifier: MIT */
/*
 * The functions of a range with their time. Times of short spans are estimates; their bounds are
 * summed up by the distances between timestamps: a function that alone ran between two has all of
 * that, of others it may have anything from nothing to all.
 */
#include "query/query.h"
#include "query/timing_answer.h"

#include "base/numbers.h"

#include <stdlib.h>

#define LIMIT     1000
#define LIMIT_MAX 100000

struct function {
    uint32_t symbol;
    uint64_t calls, ended;
    uint64_t self, self_time, least, most;
    uint64_t total, total_time; /* until it was last entered, if it is active */
    uint64_t active;            /* number of its frames */
    uint64_t since, since_time; /* of all functions, when the first of them began */
    uint64_t distance;          /* begin of the last distance that counts in `most`, + 1 */
    struct tl_length_sum insns, time;
};

struct table {
    struct tl_timing_ask ask;
    const struct tl_image *image;
    struct tl_numbers numbers; /* of functions, by symbol */
    struct function *p;
    size_t n, cap;
    uint64_t insns; /* that ran so far; time: ask.ran */
    /* Spans of one function, one after the other, are one. */
    struct tl_moment from, to;
    uint32_t symbol; /* theirs */
    bool pending;
};

static struct function *function_of(struct table *t, uint32_t symbol)
{
    uint32_t at = tl_numbers_find(&t->numbers, symbol);
    if (at != TL_NO_NUMBER)
        return &t->p[at];
    if (tl_grow(&t->p, &t->cap, t->n + 1, sizeof *t->p) < 0 ||
        tl_numbers_add(&t->numbers, symbol) < 0)
        return NULL;
    t->p[t->n] = (struct function){.symbol = symbol};
    return &t->p[t->n++];
}

/* Between two timestamps from `begin` to `end` others ran too: it may have had all of it. */
static void may_have(struct function *f, uint64_t begin, uint64_t end)
{
    if (f->distance != begin + 1 && end != UINT64_MAX)
        f->most += end - begin;
    f->distance = begin + 1;
}

static int add_bounds(struct table *t)
{
    struct function *const f = t->pending ? function_of(t, t->symbol) : NULL;
    const struct tl_moment *const a = &t->from, *const b = &t->to;
    if (!t->pending)
        return TL_OK;
    if (!f)
        return TL_NOMEM;
    t->pending = false;
    if (a->least < a->most)
        may_have(f, a->least, a->most);
    if (a->most <= b->least) {
        f->least += b->least - a->most;
        f->most += b->least - a->most;
        if (b->least < b->most)
            may_have(f, b->least, b->most);
    }
    return TL_OK;
}

static int on_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                   const struct tl_moment *to)
{
    struct table *const t = context;
    const bool runs = span->kind == TL_TIMED_RUN;
    int r = TL_OK;
    tl_timing_ask_span(&t->ask, span);
    if (!runs || !t->pending || t->symbol != span->function)
        r = add_bounds(t);
    if (!runs || r < 0)
        return r;
    struct function *const f = function_of(t, span->function);
    if (!f)
        return TL_NOMEM;
    f->self += span->end - span->position;
    f->self_time += span->end_time - span->time;
    t->insns += span->end - span->position;
    t->from = t->pending ? t->from : *from;
    t->to = *to;
    t->symbol = span->function;
    t->pending = true;
    return TL_OK;
}

static int on_begin(void *context, const struct tl_frame *frame, uint32_t depth,
                    const struct tl_moment *at)
{
    struct table *const t = context;
    struct function *const f = function_of(t, frame->function);
    (void)depth;
    (void)at;
    if (!f)
        return TL_NOMEM;
    f->calls += tl_frame_is_call(frame) && frame->insn >= t->ask.from;
    if (f->active++ == 0) {
        f->since = t->insns;
        f->since_time = t->ask.ran;
    }
    return TL_OK;
}

static int on_end(void *context, const struct tl_timing_call *call)
{
    struct table *const t = context;
    struct function *const f = function_of(t, call->frame.function);
    if (!f)
        return TL_NOMEM;
    if (--f->active == 0) {
        f->total += t->insns - f->since;
        f->total_time += t->ask.ran - f->since_time;
    }
    if (call->open || !tl_frame_is_call(&call->frame))
        return TL_OK;
    f->ended++;
    const int r = tl_length_add(&f->insns, call->end - call->frame.insn, call->frame.insn);
    return r < 0 ? r : tl_length_add(&f->time, call->to.time - call->from.time, call->frame.insn);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->self_time != y->self_time)
        return x->self_time > y->self_time ? -1 : 1;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

static int by_insns(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return by_time(a, b);
}

static struct tl_function_times row_of(const struct table *t, const struct function *f)
{
    const struct tl_lane *const lane = t->ask.cut.lane;
    size_t n = 0;
    const struct tl_symbol *const symbols = t->image ? tl_image_symbols(t->image, &n) : NULL;
    return (struct tl_function_times){
        .name = tl_function_name(t->image, f->symbol),
        .pc = f->symbol < n ? symbols[f->symbol].address : 0,
        .calls = f->calls,
        .ended = f->ended,
        .self = f->self,
        .total = f->total,
        .self_time = tl_timing_duration(lane, (struct tl_moment){f->self_time, f->least, f->most}),
        .total_time = tl_timing_shown(lane, f->total_time),
        .insns = tl_length_result(&f->insns, NULL),
        .time = tl_length_result(&f->time, lane),
    };
}

static int answer(struct table *t, const struct tl_function_table_request *request,
                  struct tl_function_table *out)
{
    const uint32_t most = request->limit == 0          ? LIMIT
                          : request->limit < LIMIT_MAX ? request->limit
                                                       : LIMIT_MAX;
    if (t->n > 1)
        qsort(t->p, t->n, sizeof *t->p, request->weight == TL_WEIGHT_TIME ? by_time : by_insns);
    out->all = t->n;
    out->p = calloc(t->n + 1, sizeof *out->p);
    for (; out->p && out->n < t->n && out->n < most; out->n++)
        out->p[out->n] = row_of(t, &t->p[out->n]);
    return out->p ? TL_OK : TL_NOMEM;
}

void tl_function_table_fini(struct tl_function_table *table)
{
    free(table->p);
    tl_gen_put(table->about.gen);
    *table = (struct tl_function_table){0};
}

int tl_lake_function_table(struct tl_lake *lake, const struct tl_function_table_request *request,
                           struct tl_function_table *out, struct tl_fail *fail)
{
    struct table t = {0};
    const struct tl_timing_sinks sinks = {
        .span = on_span, .begin = on_begin, .end = on_end, .context = &t};
    *out = (struct tl_function_table){0};
    int r = tl_timing_ask_begin(&t.ask, lake, &request->range, &out->about, fail);
    if (r >= 0) {
        t.image = tl_gen_image(t.ask.cut.gen);
        r = tl_timing_walk(&t.ask.cut, t.ask.from, t.ask.to, &sinks, fail);
    }
    if (r >= 0)
        r = add_bounds(&t);
    if (r >= 0)
        r = answer(&t, request, out);
    for (size_t i = 0; i < t.n; i++) {
        tl_length_fini(&t.p[i].insns);
        tl_length_fini(&t.p[i].time);
    }
    free(t.p);
    tl_numbers_fini(&t.numbers);
    tl_timing_ask_end(&t.ask);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
