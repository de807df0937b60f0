/* SPDX-License-Identifier: MIT */
/*
 * A count must end exactly at an instruction of the kind that its message tells, which checks the
 * trace against the program. Counts without outcomes are limited in length, since a loop without a
 * conditional branch uses up nothing.
 */
#include "riscv/nexus_walk.h"

#include "base/cancel.h"
#include "flow/walker_hot.h"

#include <stdlib.h>

#define OUTCOME_MAX (INT64_C(1) << 22) /* halfwords in front of a branch; more: an endless loop */
#define LOOK_EVERY  4096u              /* blocks */
#define KNOWN       64u                /* blocks passed at once, at most */

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

/* CM.JT or CM.JALT whose table is not known. */
static bool is_table_jump(const struct tl_block *b)
{
    struct tl_insn insn;
    if (b->last_kind != TL_INSN_INDIRECT || b->last_size != 2)
        return false;
    tl_block_insn(b, b->size - b->last_size, &insn);
    return (insn.encoding & 0xfc03) == 0xa002;
}

static void pass_indirect(struct state *s, struct tl_block *b)
{
    uint64_t target = 0;
    const bool last = is_last(s);
    const bool reported =
        last && (s->count.last == TL_NEXUS_LAST_ADDRESS || s->count.last == TL_NEXUS_LAST_PLACE);
    bool known = b->last_kind == TL_INSN_INDIRECT && find_target(s, b, &target);
    /* SiFive's branch messages leave out a jump to the next instruction, and perhaps a return from
     * a call that was not followed. */
    const bool returns = b->is_return && s->walk->config.returns;
    if (!known && !last && !returns && s->walk->config.sifive && !s->count.is_history) {
        target = tl_block_after(b);
        known = true;
    }
    if (!known && !last && !is_table_jump(b)) {
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

/*
 * How block `b`, which is not the last of the count, is left, and the block behind it if that is
 * known. Returns false for what needs more than that; then nothing has changed.
 */
static inline bool leave_known(struct state *s, struct tl_nexus_outcomes *outcomes,
                               struct tl_block *b, bool *taken, struct tl_block **next)
{
    struct tl_nexus_walk *const walk = s->walk;
    *taken = true;
    switch (b->waits) {
    case TL_WAITS_OUTCOME:
        if (outcomes->n > 0)
            *taken = outcomes->bits >> --outcomes->n & 1;
        else if (s->count.is_history)
            return false;
        else
            *taken = false;
        *next = b->go[*taken];
        return true;
    case TL_WAITS_NOTHING:
        if (b->last_kind != TL_INSN_BRANCH || walk->config.jumps)
            return false;
        if (b->link) {
            tl_returns_push(&walk->returns, tl_block_after(b));
            tl_walker_note_caller(&walk->walker, b);
        }
        *next = b->go[1];
        return true;
    case TL_WAITS_STRAIGHT:
        *taken = false;
        *next = b->go[0];
        return true;
    case TL_WAITS_RETURN:
        return (*next = known_return(walk, b)) != NULL;
    default:
        return false;
    }
}

/* The last block of the count ends in an indirect jump whose target the message gives. Returns
 * false if it does not; then nothing has changed. */
static bool end_known(struct state *s, struct tl_block *b)
{
    struct tl_nexus_walk *const walk = s->walk;
    uint64_t to;
    if (b->last_kind != TL_INSN_INDIRECT || b->end != TL_BLOCK_WAYPOINT ||
        s->count.last != TL_NEXUS_LAST_ADDRESS || s->count.by_outcomes)
        return false;
    if (b->is_return)
        (void)tl_returns_pop(&walk->returns, &to);
    if (b->link) {
        tl_returns_push(&walk->returns, tl_block_after(b));
        tl_walker_note_caller(&walk->walker, b);
    }
    return s->ended = true;
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

/*
 * Pass blocks from the walker's on, as far as each leads to one that is known: the same as pass()
 * for each, at a fraction of its cost. Returns how many.
 */
static uint32_t pass_known(struct state *s)
{
    struct tl_nexus_walk *const walk = s->walk;
    struct tl_walker *const w = &walk->walker;
    struct tl_block *b = w->block, *next = b;
    struct tl_nexus_outcomes outcomes = s->count.outcomes;
    uint64_t insns = 0;
    int64_t passed = 0, straight = s->straight;
    const int64_t all = s->count.by_outcomes ? INT64_MAX : s->count.halfwords;
    uint32_t n = 0;
    bool taken = false, arrived = false;
    if (!w->out->paths || !b)
        return 0;
    uintptr_t *const steps = tl_item_batch_steps(w->out, KNOWN);
    while (next && n < KNOWN) {
        const int64_t size = next->size / 2;
        b = next;
        if (size >= all - passed) {
            arrived = size == all - passed && end_known(s, b);
            if (!arrived)
                break;
            taken = true;
            next = NULL;
        } else if (!leave_known(s, &outcomes, b, &taken, &next)) {
            next = b;
            break;
        }
        steps[n++] = tl_path_step(b, taken);
        insns += b->n;
        straight = b->conditional ? 0 : straight + size;
        passed += size;
        if (s->count.by_outcomes && outcomes.n == 0)
            break;
    }
    if (n == 0)
        return 0;
    s->count.outcomes = outcomes;
    s->straight = straight;
    if (arrived) {
        w->pc = b->pc;
        tl_walker_await_address(w, b);
    } else {
        continue_known(w, b, taken, next);
    }
    walk->executed += passed;
    s->count.halfwords -= passed;
    tl_item_batch_path(w->out, n, insns, s->offset);
    walk->passed += n;
    return n;
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

bool tl_nexus_count(struct tl_nexus_walk *walk, struct tl_nexus_count count, uint64_t offset,
                    bool *wrong)
{
    struct state s = {.walk = walk, .count = count, .offset = offset};
    struct tl_walker *const w = &walk->walker;
    walk->executed = 0;
    walk->guessed = walk->tableless = false;
    if (!count.by_outcomes)
        s.wrong = count.halfwords < 0;
    while (!s.wrong && (count.by_outcomes ? s.count.outcomes.n > 0 : s.count.halfwords > 0)) {
        struct tl_block *const b = tl_walker_here(w, offset);
        if (!b || is_stopped(walk)) {
            *wrong = false;
            return false;
        }
        if (pass_known(&s) > 0) {
            s.wrong |= count.by_outcomes && s.straight > OUTCOME_MAX;
            continue;
        }
        const int64_t size = b->size / 2;
        const unsigned outcomes = s.count.outcomes.n;
        if (!count.by_outcomes && size > s.count.halfwords) {
            walk->executed += s.count.halfwords;
            pass_part(&s, b, (uint32_t)s.count.halfwords * 2);
            break;
        }
        s.count.halfwords -= size;
        walk->executed += size;
        pass(&s, b);
        s.straight = s.count.outcomes.n < outcomes ? 0 : s.straight + size;
        s.wrong |= count.by_outcomes && s.straight > OUTCOME_MAX;
    }
    *wrong = s.wrong || (!count.by_outcomes && ends_wrong(&s));
    if (*wrong)
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
    return !*wrong;
}

/* ---- without telling ------------------------------------------------------------------------ */

static int drop(void *context, const struct tl_item *items, size_t n)
{
    (void)context;
    (void)items;
    (void)n;
    return TL_OK;
}

bool tl_nexus_try(struct tl_nexus_walk *walk, struct tl_nexus_count count, uint64_t offset,
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
    const bool fits = tl_nexus_count(walk, count, offset, &wrong);
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
