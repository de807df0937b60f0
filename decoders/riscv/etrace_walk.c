/* SPDX-License-Identifier: MIT */
/*
 * The standard's function goes instruction by instruction; here only the last one of a block can
 * decide, so that a walk costs a step per block. The walk stays on an executed instruction, as the
 * standard has it, because whether it is left by its branch is only told by the next packet.
 */
#include "riscv/etrace_walk.h"

#include "base/cancel.h"
#include "riscv/etrace_walk_parts.h"

/* How execution leaves an instruction. */
enum way {
    WAY_STRAIGHT, /* also: the end of the image, and traps of harts that retire them */
    WAY_DIRECT,   /* jumps that the program determines */
    WAY_BRANCH,   /* conditional */
    WAY_RETURN,   /* as a return, if the encoder infers it */
    WAY_JUMP      /* uninferable jumps and trap returns */
};

/* ---- life ------------------------------------------------------------------------------- */

int tl_etrace_walk_init(struct tl_etrace_walk *w, const struct tl_etrace_params *params,
                        const struct tl_image *image, const struct tl_isa_options *isa,
                        struct tl_item_batch *out)
{
    const struct tl_walker_config config = {.image = image, .isa = *isa, .bits = TL_WALKER_STEPS};
    const uint8_t returns =
        params->return_stack_size ? params->return_stack_size : params->call_counter_size;
    *w = (struct tl_etrace_walk){.irdepth_mask = params->irdepth_width < 32
                                                     ? (UINT32_C(1) << params->irdepth_width) - 1
                                                     : UINT32_MAX};
    const int rc = tl_walker_init(&w->walker, &config, out);
    const int rc2 = tl_etrace_outcomes_init(&w->outcomes, params->bpred_size, params->iaddress_lsb);
    w->returns.size = returns ? UINT32_C(1) << returns : 0;
    return rc < 0 ? rc : rc2;
}

