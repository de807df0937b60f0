/* SPDX-License-Identifier: MIT */
/*
 * Comparison of two streams. Their steps are followed in parallel. When they differ, the nearest
 * place is searched for from which both are equal again for GRAM steps, in growing windows.
 */
#include "lake_analysis.h"
#include "query/calltree.h"
#include "query/query.h"
#include "query/stacks.h"
#include "query/steps.h"
#include "query/timed_counts.h"

#include <stdlib.h>

#define HUNKS      100
#define HUNKS_MAX  10000
#define FUNCTIONS  200
#define GRAM       4          /* equal steps required to continue there */
#define WINDOW     64         /* initial search window in steps */
#define WINDOW_MAX (1u << 18) /* maximum search window */

struct sides {
    struct tl_steps a, b;
    struct tl_numbers grams; /* of a's window, in the order of `places` */
    uint32_t *places;
    size_t cap_places;
    struct tl_compare *out;
    size_t most;
    size_t cap;
};

static const struct tl_step *step(const struct tl_steps *s, size_t i)
{
    return &s->steps[s->at + i];
}

static size_t left(const struct tl_steps *s)
{
    return s->n - s->at;
}

/* ---- where both go the same way again -------------------------------------------------------- */

/* Hash of the steps from `i` on; shorter at the end of the stream. 0: there are too few. */
static uint64_t gram(const struct tl_steps *s, size_t i)
{
    uint64_t key = 1469598103934665603u;
    if (i >= left(s) || (i + GRAM > left(s) && !s->over))
        return 0;
    for (size_t k = i; k < i + GRAM; k++)
        key = (key ^ (k < left(s) ? step(s, k)->key : 7)) * 0x9e3779b97f4a7c15u + 1;
    return key | 1;
}

/* Number the first place of each gram in the first `n` steps of a. */
static int number_grams(struct sides *s, size_t n)
{
    /* Clearing a table left by a large window takes longer than creating it. */
    if (s->grams.mask > 64 * (uint32_t)n) {
        tl_numbers_fini(&s->grams);
        s->grams = (struct tl_numbers){0};
    }
    tl_numbers_reset(&s->grams);
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = gram(&s->a, i);
        if (key == 0)
            break;
        if (tl_numbers_find(&s->grams, key) != TL_NO_NUMBER)
            continue;
        const uint32_t number = s->grams.n;
        if (tl_grow(&s->places, &s->cap_places, number + 1, sizeof *s->places) < 0 ||
            tl_numbers_add(&s->grams, key) < 0)
            return TL_NOMEM;
        s->places[number] = (uint32_t)i;
    }
    return TL_OK;
}

/* Find the nearest such place in the next steps of the windows. TL_NOTFOUND. */
static int meet_within(struct sides *s, size_t window, size_t *x, size_t *y, struct tl_fail *fail)
{
    int r = tl_steps_want(&s->a, window + GRAM, fail);
    if (r >= 0)
        r = tl_steps_want(&s->b, window + GRAM, fail);
    if (r >= 0)
        r = number_grams(s, window);
    if (r < 0)
        return r;
    size_t best = SIZE_MAX;
    for (size_t j = 0; j < window && j < best; j++) {
        const uint64_t key = gram(&s->b, j);
        if (key == 0)
            break;
        const uint32_t number = tl_numbers_find(&s->grams, key);
        if (number == TL_NO_NUMBER || s->places[number] + j >= best)
            continue;
        best = s->places[number] + j;
        *x = s->places[number];
        *y = j;
    }
    return best == SIZE_MAX ? TL_NOTFOUND : TL_OK;
}

static int meet(struct sides *s, size_t *x, size_t *y, struct tl_fail *fail)
{
    int r = TL_NOTFOUND;
    if ((left(&s->a) == 0 && s->a.over) || (left(&s->b) == 0 && s->b.over))
        return r;
    for (size_t window = WINDOW; r == TL_NOTFOUND && window <= WINDOW_MAX; window *= 8) {
        r = meet_within(s, window, x, y, fail);
        if (r == TL_NOTFOUND && left(&s->a) < window && left(&s->b) < window)
            break;
    }
    return r;
}

