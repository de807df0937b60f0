/* SPDX-License-Identifier: MIT */
/*
 * Packets of format 3 tell a place without what led there, so everything that was inferred ends
 * with them, unless the encoder says that it goes on remembering (E-Trace 2.1). Support packets
 * wait for the packet behind them, which they must have.
 */
#include "riscv/etrace_flow_parts.h"
#include "riscv/timestamp.h"

#define ILLEGAL_INSTRUCTION 2 /* an exception cause */

/* ---- mode and context ------------------------------------------------------------------- */

static unsigned privilege_of(uint8_t privilege)
{
    static const uint8_t levels[] = {0, 1, 2, 3, 6, 4, 5}; /* U, S, reserved, M, D, VU, VS */
    return privilege < sizeof levels ? levels[privilege] : 15;
}

bool tl_etrace_is_reserved(uint8_t privilege)
{
    return privilege_of(privilege) == 15;
}

/* Without a privilege field of two bits there are only U and M. */
uint8_t tl_etrace_privilege_in(const struct tl_etrace_flow *f, const struct tl_etrace_packet *k)
{
    return f->params.privilege_width == 1 && k->privilege ? 3 : k->privilege;
}

/* What formats 3.0 to 3.2 report besides a place. What was executed has been delivered. */
void tl_etrace_take_mode(struct tl_etrace_flow *f, const struct tl_etrace_packet *k,
                         uint64_t offset)
{
    struct tl_walker *const w = &f->walk.walker;
    const uint64_t view = w->view;
    f->privilege = tl_etrace_privilege_in(f, k);
    tl_walker_mode(
        w,
        tl_mode(TL_ARCH_RISCV, privilege_of(f->privilege), TL_SEC_NONE, (enum tl_isa)f->params.isa),
        offset);
    const struct tl_image_context context = {.has_context_id = f->params.context_width > 0,
                                             .context_id = k->context,
                                             .has_vmid = f->vmid != 0,
                                             .vmid = f->vmid};
    tl_walker_context(w, &context, offset);
    if (w->view != view)
        tl_etrace_walk_refresh(&f->walk);
}

void tl_etrace_take_time(struct tl_etrace_flow *f, uint64_t ticks, unsigned width, uint64_t offset)
{
    f->time = tl_riscv_unwrap(f->time, ticks, width);
    tl_etrace_walk_report(&f->walk);
    const uint64_t view = f->walk.walker.view;
    tl_walker_time(&f->walk.walker, f->time, offset);
    if (f->soft.rc >= 0)
        f->soft.rc =
            tl_walker_tell_restart(&f->walk.walker, f->soft.sink.loss, f->soft.sink.context);
    if (f->walk.walker.view != view)
        tl_etrace_walk_refresh(&f->walk);
}

/* ---- packets of format 3 ---------------------------------------------------------------- */

/* Packets of format 3 do not make the encoder forget what it remembers, once tracing has begun. */
static bool is_remembered(const struct tl_etrace_flow *f)
{
    return f->walk.options & TL_ETRACE_NO_RESYNC;
}

static void forget_all(struct tl_etrace_flow *f)
{
    tl_etrace_outcomes_forget(&f->walk.outcomes);
    tl_returns_clear(&f->walk.returns);
    if (f->cache)
        memset(f->cache, 0, ((size_t)1 << f->params.cache_size) * sizeof *f->cache);
}