void tl_etrace_walk_fini(struct tl_etrace_walk *w)
{
    tl_etrace_outcomes_fini(&w->outcomes);
    tl_walker_fini(&w->walker);
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* The block at `pc`, with at least one instruction; NULL: nothing is mapped, or out of memory. */
static struct tl_block *block_at(struct tl_etrace_walk *w, uint64_t pc)
{
    struct tl_walker *const k = &w->walker;
    struct tl_block *const b =
        k->cache ? tl_block_get(k->cache, k->space, (enum tl_isa)k->isa, pc) : NULL;
    k->failed |= k->cache && !b;
    return b && b->n > 0 ? b : NULL;
}

/* The block that the walk is in. If the image changed under it: the part at pc. */
static struct tl_block *here(struct tl_etrace_walk *w)
{
    if (w->block || !w->placed)
        return w->block;
    w->block = block_at(w, w->start);
    if (w->block && w->n <= w->block->n)
        return w->block;
    w->start = w->pc;
    w->n = 1;
    return w->block = block_at(w, w->pc);
}

/* Is pc at the last instruction of the block, and can that change the flow? */
static bool at_end(const struct tl_etrace_walk *w, const struct tl_block *b)
{
    return w->n == b->n && b->end == TL_BLOCK_WAYPOINT;
}

/* Behind the instruction at pc. */
static uint64_t after(const struct tl_etrace_walk *w, const struct tl_block *b)
{
    const uint32_t bytes = w->n == b->n ? b->size : tl_block_bytes(b, w->n);
    return tl_etrace_wrap(w, b->pc + bytes);
}

static uint32_t encoding_at(const struct tl_block *b, uint32_t at)
{
    struct tl_insn insn;
    tl_block_insn(b, at, &insn);
    return insn.encoding;
}

/* ---- ways ------------------------------------------------------------------------------- */

/* JALR with x0 as its base. */
static bool is_absolute(const struct tl_block *b, uint64_t *to)
{
    if (b->last_size != 4)
        return false;
    const uint32_t op = tl_le32(b->code + b->size - 4);
    if ((op & 0x7f) != 0x67 || (op >> 15 & 31) != 0)
        return false;
    *to = (uint64_t)((int64_t)(int32_t)op >> 20) & ~UINT64_C(1);
    return true;
}

/* Does the instruction at `pc`, in block `in`, determine the target of the jump at the end of `b`?
 */
static bool determines(const struct tl_etrace_walk *w, uint64_t pc, const struct tl_block *in,
                       const struct tl_block *b, uint64_t *to)
{
    const unsigned xlen = w->walker.isa == TL_ISA_RV32 ? 32 : 64;
    return in && tl_riscv_sequential_jump(xlen, pc, encoding_at(in, (uint32_t)(pc - in->pc)),
                                          encoding_at(b, b->size - b->last_size), to);
}

/* Does the instruction in front of the jump at the block's end determine its target? */
static bool is_sequential(struct tl_etrace_walk *w, struct tl_block *b, uint64_t *to)
{
    if (!(w->options & TL_ETRACE_SEQUENTIAL))
        return false;
    if (b->n > 1)
        return determines(w, b->pc + tl_block_bytes(b, b->n - 2), b, b, to);
    return w->has_before && determines(w, w->before, block_at(w, w->before), b, to);
}

/*
 * The walk begins at the jump at the block's end: may an instruction in front of it, which was not
 * followed, have determined its target? Then the encoder may have left it out.
 */
static bool is_unclear(struct tl_etrace_walk *w, const struct tl_block *b)
{
    uint64_t to;
    if (!(w->options & TL_ETRACE_SEQUENTIAL) || !w->before_lost || w->has_before || b->n > 1 ||
        !at_end(w, b) || b->last_kind != TL_INSN_INDIRECT)
        return false;
    const struct tl_block *const four = block_at(w, b->pc - 4), *const two = block_at(w, b->pc - 2);
    return !four || !two || determines(w, b->pc - 4, four, b, &to) ||
           determines(w, b->pc - 2, two, b, &to);
}

/* How the instruction at pc is left, and `*to` where if the program determines it. */
static enum way way_of(struct tl_etrace_walk *w, struct tl_block *b, uint64_t *to)
{
    *to = after(w, b);
    if (!at_end(w, b))
        return WAY_STRAIGHT;
    switch (b->last_kind) {
    case TL_INSN_BRANCH:
        *to = b->conditional ? *to : b->target;
        return b->conditional ? WAY_BRANCH : WAY_DIRECT;
    case TL_INSN_INDIRECT:
        if (is_absolute(b, to) || is_sequential(w, b, to)) {
            *to = tl_etrace_wrap(w, *to);
            return WAY_DIRECT;
        }
        return b->is_return && !b->link ? WAY_RETURN : WAY_JUMP;
    case TL_INSN_RETURN_EX:
        return WAY_JUMP;
    default:
        return WAY_STRAIGHT;
    }
}

bool tl_etrace_walk_at_branch(struct tl_etrace_walk *w)
{
    const struct tl_block *const b = here(w);
    return b && at_end(w, b) && b->last_kind == TL_INSN_BRANCH && b->conditional;
}

bool tl_etrace_walk_at_jump(struct tl_etrace_walk *w)
{
    struct tl_block *const b = here(w);
    uint64_t to;
    return b && way_of(w, b, &to) >= WAY_RETURN;
}

bool tl_etrace_walk_at_trap(struct tl_etrace_walk *w)
{
    const struct tl_block *const b = here(w);
    return b && at_end(w, b) && b->last_kind == TL_INSN_TRAP;
}

static bool depth_is(const struct tl_etrace_walk *w, uint32_t depth)
{
    return (w->returns.n & w->irdepth_mask) == depth;
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
    if (at_end(w, b) && b->last_kind == TL_INSN_RETURN_EX)
        tl_item_batch_add(out, TL_ITEM_ERET, w->offset);
}

/* Deliver all, of a branch without an outcome as one that was not taken. */
static void report_all(struct tl_etrace_walk *w)
{
    struct tl_block *const b = here(w);
    if (!b || w->reported)
        return;
    const uint8_t kind = b->last_kind;
    bool taken = kind == TL_INSN_BRANCH || kind == TL_INSN_INDIRECT || kind == TL_INSN_RETURN_EX;
    if (tl_etrace_walk_at_branch(w))
        taken = tl_etrace_outcomes_waiting(&w->outcomes) &&
                tl_etrace_outcomes_next(&w->outcomes, w->pc);
    deliver(w, b, taken && at_end(w, b));
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
    struct tl_block *const b = here(w);
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
    w->from_return = w->before_lost = false;
    w->n = 1;
    w->start = w->pc = pc;
    w->block = b;
    w->offset = offset;
    return true;
}

bool tl_etrace_walk_begin(struct tl_etrace_walk *w, uint64_t pc, uint64_t offset)
{
    w->has_before = false;
    return enter(w, block_at(w, pc), pc, true, offset);
}

void tl_etrace_walk_split(struct tl_etrace_walk *w)
{
    struct tl_block *const b = here(w);
    if (b && !w->reported)
        report_before(w, b);
    w->reported = true;
}

bool tl_etrace_walk_again(struct tl_etrace_walk *w, uint64_t offset)
{
    return enter(w, block_at(w, w->pc), w->pc, true, offset);
}

enum arrival { GO_ON, JUMPED, REACHED, INFERRED, WRONG };

/* Should the walk end at the instruction at pc? `jumped`: an uninferable jump led to it. */
static enum arrival arrive(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal, bool jumped)
{
    if (goal->only_jump)
        return jumped ? JUMPED : GO_ON;
    const uint64_t waiting = tl_etrace_outcomes_waiting(&w->outcomes);
    if (goal->last_branch)
        return jumped ? WRONG : waiting == 1 && tl_etrace_walk_at_branch(w) ? REACHED : GO_ON;
    if (!jumped && w->pc != goal->address)
        return GO_ON;
    const bool done = waiting <= (goal->sync ? 0 : tl_etrace_walk_at_branch(w));
    if (jumped) {
        w->reported = !done; /* where the trace does not fit, it need not have led here */
        return done ? JUMPED : WRONG;
    }
    if (!done)
        return GO_ON;
    if (goal->sync)
        return goal->same_privilege || (w->n == 1 && w->from_return) ? REACHED : GO_ON;
    if (goal->notify)
        return REACHED;
    if (goal->by_jump || (goal->irreport && !depth_is(w, goal->irdepth)))
        return GO_ON;
    return INFERRED;
}

/* Execute the rest of the block, or up to the goal. */
static enum arrival finish_block(struct tl_etrace_walk *w, struct tl_block *b,
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
            const enum arrival a = arrive(w, goal, false);
            if (a != GO_ON)
                return a;
        }
    }
    w->n = b->n;
    w->pc = last;
    return arrive(w, goal, false);
}

