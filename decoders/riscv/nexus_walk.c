/* SPDX-License-Identifier: MIT */
/*
 * A count must end exactly at an instruction of the kind that its message tells, which checks the
 * trace against the program. Counts without outcomes are limited in length, since a loop without a
 * conditional branch uses up nothing.
 */
#include "riscv/nexus_walk.h"

#include "base/cancel.h"
#include "flow/walker_hot.h"
#include "riscv/table_jump.h"

#include <stdlib.h>

#define OUTCOME_MAX (INT64_C(1) << 22) /* halfwords in front of a branch; more: an endless loop */
#define LOOK_EVERY  4096u              /* blocks */
#define KNOWN       64u                /* blocks passed at once, about */
#define ROOM        (KNOWN + 64 + 1)   /* … at most: those with outcomes, and the last one */

/* Where the count stands. */
struct state {
    struct tl_nexus_walk *walk;
    struct tl_nexus_count count;
    uint64_t offset;
    int64_t straight; /* halfwords since the last outcome */
    bool ended;       /* the last instruction suits `count.last` */
    bool wrong;       /* it does not, or another instruction has no known successor */
};

static bool take_outcome(struct state *s, bool *taken)
{
    if (s->count.outcomes.n == 0)
        return false;
    s->count.outcomes.n--;
    *taken = s->count.outcomes.bits >> s->count.outcomes.n & 1;
    return true;
}

/* Is the block's last instruction the last of the count? */
static bool is_last(const struct state *s)
{
    return !s->count.by_outcomes && s->count.halfwords == 0;
}

static void pass_branch(struct state *s, struct tl_block *b)
{
    const bool last = is_last(s);
    bool taken = false;
    if (!take_outcome(s, &taken)) {
        if (last && s->count.last == TL_NEXUS_LAST_TAKEN) {
            taken = true;
        } else if (s->count.is_history && last && s->count.last == TL_NEXUS_LAST_PLACE) {
            taken = b->target == s->count.place;
            s->walk->guessed = true;
        } else if (s->count.is_history) {
            s->wrong = true;
            return;
        }
    }
    s->ended = last && taken;
    tl_walker_pass(&s->walk->walker, b, taken, s->offset);
}

static void pass_jump(struct state *s, struct tl_block *b)
{
    bool taken;
    if (s->walk->config.jumps)
        (void)take_outcome(s, &taken);
    if (b->link)
        tl_returns_push(&s->walk->returns, tl_block_after(b));
    s->ended = true;
    tl_walker_pass(&s->walk->walker, b, true, s->offset);
}

/* The target of a jump that the instruction in front of it determines. */
static bool find_sequence(const struct state *s, const struct tl_block *b, uint64_t *target)
{
    struct tl_insn before, jump;
    const unsigned xlen = s->walk->config.wide ? 64 : 32;
    if (!s->walk->config.sequences || b->n < 2)
        return false;
    const uint32_t at = tl_block_bytes(b, b->n - 2);
    tl_block_insn(b, at, &before);
    tl_block_insn(b, at + before.size, &jump);
    return tl_riscv_sequential_jump(xlen, b->pc + at, before.encoding, jump.encoding, target);
}

/* Calls and returns by registers change the stack whether or not the trace gives their target. */
static bool find_target(struct state *s, const struct tl_block *b, uint64_t *target)
{
    struct tl_returns *const returns = &s->walk->returns;
    const bool popped = b->is_return && tl_returns_pop(returns, target);
    if (b->link)
        tl_returns_push(returns, tl_block_after(b));
    return (popped && s->walk->config.returns) || find_sequence(s, b, target);
}

