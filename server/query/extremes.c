/* SPDX-License-Identifier: MIT */
/*
 * What is worth a look in a trace that nobody has looked at yet, from the tables of its longest
 * streams. A function's longest call is compared with its median: main() is always the longest.
 */
#include "query/timing_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS 2
#define OFTEN   10 /* calls: with fewer of them none is usual */
#define UNUSUAL 3  /* times the median */
#define GAPS    20 /* looked through for one that is not tracing off */

struct looking {
    struct tl_lake *lake;
    struct tl_timing_range range;
    struct tl_extreme best[TL_EXTREME_KINDS];
    bool has[TL_EXTREME_KINDS];
};

/* Is it farther from what is usual than what was found before? */
static bool is_better(const struct looking *l, enum tl_extreme_kind kind, uint64_t length,
                      uint64_t usual)
{
    const struct tl_extreme *const e = &l->best[kind];
    return !l->has[kind] || length - usual > e->length - (kind == TL_EXTREME_CALL ? e->usual : 0);
}

static int keep(struct looking *l, const struct tl_extreme *extreme, const char *name)
{
    struct tl_extreme *const e = &l->best[extreme->kind];
    char *const own = name && *name ? strdup(name) : NULL;
    if (name && *name && !own)
        return TL_NOMEM;
    free(e->name);
    *e = *extreme;
    e->name = own;
    snprintf(e->stream, sizeof e->stream, "%s", l->range.stream);
    l->has[e->kind] = true;
    return TL_OK;
}

static int look_at_interrupts(struct looking *l, struct tl_fail *fail)
{
    struct tl_exception_table table = {0};
    int r = tl_lake_exception_table(l->lake, &l->range, &table, fail);
    for (size_t i = 0; r >= 0 && i < table.n; i++) {
        const struct tl_exception_row *const row = &table.p[i];
        const struct tl_lengths *const of = table.about.has_time ? &row->time : &row->insns;
        if (row->ended == 0 || !is_better(l, TL_EXTREME_INTERRUPT, of->max, 0))
            continue;
        struct tl_extreme e = {.kind = TL_EXTREME_INTERRUPT,
                               .number = row->number,
                               .position = of->longest,
                               .has_time = table.about.has_time,
                               .time_unit_ns = table.about.time_unit_ns,
                               .length = of->max,
                               .usual = of->p50};
        memcpy(e.exception, row->name, sizeof e.exception);
        r = keep(l, &e, row->handler);
    }
    tl_exception_table_fini(&table);
    return r;
}

static int look_at_calls(struct looking *l, struct tl_fail *fail)
{
    const struct tl_function_table_request request = {.range = l->range, .weight = TL_WEIGHT_TIME};
    struct tl_function_table table = {0};
    int r = tl_lake_function_table(l->lake, &request, &table, fail);
    for (size_t i = 0; r >= 0 && i < table.n; i++) {
        const struct tl_function_times *const row = &table.p[i];
        const struct tl_lengths *const of = table.about.has_time ? &row->time : &row->insns;
        if (!*row->name || row->ended < OFTEN || of->max / UNUSUAL < of->p50 || of->max == 0 ||
            !is_better(l, TL_EXTREME_CALL, of->max, of->p50))
            continue;
        const struct tl_extreme e = {.kind = TL_EXTREME_CALL,
                                     .position = of->longest,
                                     .has_time = table.about.has_time,
                                     .time_unit_ns = table.about.time_unit_ns,
                                     .length = of->max,
                                     .usual = of->p50};
        r = keep(l, &e, row->name);
    }
    tl_function_table_fini(&table);
    return r;
}

static int look_at_gaps(struct looking *l, struct tl_fail *fail)
{
    struct tl_gap_table table = {0};
    int r = tl_lake_gap_table(l->lake, &l->range, GAPS, &table, fail);
    for (size_t i = 0; r >= 0 && i < table.n; i++) {
        const struct tl_gap_row *const row = &table.p[i];
        const uint64_t length = row->time_to - row->time_from;
        if (row->off || row->switched_out || !is_better(l, TL_EXTREME_GAP, length, 0))
            continue;
        const struct tl_extreme e = {.kind = TL_EXTREME_GAP,
                                     .reasons = row->reasons,
                                     .position = row->position,
                                     .has_time = true,
                                     .time_unit_ns = table.about.time_unit_ns,
                                     .length = length,
                                     .time_from = row->time_from,
                                     .time_to = row->time_to};
        r = keep(l, &e, NULL);
    }
    tl_gap_table_fini(&table);
    return r;
}

/* The longest streams, longest first. */
struct longest {
    struct lane {
        char name[32];
        uint64_t insns;
    } lanes[STREAMS + 1];
    size_t n;
};

static int note_lane(void *context, const struct tl_cut *cut, enum tl_range_unit unit,
                     struct tl_fail *fail)
{
    struct longest *const all = context;
    size_t i = all->n;
    (void)unit;
    (void)fail;
    for (; i > 0 && all->lanes[i - 1].insns < cut->end; i--)
        all->lanes[i] = all->lanes[i - 1];
    memcpy(all->lanes[i].name, cut->lane->name, sizeof all->lanes[i].name);
    all->lanes[i].insns = cut->end;
    all->n += all->n < STREAMS && !cut->open;
    return TL_OK;
}

static int look_at_lanes(struct looking *l, uint64_t most, size_t *left_out, struct tl_fail *fail)
{
    struct longest all = {0};
    struct tl_gen *gen = NULL;
    int r = tl_cuts_of_flow(l->lake, l->range.trace, NULL, TL_UNIT_INSN, 0, UINT64_MAX, note_lane,
                            &all, &gen, fail);
    tl_gen_put(gen);
    for (size_t i = 0; i < all.n && r >= 0; i++) {
        if (most > 0 && all.lanes[i].insns > most) {
            ++*left_out;
            continue;
        }
        l->range.stream = all.lanes[i].name;
        r = look_at_interrupts(l, fail);
        if (r >= 0)
            r = look_at_calls(l, fail);
        if (r >= 0)
            r = look_at_gaps(l, fail);
    }
    return r;
}

int tl_lake_extremes(struct tl_lake *lake, const char *trace, uint64_t most,
                     struct tl_extremes *out, struct tl_fail *fail)
{
    struct looking l = {.lake = lake, .range = {.trace = trace, .to = UINT64_MAX}};
    *out = (struct tl_extremes){0};
    const int r = look_at_lanes(&l, most, &out->left_out, fail);
    for (size_t kind = 0; kind < TL_EXTREME_KINDS; kind++)
        if (l.has[kind])
            out->p[out->n++] = l.best[kind];
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

void tl_extremes_fini(struct tl_extremes *extremes)
{
    for (size_t i = 0; i < extremes->n; i++)
        free(extremes->p[i].name);
    *extremes = (struct tl_extremes){0};
}
