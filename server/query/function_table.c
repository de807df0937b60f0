/* SPDX-License-Identifier: MIT */
/*
 * The functions of a range with their time. Times of short spans are estimates; their bounds are
 * summed up by the distances between timestamps: a function that alone ran between two has all of
 * that, of others it may have anything from nothing to all. That needs the spans, so there are no
 * bounds where counts of whole shards are used.
 */
#include "query/query.h"
#include "query/timed_counts.h"
#include "query/timing_answer.h"

#include <stdlib.h>

#define LIMIT     1000
#define LIMIT_MAX 100000
#define WALKED    (4u << 20) /* ranges up to this are walked, for bounds: some tenths of a second */

/* Bounds of a function's own time. */
struct bounds {
    uint64_t least, most;
    uint64_t distance; /* begin of the last distance that counts in `most`, + 1 */
};

struct function {
    uint32_t number; /* in the index of calls */
    uint64_t self, self_time, total, total_time;
};

struct table {
    struct tl_timing_ask ask;
    const struct tl_image *image;
    struct tl_timed_counts counts;
    struct tl_numbers numbers; /* of bounds, by symbol */
    struct bounds *bounds;
    size_t n_bounds, cap_bounds;
    /* Spans of one function, one after the other, are one. */
    struct tl_moment from, to;
    uint32_t symbol; /* theirs */
    bool pending;
    struct function *p; /* by number in the index */
    size_t n;
};

/* ---- bounds ---------------------------------------------------------------------------------- */

static struct bounds *bounds_of(struct table *t, uint32_t symbol)
{
    const uint32_t at = tl_numbers_find(&t->numbers, symbol);
    if (at != TL_NO_NUMBER)
        return &t->bounds[at];
    if (tl_grow(&t->bounds, &t->cap_bounds, t->n_bounds + 1, sizeof *t->bounds) < 0 ||
        tl_numbers_add(&t->numbers, symbol) < 0)
        return NULL;
    t->bounds[t->n_bounds] = (struct bounds){0};
    return &t->bounds[t->n_bounds++];
}

/* Between two timestamps from `begin` to `end` others ran too: it may have had all of it. */
static void may_have(struct bounds *b, uint64_t begin, uint64_t end)
{
    if (b->distance != begin + 1 && end != UINT64_MAX)
        b->most += end - begin;
    b->distance = begin + 1;
}

static int add_bounds(struct table *t)
{
    struct bounds *const f = t->pending ? bounds_of(t, t->symbol) : NULL;
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
    if (!runs || !t->pending || t->symbol != span->function)
        r = add_bounds(t);
    if (!runs || r < 0)
        return r;
    t->from = t->pending ? t->from : *from;
    t->to = *to;
    t->symbol = span->function;
    t->pending = true;
    return TL_OK;
}