static void pass_indirect(struct state *s, struct tl_block *b)
{
    uint64_t target = 0;
    const bool last = is_last(s);
    const bool reported =
        last && (s->count.last == TL_NEXUS_LAST_ADDRESS || s->count.last == TL_NEXUS_LAST_PLACE);
    bool known = b->last_kind == TL_INSN_INDIRECT && find_target(s, b, &target);
    const bool tableless = !known && tl_riscv_lacks_table(b);
    /* SiFive's branch messages leave out a jump to the next instruction, and perhaps a return from
     * a call that was not followed. */
    const bool returns = b->is_return && s->walk->config.returns;
    if (!known && !last && !returns && !tableless && s->walk->config.sifive &&
        !s->count.is_history) {
        target = tl_block_after(b);
        known = true;
    }
    if (!known && !last && !tableless) {
        s->wrong = true;
        return;
    }
    s->walk->tableless |= !known && !last; /* it was executed: only its target is not known */
    s->ended = true;
    tl_walker_pass(&s->walk->walker, b, true, s->offset);
    if (known && !reported)
        tl_walker_infer(&s->walk->walker, target);
}

/* Is it an encoding for vendors' own instructions, which may jump? */
static bool is_custom(const struct tl_block *b, uint32_t bytes)
{
    struct tl_insn insn = {0};
    for (uint32_t at = 0; at < bytes; at += insn.size)
        tl_block_insn(b, at, &insn);
    const uint32_t opcode = insn.encoding & 0x7f;
    return insn.kind == TL_INSN_TRAP || opcode == 0x0b || opcode == 0x2b || opcode == 0x5b ||
           opcode == 0x7b;
}

/* The last `bytes` of the count, which change the flow at most in a way of the vendor's. */
static void pass_part(struct state *s, struct tl_block *b, uint32_t bytes)
{
    s->ended = s->count.last == TL_NEXUS_LAST_ADDRESS && is_custom(b, bytes);
    s->wrong = !tl_walker_execute_part(&s->walk->walker, b, bytes, s->offset);
}

static void pass(struct state *s, struct tl_block *b)
{
    s->ended = false;
    if (b->end != TL_BLOCK_WAYPOINT && is_last(s))
        pass_part(s, b, b->size);
    else if (b->end != TL_BLOCK_WAYPOINT)
        tl_walker_pass(&s->walk->walker, b, false, s->offset);
    else if (b->conditional)
        pass_branch(s, b);
    else if (b->last_kind == TL_INSN_BRANCH)
        pass_jump(s, b);
    else if (b->last_kind == TL_INSN_INDIRECT || b->last_kind == TL_INSN_RETURN_EX)
        pass_indirect(s, b);
    else if (is_last(s) && s->count.last == TL_NEXUS_LAST_ADDRESS)
        pass_part(s, b, b->size);
    else
        tl_walker_pass(&s->walk->walker, b, false, s->offset);
}

/* ---- blocks that are known ------------------------------------------------------------------ */

/* The block that a return leads to by the call stack, if it was there before; NULL: not known. */
static struct tl_block *known_return(struct tl_nexus_walk *walk, const struct tl_block *b)
{
    struct tl_walker *const w = &walk->walker;
    uint64_t to;
    if (!walk->config.returns || walk->returns.n == 0 || b->link)
        return NULL;
    to = tl_isa_wrap(w->isa, tl_returns_top(&walk->returns));
    const uint32_t top = w->callers.top & (TL_WALKER_CALLERS - 1);
    const struct tl_block *const caller = w->callers.v[top].block;
    const bool is_call =
        caller && tl_block_after(caller) == to && w->callers.v[top].space == w->space;
    struct tl_block *const next = is_call ? caller->go[0] : b->go[1];
    if (!next || next->pc != to)
        return NULL;
    (void)tl_returns_pop(&walk->returns, &to);
    tl_walker_drop_caller(w, to);
    return next;
}

/* The walker goes on behind `b`: at `next`, where that is known. */
static void continue_known(struct tl_walker *w, struct tl_block *b, bool taken,
                           struct tl_block *next)
{
    if (next) {
        w->pc = next->pc;
        w->block = next;
        w->link = NULL;
        w->from = NULL;
        w->by_address = false;
    } else {
        tl_walker_continue(w, taken ? b->target : tl_block_after(b), &b->go[taken]);
    }
}

