/* SPDX-License-Identifier: MIT */
/*
 * A random RISC-V program and its execution by a model that decides outcomes, targets and traps at
 * random: what an encoder of trace sees, and what a decoder has to find.
 */
#ifndef TL_SIM_RISCV_RUN_H
#define TL_SIM_RISCV_RUN_H

#include "base/buf.h"
#include "sim/program_rng.h"

#include <stdbool.h>

enum tl_sim_riscv_kind {
    TL_SIM_RV_PLAIN,
    TL_SIM_RV_UPPER,    /* AUIPC or C.LUI in front of a jump that uses it */
    TL_SIM_RV_BRANCH,   /* conditional */
    TL_SIM_RV_JUMP,     /* direct */
    TL_SIM_RV_CALL,     /* direct */
    TL_SIM_RV_SEQUENCE, /* indirect jump or call behind UPPER, which determines its target */
    TL_SIM_RV_INDIRECT, /* other indirect jumps */
    TL_SIM_RV_ICALL,    /* indirect call */
    TL_SIM_RV_SWAP,     /* from one coroutine to another */
    TL_SIM_RV_RETURN,
    TL_SIM_RV_MRET
};

struct tl_sim_riscv_insn {
    uint64_t pc;
    uint32_t encoding;
    uint8_t size; /* bytes */
    uint8_t kind; /* enum tl_sim_riscv_kind */
    bool link;    /* a call */
    uint32_t to;  /* target of BRANCH, JUMP, CALL, SEQUENCE: index of the instruction */
};

/* An instruction that was executed, or a trap instead of it. */
struct tl_sim_riscv_event {
    uint32_t at; /* index of the instruction */
    bool taken;  /* of a branch */
    bool trap, interrupt;
    uint16_t cause;
    uint8_t privilege; /* 0 or 3 */
    uint32_t context;
};

struct tl_sim_riscv_options {
    uint64_t seed;
    unsigned xlen; /* 32 or 64 */
    uint64_t base;
    bool compressed;
    uint32_t events; /* how many to execute */
    unsigned trap_per_mille, context_per_mille;
    bool one_handler;        /* of exceptions and interrupts, at the program's beginning */
    bool true_returns;       /* every return goes behind its call */
    unsigned next_per_mille; /* indirect jumps to the next instruction */
    bool tables;             /* with `compressed`: direct jumps and calls by Zcmt, too */
};

struct tl_sim_riscv_run {
    struct tl_sim_riscv_insn *insns; /* owned */
    uint32_t n_insns;
    struct tl_buf code;                /* at options.base */
    uint64_t jvt;                      /* the jump table of Zcmt, behind the code; 0: none */
    struct tl_sim_riscv_event *events; /* owned */
    uint32_t n_events;
};

/* Returns TL_NOMEM. */
TL_MUST_USE int tl_sim_riscv_run(struct tl_sim_riscv_run *run,
                                 const struct tl_sim_riscv_options *options);
void tl_sim_riscv_run_fini(struct tl_sim_riscv_run *run);

#endif