/* Bounds of a time, which is `time` itself. */
static struct tl_moment bounded(const struct table *t, uint32_t symbol, uint64_t time)
{
    const uint32_t at = tl_numbers_find(&t->numbers, symbol);
    const struct bounds none = {0}, *const b = at == TL_NO_NUMBER ? &none : &t->bounds[at];
    return t->counts.shards > 0 ? (struct tl_moment){time, 0, UINT64_MAX}
                                : (struct tl_moment){time, b->least, b->most};
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Does the path's last function occur earlier in the path? */
static bool is_recursive(const struct tl_calltree *t, size_t node)
{
    for (uint32_t k = t->nodes[node].parent; k != 0; k = t->nodes[k].parent)
        if (t->nodes[k].function == t->nodes[node].function)
            return true;
    return false;
}

/* Times with callees: of all paths that end with the function, and go on. */
static int sum_up(struct table *t)
{
    const struct tl_calltree *const tree = &t->counts.tree;
    uint64_t *const insns = calloc(tree->n_nodes + 1, sizeof *insns);
    uint64_t *const time = calloc(tree->n_nodes + 1, sizeof *time);
    int r = insns && time ? TL_OK : TL_NOMEM;
    for (size_t i = tree->n_nodes; r >= 0 && i-- > 1;) {
        const struct tl_calltree_node *const node = &tree->nodes[i];
        insns[i] += node->self;
        time[i] += node->time;
        insns[node->parent] += insns[i];
        time[node->parent] += time[i];
        const uint32_t number = tl_numbers_find(&t->counts.index.numbers, node->function);
        if (number == TL_NO_NUMBER || is_recursive(tree, i))
            continue;
        t->p[number].total += insns[i];
        t->p[number].total_time += time[i];
    }
    free(insns);
    free(time);
    return r;
}

static int list(struct table *t)
{
    const struct tl_call_index *const x = &t->counts.index;
    t->p = calloc(x->n_functions + 1, sizeof *t->p);
    if (!t->p)
        return TL_NOMEM;
    for (size_t i = 0; i < x->n_functions; i++)
        t->p[i] = (struct function){.number = (uint32_t)i,
                                    .self = x->functions[i].by[TL_BY_INSNS].self,
                                    .self_time = x->functions[i].by[TL_BY_TIME].self};
    t->n = x->n_functions;
    return sum_up(t);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->self_time != y->self_time)
        return x->self_time > y->self_time ? -1 : 1;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int by_insns(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return by_time(a, b);
}

static struct tl_lengths lengths_of(const struct tl_call_sums *s, const struct tl_lane *lane)
{
    const struct tl_length_sum sum = {.sketch = s->lengths,
                                      .n = s->ended,
                                      .total = s->total,
                                      .min = s->min,
                                      .max = s->max,
                                      .longest = s->longest};
    return tl_length_result(&sum, lane);
}

static struct tl_function_times row_of(const struct table *t, const struct function *f)
{
    const struct tl_lane *const lane = t->ask.cut.lane;
    const struct tl_function_calls *const calls = &t->counts.index.functions[f->number];
    const uint32_t symbol = calls->function;
    size_t n = 0;
    const struct tl_symbol *const symbols = t->image ? tl_image_symbols(t->image, &n) : NULL;
    return (struct tl_function_times){
        .name = tl_function_name(t->image, symbol),
        .pc = symbol < n ? symbols[symbol].address : 0,
        .calls = calls->by[TL_BY_INSNS].calls,
        .ended = calls->by[TL_BY_INSNS].ended,
        .self = f->self,
        .total = f->total,
        .self_time = tl_timing_duration(lane, bounded(t, symbol, f->self_time)),
        .total_time = tl_timing_shown(lane, f->total_time),
        .insns = lengths_of(&calls->by[TL_BY_INSNS], NULL),
        .time = lengths_of(&calls->by[TL_BY_TIME], lane),
    };
}

static int answer(struct table *t, const struct tl_function_table_request *request,
                  struct tl_function_table *out)
{
    const uint32_t most = request->limit == 0          ? LIMIT
                          : request->limit < LIMIT_MAX ? request->limit
                                                       : LIMIT_MAX;
    const int r = list(t);
    if (r < 0)
        return r;
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

static int count(struct table *t, struct tl_fail *fail)
{
    struct tl_timed_counts *const c = &t->counts;
    c->span = on_span;
    c->context = t;
    c->walks = t->ask.to - t->ask.from <= WALKED;
    int r = tl_timed_counts_add(c, &t->ask.cut, t->ask.from, t->ask.to, fail);
    if (r >= 0)
        r = add_bounds(t);
    tl_timing_ask_extent(&t->ask, &c->extent);
    return r;
}

int tl_lake_function_table(struct tl_lake *lake, const struct tl_function_table_request *request,
                           struct tl_function_table *out, struct tl_fail *fail)
{
    struct table t = {0};
    *out = (struct tl_function_table){0};
    int r = tl_timing_ask_begin(&t.ask, lake, &request->range, &out->about, fail);
    if (r >= 0) {
        t.image = tl_gen_image(t.ask.cut.gen);
        r = count(&t, fail);
    }
    if (r >= 0)
        r = answer(&t, request, out);
    tl_timed_counts_fini(&t.counts);
    free(t.bounds);
    free(t.p);
    tl_numbers_fini(&t.numbers);
    tl_timing_ask_end(&t.ask);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
