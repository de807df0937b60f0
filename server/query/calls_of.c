/* SPDX-License-Identifier: MIT */
/*
 * The calls of a function as a list: the longest, the shortest, or in order. Lengths are ticks
 * here, which are finer than what is shown, and converted at the end.
 */
#include "lake/locate.h"
#include "query/callsearch.h"
#include "query/seek.h"

#include <stdio.h>
#include <stdlib.h>

#define LIMIT    20
#define KEPT_MAX 100000

struct calls {
    struct tl_timing_ask ask;
    const struct tl_calls_request *request;
    struct tl_sought sought;
    struct tl_callsearch search;
};

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
        .switched_out = tl_timing_shown(lane, call->switched_out),
        .depth = call->depth,
        .cut = call->cut,
        .open = call->open,
    };
}

static int answer(struct calls *c, struct tl_calls *out)
{
    const struct tl_best *const best = &c->search.best;
    const struct tl_call_hit *const hits = best->rows;
    out->all = c->search.all;
    snprintf(out->what, sizeof out->what, "%s", c->sought.what);
    out->p = calloc(best->n + 1, sizeof *out->p);
    for (size_t i = 0; out->p && i < best->n; i++)
        out->p[out->n++] = row_of(c, &hits[i].call);
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

/* Lengths are time where there is any, and asked for; they cannot be compared where there is none.
 */
static int weigh(struct calls *c, struct tl_fail *fail)
{
    const bool all = c->request->least == 0 && c->request->most == UINT64_MAX;
    c->search.weight = c->request->weight;
    if (c->request->weight != TL_WEIGHT_TIME)
        return TL_OK;
    const int r = tl_cut_need_time(&c->ask.cut, all ? NULL : fail);
    if (r != TL_USAGE || !all)
        return r;
    c->search.weight = TL_WEIGHT_INSNS;
    return TL_OK;
}

/* The least number of ticks that is shown as at least `length`. */
static uint64_t ticks_of(const struct calls *c, uint64_t length)
{
    const struct tl_lane *const lane = c->ask.cut.lane;
    uint64_t low = 0, high = 1;
    if (length == UINT64_MAX || c->request->weight != TL_WEIGHT_TIME)
        return length;
    while (high < UINT64_MAX / 4 && tl_timing_shown(lane, high) < length)
        high *= 2;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (tl_timing_shown(lane, middle) < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Find them. What is stored may be of another opinion than the stream, if that was repaired. */
static int search(struct calls *c, struct tl_fail *fail)
{
    struct tl_callsearch *const s = &c->search;
    const uint64_t skip = c->request->skip;
    int r = TL_NOTFOUND;
    s->cut = &c->ask.cut;
    s->from = c->ask.from;
    s->to = c->ask.to < s->cut->end ? c->ask.to : s->cut->end;
    s->from = s->from < s->to ? s->from : s->to;
    s->symbols = c->sought.symbols;
    s->n_symbols = c->sought.n_symbols;
    s->order = c->request->order;
    s->least = ticks_of(c, c->request->least);
    s->most = ticks_of(c, c->request->most);
    for (s->walks = false; r == TL_NOTFOUND; s->walks = true) {
        s->best.most = skip + (c->request->limit ? c->request->limit : LIMIT);
        r = tl_callsearch_run(s, fail);
        if (r >= 0)
            tl_best_skip(&s->best, skip);
        if (r >= 0)
            r = tl_callsearch_complete(s, fail);
        if (s->walks)
            break;
    }
    tl_timing_ask_extent(&c->ask, &s->extent);
    return r;
}

int tl_lake_calls_of(struct tl_lake *lake, const struct tl_calls_request *request,
                     struct tl_calls *out, struct tl_fail *fail)
{
    struct calls c = {.request = request};
    const struct tl_find_request find = {.kind = TL_FIND_CALL, .text = request->function};
    *out = (struct tl_calls){0};
    int r = check(request, fail);
    if (r < 0)
        return r;
    r = tl_timing_ask_begin(&c.ask, lake, &request->range, &out->about, fail);
    if (r >= 0)
        r = weigh(&c, fail);
    if (r >= 0)
        r = check_lengths(&c, fail);
    if (r >= 0)
        r = tl_sought_init(&c.sought, c.ask.cut.gen, &find, fail);
    if (r >= 0)
        r = search(&c, fail);
    if (r >= 0)
        r = answer(&c, out);
    tl_sought_fini(&c.sought);
    free(c.search.best.rows);
    tl_timing_ask_end(&c.ask);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
