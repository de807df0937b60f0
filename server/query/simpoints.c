/* SPDX-License-Identifier: MIT */
/*
 * Representative regions of a stream. Intervals are processed in any order by all idle processors,
 * but in order and by one thread if their vectors are requested.
 */
#include "regions/simpoints.h"
#include "base/cancel.h"
#include "lake/locate.h"
#include "lake_analysis.h"
#include "query/query.h"
#include "query/sweep.h"
#include "regions/cluster.h"
#include "stf/operands.h"

#include <stdlib.h>

#define INTERVALS_MAX 1000000
#define REGIONS_MAX   200
#define EFFORT_MAX    UINT64_C(3000000000) /* coordinates compared: some two seconds */
#define EFFORT_USUAL  20                   /* times the least */
#define PIECE_INSNS   (UINT64_C(4) << 20)  /* minimum size of a piece of a sweep */

struct search {
    const struct tl_cut *cut;
    const struct tl_simpoints_request *request;
    uint64_t from, to;
    uint64_t piece;             /* instructions, a multiple of the interval */
    struct tl_simpoints *found; /* by piece */
};

static int add_accesses(struct tl_vectors *v, const struct tl_walk *walk,
                        const struct tl_walk_step *insn)
{
    struct tl_stf_group group = {insn->group, walk->groups.layout};
    struct tl_stf_access access;
    int r = TL_OK;
    while (r >= 0 && tl_stf_group_access(&group, &access) == TL_OK)
        if (!access.bus)
            r = tl_vectors_access(v, access.address);
    return r;
}

static int add_block(struct tl_vectors *v, const struct tl_walk *walk, const struct tl_item *item)
{
    const enum tl_isa isa = (enum tl_isa)item->block->isa;
    struct tl_walk_step insn = {.next = item->block->pc};
    uint64_t pc = item->block->pc;
    size_t at = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0; i++, pc += insn.size) {
        r = tl_walk_insn(walk, item->block, &at, pc, &insn);
        if (r < 0)
            break;
        tl_walk_code(&insn, (uint8_t)isa);
        r = tl_vectors_insn(v, isa, pc, (struct tl_bytes){insn.code, insn.size});
        if (r >= 0 && walk->whole)
            r = add_accesses(v, walk, &insn);
    }
    return r;
}

/* Add positions [from, to): unknown encodings count as instructions too. */
static int add_range(struct tl_vectors *v, const struct tl_cut *cut, uint64_t from, uint64_t to,
                     struct tl_fail *fail)
{
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, cut, from, to);
    walk.range.tail = false;
    walk.walk.detail = TL_WALK_SPANS;
    int r = TL_OK;
    while (r >= 0 && (r = tl_cut_walk_next(&walk, fail)) >= 0) {
        for (size_t i = 0; i < walk.walk.n && r >= 0; i++) {
            const struct tl_item *const item = &walk.walk.items[i];
            if (item->kind == TL_ITEM_BLOCK)
                r = add_block(v, &walk.walk, item);
            else if (tl_item_is_point(cut->lane->protocol, item->kind))
                r = tl_vectors_insn(v, TL_ISA_NONE, tl_item_address(item), (struct tl_bytes){0});
        }
        if (r >= 0)
            r = tl_cancel_check();
    }
    tl_cut_walk_end(&walk);
    return r == TL_EOF ? tl_vectors_finish(v) : r;
}

static int add_piece(void *context, unsigned worker, size_t i, struct tl_fail *fail)
{
    struct search *const s = context;
    const uint64_t from = s->from + i * s->piece;
    const uint64_t to = s->to - from < s->piece ? s->to : from + s->piece;
    struct tl_vectors *v;
    (void)worker;
    int r = tl_vectors_new(&v, s->request->interval, tl_simpoints_add, &s->found[i]);
    if (r < 0)
        return r;
    r = add_range(v, s->cut, from, to, fail);
    tl_vectors_free(v);
    return r;
}

static int add_all(struct search *s, struct tl_lake *lake, struct tl_simpoints *out,
                   struct tl_fail *fail)
{
    const uint64_t interval = s->request->interval;
    s->piece = (PIECE_INSNS + interval - 1) / interval * interval;
    const size_t n = (size_t)((s->to - s->from + s->piece - 1) / s->piece);
    s->found = calloc(n + 1, sizeof *s->found);
    if (!s->found)
        return TL_NOMEM;
    int r = tl_sweep(lake, n, add_piece, s, fail);
    for (size_t i = 0; i < n; i++) {
        if (r >= 0)
            r = tl_simpoints_join(out, &s->found[i]);
        tl_simpoints_fini(&s->found[i]);
    }
    free(s->found);
    return r;
}

