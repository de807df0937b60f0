/* SPDX-License-Identifier: MIT */
/* Runs the instruction decoder and the block decoder of Debian's libipt over a trace and a
 * simulated program, as ptxed does, and lists the results in order. */
#ifndef TL_TEST_LIBIPT_FLOW_H
#define TL_TEST_LIBIPT_FLOW_H

#include "flow/walker_hot.h"
#include "unit/pt_said.h"

#include <intel-pt.h>

static inline uint8_t isa_of(enum pt_exec_mode mode)
{
    return mode == ptem_64bit   ? TL_ISA_X64
           : mode == ptem_32bit ? TL_ISA_X32
           : mode == ptem_16bit ? TL_ISA_X16
                                : TL_ISA_NONE;
}

/* Events with an IP, with all fields that an event can have. */
static inline struct tl_sim_pt_truth power_of_libipt(const struct pt_event *e)
{
    switch (e->type) {
    case ptev_exstop:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_EXSTOP, .ip = e->variant.exstop.ip};
    case ptev_mwait:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_MWAIT,
                                        .ip = e->variant.mwait.ip,
                                        .value = e->variant.mwait.hints |
                                                 (uint64_t)e->variant.mwait.ext << 32};
    case ptev_pwre:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_PWRE,
                                        .value = e->variant.pwre.state |
                                                 (uint64_t)e->variant.pwre.sub_state << 8 |
                                                 (uint64_t)e->variant.pwre.hw << 16};
    default:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_PWRX,
                                        .value = e->variant.pwrx.last |
                                                 (uint64_t)e->variant.pwrx.deepest << 8 |
                                                 (uint64_t)e->variant.pwrx.interrupt << 16 |
                                                 (uint64_t)e->variant.pwrx.store << 17 |
                                                 (uint64_t)e->variant.pwrx.autonomous << 18};
    }
}

static inline struct tl_sim_pt_truth event_of_libipt(const struct pt_event *e)
{
    switch (e->type) {
    case ptev_enabled:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_ENABLED, .ip = e->variant.enabled.ip};
    case ptev_disabled:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_DISABLED,
                                        .value = e->variant.disabled.ip};
    case ptev_async_disabled:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_ASYNC_DISABLED,
                                        .ip = e->variant.async_disabled.at,
                                        .value = e->variant.async_disabled.ip};
    case ptev_async_branch:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_ASYNC_BRANCH,
                                        .ip = e->variant.async_branch.from,
                                        .value = e->variant.async_branch.to};
    case ptev_paging:
        return (struct tl_sim_pt_truth){
            .what = TL_SIM_PT_PAGING, .value = e->variant.paging.cr3 | e->variant.paging.non_root};
    case ptev_async_paging:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_ASYNC_PAGING,
                                        .ip = e->variant.async_paging.ip,
                                        .value = e->variant.async_paging.cr3 |
                                                 e->variant.async_paging.non_root};
    case ptev_overflow:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_OVERFLOW, .ip = e->variant.overflow.ip};
    case ptev_exec_mode:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_EXEC_MODE,
                                        .ip = e->variant.exec_mode.ip,
                                        .isa = isa_of(e->variant.exec_mode.mode)};
    case ptev_tsx:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_TSX,
                                        .ip = e->variant.tsx.ip,
                                        .value = e->variant.tsx.speculative |
                                                 (uint64_t)e->variant.tsx.aborted << 1};
    case ptev_stop:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_STOP};
    case ptev_vmcs:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_VMCS, .value = e->variant.vmcs.base};
    case ptev_async_vmcs:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_ASYNC_VMCS,
                                        .ip = e->variant.async_vmcs.ip,
                                        .value = e->variant.async_vmcs.base};
    case ptev_ptwrite:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_PTWRITE,
                                        .ip = e->variant.ptwrite.ip,
                                        .value = e->variant.ptwrite.payload};
    case ptev_cbr:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_CBR, .value = e->variant.cbr.ratio};
    case ptev_exstop:
    case ptev_mwait:
    case ptev_pwre:
    case ptev_pwrx:
        return power_of_libipt(e);
    default:
        return (struct tl_sim_pt_truth){.what = TL_SIM_PT_WHATS};
    }
}

static inline int libipt_reads(uint8_t *buffer, size_t size, const struct pt_asid *asid,
                               uint64_t ip, void *context)
{
    (void)asid;
    const size_t n = tl_sim_x86_read(context, ip, buffer, size);
    return n ? (int)n : -pte_nomap;
}

static inline void say_event(struct tl_buf *out, const struct pt_event *event)
{
    struct said said = {.truth = event_of_libipt(event), .tsc = event->has_tsc ? event->tsc : 0};
    said.truth.status = event->status_update;
    said.truth.no_ip = event->ip_suppressed || !has_place(said.truth.what);
    say(out, &said);
}

static inline int libipt_events(struct pt_insn_decoder *decoder, struct tl_buf *out, int status)
{
    while (status >= 0 && status & pts_event_pending) {
        struct pt_event event;
        status = pt_insn_event(decoder, &event, sizeof event);
        if (status >= 0)
            say_event(out, &event);
    }
    return status;
}

/* Maximum number of instructions between two packets: damaged trace may cause an endless loop
 * without packets, which Debian's libipt never leaves. */
#define LIBIPT_STEPS (1u << 18)

