/* SPDX-License-Identifier: MIT */
#include "sim/pt_flow_encoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool chance(struct tl_sim_pt_flow *flow, unsigned per_mille)
{
    return tl_sim_below(&flow->rng, 1000) < per_mille;
}

static const struct tl_sim_x86_insn *insn_at(const struct tl_sim_pt_flow *flow, uint32_t index)
{
    return tl_sim_x86_insn(flow->run.program, index);
}

static const struct tl_sim_x86_insn *here(const struct tl_sim_pt_flow *flow)
{
    return insn_at(flow, flow->run.pc);
}

static uint64_t tsc_of(const struct tl_sim_pt_flow *flow)
{
    return flow->cycles * TL_SIM_PT_NOM_FREQ / TL_SIM_PT_CBR_RATIO;
}

static struct tl_sim_pt_truth *say(struct tl_sim_pt_flow *flow, enum tl_sim_pt_what what,
                                   uint64_t ip, uint64_t value)
{
    const struct tl_sim_pt_truth truth = {
        .what = (uint8_t)what, .ip = ip, .value = value, .tsc = tsc_of(flow)};
    if (tl_buf_add(&flow->truth, &truth, sizeof truth) < 0)
        abort();
    return (struct tl_sim_pt_truth *)(void *)(flow->truth.p + flow->truth.n) - 1;
}

/* ---- what is traced ------------------------------------------------------------------------- */

static bool in_context(const struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn)
{
    return !flow->off &&
           (insn->zone == TL_SIM_X86_KERNEL ? flow->options.kernel : flow->options.user);
}

/* Is this instruction in the filter's range? The filter covers whole functions, so that only a
 * branch leaves the traced code. */
static bool in_filter(const struct tl_sim_pt_flow *flow, uint32_t index)
{
    const struct tl_sim_x86_program *const program = flow->run.program;
    const uint32_t *const functions = (const uint32_t *)(const void *)program->functions.p;
    size_t min = 0, most = program->functions.n / sizeof *functions - 1;
    while (flow->options.filter && most - min > 1) {
        const size_t middle = (min + most) / 2;
        if (functions[middle] <= index)
            min = middle;
        else
            most = middle;
    }
    return !flow->options.filter || min % 4 < 2;
}

static bool traced(const struct tl_sim_pt_flow *flow, uint32_t index)
{
    return in_context(flow, insn_at(flow, index)) && in_filter(flow, index);
}

/* ---- packets -------------------------------------------------------------------------------- */

static void send_tips(struct tl_sim_pt_flow *flow)
{
    for (unsigned i = 0; i < flow->n_tips; i++)
        tl_sim_pt_ip(&flow->pt, TL_PT_TIP, flow->tips[i]);
    flow->n_tips = 0;
}

/*
 * Write everything pending: outcomes of branches, then the TIPs that were deferred because of them.
 */
static void force(struct tl_sim_pt_flow *flow)
{
    tl_sim_pt_flush(&flow->pt);
    send_tips(flow);
}

static void packet(struct tl_sim_pt_flow *flow, const struct tl_pt_packet *p)
{
    force(flow);
    tl_sim_pt_packet(&flow->pt, p);
}

static void address(struct tl_sim_pt_flow *flow, enum tl_pt_kind kind, uint64_t ip)
{
    force(flow);
    tl_sim_pt_ip(&flow->pt, kind, ip);
}

static void outcome(struct tl_sim_pt_flow *flow, bool taken)
{
    flow->wrote = true;
    tl_sim_pt_branch(&flow->pt, taken);
    if (flow->pt.n_outcomes == 0)
        send_tips(flow);
}

static void tip(struct tl_sim_pt_flow *flow, uint64_t to, bool may_defer)
{
    flow->wrote = true;
    if (!may_defer || !flow->options.deferred_tips || flow->pt.n_outcomes == 0 ||
        flow->n_tips == sizeof flow->tips / sizeof *flow->tips)
        address(flow, TL_PT_TIP, to);
    else
        flow->tips[flow->n_tips++] = to;
}

