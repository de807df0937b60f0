/* SPDX-License-Identifier: MIT */
/*
 * The standard's function goes instruction by instruction; here only the last one of a block can
 * decide, so that a walk costs a step per block. The walk stays on an executed instruction, as the
 * standard has it, because whether it is left by its branch is only told by the next packet.
 */
#include "riscv/etrace_walk.h"

#include "base/cancel.h"
#include "riscv/etrace_walk_parts.h"
#include "riscv/table_jump.h"

/* ---- life ------------------------------------------------------------------------------- */

int tl_etrace_walk_init(struct tl_etrace_walk *w, const struct tl_etrace_params *params,
                        const struct tl_image *image, const struct tl_isa_options *isa,
                        struct tl_item_batch *out)
{
    const struct tl_walker_config config = {.image = image, .isa = *isa, .bits = TL_WALKER_STEPS};
    const uint8_t predictor =
        params->unit == TL_ETRACE_2_1 ? TL_ETRACE_TABLE_MAX : params->bpred_size;
    *w = (struct tl_etrace_walk){.n = 0};
    const int rc = tl_walker_init(&w->walker, &config, out);
    const int rc2 = tl_etrace_outcomes_init(&w->outcomes, predictor, params->iaddress_lsb);
    tl_etrace_walk_configure(w, params, 0);
    return rc < 0 ? rc : rc2;
}

void tl_etrace_walk_configure(struct tl_etrace_walk *w, const struct tl_etrace_params *params,
                              unsigned options)
{
    const bool stack = params->return_stack_size > 0;
    const uint8_t log = stack ? params->return_stack_size : params->call_counter_size;
    const uint32_t size =
        log ? UINT32_C(1) << (log < TL_RETURNS_MAX_LOG ? log : TL_RETURNS_MAX_LOG) : 0;
    const uint16_t most = stack && params->unit == TL_ETRACE_2_1
                              ? (uint16_t)((1u << params->call_counter_size) - 1)
                              : 0;
    if (w->returns.size != size || w->returns.most != most)
        tl_returns_clear(&w->returns);
    w->returns.size = size;
    w->returns.most = most;
    w->counts_calls = !stack && log > 0;
    w->irdepth_mask = (UINT32_C(1) << params->irdepth_width) - 1;
    w->options = options;
    tl_etrace_outcomes_resize(&w->outcomes, params->bpred_size);
}

void tl_etrace_walk_fini(struct tl_etrace_walk *w)
{
    tl_etrace_outcomes_fini(&w->outcomes);
    tl_walker_fini(&w->walker);
}

/* ---- blocks ----------------------------------------------------------------------------- */

struct tl_block *tl_etrace_block_at(struct tl_etrace_walk *w, uint64_t pc)
{
    struct tl_walker *const k = &w->walker;
    struct tl_block *const b =
        k->cache ? tl_block_get(k->cache, k->space, (enum tl_isa)k->isa, pc) : NULL;
    k->failed |= k->cache && !b;
    return b && b->n > 0 ? b : NULL;
}

struct tl_block *tl_etrace_here(struct tl_etrace_walk *w)
{
    if (w->block || !w->placed)
        return w->block;
    w->block = tl_etrace_block_at(w, w->start);
    if (w->block && w->n <= w->block->n)
        return w->block;
    w->start = w->pc;
    w->n = 1;
    return w->block = tl_etrace_block_at(w, w->pc);
}

/* ---- what packets say of returns ----------------------------------------------------------- */

static bool depth_is(const struct tl_etrace_walk *w, uint32_t depth)
{
    return (w->returns.n & w->irdepth_mask) == depth;
}

/* Is the instruction at pc a return that the encoder infers if it goes where the stack says? */
static bool at_return(struct tl_etrace_walk *w)
{
    struct tl_block *const b = tl_etrace_here(w);
    uint64_t to;
    return b && tl_etrace_way_of(w, b, &to) == WAY_RETURN && tl_etrace_infers_returns(w);
}