/* Begin at the reported address; `continues`: the walk is there. */
static void begin_flow(struct tl_etrace_flow *f, const struct tl_etrace_packet *k, bool continues,
                       uint64_t offset)
{
    struct tl_etrace_walk *const w = &f->walk;
    f->end = TL_ETRACE_END_BEGUN;
    f->unknown |= tl_etrace_keeps_memory(f) && f->midway;
    f->unknown &= is_remembered(f) && (!f->stopped || f->midway);
    if (!is_remembered(f) || f->stopped)
        forget_all(f);
    f->midway = f->stopped = f->misfit = f->trapped = false;
    f->synced = !f->unknown;
    f->base = f->address = k->address & tl_etrace_mask(f);
    tl_etrace_outcomes_clear(&w->outcomes);
    if (f->unknown) {
        tl_etrace_walk_leave(w);
        return;
    }
    if (!w->walker.cache) {
        tl_item_batch_value(&f->soft.out, TL_ITEM_BRANCH, tl_etrace_place(f), offset);
        return;
    }
    const bool placed = continues ? tl_etrace_walk_again(w, offset)
                                  : tl_etrace_walk_begin(w, tl_etrace_place(f), offset);
    if (!placed) /* code that is not followed changes what the encoder remembers */
        tl_etrace_forget_place(f, true);
    if (placed && tl_etrace_walk_at_branch(w)) {
        tl_etrace_outcomes_add(&w->outcomes, k->branch, 1);
        w->outcomes.untrained = f->params.unit != TL_ETRACE_2_1;
    }
}

void tl_etrace_on_start(struct tl_etrace_flow *f, const struct tl_etrace_packet *k, uint64_t offset)
{
    struct tl_etrace_walk *const w = &f->walk;
    const uint64_t address = k->address & tl_etrace_mask(f);
    const bool was_placed = w->placed;
    tl_etrace_report_loss(f);
    /* An address that was reached in passing is reported right in front of this packet only. */
    if (w->placed && f->end == TL_ETRACE_END_INFERRED &&
        !tl_etrace_walk_leads_to(w, address, tl_etrace_mask(f)))
        (void)tl_etrace_go_round(f, offset);
    f->address = address;
    if (w->placed) {
        const struct tl_etrace_goal goal = {.address = tl_etrace_place(f),
                                            .sync = true,
                                            .same_privilege =
                                                tl_etrace_privilege_in(f, k) == f->privilege};
        (void)tl_etrace_walk_to(w, &goal, offset);
    }
    if (was_placed && !w->placed) /* it was not followed to here */
        tl_etrace_leave_place(f, offset);
    const bool continues = w->placed, before_lost = !continues && (!f->stopped || f->midway);
    if (continues) /* what holds from the address on comes in front of its instruction */
        tl_etrace_walk_split(w);
    tl_etrace_take_mode(f, k, offset);
    begin_flow(f, k, continues, offset);
    w->before_lost = before_lost && w->placed;
}

/* The preferred return address of a trap; false: not known. */
static bool take_epc(struct tl_etrace_flow *f, const struct tl_etrace_packet *k, uint64_t *pc)
{
    struct tl_etrace_walk *const w = &f->walk;
    if (f->params.unit == TL_ETRACE_ESP32 && k->ecause == ILLEGAL_INSTRUCTION && !k->interrupt) {
        *pc = k->tval;
        return true;
    }
    if (k->interrupt)
        return (k->thaddr || !tl_etrace_walk_at_jump(w)) && tl_etrace_walk_successor(w, pc);
    if (!k->thaddr && (!w->placed || tl_etrace_walk_at_jump(w))) {
        *pc = tl_etrace_walk_address(w, &f->params, k->address & tl_etrace_mask(f));
        return true;
    }
    if (tl_etrace_walk_at_trap(w)) {
        *pc = w->pc;
        return true;
    }
    return tl_etrace_walk_successor(w, pc);
}

/* The handler's address where packets lack it; false: the setup does not give it. */
static bool take_vector(struct tl_etrace_flow *f, const struct tl_etrace_packet *k)
{
    const uint64_t tvec = f->params.tvec[f->privilege < TL_ETRACE_TVECS ? f->privilege : 0];
    const bool vectored = tvec & 1 && k->interrupt;
    f->address =
        ((tvec & ~UINT64_C(3)) + (vectored ? 4 * (uint64_t)k->ecause : 0)) & tl_etrace_mask(f);
    return tvec != 0;
}