/* ---- side by side ---------------------------------------------------------------------------- */

static int add_hunk(struct sides *s, struct tl_compare_hunk hunk)
{
    struct tl_compare *const out = s->out;
    out->only_a += hunk.a_to - hunk.a_from;
    out->only_b += hunk.b_to - hunk.b_from;
    if (out->total_hunks++ >= s->most)
        return TL_OK;
    const int r = tl_grow(&out->hunks, &s->cap, out->n_hunks + 1, sizeof *out->hunks);
    if (r >= 0)
        out->hunks[out->n_hunks++] = hunk;
    return r;
}

/* The streams differ at these places; continue where they rejoin. TL_EOF: nowhere. */
static int take_difference(struct sides *s, uint64_t a, uint64_t b, struct tl_fail *fail)
{
    size_t x = 0, y = 0;
    int r = meet(s, &x, &y, fail);
    struct tl_compare_hunk hunk = {a, s->a.to, b, s->b.to};
    if (r == TL_OK) {
        s->a.at += x;
        s->b.at += y;
        hunk.a_to = step(&s->a, 0)->position;
        hunk.b_to = step(&s->b, 0)->position;
    } else if (r != TL_NOTFOUND) {
        return r;
    } else {
        s->out->lost = left(&s->a) > 0 && left(&s->b) > 0 && !(s->a.over && s->b.over);
        s->a.at = s->a.n;
        s->b.at = s->b.n;
    }
    const int added = add_hunk(s, hunk);
    return added < 0 ? added : r == TL_NOTFOUND ? TL_EOF : TL_OK;
}

/* Both are at an equal step: advance over all equal steps. TL_EOF: to the end. */
static int skip_equal(struct sides *s, uint64_t *a, uint64_t *b, struct tl_fail *fail)
{
    struct tl_steps *const p = &s->a, *const q = &s->b;
    for (;;) {
        int r = tl_steps_want(p, 2, fail);
        if (r >= 0)
            r = tl_steps_want(q, 2, fail);
        if (r < 0)
            return r;
        const uint64_t begin_a = step(p, 0)->position, begin_b = step(q, 0)->position;
        const uint64_t long_a = tl_steps_end(p, 0) - begin_a, long_b = tl_steps_end(q, 0) - begin_b;
        const bool more = left(p) > 1 && left(q) > 1;
        const bool alike = more && step(p, 1)->key == step(q, 1)->key;
        const uint64_t same = long_a < long_b ? long_a : long_b;
        p->at++;
        q->at++;
        if (alike && (long_a == long_b || p->calls))
            continue;
        /* The last call of both extends to the ranges' ends. */
        const bool both_end = left(p) == 0 && left(q) == 0;
        *a = p->calls ? begin_a + long_a : begin_a + same;
        *b = p->calls ? begin_b + long_b : begin_b + same;
        return both_end && *a == p->to && *b == q->to ? TL_EOF : TL_OK;
    }
}

static int compare_steps(struct sides *s, struct tl_fail *fail)
{
    uint64_t a = s->a.from, b = s->b.from;
    int r = tl_steps_want(&s->a, 1, fail);
    if (r >= 0)
        r = tl_steps_want(&s->b, 1, fail);
    if (r < 0)
        return r;
    const bool begun = left(&s->a) > 0 && left(&s->b) > 0;
    if (!begun && left(&s->a) == 0 && left(&s->b) == 0)
        return TL_OK;
    if (!begun || step(&s->a, 0)->key != step(&s->b, 0)->key)
        r = take_difference(s, a, b, fail);
    while (r >= 0) {
        r = skip_equal(s, &a, &b, fail);
        if (r >= 0)
            r = take_difference(s, a, b, fail);
    }
    return r == TL_EOF ? TL_OK : r;
}

/* ---- functions ------------------------------------------------------------------------------- */

struct side_function {
    const char *name;
    uint64_t self, calls, total;
    bool b;
};

static int by_name(const void *x, const void *y)
{
    return strcmp(((const struct side_function *)x)->name, ((const struct side_function *)y)->name);
}

