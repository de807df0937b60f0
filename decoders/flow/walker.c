/* SPDX-License-Identifier: MIT */
/*
 * State of the walk and what all kinds of traces need: place, mode, return stack, straight-line
 * code; and the walks with an outcome bit for each waypoint. Whatever the trace says is checked
 * against the program, and where they disagree there is a gap instead of a guess.
 */
#include "flow/walk.h"
#include "flow/walker_routes.h"

#include <stdlib.h>

#define CACHE_LIMIT ((size_t)40 << 20) /* bytes of decoded blocks per stream */

/* ---- life -------------------------------------------------------------------------------- */

int tl_walker_init(struct tl_walker *walker, const struct tl_walker_config *config,
                   struct tl_item_batch *out)
{
    const bool any = config->image && !tl_image_is_empty(config->image);
    *walker = (struct tl_walker){
        .out = out,
        .image = any ? config->image : NULL,
        .bits = config->bits,
        .reports_erets = config->reports_erets,
        .names_unmapped = config->names_unmapped,
        .since = config->since,
        .keeps_time = config->keeps_time,
        .returns = {.active = config->predicts_returns,
                    .all = config->predicts_all,
                    .size = config->returns ? config->returns : 1},
        .cache_limit = CACHE_LIMIT,
    };
    const int rc = any ? tl_block_cache_new(&walker->cache, walker->image, &config->isa) : TL_OK;
    /* If allocation fails: slower, but works. */
    if (walker->cache && config->bits == TL_WALKER_CONDITIONS && out->paths)
        walker->routes = calloc(TL_ROUTE_FEW, sizeof *walker->routes);
    walker->n_routes = TL_ROUTE_FEW;
    tl_walker_begin(walker);
    return rc;
}

void tl_walker_fini(struct tl_walker *walker)
{
    tl_block_cache_free(walker->cache);
    free(walker->routes);
}

void tl_walk_resolve_return(struct tl_walker *w, unsigned i)
{
    const struct tl_block *const b = w->returns.v[i].caller;
    if (!b)
        return;
    w->returns.v[i].pc = tl_block_after(b);
    w->returns.v[i].isa = b->isa;
    w->returns.v[i].caller = NULL;
}

void tl_walker_code(struct tl_walker *walker, tl_block_code *code)
{
    if (walker->cache)
        tl_block_cache_code(walker->cache, code);
}

static void forget_callers(struct tl_walker *w)
{
    memset(&w->callers, 0, sizeof w->callers);
    for (unsigned i = 0; i < w->returns.n; i++)
        tl_walk_resolve_return(w, (w->returns.top - i) & (w->returns.size - 1u));
}

/* Update the view after a change of identifiers or time. */
static void set_view(struct tl_walker *w)
{
    if (!w->cache)
        return;
    const uint64_t shown = tl_image_view(w->image, &w->context, w->time, &w->view_until);
    const uint64_t view = w->hidden ? shown | TL_IMAGE_MACHINE : shown;
    if (view == w->view)
        return;
    w->view = view;
    tl_block_cache_view(w->cache, view);
    tl_walk_forget_block(w);
    forget_callers(w);
}

void tl_walker_reset(struct tl_walker *w)
{
    tl_walker_await(w, true);
    tl_walker_forget(w);
    w->need_mode = true;
    w->space = TL_SPACE_ANY;
    w->isa = TL_ISA_NONE;
    w->mode = UINT64_MAX;
    w->context = (struct tl_image_context){0};
    w->hidden = false;
    set_view(w);
}

void tl_walker_hide(struct tl_walker *w, bool hidden)
{
    w->hidden = hidden;
    set_view(w);
}

void tl_walker_begin(struct tl_walker *w)
{
    w->time = w->since;
    w->view_until = UINT64_MAX;
    w->failed = false;
    tl_walker_reset(w);
}

void tl_walker_restore_context(struct tl_walker *w, const struct tl_image_context *context)
{
    w->context = *context;
    tl_walk_forget_block(w);
    set_view(w);
}