struct both {
    const struct tl_simpoints_request *request;
    struct tl_simpoints *points;
    struct tl_buf line;
};

static int to_both(void *context, const struct tl_vector *vector)
{
    struct both *const both = context;
    tl_buf_reset(&both->line);
    int r = tl_simpoints_add(both->points, vector);
    if (r >= 0)
        r = tl_vector_text(&both->line, vector);
    if (r >= 0)
        r = both->request->vector(both->request->context,
                                  (struct tl_bytes){both->line.p, both->line.n});
    return r;
}

static int add_in_order(const struct search *s, struct tl_simpoints *out, struct tl_fail *fail)
{
    struct both both = {.request = s->request, .points = out};
    struct tl_vectors *v;
    int r = tl_vectors_new(&v, s->request->interval, to_both, &both);
    if (r < 0)
        return r;
    r = add_range(v, s->cut, s->from, s->to, fail);
    tl_vectors_free(v);
    tl_buf_fini(&both.line);
    return r;
}

static uint64_t count_intervals(const struct search *s)
{
    const uint64_t interval = s->request->interval, insns = s->to - s->from;
    return insns / interval + (insns % interval != 0);
}

static uint64_t find_least(const struct search *s)
{
    return tl_cluster_best_least((size_t)count_intervals(s), TL_SIMPOINT_DIMS, s->request->most);
}

/* There are more intervals than can be compared in short time. */
static int refuse_effort(const struct search *s, struct tl_fail *fail)
{
    const uint64_t interval = s->request->interval;
    const uint64_t times = find_least(s) / (EFFORT_MAX / EFFORT_USUAL) + 1;
    return tl_fail_set(fail, TL_USAGE,
                       "comparing %llu intervals for %u regions takes too long: give an interval "
                       "of %llu instructions or more, or fewer regions",
                       (unsigned long long)count_intervals(s), s->request->most,
                       (unsigned long long)(interval * (times > 2 ? times : 2)));
}

static int check(const struct search *s, struct tl_fail *fail)
{
    const uint64_t interval = s->request->interval;
    if (interval == 0 || interval > UINT32_MAX)
        return tl_fail_set(fail, TL_USAGE, "an interval has 1 to %u instructions", UINT32_MAX);
    if (count_intervals(s) > INTERVALS_MAX)
        return tl_fail_set(fail, TL_USAGE,
                           "there are more than %u such intervals: give a longer one",
                           INTERVALS_MAX);
    if (s->request->most > REGIONS_MAX)
        return tl_fail_set(fail, TL_USAGE, "there are at most %u regions, not %u", REGIONS_MAX,
                           s->request->most);
    if (find_least(s) > EFFORT_MAX)
        return refuse_effort(s, fail);
    if (tl_protocol_has(s->cut->lane->protocol, TL_TRAIT_SOFTWARE | TL_TRAIT_NOTES))
        return tl_fail_set(fail, TL_USAGE, "stream %.31s has no instructions", s->cut->lane->name);
    return TL_OK;
}

int tl_lake_simpoints(struct tl_lake *lake, const struct tl_simpoints_request *request,
                      struct tl_simpoints_found *out, struct tl_fail *fail)
{
    struct search s = {.request = request};
    uint64_t effort = EFFORT_MAX;
    struct tl_simpoints points;
    struct tl_cut cut;
    *out = (struct tl_simpoints_found){0};
    int r = tl_cut_open_outlined(&cut, lake, request->trace, request->stream, fail);
    if (r < 0)
        return r;
    s.cut = &cut;
    tl_simpoints_init(&points);
    r = tl_cut_resolve(&cut, TL_UNIT_INSN, request->from, request->to, &s.from, &s.to, fail);
    if (r >= 0)
        r = check(&s, fail);
    if (r >= 0)
        r = request->vector ? add_in_order(&s, &points, fail) : add_all(&s, lake, &points, fail);
    if (r >= 0) {
        r = tl_simpoints_choose(&points, request->most, &effort, &out->p, &out->n);
        if (r == TL_LIMIT)
            r = refuse_effort(&s, fail);
    }
    out->from = s.from;
    out->to = s.to;
    out->intervals = points.n;
    for (size_t i = 0; i < out->n; i++)
        out->p[i].first += s.from;
    tl_simpoints_fini(&points);
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

void tl_simpoints_found_fini(struct tl_simpoints_found *found)
{
    free(found->p);
    *found = (struct tl_simpoints_found){0};
}