/* Add every function found in the tree. */
static int add_functions(struct tl_calltree *tree, const struct tl_image *image, bool b,
                         struct side_function **list, size_t *n, size_t *cap)
{
    for (size_t i = 1; i < tree->n_nodes; i++)
        if (tl_calltree_function(tree, tree->nodes[i].function) < 0)
            return TL_NOMEM;
    const size_t first = *n;
    if (tl_grow(list, cap, *n + tree->n_functions + 1, sizeof **list) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < tree->n_functions; i++) {
        const struct tl_calltree_function *const f = &tree->functions[i];
        (*list)[(*n)++] = (struct side_function){.name = tl_function_name(image, f->function),
                                                 .calls = f->calls,
                                                 .total = f->total,
                                                 .b = b};
    }
    for (size_t i = 1; i < tree->n_nodes; i++)
        (*list)[first + tl_numbers_find(&tree->numbers, tree->nodes[i].function)].self +=
            tree->nodes[i].self;
    return TL_OK;
}

static uint64_t distance(uint64_t x, uint64_t y)
{
    return x > y ? x - y : y - x;
}

static int by_difference(const void *x, const void *y)
{
    const struct tl_compare_function *const a = x, *const b = y;
    const uint64_t p = distance(a->self_a, a->self_b), q = distance(b->self_a, b->self_b);
    if (p != q)
        return p > q ? -1 : 1;
    const uint64_t c = distance(a->calls_a, a->calls_b), d = distance(b->calls_a, b->calls_b);
    return c != d ? (c > d ? -1 : 1) : strcmp(a->name, b->name);
}

static int join_functions(struct side_function *list, size_t n, struct tl_compare *out)
{
    out->functions = calloc(n + 1, sizeof *out->functions);
    if (!out->functions)
        return TL_NOMEM;
    qsort(list, n, sizeof *list, by_name);
    struct tl_compare_function *f = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!f || strcmp(f->name, list[i].name) != 0) {
            f = &out->functions[out->n_functions++];
            f->name = list[i].name;
        }
        *(list[i].b ? &f->self_b : &f->self_a) += list[i].self;
        *(list[i].b ? &f->calls_b : &f->calls_a) += list[i].calls;
        *(list[i].b ? &f->total_b : &f->total_a) += list[i].total;
    }
    qsort(out->functions, out->n_functions, sizeof *out->functions, by_difference);
    if (out->n_functions > FUNCTIONS)
        out->n_functions = FUNCTIONS;
    return TL_OK;
}

/* Times are compared in the unit that both streams show. */
static int check_unit(const struct sides *s, struct tl_compare *out, struct tl_fail *fail)
{
    const struct tl_lane *const a = s->a.cut->lane, *const b = s->b.cut->lane;
    const bool ns = tl_lane_is_in_ns(a);
    if (out->weight != TL_WEIGHT_TIME)
        return TL_OK;
    if (ns != tl_lane_is_in_ns(b))
        return tl_fail_set(fail, TL_USAGE,
                           "the clock rate of stream %s is not known: give both traces a clock, or "
                           "compare instructions",
                           ns ? b->name : a->name);
    out->time_unit_ns = ns;
    return TL_OK;
}

static int add_tree(const struct tl_compare *out, struct tl_calltree *tree,
                    const struct tl_steps *s, struct tl_fail *fail)
{
    return out->weight == TL_WEIGHT_INSNS
               ? tl_calltree_add(tree, s->cut, s->from, s->to, fail)
               : tl_timed_tree_add(tree, s->cut, s->from, s->to, out->weight, fail);
}

static int compare_functions(const struct sides *s, struct tl_compare *out, struct tl_fail *fail)
{
    struct tl_calltree a = {0}, b = {0};
    struct side_function *list = NULL;
    size_t n = 0, cap = 0;
    int r = add_tree(out, &a, &s->a, fail);
    if (r >= 0)
        r = add_tree(out, &b, &s->b, fail);
    if (r >= 0)
        r = add_functions(&a, s->a.image, false, &list, &n, &cap);
    if (r >= 0)
        r = add_functions(&b, s->b.image, true, &list, &n, &cap);
    if (r >= 0)
        r = join_functions(list, n, out);
    free(list);
    tl_calltree_fini(&a);
    tl_calltree_fini(&b);
    return r;
}

