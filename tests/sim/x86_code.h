/* SPDX-License-Identifier: MIT */
/*
 * Random x86 instructions of all lengths, whose meaning is known without a decoder. Pure functions.
 *
 * Source: Intel SDM volume 2, chapter 2 and appendix A.
 */
#ifndef TL_SIM_X86_CODE_H
#define TL_SIM_X86_CODE_H

#include "isa/isa.h"
#include "sim/program_rng.h"

enum { TL_SIM_X86_MAX = 15 };

/* Effect of an instruction on the flow, and on a trace. */
enum tl_sim_x86_kind {
    TL_SIM_X86_OTHER,
    TL_SIM_X86_COND,
    TL_SIM_X86_JUMP,
    TL_SIM_X86_JUMP_INDIRECT,
    TL_SIM_X86_CALL,
    TL_SIM_X86_CALL_INDIRECT,
    TL_SIM_X86_RETURN,
    TL_SIM_X86_TRAP, /* SYSCALL, SYSENTER, INT n, INT3 */
    TL_SIM_X86_FAR_CALL,
    TL_SIM_X86_FAR_JUMP,
    TL_SIM_X86_FAR_RETURN, /* also IRET, SYSRET */
    TL_SIM_X86_PTWRITE,
    TL_SIM_X86_MOV_CR3,
    TL_SIM_X86_VMPTRLD,
    TL_SIM_X86_MWAIT,
    TL_SIM_X86_XBEGIN,
    TL_SIM_X86_XEND,
    TL_SIM_X86_XABORT,
    TL_SIM_X86_KINDS
};

struct tl_sim_x86_bytes {
    uint8_t p[TL_SIM_X86_MAX];
    uint8_t n;
    /* JUMP, CALL, COND, XBEGIN: the last `relative` bytes are the distance from the instruction's
     * end to its target, and zero */
    uint8_t relative;
};

/* Create an instruction of `kind` for the mode `isa` (TL_ISA_X16, X32, X64); kinds after FAR_RETURN
 * only for X64. */
void tl_sim_x86_make(struct tl_sim_x86_bytes *out, struct tl_sim_rng *rng, enum tl_isa isa,
                     enum tl_sim_x86_kind kind);

/* Create consecutive instructions of at most `size` bytes; some are branches over a few others.
 * Returns the number of bytes. */
uint32_t tl_sim_x86_code(enum tl_isa isa, uint8_t *code, uint32_t size, uint64_t seed);

#endif
