/* SPDX-License-Identifier: MIT */
#include "lake/codecount.h"

#include "base/cancel.h"
#include "lake/kept.h"
#include "lake/sweep.h"

#include <stdlib.h>

static int number_of(struct tl_numbers *numbers, uint64_t key, uint32_t *out)
{
    *out = tl_numbers_find(numbers, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    const int r = tl_numbers_add(numbers, key);
    *out = numbers->n - 1;
    return r;
}

/* ---- instructions that can change the flow ----------------------------------------------------
 */

struct end {
    uint64_t pc;
    uint8_t size;
};

/* Of the code that a shard executed: where runs can end. */
struct ends {
    struct tl_numbers starts;
    struct tl_numbers blocks; /* number of the start << 32 | instructions: those looked at */
    struct tl_numbers known;  /* instructions in them that can change the flow */
    struct end *v;            /* the same, with their sizes */
    size_t cap;
};

static void ends_fini(struct ends *ends)
{
    tl_numbers_fini(&ends->starts);
    tl_numbers_fini(&ends->blocks);
    tl_numbers_fini(&ends->known);
    free(ends->v);
}

static int add_end(struct ends *ends, uint64_t pc, uint8_t size)
{
    if (tl_numbers_find(&ends->known, pc) != TL_NO_NUMBER || ends->known.n >= TL_CODECOUNT_MOST)
        return TL_OK;
    int r = tl_grow(&ends->v, &ends->cap, ends->known.n + (size_t)1, sizeof *ends->v);
    if (r >= 0)
        r = tl_numbers_add(&ends->known, pc);
    if (r >= 0)
        ends->v[ends->known.n - 1] = (struct end){pc, size};
    return r;
}

/* Look at a block's instructions the first time that it is met. */
static int look_at(struct ends *ends, const struct tl_walk *walk, const struct tl_block *b)
{
    static const struct tl_isa_options any_core = {
        .arch_major = 9, .arch_minor = 9, .profile = 'A'};
    uint32_t first;
    int r = number_of(&ends->starts, b->pc, &first);
    const uint64_t key = (uint64_t)first << 32 | b->n;
    if (r < 0 || tl_numbers_find(&ends->blocks, key) != TL_NO_NUMBER ||
        ends->blocks.n >= TL_CODECOUNT_MOST)
        return r;
    struct tl_walk_step step = {0};
    uint64_t pc = b->pc;
    size_t at = 0;
    r = tl_numbers_add(&ends->blocks, key);
    for (uint32_t i = 0; i < b->n && r >= 0; i++, pc += step.size) {
        struct tl_insn insn;
        r = tl_walk_insn(walk, b, &at, pc, &step);
        if (r < 0)
            break;
        tl_walk_code(&step, b->isa);
        if (tl_insn_decode((enum tl_isa)b->isa, &any_core, pc,
                           (struct tl_bytes){step.code, step.size}, &insn) > 0 &&
            insn.kind != TL_INSN_PLAIN)
            r = add_end(ends, pc, step.size);
    }
    return r;
}

/* ---- a piece of a stream ----------------------------------------------------------------------
 */

/* Positions [from, to) of a cut. */
struct piece {
    struct tl_codecount out; /* runs from branch to branch that was taken */
    struct ends ends;
    const struct tl_cut *cut;
    uint64_t to;
    /* The run under way, which goes on over chunks of shards: */
    uint64_t first, last, next; /* its first and last instruction, and where it goes straight on */
    bool open;
    bool branched; /* its last instruction is a branch that was taken, and nothing happened since */
};

static int end_run(struct piece *p)
{
    const bool open = p->open;
    p->open = false;
    return open ? tl_codecount_run(&p->out, p->first, p->last, 1) : TL_OK;
}

static int add_block(struct piece *p, const struct tl_walk *walk, const struct tl_item *item,
                     uint64_t position)
{
    const struct tl_block *const b = item->block;
    const bool goes_on = p->open && !p->branched && b->pc == p->next;
    int r = TL_OK;
    /* Where a branch leads straight on, nobody can tell whether it was taken. */
    if (p->branched && b->pc != p->next)
        r = tl_codecount_branch(&p->out, p->last, b->pc, 1);
    if (r < 0 || position >= p->to)
        return r;
    if (!goes_on) {
        r = end_run(p);
        p->first = b->pc;
    }
    p->open = true;
    p->last = b->pc + b->size - b->last_size;
    p->next = b->pc + b->size;
    p->branched = item->flags & TL_ITEM_TAKEN;
    p->out.insns += b->n;
    return r < 0 ? r : look_at(&p->ends, walk, b);
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
        for (size_t i = 0; i < walk.walk.n && r >= 0; i++) {
            const struct tl_item *const item = &walk.walk.items[i];
            if (item->kind == TL_ITEM_BLOCK)
                r = add_block(p, &walk.walk, item, walk.walk.positions[i]);
            else if (tl_item_is_point(protocol, item->kind) || item->kind == TL_ITEM_GAP ||
                     item->kind == TL_ITEM_EXCEPTION || item->kind == TL_ITEM_TRACE_ON) {
                r = end_run(p);
                p->branched = false;
            }
        }
        if (r >= 0)
            r = tl_cancel_check();
    }
    tl_cut_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

/* A branch belongs to where it comes from: where the piece ends with one, what is behind the piece
 * says where it led. */
static int count_piece(struct piece *p, uint64_t from, struct tl_fail *fail)
{
    int r = walk_range(p, from, p->to, fail);
    if (r >= 0 && p->branched && p->to < p->cut->end)
        r = walk_range(p, p->to, p->to + 1, fail);
    return r < 0 ? r : end_run(p);
}

/* ---- runs that end at branches ----------------------------------------------------------------
 */

static int by_pc(const void *a, const void *b)
{
    const struct end *const x = a, *const y = b;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

/* A run whose first possible end is the one at or behind `first`. */
static int split_run(struct tl_codecount *out, const struct ends *ends, uint64_t first,
                     uint64_t last, uint64_t n)
{
    size_t low = 0, high = ends->known.n;
    int r = TL_OK;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ends->v[middle].pc < first)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < ends->known.n && ends->v[low].pc < last && r >= 0; low++) {
        r = tl_codecount_run(out, first, ends->v[low].pc, n);
        first = ends->v[low].pc + ends->v[low].size;
    }
    return r < 0 ? r : tl_codecount_run(out, first, last, n);
}

