/* SPDX-License-Identifier: MIT */
/*
 * Stores paths of calls as nodes with a parent, found by a hash table, and merges trees. Beyond the
 * maximum, calls count for their callers, so that deep recursion costs accuracy and not memory.
 */
#include "shard/calltree.h"

#include <stdlib.h>

void tl_calltree_slim(struct tl_calltree *t)
{
    tl_numbers_fini(&t->paths);
    tl_numbers_fini(&t->numbers);
    t->paths = t->numbers = (struct tl_numbers){0};
}

void tl_calltree_fini(struct tl_calltree *t)
{
    tl_calltree_slim(t);
    free(t->nodes);
    free(t->functions);
    *t = (struct tl_calltree){0};
}

size_t tl_calltree_bytes(const struct tl_calltree *t)
{
    return t->cap_nodes * sizeof *t->nodes + t->cap_functions * sizeof *t->functions + sizeof *t;
}

int tl_calltree_root(struct tl_calltree *t)
{
    if (t->n_nodes > 0)
        return TL_OK;
    const int r = tl_grow(&t->nodes, &t->cap_nodes, 1, sizeof *t->nodes);
    if (r >= 0)
        t->nodes[t->n_nodes++] = (struct tl_calltree_node){.function = TL_NO_FUNCTION};
    return r;
}

int64_t tl_calltree_path(struct tl_calltree *t, uint32_t parent, uint32_t function)
{
    const uint64_t key = (uint64_t)parent << 32 | function;
    const uint32_t known = tl_numbers_find(&t->paths, key);
    if (known != TL_NO_NUMBER)
        return known + 1;
    if (t->n_nodes >= TL_CALLTREE_NODES) {
        t->full = true;
        return parent;
    }
    if (tl_calltree_root(t) < 0 ||
        tl_grow(&t->nodes, &t->cap_nodes, t->n_nodes + 1, sizeof *t->nodes) < 0 ||
        tl_numbers_add(&t->paths, key) < 0)
        return TL_NOMEM;
    t->nodes[t->n_nodes] = (struct tl_calltree_node){.parent = parent, .function = function};
    return (int64_t)t->n_nodes++;
}

int64_t tl_calltree_function(struct tl_calltree *t, uint32_t function)
{
    const uint32_t known = tl_numbers_find(&t->numbers, function);
    if (known != TL_NO_NUMBER)
        return known;
    if (tl_grow(&t->functions, &t->cap_functions, t->n_functions + 1, sizeof *t->functions) < 0 ||
        tl_numbers_add(&t->numbers, function) < 0)
        return TL_NOMEM;
    t->functions[t->n_functions] =
        (struct tl_calltree_function){.function = function, .min = UINT64_MAX};
    return (int64_t)t->n_functions++;
}

const struct tl_calltree_function *tl_calltree_find(const struct tl_calltree *t, uint32_t function)
{
    for (size_t i = 0; i < t->n_functions; i++)
        if (t->functions[i].function == function)
            return &t->functions[i];
    return NULL;
}

void tl_calltree_add_function(struct tl_calltree_function *to,
                              const struct tl_calltree_function *more)
{
    to->calls += more->calls;
    to->ended += more->ended;
    to->total += more->total;
    to->min = more->min < to->min ? more->min : to->min;
    if (more->ended > 0 && (to->ended == more->ended || more->max > to->max ||
                            (more->max == to->max && more->longest < to->longest))) {
        to->max = more->max;
        to->longest = more->longest;
    }
}

int tl_calltree_merge(struct tl_calltree *t, const struct tl_calltree *from)
{
    uint32_t *const numbers = malloc((from->n_nodes + 1) * sizeof *numbers);
    int r = numbers ? tl_calltree_root(t) : TL_NOMEM;
    for (size_t i = 0; i < from->n_nodes && r >= 0; i++) {
        const struct tl_calltree_node *const node = &from->nodes[i];
        const int64_t path =
            i == 0 ? 0 : tl_calltree_path(t, numbers[node->parent], node->function);
        if (path < 0) {
            r = TL_NOMEM;
            break;
        }
        numbers[i] = (uint32_t)path;
        t->nodes[path].calls += node->calls;
        t->nodes[path].self += node->self;
        t->nodes[path].time += node->time;
    }
    for (size_t i = 0; i < from->n_functions && r >= 0; i++) {
        const int64_t place = tl_calltree_function(t, from->functions[i].function);
        if (place < 0)
            r = TL_NOMEM;
        else
            tl_calltree_add_function(&t->functions[place], &from->functions[i]);
    }
    t->full |= from->full;
    free(numbers);
    return r;
}