/* By what the packet says of returns, is its address met again later? */
static bool is_met_later(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal)
{
    if (!goal->irreport)
        return false;
    if (!(w->options & TL_ETRACE_IRETS))
        return !depth_is(w, goal->irdepth);
    const bool empty = w->returns.n == 0 || (at_return(w) && tl_returns_is_last(&w->returns));
    return !empty && goal->irdepth > w->irets;
}

/* ---- delivery --------------------------------------------------------------------------- */

/* Deliver the block up to pc; `taken`: its last instruction changed the flow. */
static void deliver(struct tl_etrace_walk *w, struct tl_block *b, bool taken)
{
    if (w->reported)
        return;
    w->reported = true;
    struct tl_item_batch *const out = w->walker.out;
    if (w->n == b->n)
        tl_item_batch_whole(out, b, taken, w->offset);
    else
        tl_item_batch_block(out, b, w->n, false, w->offset);
    if (tl_etrace_at_end(w, b) && b->last_kind == TL_INSN_RETURN_EX)
        tl_item_batch_add(out, TL_ITEM_ERET, w->offset);
}

/* Deliver all, of a branch without an outcome as one that was not taken. */
static void report_all(struct tl_etrace_walk *w)
{
    struct tl_block *const b = tl_etrace_here(w);
    if (!b || w->reported)
        return;
    const uint8_t kind = b->last_kind;
    bool taken = kind == TL_INSN_BRANCH || kind == TL_INSN_INDIRECT || kind == TL_INSN_RETURN_EX;
    if (tl_etrace_walk_at_branch(w))
        taken = tl_etrace_outcomes_waiting(&w->outcomes) &&
                tl_etrace_outcomes_next(&w->outcomes, w->pc);
    deliver(w, b, taken && tl_etrace_at_end(w, b));
}

/* Deliver what is in front of the instruction at pc, and stand on that alone. */
static void report_before(struct tl_etrace_walk *w, struct tl_block *b)
{
    if (w->n == 1)
        return;
    w->before = b->pc + (w->n > 2 ? tl_block_bytes(b, w->n - 2) : 0);
    w->has_before = true;
    w->from_return = w->before_lost = false;
    w->n--;
    deliver(w, b, false);
    w->reported = false;
    w->start = w->pc;
    w->n = 1;
    w->block = NULL;
}

void tl_etrace_walk_report(struct tl_etrace_walk *w)
{
    struct tl_block *const b = tl_etrace_here(w);
    if (b && !w->reported && tl_etrace_walk_at_branch(w) &&
        !tl_etrace_outcomes_waiting(&w->outcomes))
        report_before(w, b); /* the next packet has the outcome */
    else
        report_all(w);
}

void tl_etrace_walk_leave(struct tl_etrace_walk *w)
{
    if (w->placed)
        report_all(w);
    w->placed = false;
    w->has_before = false;
    w->block = NULL;
    tl_etrace_outcomes_clear(&w->outcomes);
    tl_returns_clear(&w->returns);
}

void tl_etrace_walk_trap(struct tl_etrace_walk *w, const uint64_t *went)
{
    struct tl_block *const b = tl_etrace_here(w);
    uint64_t to;
    if (!(w->options & TL_ETRACE_NO_RESYNC)) {
        tl_etrace_walk_leave(w);
        return;
    }
    if (!b)
        return;
    report_all(w);
    if (at_return(w) &&
        (!went || *went == tl_returns_top(&w->returns) || w->options & TL_ETRACE_IRETS))
        (void)tl_returns_pop(&w->returns, &to);
    else if (tl_etrace_at_end(w, b) && b->link && !b->is_return)
        tl_returns_push(&w->returns, tl_etrace_after(w, b));
    w->placed = w->has_before = false;
    w->block = NULL;
    tl_etrace_outcomes_clear(&w->outcomes);
}

void tl_etrace_walk_lose(struct tl_etrace_walk *w, enum tl_gap gap, uint64_t offset)
{
    tl_etrace_walk_leave(w);
    tl_item_batch_gap(w->walker.out, gap, offset);
}

void tl_etrace_walk_refresh(struct tl_etrace_walk *w)
{
    w->block = NULL;
}

