/* SPDX-License-Identifier: MIT */
/*
 * x86 instruction lengths, and classification for Intel PT. For instructions that do not change the
 * flow only the length is determined; whether they are defined is checked only if the length
 * depends on it. Pure functions, thread-safe.
 *
 * Source: Intel SDM volume 2, chapter 2 and appendix A; APX and AVX10 specifications for REX2 and
 * EVEX; volume 3, Intel Processor Trace, "COFI tracking".
 */
#ifndef TL_ISA_X86_H
#define TL_ISA_X86_H

#include "isa/isa.h"

#define TL_X86_MAX 15 /* maximum bytes of an instruction */

enum tl_x86_class {
    TL_X86_OTHER,
    TL_X86_CALL, /* near; direct if `direct` */
    TL_X86_RETURN,
    TL_X86_JUMP, /* near; direct if `direct` */
    TL_X86_COND, /* Jcc, LOOPcc, JrCXZ */
    TL_X86_FAR_CALL,
    TL_X86_FAR_RETURN,
    TL_X86_FAR_JUMP,
    TL_X86_PTWRITE
};

/* Instructions that trace packets bind to, in addition to their class. */
enum tl_x86_special {
    TL_X86_PLAIN,
    TL_X86_INT, /* INT n, INT1, INT3, INTO */
    TL_X86_IRET,
    TL_X86_SYSCALL,
    TL_X86_SYSENTER,
    TL_X86_SYSEXIT,
    TL_X86_SYSRET,
    TL_X86_VMCALL,
    TL_X86_VM_ENTRY, /* VMLAUNCH, VMRESUME */
    TL_X86_VMPTRLD,
    TL_X86_MOV_CR3,
    TL_X86_UIRET,
    TL_X86_ERET /* ERETS, ERETU */
};

struct tl_x86_insn {
    uint8_t size;
    uint8_t class;        /* enum tl_x86_class */
    uint8_t special;      /* enum tl_x86_special */
    bool direct;          /* a direct branch; `displacement` is valid */
    int64_t displacement; /* relative to the end of the instruction; of JMPABS the target itself */
    bool absolute;        /* JMPABS */
};

/*
 * Decode the instruction at the start of `code`, in the mode of `isa` (TL_ISA_X16, X32, X64).
 * Returns its size, TL_AGAIN (longer than `code`) or TL_BAD.
 */
int tl_x86_decode(enum tl_isa isa, struct tl_bytes code, struct tl_x86_insn *out);

/*
 * Fast path for the most frequent instructions that do not change the flow: TL_X86_OTHER and
 * TL_X86_PLAIN. Returns the size, or 0: use tl_x86_decode(). Has no branch that depends on `code`
 * except the last one.
 */
unsigned tl_x86_quick(enum tl_isa isa, const uint8_t code[static TL_X86_MAX + 1]);

/* Target of a direct branch at `pc`. */
static inline uint64_t tl_x86_target(enum tl_isa isa, uint64_t pc, const struct tl_x86_insn *insn)
{
    const uint64_t to = insn->absolute ? (uint64_t)insn->displacement
                                       : pc + insn->size + (uint64_t)insn->displacement;
    return isa == TL_ISA_X64 ? to : (uint32_t)to;
}

#endif
