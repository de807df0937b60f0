/* SPDX-License-Identifier: MIT */
/*
 * Adds up code counts of shards, from stored counts or by walking, in parallel. A branch belongs to
 * its source, so that each piece looks at what follows it and the sum does not depend on how the
 * range is divided.
 */
#include "query/codecount.h"

#include "base/cancel.h"
#include "query/kept.h"
#include "query/sweep.h"
#include "shard/runs.h"

#include <stdlib.h>

/* ---- a piece of a stream --------------------------------------------------------------------- */

#define RECENT 1024u

/* Cache of recent pairs: most repeat soon. */
struct recent {
    struct pair {
        uint64_t from, to, n; /* n 0: free */
        uint32_t program;
    } v[RECENT];
};

/* Counts over positions [from, to) of a cut. */
struct piece {
    struct tl_codecount *out;
    struct recent runs_recent, branches_recent;
    struct tl_runs runs;
    const struct tl_cut *cut;
    uint64_t to;
    struct tl_flow_now now;
    uint32_t program; /* the current program */
    uint64_t until;   /* time at which another program begins */
    /* The current run, which continues across chunks of shards: */
    uint64_t first, last, next; /* its first and last instruction, and the fall-through address */
    bool open;
    bool branched; /* the last instruction is a taken branch, and nothing happened since */
    uint32_t left; /* the program that it belongs to */
};

static int add_pair(struct piece *p, struct recent *recent, tl_codecount_add_pair *count,
                    uint32_t program, uint64_t from, uint64_t to)
{
    struct pair *const pair = &recent->v[tl_numbers_hash(from ^ to << 7) % RECENT];
    int r = TL_OK;
    if (pair->from != from || pair->to != to || pair->program != program) {
        if (pair->n > 0)
            r = count(p->out, pair->program, pair->from, pair->to, pair->n);
        *pair = (struct pair){from, to, 0, program};
    }
    pair->n++;
    return r;
}

static int add_recent(struct tl_codecount *out, const struct recent *recent,
                      tl_codecount_add_pair *count)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < RECENT && r >= 0; i++)
        if (recent->v[i].n > 0)
            r = count(out, recent->v[i].program, recent->v[i].from, recent->v[i].to,
                      recent->v[i].n);
    return r;
}

static int end_run(struct piece *p)
{
    const bool open = p->open;
    p->open = false;
    return open ? add_pair(p, &p->runs_recent, tl_codecount_run, p->program, p->first, p->last)
                : TL_OK;
}

/* Determine the program from p->now. A run ends when the program changes. */
static int set_program(struct piece *p)
{
    const struct tl_code_program program =
        tl_code_program_of(tl_gen_image(p->cut->gen), &p->now, &p->until);
    uint32_t number;
    int r = tl_codecount_program(p->out, &program, &number);
    if (r >= 0 && number != p->program)
        r = end_run(p);
    p->program = number;
    return r;
}

static int add_block(struct piece *p, const struct tl_block *b, bool taken, uint64_t position)
{
    int r = TL_OK;
    /* If the branch target is the next instruction, it is unknown whether it was taken. */
    if (p->branched && b->pc != p->next)
        r = add_pair(p, &p->branches_recent, tl_codecount_branch, p->left, p->last, b->pc);
    p->branched = false;
    if (r < 0 || position >= p->to)
        return r;
    if (p->open && b->pc != p->next)
        r = end_run(p);
    if (!p->open)
        p->first = b->pc;
    p->open = true;
    p->last = b->pc + b->size - b->last_size;
    p->next = b->pc + b->size;
    p->branched = taken;
    p->left = p->program;
    p->out->insns += b->n;
    if (p->program != TL_NO_NUMBER)
        p->out->programs[p->program].insns += b->n;
    if (r >= 0 && (taken || b->last_kind != TL_INSN_PLAIN))
        r = end_run(p);
    return r;
}

static int add_path(struct piece *p, const struct tl_item *item, uint64_t position)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < item->n && r >= 0; i++) {
        const struct tl_block *const b = tl_path_block(item->path[i]);
        r = add_block(p, b, tl_path_taken(item->path[i]), position);
        position += b->n;
    }
    return r;
}

static int add_item(struct piece *p, const struct tl_item *item, enum tl_protocol protocol)
{
    int r = TL_OK;
    tl_flow_now_item(&p->now, item);
    if (tl_codecount_stops(item->kind, tl_item_is_point(protocol, item->kind))) {
        r = end_run(p);
        p->branched = false;
    }
    return r >= 0 && tl_codecount_switches(item->kind, &p->now, p->until) ? set_program(p) : r;
}