/* ---- steps ------------------------------------------------------------------------------ */

/* Stand on the instruction at `pc`, the first of `b`; what was executed before has been delivered.
 */
static bool enter(struct tl_etrace_walk *w, struct tl_block *b, uint64_t pc, bool by_address,
                  uint64_t offset)
{
    if (!b) {
        w->reported = w->unmapped = true;
        w->given = by_address;
        tl_etrace_walk_leave(w);
        if (by_address)
            tl_item_batch_unmapped(w->walker.out, pc, offset);
        else
            tl_item_batch_gap(w->walker.out, TL_GAP_NO_IMAGE, offset);
        return false;
    }
    w->placed = true;
    w->reported = w->unmapped = w->given = false;
    w->from_return = w->by_return = w->before_lost = false;
    w->n = 1;
    w->start = w->pc = pc;
    w->block = b;
    w->offset = offset;
    return true;
}

bool tl_etrace_walk_begin(struct tl_etrace_walk *w, uint64_t pc, uint64_t offset)
{
    w->has_before = false;
    return enter(w, tl_etrace_block_at(w, pc), pc, true, offset);
}

void tl_etrace_walk_split(struct tl_etrace_walk *w)
{
    struct tl_block *const b = tl_etrace_here(w);
    if (b && !w->reported)
        report_before(w, b);
    w->reported = true;
}

bool tl_etrace_walk_again(struct tl_etrace_walk *w, uint64_t offset)
{
    return enter(w, tl_etrace_block_at(w, w->pc), w->pc, true, offset);
}

/* A return led to its address. Had it been the one that the packet tells of, it would not have been
 * inferred: is_reported(). */
static bool is_other_return(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal)
{
    const uint32_t before = w->irets - at_return(w);
    return w->options & TL_ETRACE_IRETS && w->by_return && goal->irreport &&
           goal->irdepth + 1 > before;
}

/* Should the walk end at the instruction at pc? `jumped`: an uninferable jump led to it. */
static enum tl_etrace_arrival arrive(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal,
                                     bool jumped)
{
    const bool counts = w->options & TL_ETRACE_IRETS;
    w->irets += counts && at_return(w);
    if (goal->only_jump)
        return jumped ? TL_ETRACE_JUMPED : TL_ETRACE_GO_ON;
    const uint64_t waiting = tl_etrace_outcomes_waiting(&w->outcomes);
    if (goal->last_branch)
        return jumped                                        ? TL_ETRACE_WRONG
               : waiting == 1 && tl_etrace_walk_at_branch(w) ? TL_ETRACE_REACHED
                                                             : TL_ETRACE_GO_ON;
    if (!jumped && w->pc != goal->address)
        return TL_ETRACE_GO_ON;
    const bool done = waiting <= (goal->sync ? 0 : tl_etrace_walk_at_branch(w));
    if (jumped) {
        w->reported = !done; /* where the trace does not fit, it need not have led here */
        return done ? TL_ETRACE_JUMPED : TL_ETRACE_WRONG;
    }
    if (!done)
        return TL_ETRACE_GO_ON;
    if (goal->sync)
        return goal->same_privilege || (w->n == 1 && w->from_return) ? TL_ETRACE_REACHED
                                                                     : TL_ETRACE_GO_ON;
    if (is_other_return(w, goal))
        return TL_ETRACE_GO_ON;
    if (counts && waiting == 1) /* at the branch with the packet's last outcome */
        return TL_ETRACE_REACHED;
    if (goal->notify)
        return counts && is_met_later(w, goal) ? TL_ETRACE_GO_ON : TL_ETRACE_REACHED;
    return goal->by_jump || is_met_later(w, goal) ? TL_ETRACE_GO_ON : TL_ETRACE_INFERRED;
}