static void put_exec_mode(struct tl_sim_pt_flow *flow, enum tl_isa isa)
{
    struct tl_pt_packet p = {.kind = TL_PT_MODE_EXEC};
    p.exec.csl = isa == TL_ISA_X64;
    p.exec.csd = isa == TL_ISA_X32;
    packet(flow, &p);
    flow->isa = (uint8_t)isa;
}

static void put_tsx(struct tl_sim_pt_flow *flow, bool in, bool aborted)
{
    struct tl_pt_packet p = {.kind = TL_PT_MODE_TSX};
    p.tsx.intx = in;
    p.tsx.abrt = aborted;
    packet(flow, &p);
    flow->transaction = in;
}

static void put_pip(struct tl_sim_pt_flow *flow)
{
    struct tl_pt_packet p = {.kind = TL_PT_PIP};
    p.pip.cr3 = flow->cr3 = flow->run.cr3;
    packet(flow, &p);
}

static void say_exec_mode(struct tl_sim_pt_flow *flow, uint64_t ip)
{
    say(flow, TL_SIM_PT_EXEC_MODE, ip, 0)->isa = flow->isa;
}

/* ---- tracing continues, and off -------------------------------------------------------------- */

static void enable(struct tl_sim_pt_flow *flow, uint32_t to)
{
    const struct tl_sim_x86_insn *const insn = insn_at(flow, to);
    const enum tl_isa isa = tl_sim_x86_isa(insn->zone);
    if (flow->cr3 != flow->run.cr3) {
        put_pip(flow);
        say(flow, TL_SIM_PT_PAGING, 0, flow->cr3)->no_ip = true;
    }
    if (flow->transaction != flow->run.in_transaction) {
        put_tsx(flow, flow->run.in_transaction, false);
        say(flow, TL_SIM_PT_TSX, 0, flow->transaction)->no_ip = true;
    }
    const bool changed = isa != (enum tl_isa)flow->isa;
    if (changed)
        put_exec_mode(flow, isa);
    address(flow, TL_PT_TIP_PGE, insn->pc);
    say(flow, TL_SIM_PT_ENABLED, insn->pc, 0);
    if (changed)
        say_exec_mode(flow, insn->pc);
    flow->enabled = true;
    flow->n_calls = 0;
}

/* TIP.PGD, with an IP only if tracing ends because of the filter. */
static struct tl_sim_pt_truth *disable(struct tl_sim_pt_flow *flow, enum tl_sim_pt_what what,
                                       uint64_t ip, uint32_t to)
{
    struct tl_sim_pt_truth *truth;
    force(flow);
    if (in_context(flow, insn_at(flow, to))) {
        tl_sim_pt_ip(&flow->pt, TL_PT_TIP_PGD, insn_at(flow, to)->pc);
        truth = say(flow, what, ip, insn_at(flow, to)->pc);
    } else {
        tl_sim_pt_no_ip(&flow->pt, TL_PT_TIP_PGD);
        truth = say(flow, what, ip, 0);
        truth->no_ip = true;
    }
    flow->enabled = false;
    flow->wrote = true;
    return truth;
}

/* An IRET, with its event trace packet. */
static void put_iret(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn)
{
    const struct tl_pt_packet p = {
        .kind = TL_PT_CFE, .ip = chance(flow, 500), .cfe.type = TL_PT_CFE_IRET};
    packet(flow, &p);
    if (p.ip)
        address(flow, TL_PT_FUP, insn->pc);
    say(flow, TL_SIM_PT_IRET, insn->pc, 0)->no_ip = !p.ip;
}