/* Do both contexts identify the same memory? */
static bool is_same_context(const struct tl_image_context *a, const struct tl_image_context *b)
{
    return a->has_context_id == b->has_context_id && a->has_vmid == b->has_vmid &&
           a->context_id == b->context_id && a->vmid == b->vmid;
}

void tl_walker_trim(struct tl_walker *w)
{
    if (!tl_walker_is_full(w))
        return;
    tl_item_batch_flush(w->out);
    tl_walk_forget_block(w);
    forget_callers(w);
    tl_walker_routes_forget(w);
    tl_block_cache_reset(w->cache);
}

/* ---- mode and identifiers ---------------------------------------------------------------- */

static void report_mode(struct tl_walker *w, uint64_t mode, uint64_t offset)
{
    if (mode == w->mode)
        return;
    w->mode = mode;
    tl_item_batch_value(w->out, TL_ITEM_MODE, mode, offset);
}

/* Privilege and security are unchanged; report the instruction set if it differs from the last
 * MODE. */
static void report_isa(struct tl_walker *w, uint64_t offset)
{
    if (w->mode != UINT64_MAX)
        report_mode(w, (w->mode & ~0xffULL) | w->isa, offset);
}

void tl_walker_mode(struct tl_walker *w, uint64_t mode, uint64_t offset)
{
    const uint8_t space = (uint8_t)tl_mode_space(mode), isa = (uint8_t)tl_mode_isa(mode);
    if (space != w->space || isa != w->isa)
        tl_walk_forget_block(w);
    w->space = space;
    w->isa = isa;
    w->need_mode = false;
    report_mode(w, mode, offset);
}

void tl_walker_context(struct tl_walker *w, const struct tl_image_context *context, uint64_t offset)
{
    if (is_same_context(context, &w->context))
        return;
    w->context = *context;
    set_view(w);
    struct tl_item *const item = tl_item_batch_add(w->out, TL_ITEM_CONTEXT, offset);
    item->flags = (uint8_t)((context->has_context_id ? TL_ITEM_HAS_PC : 0) |
                            (context->has_vmid ? TL_ITEM_HAS_VALUE : 0));
    item->pc = context->context_id;
    item->value = context->vmid;
}

static __attribute__((noinline)) void restart_time(struct tl_walker *w, uint64_t last,
                                                   uint64_t first, uint64_t offset)
{
    w->restarted = offset + 1;
    tl_item_batch_restart(w->out, last, first, offset);
}

void tl_walker_estimate(struct tl_walker *w, uint64_t ticks, bool restarts, uint64_t last,
                        uint64_t offset)
{
    if (restarts)
        restart_time(w, last, ticks, offset);
    tl_item_batch_value(w->out, TL_ITEM_TIME, ticks, offset);
    if (ticks > w->time && !w->keeps_time)
        w->time = ticks;
    if (w->time >= w->view_until)
        set_view(w);
}

void tl_walker_time(struct tl_walker *w, uint64_t ticks, uint64_t offset)
{
    tl_walker_estimate(w, ticks, tl_time_restarts(w->stamp, ticks), w->stamp, offset);
    w->stamp = ticks;
}

int tl_walker_tell_restart(struct tl_walker *w,
                           int (*loss)(void *context, const char *reason, uint64_t offset,
                                       uint64_t bytes),
                           void *context)
{
    const uint64_t at = w->restarted;
    w->restarted = 0;
    return at ? loss(context, TL_LOSS_TIME_RESTART, at - 1, 0) : TL_OK;
}

/* ---- place ------------------------------------------------------------------------------- */

/* Report an address that cannot be followed. */
static void report_address(struct tl_walker *w, uint64_t to, uint64_t offset)
{
    if (w->names_unmapped)
        tl_item_batch_unmapped(w->out, to, offset);
    else
        tl_item_batch_value(w->out, TL_ITEM_BRANCH, to, offset);
}

