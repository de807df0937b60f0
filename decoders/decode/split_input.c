/* SPDX-License-Identifier: MIT */
/*
 * The run that contains a byte is found by bisection, since a part may begin at any byte of many
 * short runs. Places are pointers only once everything is gathered: until then their buffer may
 * move.
 */
#include "decode/split_input.h"

#include "base/search.h"

#include <stdlib.h>

size_t tl_split_run_find(const struct tl_split_input *in, size_t at)
{
    const size_t begun = tl_count_upto(TL_KEYS(in->runs, start), in->n_runs, at);
    return begun > 0 ? begun - 1 : 0;
}

struct tl_run tl_split_run_from(const struct tl_split_input *in, size_t i, size_t at)
{
    const struct tl_split_run *const run = &in->runs[i];
    const size_t end = i + 1 < in->n_runs ? run[1].start : in->n;
    const struct tl_run whole = {in->p + run->start, end - run->start, run->base, run->place};
    return tl_run_from(&whole, at - run->start);
}

int tl_split_gather_add(struct tl_split_gather *g, const struct tl_run *run)
{
    if (tl_grow(&g->runs, &g->cap_runs, g->n_runs + 1, sizeof *g->runs) < 0)
        return TL_NOMEM;
    struct tl_split_run *const place = &g->runs[g->n_runs++];
    *place = (struct tl_split_run){g->bytes.n, run->base, SIZE_MAX, NULL};
    if (run->place) {
        place->places = g->places.n / sizeof *run->place;
        if (tl_buf_add(&g->places, run->place, (run->n + 1) * sizeof *run->place) < 0)
            return TL_NOMEM;
    }
    return tl_buf_add(&g->bytes, run->p, run->n);
}

struct tl_split_input tl_split_gather_input(struct tl_split_gather *g)
{
    for (size_t i = 0; i < g->n_runs; i++) /* `places` does not move any more */
        if (g->runs[i].places != SIZE_MAX)
            g->runs[i].place = (const uint16_t *)(const void *)g->places.p + g->runs[i].places;
    return (struct tl_split_input){g->bytes.p, g->bytes.n, g->runs, g->n_runs};
}

void tl_split_gather_reset(struct tl_split_gather *g)
{
    tl_buf_reset(&g->bytes);
    tl_buf_reset(&g->places);
    g->n_runs = 0;
}

void tl_split_gather_fini(struct tl_split_gather *g)
{
    free(g->runs);
    tl_buf_fini(&g->bytes);
    tl_buf_fini(&g->places);
    *g = (struct tl_split_gather){0};
}
