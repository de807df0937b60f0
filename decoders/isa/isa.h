/* SPDX-License-Identifier: MIT */
/*
 * Instruction properties needed for trace decoding: length and effect on control flow. Pure
 * functions, thread-safe.
 */
#ifndef TL_ISA_ISA_H
#define TL_ISA_ISA_H

#include "base/bytes.h"

#include <stdbool.h>

enum tl_isa {
    TL_ISA_NONE, /* unknown */
    TL_ISA_A64,
    TL_ISA_A32,
    TL_ISA_T32,
    TL_ISA_RV32,
    TL_ISA_RV64,
    TL_ISA_X16,
    TL_ISA_X32,
    TL_ISA_X64,
    TL_ISA_OR1K,
    TL_ISA_COUNT
};

/* How an instruction can end a basic block. */
enum tl_insn_kind {
    TL_INSN_PLAIN,     /* falls through */
    TL_INSN_BRANCH,    /* direct branch */
    TL_INSN_INDIRECT,  /* indirect branch */
    TL_INSN_RETURN_EX, /* exception return (ERET, IRET, MRET, …) */
    TL_INSN_SYNC,      /* ISB, DSB or another barrier that a trace unit reports as a waypoint */
    TL_INSN_WAIT,      /* WFI, WFE: a waypoint if the trace unit is configured so */
    /* SVC, HVC, SMC, ECALL, SYSCALL, UDF, BRK: the flow continues with an exception. */
    TL_INSN_TRAP,
    TL_INSN_TRANSACT /* TSTART */
};

struct tl_insn {
    /* The value; a 32-bit T32 encoding has its first halfword in the upper half */
    uint32_t encoding;
    uint8_t size;      /* bytes */
    uint8_t kind;      /* enum tl_insn_kind */
    bool conditional;  /* the branch may not be taken */
    bool link;         /* a call */
    bool is_return;    /* returns from a call; with `link`: RISC-V's change of coroutines */
    uint8_t it_length; /* T32 IT: number of following instructions in the IT block */
    bool binds; /* x86: PLAIN, but packets without outcomes bind to it: MOV CR3, PTWRITE, … */
    uint8_t next_isa; /* enum tl_isa after a taken direct branch (BLX) */
    uint16_t table;   /* RISC-V CM.JT, CM.JALT: 1 + the entry of the jump table with the target */
    uint64_t target;  /* of a direct branch */
};

/* Lower-case name, e.g. "a64". Static storage. */
const char *tl_isa_name(enum tl_isa isa);

static inline bool tl_isa_is_x86(enum tl_isa isa)
{
    return isa == TL_ISA_X16 || isa == TL_ISA_X32 || isa == TL_ISA_X64;
}

/* Bytes of the T32 instruction whose first halfword this is. */
static inline unsigned tl_t32_size(uint16_t first)
{
    return first < 0xe800 ? 2 : 4;
}

/* Properties of a core. All zero: accept every encoding, with its newest meaning. */
struct tl_isa_options {
    uint8_t arch_major; /* Armv7, 8, 9 */
    uint8_t arch_minor;
    char profile;    /* 'A', 'R', 'M' */
    bool wfx_branch; /* WFI and WFE are waypoints (TRCIDR2.WFXMODE) */
    bool barriers;   /* A32, T32: DMB and DSB are waypoints (PTM with ETMCCER bit 24) */
    bool zcm;        /* RISC-V: Zcmp and Zcmt, whose encodings are C.FSDSP's on other cores */
    /* RISC-V: address of Zcmt's jump table (the CSR jvt); block caches read it from the image. 0:
     * not known */
    uint64_t jvt;
};

/*
 * RISC-V: the target of the jump `jump` if the instruction `before`, directly in front of it in
 * execution and in memory, determines it (the sequential jumps of N-Trace and E-Trace): LUI, C.LUI
 * or AUIPC with the jump's base as its result. `xlen`: 32 or 64; `pc`: of `before`.
 */
bool tl_riscv_sequential_jump(unsigned xlen, uint64_t pc, uint32_t before, uint32_t jump,
                              uint64_t *target);

/* How many instructions behind this one, at `pc`, mean something only together with it: of an IT
 * block, or one that may be such a sequential jump. */
unsigned tl_insn_companions(enum tl_isa isa, uint64_t pc, const struct tl_insn *insn);

/*
 * Decode the instruction at `pc`. `code` holds all bytes mapped there, or at least 15. Returns the
 * size in bytes, TL_AGAIN if the instruction is longer than `code`, or TL_BAD if the encoding is
 * undefined (`out` then has the size of the smallest instruction).
 */
int tl_insn_decode(enum tl_isa isa, const struct tl_isa_options *options, uint64_t pc,
                   struct tl_bytes code, struct tl_insn *out);

#endif