void tl_walker_jump(struct tl_walker *w, uint64_t pc, enum tl_isa isa, uint64_t offset)
{
    tl_walker_take_address(w);
    tl_walker_jump_on(w, pc, isa, offset);
    report_isa(w, offset);
    if (!w->cache)
        report_address(w, pc, offset);
}

void tl_walker_await(struct tl_walker *w, bool gap_reported)
{
    w->need_address = true;
    w->gap_reported = gap_reported;
    w->returns.pending = TL_PENDING_NONE;
    tl_walk_forget_block(w);
}

void tl_walker_lose(struct tl_walker *w, enum tl_gap gap, uint64_t offset)
{
    tl_walker_await(w, true);
    tl_walker_forget(w);
    tl_item_batch_gap(w->out, gap, offset);
}

void tl_walker_off(struct tl_walker *w, uint64_t offset)
{
    tl_walker_await(w, true);
    tl_item_batch_gap(w->out, TL_GAP_OFF, offset);
}

void tl_walker_contradict(struct tl_walker *w, uint64_t offset)
{
    w->out->run = 0; /* the steps so far do not lead there */
    if (w->cache)
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
}

bool tl_walker_is_known(struct tl_walker *w, uint64_t offset)
{
    if (!w->cache || w->need_mode)
        return false;
    if (w->need_address && !w->gap_reported)
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
    return !w->need_address;
}

/* pc is not mapped: report it, if known from the trace, and wait for an address. */
void tl_walk_lose_image(struct tl_walker *w, uint64_t offset)
{
    if (!w->by_address && !w->names_unmapped) {
        tl_walker_lose(w, TL_GAP_NO_IMAGE, offset);
        return;
    }
    tl_walker_await(w, true);
    tl_walker_forget(w);
    tl_item_batch_unmapped(w->out, w->pc, offset);
}

void tl_walker_passed_unmapped(struct tl_walker *w, uint64_t pc)
{
    w->out->run = 0;
    w->pc = pc;
    w->by_address = true;
    tl_walker_take_address(w);
}

/* ---- return stack ------------------------------------------------------------------------ */

void tl_walker_forget(struct tl_walker *w)
{
    w->returns.n = 0;
    w->returns.pending = TL_PENDING_NONE;
}

void tl_walker_renew(struct tl_walker *w)
{
    w->returns.renewed = true;
}

/* Exchange the two newest entries. */
static void lift_entry(struct tl_walker_returns *r)
{
    const unsigned below = (r->top - 1u) & (r->size - 1u);
    const __typeof__(r->v[0]) top = r->v[r->top];
    r->v[r->top] = r->v[below];
    r->v[below] = top;
}

void tl_walker_pop_return(struct tl_walker *w, uint64_t offset)
{
    struct tl_walker_returns *const r = &w->returns;
    const unsigned pending = r->pending;
    r->pending = TL_PENDING_NONE;
    if (r->n < pending || pending == TL_PENDING_NONE)
        return;
    if (pending == TL_PENDING_BELOW)
        lift_entry(r);
    struct tl_block *const caller = r->v[r->top].caller;
    const bool known = caller && r->v[r->top].space == w->space;
    tl_walk_resolve_return(w, r->top);
    const uint64_t pc = r->v[r->top].pc;
    const enum tl_isa isa = r->v[r->top].isa;
    tl_walker_drop_return(r);
    tl_walker_jump_on(w, pc, isa, offset);
    if (!w->block && known) {
        w->from = NULL;
        w->block = caller->go[0];
        w->link = &caller->go[0];
    }
    report_isa(w, offset);
}

/* ---- from block to block ----------------------------------------------------------------- */