/* Where a walk through known blocks stands. */
struct known {
    struct tl_block *next,
        *last;         /* the block it stands before; NULL: not known. The one behind it */
    uint64_t outcomes; /* the oldest in the top bit */
    unsigned n_outcomes;
    int64_t bytes; /* of the count, not passed yet */
    int64_t
        used_at; /* `bytes` behind the last branch; INT64_MAX: there was none. If `by_outcomes` */
    uint32_t n;  /* blocks passed */
    uint64_t insns;
};

/*
 * Pass blocks as far as each is followed by a known one and neither ends the count nor needs more
 * than its outcome: a step for each. Inline, so that all of it stays in registers.
 */
static inline __attribute__((always_inline)) void pass_steps(struct tl_nexus_walk *walk,
                                                             struct known *k, bool by_outcomes,
                                                             bool is_history, uintptr_t *steps)
{
    struct tl_block *b = k->last, *next = k->next;
    uint64_t outcomes = k->outcomes, insns = 0;
    unsigned left = k->n_outcomes;
    int64_t bytes = k->bytes;
    uintptr_t *at = steps;
    while (next && at < steps + KNOWN) {
        while (left > 0 && next->waits == TL_WAITS_OUTCOME && (int64_t)next->size < bytes) {
            const unsigned taken = outcomes >> 63;
            b = next;
            outcomes <<= 1;
            left--;
            bytes -= (int64_t)b->size;
            insns += b->n;
            *at++ = tl_path_step(b, taken);
            next = b->go[taken];
            if (by_outcomes)
                k->used_at = bytes;
            if (!next)
                break;
        }
        if (!next || (by_outcomes && left == 0) || (int64_t)next->size >= bytes)
            break;
        unsigned taken = 1;
        struct tl_block *behind = NULL;
        if (next->waits == TL_WAITS_NOTHING) {
            if (next->last_kind != TL_INSN_BRANCH || walk->config.jumps)
                break;
            behind = next->go[1];
            if (next->link) {
                tl_returns_push(&walk->returns, tl_block_after(next));
                tl_walker_note_caller(&walk->walker, next);
            }
        } else if (next->waits == TL_WAITS_RETURN) {
            if (!(behind = known_return(walk, next)))
                break;
        } else if (next->waits == TL_WAITS_STRAIGHT ||
                   (next->waits == TL_WAITS_OUTCOME && !is_history)) {
            taken = 0;
            behind = next->go[0];
        } else {
            break;
        }
        if (by_outcomes && next->waits == TL_WAITS_OUTCOME)
            k->used_at = bytes - (int64_t)next->size;
        b = next;
        bytes -= (int64_t)b->size;
        insns += b->n;
        *at++ = tl_path_step(b, taken);
        next = behind;
    }
    k->next = next;
    k->last = b;
    k->outcomes = outcomes;
    k->n_outcomes = left;
    k->bytes = bytes;
    k->n = (uint32_t)(at - steps);
    k->insns = insns;
}

static inline void begin_known(struct known *k, struct tl_block *b,
                               const struct tl_nexus_count *count)
{
    k->next = k->last = b;
    k->outcomes = count->outcomes.bits << 1 << (63 - count->outcomes.n);
    k->n_outcomes = count->outcomes.n;
    k->bytes = count->by_outcomes ? INT64_MAX : count->halfwords * 2;
    k->used_at = INT64_MAX;
}

/* Up to the count's end, if that is an indirect jump whose target the message gives. Returns
 * whether it was reached; then nothing is left but outcomes, in excess. */