/* Execute the rest of the block, or up to the goal. */
static enum tl_etrace_arrival finish_block(struct tl_etrace_walk *w, struct tl_block *b,
                                           const struct tl_etrace_goal *goal)
{
    const uint64_t last = tl_etrace_last_of(w, b);
    const uint64_t ahead = goal->address - b->pc;
    if (!goal->only_jump && !goal->last_branch && goal->address > w->pc && ahead < b->size &&
        goal->address != last) {
        const int64_t i = tl_block_count_to(b, goal->address);
        if (i >= w->n) {
            w->n = (uint32_t)i + 1;
            w->pc = goal->address;
            w->by_return = false;
            const enum tl_etrace_arrival a = arrive(w, goal, false);
            if (a != TL_ETRACE_GO_ON)
                return a;
        }
    }
    w->n = b->n;
    w->pc = last;
    w->by_return = false;
    return arrive(w, goal, false);
}

/* Is this return the one that the packet reports? If outcomes are left over there, it is a later
 * one at the same depth. An encoder that only counts calls takes each return for one to its call.
 */
static bool is_reported(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal)
{
    const bool counts = w->options & TL_ETRACE_IRETS;
    if (w->counts_calls && tl_etrace_infers_returns(w) &&
        tl_returns_top(&w->returns) != goal->address)
        return false;
    if (!goal->irreport || (counts ? goal->irdepth + 1 != w->irets : !depth_is(w, goal->irdepth)))
        return false;
    if (goal->only_jump)
        return true;
    const uint64_t waiting = tl_etrace_outcomes_waiting(&w->outcomes);
    if (waiting == 0 || waiting > 1 || goal->sync)
        return waiting == 0;
    const struct tl_block *const b = tl_etrace_block_at(w, goal->address);
    return !b || (b->n == 1 && b->end == TL_BLOCK_WAYPOINT && b->conditional);
}

/* This return is not inferred here. Did the encoder infer others in front of the one it reports? It
 * had return addresses that are not known here, so this one may have been among them. */
static bool is_another(const struct tl_etrace_walk *w, const struct tl_etrace_goal *goal)
{
    return goal->irreport && w->options & TL_ETRACE_IRETS && goal->irdepth != w->irets;
}

/* The block at `to`, which the instruction at pc leads to; as tl_etrace_block_at(). Only the last
 * instruction of `b` leads to where the block's links go. */
static struct tl_block *block_after(struct tl_etrace_walk *w, struct tl_block *b, bool taken,
                                    uint64_t to)
{
    if (w->n < b->n)
        return tl_etrace_block_at(w, to);
    struct tl_block *const last = b->go[taken];
    return last && last->pc == to ? last : (b->go[taken] = tl_etrace_block_at(w, to));
}

/* Leave the instruction at pc for the next one. */
static enum tl_etrace_arrival step(struct tl_etrace_walk *w, struct tl_block *b,
                                   const struct tl_etrace_goal *goal, bool *used, uint64_t offset)
{
    uint64_t to;
    enum way way = tl_etrace_way_of(w, b, &to);
    bool taken = way != WAY_STRAIGHT;
    if (tl_etrace_is_unclear(w, b)) {
        w->unmapped = true;
        w->tableless = tl_riscv_lacks_table(b);
        w->given = false;
        return TL_ETRACE_WRONG;
    }
    w->was_predicted = false;
    if (way == WAY_RETURN && !tl_etrace_infers_returns(w) && is_another(w, goal))
        return TL_ETRACE_WRONG;
    if (way == WAY_RETURN && (!tl_etrace_infers_returns(w) || is_reported(w, goal))) {
        way = WAY_JUMP;
        if (w->options & TL_ETRACE_IRETS && tl_etrace_infers_returns(w))
            w->was_predicted = tl_returns_pop(&w->returns, &to) && to == goal->address;
    }
    if (way == WAY_JUMP && goal->last_branch)
        return TL_ETRACE_WRONG;
    if (way == WAY_BRANCH && !tl_etrace_outcomes_waiting(&w->outcomes))
        return TL_ETRACE_WRONG;
    *used = way == WAY_BRANCH;
    if (way == WAY_BRANCH) {
        taken = tl_etrace_outcomes_take(&w->outcomes, w->pc);
        to = taken ? b->target : to;
        w->irets = 0;
    } else if (way == WAY_RETURN) {
        (void)tl_returns_pop(&w->returns, &to);
    } else if (way == WAY_JUMP) {
        to = goal->address;
    }
    const bool from_return = tl_etrace_at_end(w, b) && b->last_kind == TL_INSN_RETURN_EX;
    deliver(w, b, taken);
    if (tl_etrace_at_end(w, b) && b->link && !b->is_return)
        tl_returns_push(&w->returns, tl_etrace_after(w, b));
    w->before = w->pc;
    w->has_before = true;
    if (!enter(w, block_after(w, b, taken, to), to, way == WAY_JUMP, offset))
        return TL_ETRACE_WRONG; /* reported */
    w->from_return = from_return;
    w->by_return = way == WAY_RETURN;
    return arrive(w, goal, way == WAY_JUMP);
}

