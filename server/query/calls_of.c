/* SPDX-License-Identifier: MIT */
/* The calls of a function as a list: the longest, the shortest, or in order. */
#include "query/seek.h"
#include "query/timing_answer.h"

#include <stdio.h>
#include <stdlib.h>

#define LIMIT    20
#define KEPT_MAX 100000

/* A row before conversion, with what it is sorted by. */
struct row {
    uint64_t key; /* ascending; the longest first: complements */
    struct tl_timing_call call;
};

struct calls {
    struct tl_timing_ask ask;
    const struct tl_calls_request *request;
    struct tl_sought sought;
    uint64_t all;
    struct tl_best best;
};

static int by_key(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->call.frame.insn < y->call.frame.insn ? -1 : x->call.frame.insn > y->call.frame.insn;
}

static uint64_t length_of(const struct calls *c, const struct tl_timing_call *call)
{
    return c->request->weight == TL_WEIGHT_TIME
               ? tl_timing_shown(c->ask.cut.lane, call->to.time - call->from.time)
               : call->end - call->frame.insn;
}

static int on_end(void *context, const struct tl_timing_call *call)
{
    struct calls *const c = context;
    const uint32_t function = call->frame.function;
    if (function >= c->sought.n_symbols || !c->sought.symbols[function] ||
        !tl_frame_is_call(&call->frame))
        return TL_OK;
    const uint64_t length = length_of(c, call);
    if (length < c->request->least ||
        (length >= c->request->most && c->request->most != UINT64_MAX))
        return TL_OK;
    c->all++;
    const struct row row = {c->request->order == TL_CALLS_LONGEST    ? ~length
                            : c->request->order == TL_CALLS_SHORTEST ? length
                                                                     : call->frame.insn,
                            *call};
    return tl_best_add(&c->best, &row);
}

static int on_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                   const struct tl_moment *to)
{
    struct calls *const c = context;
    (void)from;
    (void)to;
    tl_timing_ask_span(&c->ask, span);
    return TL_OK;
}

static struct tl_call_row row_of(const struct calls *c, const struct tl_timing_call *call)
{
    const struct tl_image *const image = c->sought.image;
    const struct tl_lane *const lane = c->ask.cut.lane;
    return (struct tl_call_row){
        .name = tl_function_name(image, call->frame.function),
        .caller = tl_function_name(image, call->caller),
        .from = call->frame.insn,
        .to = call->end,
        .self = call->self,
        .time_from = tl_lane_time(lane, call->from.time),
        .time_to = tl_lane_time(lane, call->to.time),
        .time = tl_timing_duration(lane, tl_timing_length(&call->from, &call->to)),
        .self_time = tl_timing_shown(lane, call->self_time),
        .interrupted = tl_timing_shown(lane, call->interrupted),
        .interruptions = call->interruptions,
        .depth = call->depth,
        .cut = call->cut,
        .open = call->open,
    };
}

static int answer(struct calls *c, struct tl_calls *out)
{
    const struct row *const rows = c->best.rows;
    const uint64_t skip = c->request->skip;
    tl_best_sort(&c->best);
    out->all = c->all;
    snprintf(out->what, sizeof out->what, "%s", c->sought.what);
    out->p = calloc(c->best.n + 1, sizeof *out->p);
    for (size_t i = 0; out->p && skip + i < c->best.n; i++)
        out->p[out->n++] = row_of(c, &rows[skip + i].call);
    return out->p ? TL_OK : TL_NOMEM;
}

void tl_calls_fini(struct tl_calls *calls)
{
    free(calls->p);
    tl_gen_put(calls->about.gen);
    *calls = (struct tl_calls){0};
}

/* Lengths in ns need a stream that has them. */
static int check_lengths(const struct calls *c, struct tl_fail *fail)
{
    enum tl_range_unit unit = TL_UNIT_NS;
    return c->request->lengths_in_ns && c->request->weight == TL_WEIGHT_TIME
               ? tl_cut_unit(&c->ask.cut, &unit, fail)
               : TL_OK;
}

static int check(const struct tl_calls_request *request, struct tl_fail *fail)
{
    if (!request->function || !*request->function)
        return tl_fail_set(fail, TL_USAGE, "calls of which function? Give its name");
    if (request->limit > KEPT_MAX || request->skip > KEPT_MAX - request->limit)
        return tl_fail_set(fail, TL_USAGE,
                           "at most %d calls are listed; ask for a part of the range, or for those "
                           "of a certain length",
                           KEPT_MAX);
    return TL_OK;
}

int tl_lake_calls_of(struct tl_lake *lake, const struct tl_calls_request *request,
                     struct tl_calls *out, struct tl_fail *fail)
{
    struct calls c = {.request = request, .best = {.size = sizeof(struct row), .compare = by_key}};
    const struct tl_timing_sinks sinks = {.span = on_span, .end = on_end, .context = &c};
    const struct tl_find_request find = {.kind = TL_FIND_CALL, .text = request->function};
    *out = (struct tl_calls){0};
    int r = check(request, fail);
    if (r < 0)
        return r;
    c.best.most = request->skip + (request->limit ? request->limit : LIMIT);
    r = tl_timing_ask_begin(&c.ask, lake, &request->range, &out->about, fail);
    if (r >= 0)
        r = check_lengths(&c, fail);
    if (r >= 0)
        r = tl_sought_init(&c.sought, c.ask.cut.gen, &find, fail);
    if (r >= 0)
        r = tl_timing_walk(&c.ask.cut, c.ask.from, c.ask.to, &sinks, fail);
    if (r >= 0)
        r = answer(&c, out);
    tl_sought_fini(&c.sought);
    free(c.best.rows);
    tl_timing_ask_end(&c.ask);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
