/* SPDX-License-Identifier: MIT */
#include "lake/codecount.h"

#include "base/cancel.h"
#include "lake/query.h"
#include "lake/sweep.h"

#include <stdlib.h>

#define PIECE (UINT64_C(2) << 20) /* instructions of a piece of a sweep */

void tl_codecount_fini(struct tl_codecount *c)
{
    tl_numbers_fini(&c->addresses);
    tl_numbers_fini(&c->runs);
    tl_numbers_fini(&c->branches);
    tl_numbers_fini(&c->blocks);
    tl_numbers_fini(&c->ends);
    free(c->end_sizes);
    free(c->run_counts);
    free(c->branch_counts);
    *c = (struct tl_codecount){0};
}

static int number_of(struct tl_numbers *numbers, uint64_t key, uint32_t *out)
{
    *out = tl_numbers_find(numbers, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    const int r = tl_numbers_add(numbers, key);
    *out = numbers->n - 1;
    return r;
}

/* `n` more of what goes from `a` to `b`. */
static int count(struct tl_codecount *c, struct tl_numbers *pairs, uint64_t **counts, size_t *cap,
                 uint64_t a, uint64_t b, uint64_t n)
{
    uint32_t from, to, number;
    int r = number_of(&c->addresses, a, &from);
    if (r >= 0)
        r = number_of(&c->addresses, b, &to);
    if (r < 0)
        return r;
    const uint64_t key = (uint64_t)from << 32 | to;
    number = tl_numbers_find(pairs, key);
    if (number == TL_NO_NUMBER) {
        if (pairs->n >= TL_CODECOUNT_MOST) {
            c->truncated = true;
            return TL_OK;
        }
        r = tl_grow(counts, cap, pairs->n + (size_t)1, sizeof **counts);
        if (r >= 0)
            r = tl_numbers_add(pairs, key);
        if (r < 0)
            return r;
        number = pairs->n - 1;
        (*counts)[number] = 0;
    }
    (*counts)[number] += n;
    return TL_OK;
}

static int count_run(struct tl_codecount *c, uint64_t first, uint64_t last, uint64_t n)
{
    return count(c, &c->runs, &c->run_counts, &c->cap_runs, first, last, n);
}

static int count_branch(struct tl_codecount *c, uint64_t from, uint64_t to, uint64_t n)
{
    return count(c, &c->branches, &c->branch_counts, &c->cap_branches, from, to, n);
}

/* ---- instructions that can change the flow ----------------------------------------------------
 */

static bool ends_run(const struct tl_insn *insn)
{
    return insn->kind != TL_INSN_PLAIN && insn->kind != TL_INSN_SYNC && insn->kind != TL_INSN_WAIT;
}

static int add_end(struct tl_codecount *c, uint64_t pc, uint8_t size)
{
    if (tl_numbers_find(&c->ends, pc) != TL_NO_NUMBER || c->ends.n >= TL_CODECOUNT_MOST)
        return TL_OK;
    int r = tl_grow(&c->end_sizes, &c->cap_ends, c->ends.n + (size_t)1, 1);
    if (r >= 0)
        r = tl_numbers_add(&c->ends, pc);
    if (r >= 0)
        c->end_sizes[c->ends.n - 1] = size;
    return r;
}

/* Look at a block's instructions the first time that it is met. */
static int look_at(struct tl_codecount *c, const struct tl_walk *walk, const struct tl_block *b)
{
    static const struct tl_isa_options any_core = {
        .arch_major = 9, .arch_minor = 9, .profile = 'A'};
    uint32_t first;
    int r = number_of(&c->addresses, b->pc, &first);
    const uint64_t key = (uint64_t)first << 32 | b->n;
    if (r < 0 || tl_numbers_find(&c->blocks, key) != TL_NO_NUMBER ||
        c->blocks.n >= TL_CODECOUNT_MOST)
        return r;
    struct tl_walk_step step = {0};
    uint64_t pc = b->pc;
    size_t at = 0;
    r = tl_numbers_add(&c->blocks, key);
    for (uint32_t i = 0; i < b->n && r >= 0; i++, pc += step.size) {
        struct tl_insn insn;
        r = tl_walk_insn(walk, b, &at, pc, &step);
        if (r < 0)
            break;
        tl_walk_code(&step, b->isa);
        if (tl_insn_decode((enum tl_isa)b->isa, &any_core, pc,
                           (struct tl_bytes){step.code, step.size}, &insn) > 0 &&
            ends_run(&insn))
            r = add_end(c, pc, step.size);
    }
    return r;
}

/* ---- a piece of a stream ----------------------------------------------------------------------
 */

/* Positions [from, to) of a cut. */
struct piece {
    struct tl_codecount *out;
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
    return open ? count_run(p->out, p->first, p->last, 1) : TL_OK;
}

static int add_block(struct piece *p, const struct tl_walk *walk, const struct tl_item *item,
                     uint64_t position)
{
    const struct tl_block *const b = item->block;
    const bool goes_on = p->open && !p->branched && b->pc == p->next;
    int r = TL_OK;
    /* Where a branch leads straight on, nobody can tell whether it was taken. */
    if (p->branched && b->pc != p->next)
        r = count_branch(p->out, p->last, b->pc, 1);
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
    p->out->insns += b->n;
    return r < 0 ? r : look_at(p->out, walk, b);
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

struct sweep {
    const struct tl_cut *cut;
    uint64_t from, to;
    struct tl_codecount *workers;
};

static int do_piece(void *context, unsigned worker, size_t i, struct tl_fail *fail)
{
    const struct sweep *const s = context;
    const uint64_t from = s->from + i * PIECE;
    struct piece p = {.out = &s->workers[worker],
                      .cut = s->cut,
                      .to = s->to - from < PIECE ? s->to : from + PIECE};
    return count_piece(&p, from, fail);
}

static int merge(struct tl_codecount *c, const struct tl_codecount *more)
{
    int r = TL_OK;
    const uint64_t *const at = more->addresses.keys;
    for (uint32_t i = 0; i < more->runs.n && r >= 0; i++)
        r = count_run(c, at[more->runs.keys[i] >> 32], at[(uint32_t)more->runs.keys[i]],
                      more->run_counts[i]);
    for (uint32_t i = 0; i < more->branches.n && r >= 0; i++)
        r = count_branch(c, at[more->branches.keys[i] >> 32], at[(uint32_t)more->branches.keys[i]],
                         more->branch_counts[i]);
    for (uint32_t i = 0; i < more->ends.n && r >= 0; i++)
        r = add_end(c, more->ends.keys[i], more->end_sizes[i]);
    c->insns += more->insns;
    c->truncated |= more->truncated;
    return r;
}

int tl_codecount_add(struct tl_codecount *c, const struct tl_cut *cut, uint64_t from, uint64_t to,
                     struct tl_fail *fail)
{
    const unsigned n = tl_sweep_workers(cut->gen->lake);
    struct sweep s = {cut, from, to, calloc(n, sizeof *s.workers)};
    if (!s.workers)
        return TL_NOMEM;
    int r = tl_sweep(cut->gen->lake, (size_t)((to - from + PIECE - 1) / PIECE), do_piece, &s, fail);
    for (unsigned i = 0; i < n; i++) {
        if (r >= 0)
            r = merge(c, &s.workers[i]);
        tl_codecount_fini(&s.workers[i]);
    }
    free(s.workers);
    return r;
}

/* ---- runs that end at branches ----------------------------------------------------------------
 */

struct end {
    uint64_t pc;
    uint8_t size;
};

static int by_pc(const void *a, const void *b)
{
    const struct end *const x = a, *const y = b;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

/* A run whose first possible end is the one at or behind `first`. */
static int split_run(struct tl_codecount *out, const struct end *ends, size_t n_ends,
                     uint64_t first, uint64_t last, uint64_t n)
{
    size_t low = 0, high = n_ends;
    int r = TL_OK;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ends[middle].pc < first)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n_ends && ends[low].pc < last && r >= 0; low++) {
        r = count_run(out, first, ends[low].pc, n);
        first = ends[low].pc + ends[low].size;
    }
    return r < 0 ? r : count_run(out, first, last, n);
}

int tl_codecount_split(struct tl_codecount *c)
{
    struct tl_codecount out = {.insns = c->insns, .truncated = c->truncated};
    const uint64_t *const at = c->addresses.keys;
    struct end *const ends = malloc((c->ends.n + (size_t)1) * sizeof *ends);
    int r = ends ? TL_OK : TL_NOMEM;
    for (uint32_t i = 0; i < c->ends.n && r >= 0; i++)
        ends[i] = (struct end){c->ends.keys[i], c->end_sizes[i]};
    if (r >= 0)
        qsort(ends, c->ends.n, sizeof *ends, by_pc);
    for (uint32_t i = 0; i < c->runs.n && r >= 0; i++)
        r = split_run(&out, ends, c->ends.n, at[c->runs.keys[i] >> 32],
                      at[(uint32_t)c->runs.keys[i]], c->run_counts[i]);
    for (uint32_t i = 0; i < c->branches.n && r >= 0; i++)
        r = count_branch(&out, at[c->branches.keys[i] >> 32], at[(uint32_t)c->branches.keys[i]],
                         c->branch_counts[i]);
    free(ends);
    tl_codecount_fini(r < 0 ? &out : c);
    if (r >= 0)
        *c = out;
    return r;
}