/* Decode from a PSB to an error or the end of the trace. */
static inline int libipt_from_sync(struct pt_insn_decoder *decoder, struct tl_buf *out, int status)
{
    uint64_t before = UINT64_MAX;
    for (unsigned steps = 0; steps < LIBIPT_STEPS; steps++) {
        struct pt_insn insn = {0};
        uint64_t offset;
        if (pt_insn_get_offset(decoder, &offset) >= 0 && offset != before) {
            before = offset;
            steps = 0;
        }
        status = libipt_events(decoder, out, status);
        if (status < 0)
            return status;
        if (status & pts_eos)
            return -pte_eos;
        status = pt_insn_next(decoder, &insn, sizeof insn);
        if (status >= 0 || insn.size > 0) {
            const struct said said = {.truth = {.what = TL_SIM_PT_INSN,
                                                .ip = insn.ip,
                                                .size = insn.size,
                                                .isa = isa_of(insn.mode),
                                                .speculative = insn.speculative}};
            say(out, &said);
        }
        if (status < 0)
            return status;
    }
    return -pte_internal;
}

static inline enum tl_pt_error error_of_libipt(int status)
{
    static const uint8_t errors[] = {
        [pte_eos] = TL_PT_EOS,
        [pte_bad_opc] = TL_PT_BAD_OPCODE,
        [pte_bad_packet] = TL_PT_BAD_PACKET,
        [pte_bad_context] = TL_PT_BAD_CONTEXT,
        [pte_bad_query] = TL_PT_BAD_QUERY,
        [pte_noip] = TL_PT_NO_IP,
        [pte_ip_suppressed] = TL_PT_IP_SUPPRESSED_ERROR,
        [pte_nomap] = TL_PT_NO_MAP,
        [pte_bad_insn] = TL_PT_BAD_INSN,
        [pte_no_time] = TL_PT_NO_TIME,
        [pte_retstack_empty] = TL_PT_NO_RETURN,
        [pte_bad_retcomp] = TL_PT_BAD_RETURN,
        [pte_bad_status_update] = TL_PT_BAD_STATUS,
        [pte_no_enable] = TL_PT_NO_ENABLE,
    };
    const size_t code = (size_t)-status;
    return code < sizeof errors && errors[code] ? (enum tl_pt_error)errors[code] : TL_PT_INTERNAL;
}

/* Append the result as consecutive struct said. After an error it continues at the next PSB. */
static inline void libipt_flow(struct tl_buf *out, const struct pt_config *config,
                               const struct tl_sim_x86_program *program)
{
    struct pt_insn_decoder *const decoder = pt_insn_alloc_decoder(config);
    uint64_t last = UINT64_MAX;
    assert_non_null(decoder);
    pt_image_set_callback(pt_insn_get_image(decoder), libipt_reads, (void *)(uintptr_t)program);
    for (;;) {
        uint64_t offset;
        int status = pt_insn_sync_forward(decoder);
        if (status != -pte_eos && pt_insn_get_sync_offset(decoder, &offset) >= 0)
            say(out, &(struct said){.sync = true, .offset = offset});
        if (status >= 0)
            status = libipt_from_sync(decoder, out, status);
        if (status == -pte_eos || pt_insn_get_offset(decoder, &offset) < 0 || offset == last)
            break;
        last = offset;
        say(out, &(struct said){.error = error_of_libipt(status), .offset = offset});
    }
    pt_insn_free_decoder(decoder);
}

/*
 * ---- the block decoder ------------------------------------------------------------------------
 */

/* The instructions of a block, which may continue after a direct call or jump. */
static inline void say_block(struct tl_buf *out, const struct pt_block *block,
                             const struct tl_sim_x86_program *program)
{
    uint64_t ip = block->ip, last = ip;
    for (unsigned i = 0; i < block->ninsn; i++) {
        uint8_t code[TL_SIM_X86_MAX];
        struct tl_x86_insn x = {0};
        const size_t n = tl_sim_x86_read(program, ip, code, sizeof code);
        assert_true(
            tl_x86_decode((enum tl_isa)isa_of(block->mode), (struct tl_bytes){code, n}, &x) > 0);
        const struct said said = {.truth = {.what = TL_SIM_PT_INSN,
                                            .ip = ip,
                                            .size = x.size,
                                            .isa = isa_of(block->mode),
                                            .speculative = block->speculative}};
        say(out, &said);
        last = ip;
        ip += x.size;
        if (x.direct && (x.class == TL_X86_CALL || x.class == TL_X86_JUMP))
            ip = tl_isa_wrap(said.truth.isa, (x.absolute ? 0 : ip) + (uint64_t)x.displacement);
    }
    assert_true(block->ninsn == 0 || last == block->end_ip);
}

static inline int libipt_block_events(struct pt_block_decoder *decoder, struct tl_buf *out,
                                      int status)
{
    while (status >= 0 && status & pts_event_pending) {
        struct pt_event event;
        status = pt_blk_event(decoder, &event, sizeof event);
        if (status >= 0)
            say_event(out, &event);
    }
    return status;
}

/* Like libipt_flow(), for a trace without errors. */
static inline void libipt_block_flow(struct tl_buf *out, const struct pt_config *config,
                                     const struct tl_sim_x86_program *program)
{
    struct pt_block_decoder *const decoder = pt_blk_alloc_decoder(config);
    uint64_t offset;
    assert_non_null(decoder);
    pt_image_set_callback(pt_blk_get_image(decoder), libipt_reads, (void *)(uintptr_t)program);
    int status = pt_blk_sync_forward(decoder);
    assert_true(status >= 0 && pt_blk_get_sync_offset(decoder, &offset) >= 0);
    say(out, &(struct said){.sync = true, .offset = offset});
    for (;;) {
        struct pt_block block = {0};
        status = libipt_block_events(decoder, out, status);
        if (status < 0 || status & pts_eos)
            break;
        status = pt_blk_next(decoder, &block, sizeof block);
        say_block(out, &block, program);
    }
    assert_true(status >= 0 || status == -pte_eos);
    pt_blk_free_decoder(decoder);
}

#endif