/* The interrupt to which the next FUP belongs, if tracing is on. */
static void put_interrupt(struct tl_sim_pt_flow *flow, uint64_t ip)
{
    struct tl_pt_packet p = {.kind = TL_PT_EVD, .evd.type = TL_PT_EVD_CR2};
    const bool fault = chance(flow, 300);
    p.evd.payload = fault ? tl_sim_rand(&flow->rng) >> 8 : 0;
    if (fault)
        packet(flow, &p);
    const uint64_t cr2 = p.evd.payload;
    p = (struct tl_pt_packet){.kind = TL_PT_CFE, .cfe.type = TL_PT_CFE_INTR};
    p.cfe.vector = fault ? 14 : (uint8_t)tl_sim_below(&flow->rng, 256);
    packet(flow, &p);
    say(flow, TL_SIM_PT_INTERRUPT, ip, p.cfe.vector | cr2 << 8)->no_ip = !flow->enabled;
}

/* Write a trigger before the next instruction, located by no packet, by a FUP, or by the number of
 * instructions since the last outcome. */
static void put_trigger(struct tl_sim_pt_flow *flow)
{
    struct tl_pt_packet p = {.kind = TL_PT_TRIG};
    const bool counts = flow->enabled && flow->pt.out.n == flow->written;
    p.trig.trbv = (uint8_t)tl_sim_below(&flow->rng, 256);
    p.trig.mult = chance(flow, 200);
    p.ip = flow->enabled && flow->wrote && chance(flow, 300);
    p.trig.icntv = p.ip || (counts && !(flow->wrote && chance(flow, 300)));
    p.trig.icnt = p.trig.icntv && !p.ip ? (uint16_t)flow->straight : 0;
    if (!flow->wrote && !p.trig.icntv)
        return;
    packet(flow, &p);
    if (p.ip)
        address(flow, TL_PT_FUP, here(flow)->pc);
    say(flow, TL_SIM_PT_TRIG, here(flow)->pc, p.trig.trbv | (uint64_t)p.trig.mult << 8)->no_ip =
        !p.trig.icntv;
}