/* The last instruction of `b`, which can change the flow, was executed: continue after it. */
void tl_walk_leave(struct tl_walker *w, struct tl_block *b, bool taken, uint64_t offset)
{
    const uint64_t next = tl_block_after(b);
    if (!taken || !tl_walk_turns(b)) {
        tl_walker_continue(w, next, &b->go[taken]);
        return;
    }
    if (b->link) {
        tl_walker_push_return(w, b);
        if (w->bits != TL_WALKER_CONDITIONS)
            tl_walker_note_caller(w, b);
    }
    if (b->last_kind == TL_INSN_BRANCH) {
        w->isa = b->target_isa;
        tl_walker_continue(w, b->target, &b->go[1]);
        if (b->target_isa != b->isa)
            report_isa(w, offset);
        return;
    }
    tl_walker_await_address(w, b);
    if (w->returns.all)
        w->returns.pending = w->returns.pending && b->link ? TL_PENDING_BELOW : w->returns.pending;
    else if (b->link || b->last_kind == TL_INSN_RETURN_EX)
        tl_walker_unpredict(w);
    if (w->reports_erets && b->last_kind == TL_INSN_RETURN_EX)
        tl_item_batch_add(w->out, TL_ITEM_ERET, offset);
}

/*
 * Execute blocks split at TL_BLOCK_MAX, up to the last one, which is returned. NULL: out of memory,
 * or there are more than TL_WALKER_STRAIGHT_MAX instructions, which was reported.
 */
static struct tl_block *execute_full(struct tl_walker *w, struct tl_block *b, uint64_t offset)
{
    for (uint32_t n = 0; b && b->end == TL_BLOCK_FULL; n += TL_BLOCK_MAX) {
        if (n == TL_WALKER_STRAIGHT_MAX) {
            tl_walker_lose(w, TL_GAP_NO_PATH, offset);
            return NULL;
        }
        tl_item_batch_whole(w->out, b, false, offset);
        tl_walker_continue(w, tl_block_after(b), &b->go[0]);
        b = w->out->rc < 0 ? NULL : tl_walk_here(w);
    }
    return b;
}

/* Execute all of `b`, after which the image ends. */
void tl_walk_off(struct tl_walker *w, const struct tl_block *b, uint64_t offset)
{
    if (b->n > 0) {
        tl_item_batch_whole(w->out, b, false, offset);
        w->pc = tl_block_after(b);
        w->by_address = false;
    }
    tl_walk_lose_image(w, offset);
}

/* ---- an outcome bit for each waypoint ------------------------------------------------------ */

/* Consume one bit at block `b`, of any kind. */
static void one_waypoint(struct tl_walker *w, struct tl_block *b, bool taken, uint64_t offset)
{
    b = execute_full(w, b, offset);
    if (!b)
        return;
    if (b->end != TL_BLOCK_WAYPOINT) {
        tl_walk_off(w, b, offset);
        return;
    }
    /* Also of a branch that always branches: one that did not was another instruction in the
     * program that ran, which went on behind it. */
    tl_walk_block(w, b, taken, offset);
}

/* Consume bits at known blocks for sinks without PATH items: each block is an item. */
static __attribute__((noinline)) unsigned walk_blocks(struct tl_walker *w, uint64_t bits,
                                                      unsigned n, uint64_t offset)
{
    uintptr_t steps[64];
    uint64_t insns;
    const unsigned done = tl_walker_known_bits(w, bits, n, steps, &insns);
    for (unsigned i = 0; i < done; i++) {
        const struct tl_block *const b = tl_path_block(steps[i]);
        tl_item_batch_block(w->out, b, b->n, tl_path_taken(steps[i]), offset);
    }
    return done;
}

static unsigned walk_on(struct tl_walker *w, uint64_t bits, unsigned n, uint64_t offset)
{
    if (!w->out->paths)
        return walk_blocks(w, bits, n, offset);
    uint64_t insns;
    const unsigned done = tl_walker_known_bits(w, bits, n, tl_item_batch_steps(w->out, n), &insns);
    if (done > 0)
        tl_item_batch_path(w->out, done, insns, offset);
    return done;
}

