/* SPDX-License-Identifier: MIT */
/*
 * The call tree of a range for users, top-down or bottom-up. A tree that is too large loses its
 * smallest nodes, whose sums stay in their parents.
 */
#include "lake/locate.h"
#include "lake_analysis.h"
#include "query/calltree.h"
#include "query/query.h"
#include "query/samples.h"
#include "query/timed_counts.h"

#include <stdlib.h>

#define NODES     2000
#define NODES_MAX 20000

/* A tree being output: nodes by number, with their totals. */
struct tree {
    struct tl_calltree paths; /* numbers, parents, own instructions, calls */
    uint64_t *total;
    uint32_t *first, *next; /* linked lists of children, largest first; 0: none */
    bool *reported;
};

/* ---- the tree from below --------------------------------------------------------------------- */

/* Invert the tree: under each function its callers; self is what ends there. */
static int turn_over(const struct tl_calltree *from, struct tl_calltree *to)
{
    if (tl_calltree_path(to, 0, TL_NO_FUNCTION) < 0)
        return TL_NOMEM;
    for (size_t i = 1; i < from->n_nodes; i++) {
        const struct tl_calltree_node *node = &from->nodes[i];
        const uint64_t self = node->self, calls = node->calls;
        int64_t path = 0;
        if (self == 0 && calls == 0)
            continue;
        for (uint32_t k = (uint32_t)i; k != 0; k = from->nodes[k].parent) {
            path = tl_calltree_path(to, (uint32_t)path, from->nodes[k].function);
            if (path < 0)
                return TL_NOMEM;
            to->nodes[path].calls += calls;
        }
        to->nodes[path].self += self;
    }
    to->full |= from->full;
    return TL_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct ranked {
    uint64_t total;
    uint32_t node;
};

static int by_total(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static int sum_up(struct tree *t, size_t most, bool *truncated)
{
    const size_t n = t->paths.n_nodes;
    const struct tl_calltree_node *const nodes = t->paths.nodes;
    struct ranked *const ranked = calloc(n + 1, sizeof *ranked);
    t->total = calloc(n + 1, sizeof *t->total);
    t->first = calloc(n + 1, sizeof *t->first);
    t->next = calloc(n + 1, sizeof *t->next);
    t->reported = calloc(n + 1, sizeof *t->reported);
    if (!ranked || !t->total || !t->first || !t->next || !t->reported) {
        free(ranked);
        return TL_NOMEM;
    }
    for (size_t i = n; i-- > 0;) {
        t->total[i] += nodes[i].self;
        if (i > 0)
            t->total[nodes[i].parent] += t->total[i];
    }
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){t->total[i], (uint32_t)i};
    qsort(ranked, n, sizeof *ranked, by_total);
    /* A parent has at least the total of its child, and a lower number: it is included too. */
    size_t reported = 0;
    for (size_t i = 0; i < n; i++)
        if (ranked[i].total > 0 && reported < most) {
            t->reported[ranked[i].node] = true;
            reported++;
        } else if (ranked[i].total > 0) {
            *truncated = true;
        }
    /* Lists are built from their ends. */
    for (size_t i = n; i-- > 0;) {
        const uint32_t node = ranked[i].node;
        if (node == 0 || !t->reported[node])
            continue;
        t->next[node] = t->first[nodes[node].parent];
        t->first[nodes[node].parent] = node;
    }
    free(ranked);
    return TL_OK;
}

static void free_tree(struct tree *t)
{
    tl_calltree_fini(&t->paths);
    free(t->total);
    free(t->first);
    free(t->next);
    free(t->reported);
}

static uint64_t address_of(const struct tl_image *image, uint32_t function)
{
    size_t n = 0;
    const struct tl_symbol *const symbols = image ? tl_image_symbols(image, &n) : NULL;
    return function < n ? symbols[function].address : 0;
}

static int list_nodes(const struct tree *t, const struct tl_image *image, struct tl_profile *out)
{
    const struct tl_calltree_node *const nodes = t->paths.nodes;
    size_t n = 0;
    for (size_t i = 1; i < t->paths.n_nodes; i++)
        n += t->reported[i];
    out->nodes = calloc(n + 1, sizeof *out->nodes);
    if (!out->nodes)
        return TL_NOMEM;
    uint32_t depth = 0;
    for (uint32_t at = t->paths.n_nodes > 0 ? t->first[0] : 0; at != 0;) {
        out->nodes[out->n_nodes++] =
            (struct tl_profile_node){.name = tl_function_name(image, nodes[at].function),
                                     .pc = address_of(image, nodes[at].function),
                                     .depth = depth,
                                     .total = t->total[at],
                                     .self = nodes[at].self,
                                     .calls = nodes[at].calls};
        if (t->first[at]) {
            at = t->first[at];
            depth++;
            continue;
        }
        while (at != 0 && t->next[at] == 0) {
            at = nodes[at].parent;
            depth--;
        }
        at = at ? t->next[at] : 0;
    }
    return TL_OK;
}

/* ---- functions ------------------------------------------------------------------------------- */

static int by_self(const void *a, const void *b)
{
    const struct tl_profile_function *x = a, *y = b;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return x->pc < y->pc ? -1 : x->pc > y->pc;
}

/* Does the path's last function occur earlier in the path? */
static bool is_recursive(const struct tl_calltree *t, size_t node)
{
    const uint32_t function = t->nodes[node].function;
    for (uint32_t k = t->nodes[node].parent; k != 0; k = t->nodes[k].parent)
        if (t->nodes[k].function == function)
            return true;
    return false;
}

static int list_functions(struct tl_calltree *t, const struct tl_image *image,
                          struct tl_profile *out)
{
    uint64_t *const total = calloc(t->n_nodes + 1, sizeof *total);
    int r = total ? TL_OK : TL_NOMEM;
    /* Also functions that were executed but not called. */
    for (size_t i = 1; i < t->n_nodes && r >= 0; i++)
        r = tl_calltree_function(t, t->nodes[i].function) < 0 ? TL_NOMEM : TL_OK;
    out->functions = calloc(t->n_functions + 1, sizeof *out->functions);
    if (r < 0 || !out->functions) {
        free(total);
        return TL_NOMEM;
    }
    for (size_t i = 0; i < t->n_functions; i++) {
        const struct tl_calltree_function *const f = &t->functions[i];
        out->functions[i] =
            (struct tl_profile_function){.name = tl_function_name(image, f->function),
                                         .program = tl_function_program(image, f->function),
                                         .pc = address_of(image, f->function),
                                         .calls = f->calls,
                                         .finished = f->ended,
                                         .length = f->total,
                                         .min = f->ended > 0 ? f->min : 0,
                                         .max = f->max};
    }
    out->n_functions = t->n_functions;
    for (size_t i = t->n_nodes; i-- > 1;) {
        total[i] += t->nodes[i].self;
        total[t->nodes[i].parent] += total[i];
        struct tl_profile_function *const f =
            &out->functions[tl_numbers_find(&t->numbers, t->nodes[i].function)];
        f->self += t->nodes[i].self;
        if (!is_recursive(t, i))
            f->total += total[i];
    }
    free(total);
    qsort(out->functions, out->n_functions, sizeof *out->functions, by_self);
    while (out->n_functions > 0 && out->functions[out->n_functions - 1].total == 0 &&
           out->functions[out->n_functions - 1].calls == 0)
        out->n_functions--;
    return TL_OK;
}

/* ---- the answer ------------------------------------------------------------------------------ */

void tl_profile_fini(struct tl_profile *profile)
{
    free(profile->nodes);
    free(profile->functions);
    tl_gen_put(profile->gen);
    *profile = (struct tl_profile){0};
}

struct collecting {
    struct tl_calltree *tree;
    const struct tl_profile_request *request;
    struct tl_profile *out;
    bool counted, left_out; /* any stream: others have no times */
};

static int add_flow(const struct collecting *c, const struct tl_cut *cut, uint64_t from,
                    uint64_t to, struct tl_fail *fail)
{
    if (c->request->weight == TL_WEIGHT_INSNS)
        return tl_calltree_add(c->tree, cut, from, to, fail);
    c->out->weight = c->request->weight;
    return tl_timed_tree_add(c->tree, cut, from, to, c->request->weight, fail);
}

/* Of several streams those are counted that have times. */
static int settle(struct collecting *c, int r)
{
    const bool all = !(c->request->stream && *c->request->stream);
    const bool leaves = r == TL_USAGE && all && c->request->weight == TL_WEIGHT_TIME;
    c->left_out |= leaves;
    c->counted |= r >= 0;
    return leaves ? TL_OK : r;
}

static int add_stream(void *context, const struct tl_cut *cut, enum tl_range_unit unit,
                      struct tl_fail *fail)
{
    struct collecting *const c = context;
    uint64_t from, to;
    struct tl_position a = {0}, b = {0};
    int r = tl_cut_resolve(cut, unit, c->request->from, c->request->to, &from, &to, fail);
    c->out->behind |= cut->behind;
    c->out->sampled = tl_protocol_has(cut->lane->protocol, TL_TRAIT_SOFTWARE);
    if (r >= 0)
        r = c->out->sampled ? tl_samples_add(c->tree, cut, from, to, &c->out->asleep, fail)
                            : settle(c, add_flow(c, cut, from, to, fail));
    if (r >= 0)
        r = tl_cut_locate(cut, from, &a, fail);
    if (r >= 0)
        r = tl_cut_locate(cut, to, &b, fail);
    c->out->has_time = a.has_time && b.has_time;
    c->out->time = b.time - a.time;
    return r;
}

int tl_lake_profile(struct tl_lake *lake, const struct tl_profile_request *request,
                    struct tl_profile *out, struct tl_fail *fail)
{
    struct tl_calltree all = {0};
    struct tree tree = {0};
    const uint32_t most = request->nodes == 0 ? NODES : request->nodes;
    *out = (struct tl_profile){0};
    struct collecting collecting = {.tree = &all, .request = request, .out = out};
    int r = tl_cuts_of_flow(lake, request->trace, request->stream, request->unit, request->from,
                            request->to, add_stream, &collecting, &out->gen, fail);
    if (r >= 0 && collecting.left_out && !collecting.counted)
        r = TL_USAGE; /* as told by the last one */
    if (!(request->stream && *request->stream))
        out->has_time = false; /* the streams' times may differ */
    const struct tl_image *const image = r >= 0 ? tl_gen_image(out->gen) : NULL;
    if (r >= 0)
        r = list_functions(&all, image, out);
    for (size_t i = 0; i < all.n_nodes; i++)
        out->insns += all.nodes[i].self;
    if (r >= 0 && request->callers) {
        r = turn_over(&all, &tree.paths);
        tl_calltree_fini(&all);
    } else {
        tree.paths = all;
        all = (struct tl_calltree){0};
    }
    out->truncated = tree.paths.full;
    if (r >= 0)
        r = sum_up(&tree, (most < NODES_MAX ? most : NODES_MAX) + 1, &out->truncated);
    if (r >= 0)
        r = list_nodes(&tree, image, out);
    free_tree(&tree);
    tl_calltree_fini(&all);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