static inline bool end_known(struct tl_nexus_walk *walk, struct known *k,
                             const struct tl_nexus_count *count, uintptr_t *steps)
{
    struct tl_block *const b = k->next;
    uint64_t to;
    if (!b || (int64_t)b->size != k->bytes || b->last_kind != TL_INSN_INDIRECT ||
        b->end != TL_BLOCK_WAYPOINT || count->last != TL_NEXUS_LAST_ADDRESS)
        return false;
    if (b->is_return)
        (void)tl_returns_pop(&walk->returns, &to);
    if (b->link) {
        tl_returns_push(&walk->returns, tl_block_after(b));
        tl_walker_note_caller(&walk->walker, b);
    }
    steps[k->n++] = tl_path_step(b, true);
    k->insns += b->n;
    k->bytes = 0;
    walk->walker.pc = b->pc;
    tl_walker_await_address(&walk->walker, b);
    return true;
}

/*
 * Pass blocks from the walker's on, as far as each leads to one that is known: the same as pass()
 * for each, at a fraction of its cost. Returns how many.
 */
static uint32_t pass_known(struct state *s)
{
    struct tl_nexus_walk *const walk = s->walk;
    struct tl_walker *const w = &walk->walker;
    struct tl_nexus_count *const count = &s->count;
    struct known k;
    if (!w->out->paths || !w->block)
        return 0;
    uintptr_t *const steps = tl_item_batch_steps(w->out, ROOM);
    begin_known(&k, w->block, count);
    const int64_t all = k.bytes;
    pass_steps(walk, &k, count->by_outcomes, count->is_history, steps);
    const bool ended = !count->by_outcomes && end_known(walk, &k, count, steps);
    if (k.n == 0)
        return 0;
    if (!ended)
        continue_known(w, k.last, steps[k.n - 1] & TL_STEP_TAKEN, k.next);
    s->ended |= ended;
    count->outcomes.n = k.n_outcomes;
    const int64_t passed = (all - k.bytes) / 2;
    s->straight = k.used_at == INT64_MAX ? s->straight + passed : (k.used_at - k.bytes) / 2;
    walk->executed += passed;
    count->halfwords -= passed;
    tl_item_batch_path(w->out, k.n, k.insns, s->offset);
    walk->passed += k.n;
    return k.n;
}

/*
 * Nearly all counts lead through known blocks to an indirect jump: follow all of such a one. What
 * was passed of others is taken off `*rest`.
 */
static inline bool count_known(struct tl_nexus_walk *walk, struct tl_nexus_count *rest,
                               uint64_t offset)
{
    struct tl_walker *const w = &walk->walker;
    struct known k;
    uintptr_t *const steps = tl_item_batch_steps(w->out, ROOM);
    begin_known(&k, w->block, rest);
    pass_steps(walk, &k, false, true, steps);
    const bool ended = end_known(walk, &k, rest, steps);
    if (k.n == 0)
        return false;
    walk->passed += k.n;
    tl_item_batch_path(w->out, k.n, k.insns, offset);
    walk->executed = rest->halfwords;
    if (ended && k.n_outcomes == 0)
        return true;
    if (!ended)
        continue_known(w, k.last, steps[k.n - 1] & TL_STEP_TAKEN, k.next);
    walk->executed -= k.bytes / 2;
    rest->halfwords = k.bytes / 2;
    rest->outcomes.n = k.n_outcomes;
    return false;
}

/* ---- counts --------------------------------------------------------------------------------- */

/* Are there outcomes without branches, or is the last instruction not of the message's kind? */
static bool ends_wrong(const struct state *s)
{
    const enum tl_nexus_last last = s->count.last;
    return s->count.outcomes.n > 0 ||
           (!s->ended && (last == TL_NEXUS_LAST_TAKEN || last == TL_NEXUS_LAST_ADDRESS));
}

/* Has the walk been told to stop? */
static bool is_stopped(struct tl_nexus_walk *walk)
{
    if (++walk->passed >= LOOK_EVERY) {
        walk->passed = 0;
        walk->rc = tl_give_way();
    }
    if (walk->walker.out->rc < 0)
        walk->rc = walk->walker.out->rc;
    return walk->rc < 0;
}