/* Is this return the one that the packet reports? If outcomes are left over there, it is a later
 * one at the same depth. */
static bool is_reported(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal)
{
    if (!goal->irreport || !depth_is(w, goal->irdepth))
        return false;
    if (goal->only_jump)
        return true;
    const uint64_t waiting = tl_etrace_outcomes_waiting(&w->outcomes);
    if (waiting == 0 || waiting > 1 || goal->sync)
        return waiting == 0;
    const struct tl_block *const b = block_at(w, goal->address);
    return !b || (b->n == 1 && b->end == TL_BLOCK_WAYPOINT && b->conditional);
}

/* The block at `to`, which the instruction at pc leads to; as block_at(). Only the last instruction
 * of `b` leads to where the block's links go. */
static struct tl_block *block_after(struct tl_etrace_walk *w, struct tl_block *b, bool taken,
                                    uint64_t to)
{
    if (w->n < b->n)
        return block_at(w, to);
    struct tl_block *const last = b->go[taken];
    return last && last->pc == to ? last : (b->go[taken] = block_at(w, to));
}

/* Leave the instruction at pc for the next one. */
static enum arrival step(struct tl_etrace_walk *w, struct tl_block *b,
                         const struct tl_etrace_goal *goal, bool *used, uint64_t offset)
{
    uint64_t to;
    enum way way = way_of(w, b, &to);
    bool taken = way != WAY_STRAIGHT;
    if (is_unclear(w, b)) {
        w->unmapped = true;
        w->given = false;
        return WRONG;
    }
    if (way == WAY_RETURN && (!tl_etrace_infers_returns(w) || is_reported(w, goal)))
        way = WAY_JUMP;
    if (way == WAY_JUMP && goal->last_branch)
        return WRONG;
    if (way == WAY_BRANCH && !tl_etrace_outcomes_waiting(&w->outcomes))
        return WRONG;
    *used = way == WAY_BRANCH;
    if (way == WAY_BRANCH) {
        taken = tl_etrace_outcomes_take(&w->outcomes, w->pc);
        to = taken ? b->target : to;
    } else if (way == WAY_RETURN) {
        (void)tl_returns_pop(&w->returns, &to);
    } else if (way == WAY_JUMP) {
        to = goal->address;
    }
    const bool from_return = at_end(w, b) && b->last_kind == TL_INSN_RETURN_EX;
    deliver(w, b, taken);
    if (at_end(w, b) && b->link && !b->is_return)
        tl_returns_push(&w->returns, after(w, b));
    w->before = w->pc;
    w->has_before = true;
    if (!enter(w, block_after(w, b, taken, to), to, way == WAY_JUMP, offset))
        return WRONG; /* reported */
    w->from_return = from_return;
    return arrive(w, goal, way == WAY_JUMP);
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
        c->depth = w->returns.n;
        w->returns.min = w->returns.n;
        return false;
    }
    c->steps++;
    return c->place == w->start && c->depth == w->returns.n && w->returns.min == c->depth;
}