void tl_etrace_on_trap(struct tl_etrace_flow *f, const struct tl_etrace_packet *k, uint64_t offset)
{
    uint64_t epc = 0;
    tl_etrace_report_loss(f);
    const bool known = take_epc(f, k, &epc);
    const uint64_t told =
        tl_etrace_walk_address(&f->walk, &f->params, k->address & tl_etrace_mask(f));
    tl_etrace_walk_trap(&f->walk, k->thaddr ? NULL : &told);
    struct tl_item *const item = tl_item_batch_add(&f->soft.out, TL_ITEM_EXCEPTION, offset);
    item->sub = (uint16_t)(k->ecause | (k->interrupt ? TL_EXCEPTION_INTERRUPT : 0));
    item->text = k->interrupt ? "interrupt" : "exception";
    item->pc = epc;
    item->flags = known ? TL_ITEM_HAS_PC : 0;
    f->base = f->address = k->address & tl_etrace_mask(f);
    f->end = TL_ETRACE_END_REACHED;
    f->misfit = false;
    f->synced = f->trapped = true;
    if (k->thaddr)
        tl_etrace_take_mode(f, k, offset);
    if (k->thaddr && k->has_address)
        begin_flow(f, k, false, offset);
    else if (k->thaddr && take_vector(f, k))
        begin_flow(f, &(struct tl_etrace_packet){.address = f->address, .branch = k->branch}, false,
                   offset);
    f->stopped = false;
}

/* ---- support packets ------------------------------------------------------------------- */

/* The trace ended, or packets were lost. */
static void take_status(struct tl_etrace_flow *f, uint8_t status, uint64_t offset)
{
    struct tl_etrace_walk *const w = &f->walk;
    if (status == TL_ETRACE_ENDED_NTR &&
        (f->end == TL_ETRACE_END_INFERRED || f->end == TL_ETRACE_END_STOOD) && w->placed)
        (void)tl_etrace_go_round(f, offset);
    f->midway &= status == TL_ETRACE_NO_CHANGE;
    if (status == TL_ETRACE_NO_CHANGE || f->stopped)
        return;
    const bool lost = status == TL_ETRACE_LOST;
    tl_etrace_walk_lose(w, lost ? TL_GAP_OVERFLOW : TL_GAP_OFF, offset);
    f->stopped = true;
    f->end = TL_ETRACE_END_REACHED;
    f->synced = f->misfit = f->trapped = false;
    if (lost && f->soft.rc >= 0)
        f->soft.rc = f->soft.sink.loss(f->soft.sink.context, TL_LOSS_OVERFLOW, offset, 0);
}

void tl_etrace_take_options(struct tl_etrace_flow *f, unsigned options)
{
    f->params = f->given;
    (void)tl_etrace_take_sizes(&f->params, options);
    tl_etrace_walk_configure(&f->walk, &f->params, options);
    f->is_plain = (options & ~(unsigned)TL_ETRACE_FULL_ADDRESS) == 0 && !f->params.irdepth_width &&
                  f->walk.returns.size == 0 && f->walk.outcomes.size == 0 &&
                  f->params.unit == TL_ETRACE_REFERENCE && !f->soft.sink.packet;
}

void tl_etrace_settle_support(struct tl_etrace_flow *f, const struct tl_bytes *next)
{
    const uint64_t at = f->support.at;
    const uint8_t status = f->support.packet.qual_status;
    unsigned options = f->walk.options;
    const struct tl_etrace_verdict verdict =
        tl_etrace_support_settle(&f->support, &f->params, next, &options);
    if (verdict.takes_status)
        take_status(f, status, at);
    tl_etrace_take_options(f, options); /* for what follows */
    const bool begins = verdict.is_confirmed && f->support.is_first && (next->p[0] & 15) == 3;
    f->unsaid &= !begins && !verdict.is_sure;
    f->midway &= !begins;
    f->told = f->unsaid && (f->told || verdict.is_confirmed);
    if (verdict.is_contradicted)
        tl_etrace_report_unbelieved(f);
}