/* A branch whose target is given by a TIP; if the target is not traced, tracing is disabled. */
static void indirect(struct tl_sim_pt_flow *flow, uint32_t to, bool may_defer)
{
    if (traced(flow, to))
        tip(flow, insn_at(flow, to)->pc, may_defer);
    else
        disable(flow, TL_SIM_PT_DISABLED, 0, to);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void log_call(struct tl_sim_pt_flow *flow, uint64_t back)
{
    const unsigned most = sizeof flow->calls / sizeof *flow->calls;
    if (flow->n_calls == most)
        memmove(flow->calls, flow->calls + 1, --flow->n_calls * sizeof *flow->calls);
    flow->calls[flow->n_calls++] = back;
}

static void near_return(struct tl_sim_pt_flow *flow, uint32_t to)
{
    const bool compressed = !flow->options.no_ret_compression && flow->n_calls &&
                            flow->calls[flow->n_calls - 1] == insn_at(flow, to)->pc &&
                            traced(flow, to);
    if (compressed) {
        flow->n_calls--;
        outcome(flow, true);
        return;
    }
    flow->n_calls = 0;
    force(flow);
    indirect(flow, to, false);
}

static void far_branch(struct tl_sim_pt_flow *flow, uint32_t to)
{
    const struct tl_sim_x86_insn *const target = insn_at(flow, to);
    const enum tl_isa isa = tl_sim_x86_isa(target->zone);
    if (flow->cr3 != flow->run.cr3) {
        put_pip(flow);
        say(flow, TL_SIM_PT_PAGING, 0, flow->cr3)->no_ip = true;
    }
    if (traced(flow, to) && isa != (enum tl_isa)flow->isa) {
        put_exec_mode(flow, isa);
        tip(flow, target->pc, false);
        say_exec_mode(flow, target->pc);
    } else {
        force(flow);
        indirect(flow, to, false);
    }
}

/* A PTWRITE; IA32_RTIT_CTL.FUPonPTW determines whether a FUP gives its address. */
static void ptwrite(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn)
{
    struct tl_pt_packet p = {.kind = TL_PT_PTW, .ip = flow->options.ptwrite_ip};
    p.ptw.plc = (uint8_t)tl_sim_below(&flow->rng, 2);
    p.ptw.payload = tl_sim_rand(&flow->rng) >> (p.ptw.plc ? 0 : 32);
    packet(flow, &p);
    if (p.ip)
        address(flow, TL_PT_FUP, insn->pc);
    say(flow, TL_SIM_PT_PTWRITE, insn->pc, p.ptw.payload);
}

static void vmptrld(struct tl_sim_pt_flow *flow)
{
    struct tl_pt_packet p = {.kind = TL_PT_VMCS};
    p.vmcs = flow->vmcs = (uint64_t)tl_sim_between(&flow->rng, 1, 1000) << 12;
    packet(flow, &p);
    say(flow, TL_SIM_PT_VMCS, 0, p.vmcs)->no_ip = true;
}

static void mwait(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn)
{
    struct tl_pt_packet p = {.kind = TL_PT_MWAIT};
    p.mwait.hints = tl_sim_below(&flow->rng, 256);
    p.mwait.ext = tl_sim_below(&flow->rng, 2);
    packet(flow, &p);
    say(flow, TL_SIM_PT_MWAIT, insn->pc, p.mwait.hints | (uint64_t)p.mwait.ext << 32);
    p = (struct tl_pt_packet){.kind = TL_PT_EXSTOP, .ip = true};
    packet(flow, &p);
    address(flow, TL_PT_FUP, insn->pc);
    say(flow, TL_SIM_PT_EXSTOP, insn->pc, 0);
}

static void put_transaction(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn)
{
    put_tsx(flow, flow->run.in_transaction, false);
    address(flow, TL_PT_FUP, insn->pc);
    say(flow, TL_SIM_PT_TSX, insn->pc, flow->transaction);
}

/* Write packets whose FUP refers to this instruction: a decoder reports them before it. */
static void packets_before(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn)
{
    switch (insn->kind) {
    case TL_SIM_X86_XBEGIN:
    case TL_SIM_X86_XEND:
        put_transaction(flow, insn);
        break;
    case TL_SIM_X86_MWAIT:
        if (flow->options.power)
            mwait(flow, insn);
        break;
    default:
        break;
    }
}

static bool is_iret(const struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn)
{
    uint8_t code[TL_SIM_X86_MAX] = {0};
    const size_t n = tl_sim_x86_read(flow->run.program, insn->pc, code, insn->size);
    /* the last byte of a far return can be anything */
    const bool has_number = n > 2 && code[n - 3] == 0xca;
    return insn->kind == TL_SIM_X86_FAR_RETURN && n > 0 && code[n - 1] == 0xcf && !has_number;
}

static void packets_after(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_insn *insn,
                          const struct tl_sim_x86_step *step)
{
    switch (insn->kind) {
    case TL_SIM_X86_COND:
        if (step->taken && !traced(flow, step->to))
            disable(flow, TL_SIM_PT_DISABLED, 0, step->to);
        else
            outcome(flow, step->taken);
        break;
    case TL_SIM_X86_CALL:
        if (step->to != step->insn + 1)
            log_call(flow, insn->pc + insn->size);
        /* fall through */
    case TL_SIM_X86_JUMP:
        if (!traced(flow, step->to))
            disable(flow, TL_SIM_PT_DISABLED, 0, step->to);
        break;
    case TL_SIM_X86_CALL_INDIRECT:
        log_call(flow, insn->pc + insn->size);
        /* fall through */
    case TL_SIM_X86_JUMP_INDIRECT:
        indirect(flow, step->to, true);
        break;
    case TL_SIM_X86_RETURN:
        near_return(flow, step->to);
        break;
    case TL_SIM_X86_TRAP:
    case TL_SIM_X86_FAR_CALL:
    case TL_SIM_X86_FAR_JUMP:
    case TL_SIM_X86_FAR_RETURN:
        if (flow->options.events && is_iret(flow, insn))
            put_iret(flow, insn);
        far_branch(flow, step->to);
        break;
    case TL_SIM_X86_PTWRITE:
        ptwrite(flow, insn);
        break;
    case TL_SIM_X86_MOV_CR3:
        put_pip(flow);
        say(flow, TL_SIM_PT_PAGING, 0, flow->cr3)->no_ip = true;
        break;
    case TL_SIM_X86_VMPTRLD:
        vmptrld(flow);
        break;
    default:
        break;
    }
}

static void execute(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_step *step)
{
    const struct tl_sim_x86_insn *const insn = insn_at(flow, step->insn);
    if (!flow->enabled) {
        if (traced(flow, step->to))
            enable(flow, step->to);
        return;
    }
    packets_before(flow, insn);
    struct tl_sim_pt_truth *const truth = say(flow, TL_SIM_PT_INSN, insn->pc, 0);
    truth->size = insn->size;
    truth->isa = (uint8_t)tl_sim_x86_isa(insn->zone);
    truth->speculative = flow->transaction;
    packets_after(flow, insn, step);
}

/* ---- asynchronous ---------------------------------------------------------------------------- */

/* An interrupt, or the end of a transaction. */
static void depart(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_step *step)
{
    const struct tl_sim_x86_insn *const from = insn_at(flow, step->insn);
    const struct tl_sim_x86_insn *const to = insn_at(flow, step->to);
    if (flow->options.events && step->event == TL_SIM_X86_INTERRUPTED)
        put_interrupt(flow, from->pc);
    if (!flow->enabled) {
        if (traced(flow, step->to))
            enable(flow, step->to);
        return;
    }
    if (step->event == TL_SIM_X86_ABORTED) {
        put_tsx(flow, false, true);
        say(flow, TL_SIM_PT_TSX, from->pc, 2);
    }
    address(flow, TL_PT_FUP, from->pc);
    if (!traced(flow, step->to)) {
        disable(flow, TL_SIM_PT_ASYNC_DISABLED, from->pc, step->to);
        return;
    }
    const bool paging = flow->cr3 != flow->run.cr3;
    const enum tl_isa isa = tl_sim_x86_isa(to->zone);
    const bool mode = isa != (enum tl_isa)flow->isa;
    if (paging)
        put_pip(flow);
    if (mode)
        put_exec_mode(flow, isa);
    tip(flow, to->pc, false);
    say(flow, TL_SIM_PT_ASYNC_BRANCH, from->pc, to->pc);
    if (paging)
        say(flow, TL_SIM_PT_ASYNC_PAGING, to->pc, flow->cr3);
    if (mode)
        say_exec_mode(flow, to->pc);
}

static uint64_t ctc_of(const struct tl_sim_pt_flow *flow)
{
    return tsc_of(flow) * TL_SIM_PT_CRYSTAL / TL_SIM_PT_TSC_RATIO;
}

static void put_time(struct tl_sim_pt_flow *flow)
{
    struct tl_pt_packet p = {.kind = TL_PT_TSC, .tsc = tsc_of(flow)};
    packet(flow, &p);
    p = (struct tl_pt_packet){.kind = TL_PT_TMA};
    p.tma.ctc = (uint16_t)ctc_of(flow);
    p.tma.fc = (uint16_t)(tsc_of(flow) % (TL_SIM_PT_TSC_RATIO / TL_SIM_PT_CRYSTAL));
    packet(flow, &p);
    flow->mtc = ctc_of(flow) >> TL_SIM_PT_MTC_FREQ; /* the next MTC is for a later tick */
    p = (struct tl_pt_packet){.kind = TL_PT_CBR, .cbr = TL_SIM_PT_CBR_RATIO};
    packet(flow, &p);
}

static void put_psb(struct tl_sim_pt_flow *flow)
{
    const uint64_t ip = here(flow)->pc;
    force(flow);
    flow->psb = flow->pt.out.n;
    flow->n_calls = 0;
    tl_sim_pt_bare(&flow->pt, TL_PT_PSB);
    if (flow->options.timing)
        put_time(flow);
    flow->isa = TL_ISA_NONE; /* while tracing is off, the next TIP.PGE reports it */
    if (flow->enabled)
        put_exec_mode(flow, tl_sim_x86_isa(here(flow)->zone));
    put_tsx(flow, flow->run.in_transaction, false);
    put_pip(flow);
    if (flow->vmcs) {
        const struct tl_pt_packet p = {.kind = TL_PT_VMCS, .vmcs = flow->vmcs};
        packet(flow, &p);
    }
    if (flow->enabled)
        address(flow, TL_PT_FUP, ip);
    tl_sim_pt_bare(&flow->pt, TL_PT_PSBEND);
    const size_t first = flow->truth.n;
    if (flow->options.timing)
        say(flow, TL_SIM_PT_CBR, 0, TL_SIM_PT_CBR_RATIO)->no_ip = true;
    if (flow->enabled)
        say_exec_mode(flow, ip);
    say(flow, TL_SIM_PT_TSX, ip, flow->transaction);
    say(flow, TL_SIM_PT_ASYNC_PAGING, ip, flow->cr3);
    if (flow->vmcs)
        say(flow, TL_SIM_PT_ASYNC_VMCS, ip, flow->vmcs);
    for (size_t at = first; at < flow->truth.n; at += sizeof(struct tl_sim_pt_truth)) {
        struct tl_sim_pt_truth *const truth =
            (struct tl_sim_pt_truth *)(void *)(flow->truth.p + at);
        truth->status = true;
        truth->no_ip |= !flow->enabled;
    }
}

/* Lose some steps. A decoder continues in its last known mode; if the mode has changed, or in a
 * transaction, tracing continues with a TIP.PGE after the overflow. */
static void overflow(struct tl_sim_pt_flow *flow)
{
    struct tl_sim_x86_step lost;
    for (unsigned steps = tl_sim_between(&flow->rng, 1, 60); steps > 0; steps--)
        tl_sim_x86_step(&flow->run, &lost);
    const bool same =
        !flow->run.in_transaction && tl_sim_x86_isa(here(flow)->zone) == (enum tl_isa)flow->isa;
    flow->cr3 = flow->run.cr3;
    flow->transaction = false;
    flow->n_calls = 0;
    tl_sim_pt_bare(&flow->pt, TL_PT_OVF);
    flow->enabled = same && traced(flow, flow->run.pc);
    if (flow->enabled)
        tl_sim_pt_ip(&flow->pt, TL_PT_FUP, here(flow)->pc);
    say(flow, TL_SIM_PT_OVERFLOW, here(flow)->pc, 0)->no_ip = !flow->enabled;
    if (!same && traced(flow, flow->run.pc))
        enable(flow, flow->run.pc);
}

/* Disable tracing before one instruction, and enable it before a later one. */
static void toggle(struct tl_sim_pt_flow *flow)
{
    struct tl_sim_x86_step lost;
    const bool was = flow->enabled;
    flow->off = true;
    if (was) {
        address(flow, TL_PT_FUP, here(flow)->pc);
        disable(flow, TL_SIM_PT_ASYNC_DISABLED, here(flow)->pc, flow->run.pc);
        if (chance(flow, 300)) {
            tl_sim_pt_bare(&flow->pt, TL_PT_STOP);
            say(flow, TL_SIM_PT_STOP, 0, 0)->no_ip = true;
        }
    }
    for (unsigned steps = tl_sim_below(&flow->rng, 30); steps > 0; steps--)
        tl_sim_x86_step(&flow->run, &lost);
    flow->off = false;
    if (traced(flow, flow->run.pc))
        enable(flow, flow->run.pc);
}

static void put_power(struct tl_sim_pt_flow *flow)
{
    struct tl_pt_packet p = {.kind = TL_PT_EXSTOP};
    packet(flow, &p);
    say(flow, TL_SIM_PT_EXSTOP, 0, 0)->no_ip = true;
    p = (struct tl_pt_packet){.kind = TL_PT_PWRE};
    p.pwre.state = (uint8_t)tl_sim_between(&flow->rng, 1, 7);
    p.pwre.hw = true;
    packet(flow, &p);
    say(flow, TL_SIM_PT_PWRE, 0, p.pwre.state | 1u << 16)->no_ip = true;
    p = (struct tl_pt_packet){.kind = TL_PT_PWRX};
    p.pwrx.last = (uint8_t)tl_sim_between(&flow->rng, 1, 7);
    p.pwrx.interrupt = true;
    packet(flow, &p);
    say(flow, TL_SIM_PT_PWRX, 0, p.pwrx.last | 1u << 16)->no_ip = true;
}

/* Write a CYC, whose count may be 0. */
static void put_cycles(struct tl_sim_pt_flow *flow, uint64_t cycles)
{
    const struct tl_pt_packet p = {.kind = TL_PT_CYC, .cyc = cycles};
    tl_sim_pt_packet(&flow->pt, &p);
}

/* Write the cycles since the last CYC, and the crystal's ticks if there is one. */
static void timing(struct tl_sim_pt_flow *flow)
{
    struct tl_pt_packet p = {.kind = TL_PT_MTC};
    put_cycles(flow, flow->cycles - flow->reported);
    flow->reported = flow->cycles;
    if (ctc_of(flow) >> TL_SIM_PT_MTC_FREQ == flow->mtc)
        return;
    flow->mtc = ctc_of(flow) >> TL_SIM_PT_MTC_FREQ;
    p.mtc = (uint8_t)flow->mtc;
    tl_sim_pt_packet(&flow->pt, &p);
}

/* Write packets between two instructions. Packets without an IP belong to the last instruction that
 * wrote something. */
static void between(struct tl_sim_pt_flow *flow)
{
    const struct tl_sim_pt_flow_options *const options = &flow->options;
    const size_t period = options->psb_period ? options->psb_period : 2000;
    flow->cycles += tl_sim_between(&flow->rng, 1, 4);
    if (options->timing && flow->pt.n_outcomes == 0 && flow->n_tips == 0 && chance(flow, 150)) {
        if (chance(flow, 333))
            put_cycles(flow, 0);
        else
            timing(flow);
    }
    if (flow->pt.out.n - flow->psb > period && (flow->wrote || !options->timing))
        put_psb(flow);
    if (options->toggles && chance(flow, 3))
        toggle(flow);
    if (options->events && chance(flow, 20))
        put_trigger(flow);
    if (!flow->wrote)
        return;
    if (options->overflows && chance(flow, 5)) {
        force(flow);
        overflow(flow);
    }
    if (options->power && chance(flow, 5))
        put_power(flow);
}

/*
 * ---- running ----------------------------------------------------------------------------------
 */

void tl_sim_pt_flow_init(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_program *program,
                         const struct tl_sim_pt_flow_options *options, uint64_t seed)
{
    *flow = (struct tl_sim_pt_flow){
        .options = *options, .rng = {seed}, .cycles = 1000000, .reported = 1000000};
    flow->pt.long_tnt = options->long_tnt;
    tl_sim_x86_run_init(&flow->run, program, seed);
}

void tl_sim_pt_flow_fini(struct tl_sim_pt_flow *flow)
{
    tl_sim_pt_fini(&flow->pt);
    tl_buf_fini(&flow->truth);
}

void tl_sim_pt_flow_run(struct tl_sim_pt_flow *flow, size_t steps)
{
    if (!flow->begun) {
        flow->begun = true;
        put_psb(flow);
    }
    /* With tracing on, there will be an outcome soon. */
    while (steps > 0 || (flow->enabled && !flow->wrote)) {
        struct tl_sim_x86_step step;
        flow->wrote = false;
        steps -= steps > 0;
        tl_sim_x86_step(&flow->run, &step);
        if (step.event == TL_SIM_X86_EXECUTED)
            execute(flow, &step);
        else
            depart(flow, &step);
        flow->straight++;
        if (flow->wrote) {
            flow->straight = 0;
            flow->written = flow->pt.out.n;
        }
        between(flow);
    }
    force(flow);
}

void tl_sim_pt_flow_taken(struct tl_sim_pt_flow *flow)
{
    flow->psb -= flow->pt.out.n; /* may wrap: only the distance matters */
    flow->written -= flow->pt.out.n;
    tl_buf_reset(&flow->pt.out);
}

void tl_sim_pt_flow_random(struct tl_sim_pt_flow_options *options, struct tl_sim_rng *rng)
{
    const unsigned context = tl_sim_below(rng, 4);
    *options = (struct tl_sim_pt_flow_options){
        .kernel = context != 0,
        .user = context != 1,
        .filter = tl_sim_percent(rng, 30),
        .no_ret_compression = tl_sim_percent(rng, 30),
        .deferred_tips = tl_sim_percent(rng, 20),
        .long_tnt = tl_sim_percent(rng, 40),
        .ptwrite_ip = tl_sim_percent(rng, 50),
        .timing = tl_sim_percent(rng, 50),
        .overflows = tl_sim_percent(rng, 50),
        .power = tl_sim_percent(rng, 50),
        .toggles = tl_sim_percent(rng, 50),
        .events = tl_sim_percent(rng, 50),
        .psb_period = tl_sim_between(rng, 100, 4000),
    };
}

int tl_sim_pt_truth_text(char out[128], const struct tl_sim_pt_truth *t)
{
    static const char *const names[TL_SIM_PT_WHATS] = {
        [TL_SIM_PT_ENABLED] = "enabled",
        [TL_SIM_PT_DISABLED] = "disabled",
        [TL_SIM_PT_ASYNC_DISABLED] = "async disabled",
        [TL_SIM_PT_ASYNC_BRANCH] = "async branch",
        [TL_SIM_PT_PAGING] = "paging",
        [TL_SIM_PT_ASYNC_PAGING] = "async paging",
        [TL_SIM_PT_OVERFLOW] = "overflow",
        [TL_SIM_PT_EXEC_MODE] = "exec mode",
        [TL_SIM_PT_TSX] = "tsx",
        [TL_SIM_PT_STOP] = "stop",
        [TL_SIM_PT_VMCS] = "vmcs",
        [TL_SIM_PT_ASYNC_VMCS] = "async vmcs",
        [TL_SIM_PT_EXSTOP] = "exstop",
        [TL_SIM_PT_MWAIT] = "mwait",
        [TL_SIM_PT_PWRE] = "pwre",
        [TL_SIM_PT_PWRX] = "pwrx",
        [TL_SIM_PT_PTWRITE] = "ptwrite",
        [TL_SIM_PT_CBR] = "cbr",
        [TL_SIM_PT_INTERRUPT] = "interrupt",
        [TL_SIM_PT_IRET] = "iret",
        [TL_SIM_PT_TRIG] = "trig",
    };
    if (t->what == TL_SIM_PT_INSN)
        return snprintf(out, 128, "%016" PRIx64 " %u %s%s", t->ip, t->size,
                        tl_isa_name((enum tl_isa)t->isa), t->speculative ? " speculative" : "");
    char ip[24] = "-";
    if (!t->no_ip || t->what == TL_SIM_PT_ASYNC_DISABLED)
        snprintf(ip, sizeof ip, "%" PRIx64, t->ip);
    return snprintf(out, 128, "[%s %s %" PRIx64 "%s%s%s]", names[t->what], ip, t->value,
                    t->isa ? " " : "", t->isa ? tl_isa_name((enum tl_isa)t->isa) : "",
                    t->status ? " status" : "");
}