/* ---- the answer ------------------------------------------------------------------------------ */

void tl_compare_fini(struct tl_compare *out)
{
    free(out->hunks);
    free(out->functions);
    free(out->stack_a);
    free(out->stack_b);
    tl_gen_put(out->gen_a);
    tl_gen_put(out->gen_b);
    *out = (struct tl_compare){0};
}

/* Names of the call stack at a position, outermost first. */
static int report_stack(const struct tl_steps *s, uint64_t position, const char ***names, size_t *n,
                        struct tl_fail *fail)
{
    struct tl_callstack *const calls = malloc(sizeof *calls);
    if (!calls)
        return TL_NOMEM;
    int r = position < s->cut->end ? tl_stack_at(s->cut, position, calls, fail) : TL_NOTFOUND;
    if (r >= 0 && !(*names = calloc(calls->depth + 1, sizeof **names)))
        r = TL_NOMEM;
    for (uint32_t i = 0; r >= 0 && i < calls->depth; i++)
        (*names)[(*n)++] = tl_function_name(s->image, calls->frames[i].function);
    free(calls);
    return r == TL_NOTFOUND ? TL_OK : r;
}

static int compare_cuts(struct sides *s, const struct tl_compare_request *request,
                        const struct tl_cut *a, const struct tl_cut *b, struct tl_fail *fail)
{
    struct tl_compare *const out = s->out;
    const bool calls = request->calls;
    int r = tl_steps_init(&s->a, a, request->a.from, request->a.to, calls, fail);
    if (r >= 0)
        r = tl_steps_init(&s->b, b, request->b.from, request->b.to, calls, fail);
    s->a.by_address = s->b.by_address = s->a.has_symbols != s->b.has_symbols;
    out->weight = request->weight;
    if (r >= 0)
        r = check_unit(s, out, fail);
    if (r >= 0)
        r = compare_steps(s, fail);
    out->a_from = s->a.from;
    out->a_to = s->a.to;
    out->b_from = s->b.from;
    out->b_to = s->b.to;
    if (r >= 0 && out->n_hunks > 0)
        r = report_stack(&s->a, out->hunks[0].a_from, &out->stack_a, &out->n_stack_a, fail);
    if (r >= 0 && out->n_hunks > 0)
        r = report_stack(&s->b, out->hunks[0].b_from, &out->stack_b, &out->n_stack_b, fail);
    return r < 0 ? r : compare_functions(s, out, fail);
}

static int open_side(struct tl_cut *out, struct tl_lake *lake, const struct tl_compare_side *side,
                     struct tl_fail *fail)
{
    const struct tl_cut_range range = {TL_UNIT_INSN, side->from, side->to};
    return tl_cut_open_range(out, lake, side->trace, side->stream, &range, fail);
}

int tl_lake_compare(struct tl_lake *lake, const struct tl_compare_request *request,
                    struct tl_compare *out, struct tl_fail *fail)
{
    struct tl_cut a, b = {0};
    *out = (struct tl_compare){0};
    int r = open_side(&a, lake, &request->a, fail);
    if (r < 0)
        return r;
    r = open_side(&b, lake, &request->b, fail);
    struct sides *const s = calloc(1, sizeof *s);
    if (r >= 0 && !s)
        r = TL_NOMEM;
    if (r >= 0) {
        s->out = out;
        s->most = request->hunks == 0          ? HUNKS
                  : request->hunks < HUNKS_MAX ? request->hunks
                                               : HUNKS_MAX;
        out->gen_a = tl_gen_get(a.gen);
        out->gen_b = tl_gen_get(b.gen);
        out->behind = a.behind || b.behind;
        r = compare_cuts(s, request, &a, &b, fail);
        tl_steps_fini(&s->a);
        tl_steps_fini(&s->b);
        tl_numbers_fini(&s->grams);
        free(s->places);
    }
    free(s);
    tl_cut_close(&a);
    tl_cut_close(&b);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