bool tl_etrace_walk_stands_at(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal)
{
    return !goal->last_branch && !goal->by_jump && !goal->only_jump && !goal->sync &&
           !goal->notify && (!goal->irreport || depth_is(w, goal->irdepth)) &&
           w->pc == goal->address &&
           tl_etrace_outcomes_waiting(&w->outcomes) <= tl_etrace_walk_at_branch(w);
}

enum tl_etrace_end tl_etrace_walk_to(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal,
                                     uint64_t offset)
{
    struct circle circle = {0};
    enum arrival a = GO_ON;
    bool used = true;
    (void)is_circle(&circle, w, true);
    for (uint32_t i = 0; a == GO_ON; i++) {
        if (tl_walker_is_full(&w->walker)) {
            tl_walker_trim(&w->walker);
            w->block = NULL;
        }
        struct tl_block *b = here(w);
        if (i % 4096 == 4095 && w->rc >= 0)
            w->rc = w->walker.out->rc < 0 ? w->walker.out->rc : tl_give_way();
        if (!b || w->rc < 0)
            a = WRONG;
        else if (tl_etrace_step_known(w, goal, &used, offset))
            a = (a = arrive(w, goal, false)) == GO_ON && is_circle(&circle, w, used) ? WRONG : a;
        else if (w->n < b->n && !w->reported)
            a = finish_block(w, b, goal);
        else if ((a = step(w, b, goal, &used, offset)) == GO_ON && is_circle(&circle, w, used))
            a = WRONG;
    }
    if (a == WRONG && w->placed)
        tl_etrace_walk_lose(w, TL_GAP_NO_PATH, offset);
    return a == JUMPED     ? TL_ETRACE_END_JUMPED
           : a == REACHED  ? TL_ETRACE_END_REACHED
           : a == INFERRED ? TL_ETRACE_END_INFERRED
                           : TL_ETRACE_END_LOST;
}

bool tl_etrace_walk_successor(struct tl_etrace_walk *w, uint64_t *pc)
{
    struct tl_block *const b = here(w);
    if (!b)
        return false;
    const enum way way = way_of(w, b, pc);
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
    struct tl_block *const b = here(w);
    uint64_t to;
    if (!b)
        return false;
    switch (way_of(w, b, &to)) {
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

uint64_t tl_etrace_walk_address(struct tl_etrace_walk *w, const struct tl_etrace_params *params,
                                uint64_t bits)
{
    const unsigned width = params->iaddress_width;
    if (params->isa == TL_ISA_RV32)
        return (uint32_t)bits;
    if (width == 64 || !(bits >> (width - 1) & 1))
        return bits;
    const uint64_t extended = bits | UINT64_MAX << width;
    return !block_at(w, bits) && block_at(w, extended) ? extended : bits;
}

/* ---- state ------------------------------------------------------------------------------ */

void tl_etrace_walk_state(struct tl_etrace_walk *w, struct tl_state *s)
{
    struct tl_image_context context = w->walker.context;
    if (w->placed && !tl_state_loads(s))
        (void)here(w);
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
    tl_state_u32(s, &w->options);
    tl_state_bool(s, &w->placed);
    tl_state_bool(s, &w->reported);
    tl_state_bool(s, &w->from_return);
    tl_state_bool(s, &w->before_lost);
    tl_state_u32(s, &w->n);
    tl_state_u64(s, &w->start);
    tl_state_u64(s, &w->pc);
    tl_state_u64(s, &w->before);
    tl_state_bool(s, &w->has_before);
    tl_state_u64(s, &w->offset);
    if (tl_state_loads(s))
        w->block = NULL;
}