static int walk_range(struct piece *p, uint64_t from, uint64_t to, struct tl_fail *fail)
{
    const enum tl_protocol protocol = p->cut->lane->protocol;
    struct tl_cut_walk walk;
    tl_cut_walk_begin(&walk, p->cut, from, to);
    walk.range.tail = false;
    walk.walk.detail = TL_WALK_SPANS;
    int r = TL_OK;
    while (r >= 0 && (r = tl_cut_walk_next(&walk, fail)) >= 0) {
        r = tl_runs_split(&p->runs, &walk.walk, &walk.walk.now);
        p->now = walk.walk.now;
        if (r >= 0)
            r = set_program(p);
        for (size_t i = 0; i < walk.walk.n && r >= 0; i++) {
            const struct tl_item *const item = &walk.walk.items[i];
            if (item->kind == TL_ITEM_PATH)
                r = add_path(p, item, walk.walk.positions[i]);
            else
                r = add_item(p, item, protocol);
        }
        if (r >= 0)
            r = tl_cancel_check();
    }
    tl_cut_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

/* A branch belongs to its source: if the piece ends with one, its target is taken from what follows
 * the piece. */
static int count_piece(struct piece *p, uint64_t from, struct tl_fail *fail)
{
    int r = walk_range(p, from, p->to, fail);
    if (r >= 0 && p->branched && p->to < p->cut->end)
        r = walk_range(p, p->to, p->to + 1, fail);
    if (r >= 0)
        r = end_run(p);
    if (r >= 0)
        r = add_recent(p->out, &p->runs_recent, tl_codecount_run);
    return r < 0 ? r : add_recent(p->out, &p->branches_recent, tl_codecount_branch);
}

static int merge(struct tl_codecount *c, const struct tl_codecount *more)
{
    uint32_t *const programs = calloc(more->n_programs + 1, sizeof *programs);
    int r = programs ? TL_OK : TL_NOMEM;
    for (size_t i = 0; i < more->n_programs && r >= 0; i++) {
        r = tl_codecount_program(c, &more->programs[i], &programs[i]);
        if (r >= 0 && programs[i] != TL_NO_NUMBER)
            c->programs[programs[i]].insns += more->programs[i].insns;
    }
    for (uint32_t i = 0; i < more->runs.n && r >= 0; i++) {
        const struct tl_code_pair run = tl_code_pair(more, more->runs.keys[i]);
        r = tl_codecount_run(c, programs[run.program], run.from, run.to, more->run_counts[i]);
    }
    for (uint32_t i = 0; i < more->branches.n && r >= 0; i++) {
        const struct tl_code_pair branch = tl_code_pair(more, more->branches.keys[i]);
        r = tl_codecount_branch(c, programs[branch.program], branch.from, branch.to,
                                more->branch_counts[i]);
    }
    c->insns += more->insns;
    c->truncated |= more->truncated;
    free(programs);
    return r;
}

/* ---- shard by shard -------------------------------------------------------------------------- */

struct sweep {
    const struct tl_cut *cut;
    uint64_t from, to;
    size_t first; /* shard */
    struct worker {
        struct tl_codecount sum;
        struct tl_kept kept; /* not stored yet */
    } * workers;
};

/* Count the code of a shard executed at positions [from, to). */
static int walk_piece(struct tl_codecount *out, const struct tl_cut *cut, uint64_t from,
                      uint64_t to, bool *final, struct tl_fail *fail)
{
    struct piece *const p = calloc(1, sizeof *p);
    if (!p)
        return TL_NOMEM;
    p->out = out;
    p->cut = cut;
    p->to = to;
    const int r = count_piece(p, from, fail);
    /* The target of the last branch is unknown as long as nothing follows. */
    *final = to < cut->end || !cut->open;
    tl_runs_fini(&p->runs);
    free(p);
    return r;
}

static int do_shard(void *context, unsigned number, size_t i, struct tl_fail *fail)
{
    const struct sweep *const s = context;
    struct worker *const w = &s->workers[number];
    const size_t shard = s->first + i;
    const struct tl_shard_row *const row = &s->cut->rows[shard];
    const uint64_t end = row->first + row->n, from = s->from > row->first ? s->from : row->first,
                   to = s->to < end ? s->to : end;
    const bool whole = from == row->first && to == end && shard < s->cut->n_stored;
    struct tl_codecount own = {0};
    bool final = false;
    int r = TL_NOTFOUND;
    if (from >= to)
        return TL_OK;
    if (whole)
        r = tl_kept_counts_get(s->cut, shard, &w->sum);
    if (r != TL_NOTFOUND)
        return r;
    r = walk_piece(&own, s->cut, from, to, &final, fail);
    if (r >= 0 && whole && final && !own.truncated)
        r = tl_kept_counts_add(&w->kept, s->cut, shard, &own);
    if (r >= 0)
        r = merge(&w->sum, &own);
    tl_codecount_fini(&own);
    return r;
}

int tl_codecount_add(struct tl_codecount *c, const struct tl_cut *cut, uint64_t from, uint64_t to,
                     struct tl_fail *fail)
{
    const unsigned n = tl_sweep_workers(cut->gen->lake);
    const size_t first = tl_cut_shard_at(cut, from);
    struct sweep s = {cut, from, to, first, calloc(n, sizeof *s.workers)};
    size_t shards = 0;
    if (!s.workers)
        return TL_NOMEM;
    while (from < to && first + shards < cut->n_rows && cut->rows[first + shards].first < to)
        shards++;
    int r = tl_sweep(cut->gen->lake, shards, do_shard, &s, fail);
    for (unsigned i = 0; i < n; i++) {
        if (r >= 0)
            r = merge(c, &s.workers[i].sum);
        tl_kept_store(&s.workers[i].kept, cut);
        tl_codecount_fini(&s.workers[i].sum);
    }
    free(s.workers);
    return r;
}