/* Is `w->block` the block at the current place? */
static inline bool is_block_known(const struct tl_walker *w)
{
    return w->block && w->block->n > 0 && !w->need_mode && !w->need_address &&
           !tl_walker_is_full(w);
}

static __attribute__((noinline)) bool count_any(struct tl_nexus_walk *walk,
                                                const struct tl_nexus_count *count, uint64_t offset,
                                                bool *wrong)
{
    struct state s = {.walk = walk, .count = *count, .offset = offset};
    struct tl_walker *const w = &walk->walker;
    const bool by_outcomes = count->by_outcomes;
    if (!by_outcomes)
        s.wrong = s.count.halfwords < 0;
    while (!s.wrong && (by_outcomes ? s.count.outcomes.n > 0 : s.count.halfwords > 0)) {
        struct tl_block *const b = is_block_known(w) ? w->block : tl_walker_here(w, offset);
        if (!b || is_stopped(walk)) {
            *wrong = false;
            return false;
        }
        if (pass_known(&s) > 0) {
            s.wrong |= by_outcomes && s.straight > OUTCOME_MAX;
            continue;
        }
        const int64_t size = b->size / 2;
        const unsigned outcomes = s.count.outcomes.n;
        if (!by_outcomes && size > s.count.halfwords) {
            walk->executed += s.count.halfwords;
            pass_part(&s, b, (uint32_t)s.count.halfwords * 2);
            break;
        }
        s.count.halfwords -= size;
        walk->executed += size;
        pass(&s, b);
        s.straight = s.count.outcomes.n < outcomes ? 0 : s.straight + size;
        s.wrong |= by_outcomes && s.straight > OUTCOME_MAX;
    }
    *wrong = s.wrong || (!by_outcomes && ends_wrong(&s));
    if (*wrong)
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
    return !*wrong;
}

bool tl_nexus_count(struct tl_nexus_walk *walk, struct tl_nexus_count *count, uint64_t offset,
                    bool *wrong)
{
    const struct tl_walker *const w = &walk->walker;
    walk->executed = 0;
    walk->guessed = walk->tableless = false;
    if (!count->is_history || count->by_outcomes || !w->out->paths || !w->block ||
        count->halfwords <= 0 || w->out->rc < 0 || walk->passed >= LOOK_EVERY)
        return count_any(walk, count, offset, wrong);
    return count_known(walk, count, offset) || count_any(walk, count, offset, wrong);
}

/* ---- without telling ------------------------------------------------------------------------ */

static int drop(void *context, const struct tl_item *items, size_t n)
{
    (void)context;
    (void)items;
    (void)n;
    return TL_OK;
}

bool tl_nexus_try(struct tl_nexus_walk *walk, const struct tl_nexus_count *count, uint64_t offset,
                  struct tl_nexus_place *before)
{
    struct tl_walker *const w = &walk->walker;
    struct tl_item_batch *const out = w->out;
    bool wrong;
    if (!walk->unsaid && !(walk->unsaid = calloc(1, sizeof *walk->unsaid)))
        return false;
    before->walker = *w;
    before->returns = walk->returns;
    tl_item_batch_init(walk->unsaid, drop, NULL);
    walk->unsaid->rc = out->rc;
    w->out = walk->unsaid;
    struct tl_nexus_count rest = *count;
    const bool fits = tl_nexus_count(walk, &rest, offset, &wrong);
    tl_item_batch_reset(walk->unsaid);
    w->out = out;
    return fits;
}

void tl_nexus_go_back(struct tl_nexus_walk *walk, const struct tl_nexus_place *to)
{
    const bool failed = walk->walker.failed;
    walk->walker = to->walker;
    walk->walker.failed |= failed;
    walk->returns = to->returns;
}

void tl_nexus_walk_fini(struct tl_nexus_walk *walk)
{
    tl_walker_fini(&walk->walker);
    free(walk->unsaid);
}