void tl_etrace_walk_count_return(struct tl_etrace_walk *w)
{
    w->irets = at_return(w);
}

/*
 * Detects walks in circles: places are compared with one that is remembered, which changes each
 * time the distance to it has doubled (Brent). The same place means that the rest repeats, if the
 * return addresses that were there then have not been used since.
 */
struct circle {
    uint64_t place;
    uint32_t depth;
    uint32_t steps, limit;
};

static bool is_circle(struct circle *c, struct tl_etrace_walk *w, bool used)
{
    if (used || c->steps == c->limit) {
        c->limit = used ? 16 : 2 * c->limit;
        c->steps = 0;
        c->place = w->start;
        c->depth = w->returns.calls;
        w->returns.min = w->returns.calls;
        return false;
    }
    c->steps++;
    return c->place == w->start && c->depth == w->returns.calls && w->returns.min == c->depth;
}

bool tl_etrace_walk_stands_at_goal(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal)
{
    return !goal->last_branch && !goal->by_jump && !goal->only_jump && !goal->sync &&
           !goal->notify &&
           (!goal->irreport || (!(w->options & TL_ETRACE_IRETS) && depth_is(w, goal->irdepth))) &&
           tl_etrace_outcomes_waiting(&w->outcomes) <= tl_etrace_walk_at_branch(w);
}

/* The rest of a walk, of which nothing or some of the known blocks have been passed. */
static __attribute__((noinline)) enum tl_etrace_arrival
walk_on(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal, uint64_t offset)
{
    struct circle circle = {0};
    enum tl_etrace_arrival a = TL_ETRACE_GO_ON;
    bool used = true, steps;
    (void)is_circle(&circle, w, true);
    for (uint32_t i = 0; a == TL_ETRACE_GO_ON; i++) {
        if (tl_walker_is_full(&w->walker)) {
            tl_walker_trim(&w->walker);
            w->block = NULL;
        }
        struct tl_block *b = tl_etrace_here(w);
        if (i % 4096 == 4095 && w->rc >= 0)
            w->rc = w->walker.out->rc < 0 ? w->walker.out->rc : tl_give_way();
        if (!b || w->rc < 0)
            return TL_ETRACE_WRONG;
        a = tl_etrace_step_known(w, goal, &used, &steps, offset);
        if (a != TL_ETRACE_GO_ON)
            return a;
        if (steps)
            a = arrive(w, goal, false);
        else if (w->n < b->n && !w->reported) {
            a = finish_block(w, b, goal);
            continue;
        } else
            a = step(w, b, goal, &used, offset);
        if (a == TL_ETRACE_GO_ON && is_circle(&circle, w, used))
            a = TL_ETRACE_WRONG;
    }
    return a;
}

enum tl_etrace_end tl_etrace_walk_rest(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal,
                                       bool began, uint64_t offset)
{
    enum tl_etrace_arrival a = began ? arrive(w, goal, false) : TL_ETRACE_GO_ON;
    if (a == TL_ETRACE_GO_ON)
        a = walk_on(w, goal, offset);
    if (a == TL_ETRACE_WRONG && w->placed)
        tl_etrace_walk_lose(w, TL_GAP_NO_PATH, offset);
    return a == TL_ETRACE_JUMPED     ? TL_ETRACE_END_JUMPED
           : a == TL_ETRACE_REACHED  ? TL_ETRACE_END_REACHED
           : a == TL_ETRACE_INFERRED ? TL_ETRACE_END_INFERRED
                                     : TL_ETRACE_END_LOST;
}

