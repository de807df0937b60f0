/* SPDX-License-Identifier: MIT */
/*
 * Random programs of A32 and T32 functions that call each other, with real encodings, for encoders
 * of older Arm trace.
 *
 * Functions call only later ones, so that calls end; the first one never returns. Each is of one
 * instruction set (all T32 on the M profile). Behind them is a handler for exceptions, at
 * `handler`. Deterministic.
 */
#ifndef TL_SIM_ARM32_PROGRAM_H
#define TL_SIM_ARM32_PROGRAM_H

#include "base/buf.h"
#include "sim/program_rng.h"

enum tl_arm32_kind {
    TL_ARM32_PLAIN,
    TL_ARM32_MAYBE,    /* conditional, no branch: an outcome of its own in ETMv3 */
    TL_ARM32_BRANCH,   /* direct; `conditional` or not */
    TL_ARM32_CALL,     /* BL or BLX to another function */
    TL_ARM32_INDIRECT, /* BLX register, to any later function */
    TL_ARM32_RETURN,
    TL_ARM32_BARRIER, /* ISB */
    TL_ARM32_DMB,
    TL_ARM32_SVC,
    TL_ARM32_LEAVE /* return from an exception */
};

struct tl_arm32_insn {
    uint32_t address, encoding;
    uint8_t kind; /* enum tl_arm32_kind */
    uint8_t size; /* bytes */
    bool t32;
    bool conditional;
    uint8_t access; /* PLAIN: 1 it loads, 2 it stores, `transfers` times `width` bytes */
    uint8_t transfers, width;
    uint32_t target; /* instruction; BRANCH, CALL */
};

#define TL_ARM32_FUNCTIONS 12u

struct tl_arm32_program {
    struct tl_arm32_insn *insns;
    size_t n, cap;
    uint32_t functions[TL_ARM32_FUNCTIONS]; /* their first instructions */
    uint32_t handler;                       /* its first instruction */
    struct tl_buf code;                     /* from `base` on */
    uint32_t base;
};

/* TL_NOMEM. */
TL_MUST_USE int tl_arm32_program_init(struct tl_arm32_program *program, uint64_t seed,
                                      uint32_t base, bool m_profile);
void tl_arm32_program_fini(struct tl_arm32_program *program);

#endif