/* Add a piece's counts to `out`. */
static int split_runs(struct tl_codecount *out, struct piece *p)
{
    const struct tl_codecount *const c = &p->out;
    const uint64_t *const at = c->addresses.keys;
    int r = TL_OK;
    if (p->ends.known.n > 1)
        qsort(p->ends.v, p->ends.known.n, sizeof *p->ends.v, by_pc);
    for (uint32_t i = 0; i < c->runs.n && r >= 0; i++)
        r = split_run(out, &p->ends, at[c->runs.keys[i] >> 32], at[(uint32_t)c->runs.keys[i]],
                      c->run_counts[i]);
    for (uint32_t i = 0; i < c->branches.n && r >= 0; i++)
        r = tl_codecount_branch(out, at[c->branches.keys[i] >> 32],
                                at[(uint32_t)c->branches.keys[i]], c->branch_counts[i]);
    out->insns += c->insns;
    out->truncated |= c->truncated;
    return r;
}

static int merge(struct tl_codecount *c, const struct tl_codecount *more)
{
    int r = TL_OK;
    const uint64_t *const at = more->addresses.keys;
    for (uint32_t i = 0; i < more->runs.n && r >= 0; i++)
        r = tl_codecount_run(c, at[more->runs.keys[i] >> 32], at[(uint32_t)more->runs.keys[i]],
                             more->run_counts[i]);
    for (uint32_t i = 0; i < more->branches.n && r >= 0; i++)
        r = tl_codecount_branch(c, at[more->branches.keys[i] >> 32],
                                at[(uint32_t)more->branches.keys[i]], more->branch_counts[i]);
    c->insns += more->insns;
    c->truncated |= more->truncated;
    return r;
}

/* ---- shard by shard ---------------------------------------------------------------------------
 */

struct sweep {
    const struct tl_cut *cut;
    uint64_t from, to;
    size_t first; /* shard */
    struct worker {
        struct tl_codecount sum;
        struct tl_kept_counts kept; /* that are not stored yet */
    } * workers;
};

/* What a shard executed at positions [from, to). */
static int walk_piece(struct tl_codecount *out, const struct tl_cut *cut, uint64_t from,
                      uint64_t to, bool *final, struct tl_fail *fail)
{
    struct piece p = {.cut = cut, .to = to};
    int r = count_piece(&p, from, fail);
    /* Where the last branch led is not known as long as nothing is behind it. */
    *final = to < cut->end || !cut->open;
    if (r >= 0)
        r = split_runs(out, &p);
    ends_fini(&p.ends);
    tl_codecount_fini(&p.out);
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
        tl_kept_counts_store(&s.workers[i].kept, cut);
        tl_codecount_fini(&s.workers[i].sum);
    }
    free(s.workers);
    return r;
}