/* Consume bits for which no block is known yet, or whose block needs special handling. */
void tl_walker_waypoints_rest(struct tl_walker *w, uint64_t bits, unsigned n, uint64_t offset)
{
    while (n > 0 && w->out->rc >= 0) {
        if (w->block) {
            one_waypoint(w, w->block, bits & 1, offset);
            bits >>= 1;
            n--;
            continue;
        }
        tl_walker_pop_return(w, offset);
        if (w->need_address) { /* none of the bits can supply an address */
            tl_walker_is_known(w, offset);
            return;
        }
        const struct tl_block *const b = tl_walk_here(w);
        if (!b)
            return;
        if (b->n == 0) {
            tl_walk_lose_image(w, offset);
            return;
        }
        const unsigned done = walk_on(w, bits, n, offset);
        bits = done < 64 ? bits >> done : 0;
        n -= done;
    }
}

void tl_walker_waypoints(struct tl_walker *w, uint64_t bits, unsigned n, uint64_t offset)
{
    if (!w->cache || w->need_mode)
        return;
    tl_item_batch_pause(w->out);
    if (!w->block && !w->need_address)
        tl_walk_here(w);
    const unsigned done = w->block ? walk_on(w, bits, n, offset) : 0;
    if (done < n && !w->failed)
        tl_walker_waypoints_rest(w, bits >> done, n - done, offset);
}

/* ---- straight-line code -------------------------------------------------------------------- */

/*
 * Number of instructions of the block up to `to`. A T32 instruction may be interrupted halfway and
 * resumed later: then `to` is inside it, and it counts. < 0: not an instruction boundary.
 */
static int64_t count_to(const struct tl_block *b, uint64_t to, bool half)
{
    const int64_t n = tl_block_count_to(b, to);
    return n < 0 && half && b->isa == TL_ISA_T32 && to % 2 == 0 ? tl_block_count_to(b, to + 2) : n;
}

/* What straight-line code is followed past. */
enum past {
    PAST_NOTHING,   /* no instruction that has an outcome bit */
    PAST_HALF,      /* the same, and a T32 instruction may be interrupted halfway */
    PAST_CONDITIONS /* conditional branches that were not taken */
};

/* Does the flow go straight on behind the last of the first `n` instructions of `b`? */
static bool goes_past(const struct tl_block *b, uint32_t n, enum past past)
{
    if (n < b->n || b->end != TL_BLOCK_WAYPOINT)
        return true;
    return past == PAST_CONDITIONS ? !tl_block_turns_always(b) : !tl_walk_turns(b);
}

/* Follow straight-line code to `to`, as tl_walker_to(). */
static bool straight_to(struct tl_walker *w, uint64_t to, enum past past, uint64_t offset)
{
    if (!tl_walker_is_known(w, offset))
        return false;
    if (to - w->pc > TL_WALKER_STRAIGHT_MAX) {
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
        return false;
    }
    while (w->pc != to) {
        struct tl_block *const b = tl_walk_here(w);
        if (!b || w->out->rc < 0)
            return false;
        const bool ends_here = to - b->pc < (uint64_t)b->size + 1;
        const int64_t n = ends_here ? count_to(b, to, past == PAST_HALF) : b->n;
        const bool within = ends_here && to - b->pc < b->size;
        if (n < 0 || b->n == 0 || (!within && !goes_past(b, (uint32_t)n, past))) {
            tl_walker_lose(w, b->n == 0 ? TL_GAP_NO_IMAGE : TL_GAP_NO_PATH, offset);
            return false;
        }
        tl_item_batch_block(w->out, b, (uint32_t)n, false, offset);
        if (ends_here) {
            w->pc = to;
            tl_walk_forget_block(w);
        } else if (b->end == TL_BLOCK_UNMAPPED) {
            tl_walker_lose(w, TL_GAP_NO_IMAGE, offset);
            return false;
        } else {
            tl_walker_continue(w, tl_block_after(b), &b->go[0]);
        }
    }
    return true;
}