enum tl_etrace_end tl_etrace_walk_to(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal,
                                     uint64_t offset)
{
    enum tl_etrace_arrival a = TL_ETRACE_GO_ON;
    bool used, steps = false;
    if (w->block && w->rc >= 0) /* most end there */
        a = tl_etrace_step_known(w, goal, &used, &steps, offset);
    return a == TL_ETRACE_JUMPED    ? TL_ETRACE_END_JUMPED
           : a == TL_ETRACE_REACHED ? TL_ETRACE_END_REACHED
                                    : tl_etrace_walk_rest(w, goal, steps, offset);
}

bool tl_etrace_walk_successor(struct tl_etrace_walk *w, uint64_t *pc)
{
    struct tl_block *const b = tl_etrace_here(w);
    if (!b)
        return false;
    const enum way way = tl_etrace_way_of(w, b, pc);
    if (way == WAY_RETURN && tl_etrace_infers_returns(w)) {
        *pc = tl_returns_top(&w->returns);
        return true;
    }
    if (way == WAY_BRANCH) {
        if (!tl_etrace_outcomes_waiting(&w->outcomes))
            return false;
        tl_etrace_walk_report(w); /* while the outcome is there */
        if (tl_etrace_outcomes_take(&w->outcomes, w->pc))
            *pc = b->target;
    }
    return way < WAY_RETURN;
}

bool tl_etrace_walk_leads_to(struct tl_etrace_walk *w, uint64_t bits, uint64_t mask)
{
    struct tl_block *const b = tl_etrace_here(w);
    uint64_t to;
    if (!b)
        return false;
    switch (tl_etrace_way_of(w, b, &to)) {
    case WAY_JUMP:
        return true;
    case WAY_RETURN:
        if (!tl_etrace_infers_returns(w))
            return true;
        to = tl_returns_top(&w->returns);
        break;
    case WAY_BRANCH:
        if (!tl_etrace_outcomes_waiting(&w->outcomes))
            return true;
        to = tl_etrace_outcomes_next(&w->outcomes, w->pc) ? b->target : to;
        break;
    default:
        break;
    }
    return ((to ^ bits) & mask) == 0;
}

uint64_t tl_etrace_walk_extend(struct tl_etrace_walk *w, unsigned width, uint64_t bits)
{
    const uint64_t extended = bits | UINT64_MAX << width;
    return !tl_etrace_block_at(w, bits) && tl_etrace_block_at(w, extended) ? extended : bits;
}

/* ---- state ------------------------------------------------------------------------------ */

void tl_etrace_walk_state(struct tl_etrace_walk *w, struct tl_state *s)
{
    struct tl_image_context context = w->walker.context;
    if (w->placed && !tl_state_loads(s))
        (void)tl_etrace_here(w);
    tl_walker_place_state(&w->walker, s);
    tl_walker_rest_state(&w->walker, s);
    tl_state_u64(s, &context.context_id);
    tl_state_u64(s, &context.vmid);
    tl_state_bool(s, &context.has_context_id);
    tl_state_bool(s, &context.has_vmid);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_walker_restore_context(&w->walker, &context);
    tl_etrace_outcomes_state(&w->outcomes, s);
    tl_returns_state(&w->returns, s);
    tl_state_bool(s, &w->placed);
    tl_state_bool(s, &w->reported);
    tl_state_bool(s, &w->from_return);
    tl_state_bool(s, &w->before_lost);
    tl_state_u32(s, &w->n);
    tl_state_u32(s, &w->irets);
    tl_state_u64(s, &w->start);
    tl_state_u64(s, &w->pc);
    tl_state_u64(s, &w->before);
    tl_state_bool(s, &w->has_before);
    tl_state_u64(s, &w->offset);
    if (tl_state_loads(s))
        w->block = NULL;
}