bool tl_walker_to(struct tl_walker *w, uint64_t to, bool half, uint64_t offset)
{
    if (w->bits != TL_WALKER_CONDITIONS)
        return straight_to(w, to, half ? PAST_HALF : PAST_NOTHING, offset);
    const enum tl_walker_end end = tl_walker_to_ip(w, to, offset);
    if (end == TL_WALKER_CHOICE)
        tl_walker_lose(w, TL_GAP_NO_PATH, offset);
    return end == TL_WALKER_REACHED;
}

/* Can the branch at the end of `b` have led to `to`? `*taken`: by being taken. */
static bool leads_to(const struct tl_block *b, uint64_t to, bool *taken)
{
    const bool falls = to == tl_block_after(b) && !tl_block_turns_always(b);
    *taken = !falls && (b->last_kind != TL_INSN_BRANCH || b->target == to);
    return falls || *taken;
}

/* tl_walker_count() without items, or with them: then it must have succeeded without. */
static bool count_on(struct tl_walker *w, uint64_t count, uint64_t to, bool emit, uint64_t offset)
{
    const struct tl_block *b = tl_walk_here(w);
    uint64_t pc = w->pc;
    while (b && b->n > 0) {
        const uint32_t n = count < b->n ? (uint32_t)count : b->n;
        const bool branch = n == b->n && b->end == TL_BLOCK_WAYPOINT && tl_walk_turns(b);
        bool taken = false;
        const bool leads = branch ? leads_to(b, to, &taken) : b->pc + tl_block_bytes(b, n) == to;
        pc = b->pc + tl_block_bytes(b, n);
        if (emit)
            tl_item_batch_block(w->out, b, n, taken, offset);
        count -= n;
        if (count == 0)
            return leads;
        if (branch || b->end == TL_BLOCK_UNMAPPED || w->out->rc < 0)
            return false;
        tl_walker_trim(w);
        b = tl_block_get(w->cache, w->space, w->isa, pc);
    }
    return false;
}

bool tl_walker_count(struct tl_walker *w, uint64_t count, uint64_t to, uint64_t offset)
{
    if (!w->cache || w->need_mode || w->need_address || count == 0 ||
        count > TL_WALKER_STRAIGHT_MAX || !count_on(w, count, to, false, offset))
        return false;
    return count_on(w, count, to, true, offset);
}

/* Report an executed instruction with unknown encoding. */
static void report_unknown(struct tl_walker *w, uint64_t pc, uint64_t offset)
{
    struct tl_item *const item = tl_item_batch_add(w->out, TL_ITEM_UNKNOWN, offset);
    item->pc = pc;
    item->flags = TL_ITEM_HAS_PC;
}

void tl_walker_source(struct tl_walker *w, uint64_t pc, enum tl_isa isa, uint64_t offset)
{
    tl_walker_pop_return(w, offset);
    if (w->need_mode)
        return;
    if (!w->cache) {
        report_unknown(w, pc, offset);
        return;
    }
    if (!w->need_address)
        isa = w->isa;
    /* A block of its own: the first instruction was executed and branched. */
    struct tl_block *const b = tl_block_get(w->cache, w->space, isa, pc);
    if (!b) {
        w->failed = true;
        return;
    }
    if (b->n == 0) {
        report_unknown(w, pc, offset);
        tl_walker_lose(w, TL_GAP_NO_IMAGE, offset);
        return;
    }
    straight_to(w, pc, PAST_CONDITIONS, offset);
    tl_walk_forget_block(w);
    tl_walker_jump_on(w, pc, isa, offset);
    report_isa(w, offset);
    const bool branched = b->n == 1 && b->end == TL_BLOCK_WAYPOINT;
    tl_item_batch_block(w->out, b, 1, branched && tl_walk_turns(b), offset);
    if (branched)
        tl_walk_leave(w, b, true, offset);
    else /* the image differs from the executed program */
        w->pc = tl_isa_wrap(w->isa, b->pc + tl_block_bytes(b, 1));
}
