/* SPDX-License-Identifier: MIT */
/*
 * x86 programs made at random, and executions of them: a kernel and a user part of 64 bit, one of
 * 32 and one of 16 bit, each of functions with loops, calls, indirect branches and far transfers.
 * Nothing is computed: where an execution goes is chosen, so that it is known without a processor,
 * and without a decoder of instructions. Same seed, same program, same execution. Not thread-safe.
 *
 * Between two instructions whose outcome a trace must tell there is no loop: direct jumps and calls
 * only go forward.
 */
#ifndef TL_SIM_X86_PROGRAM_H
#define TL_SIM_X86_PROGRAM_H

#include "base/buf.h"
#include "sim/x86_code.h"

enum tl_sim_x86_zone {
    TL_SIM_X86_KERNEL,
    TL_SIM_X86_USER,
    TL_SIM_X86_COMPAT, /* 32 bit */
    TL_SIM_X86_REAL,   /* 16 bit */
    TL_SIM_X86_ZONES
};

struct tl_sim_x86_insn {
    uint64_t pc;
    uint32_t target; /* of a direct branch, and XBEGIN's fallback: index of an instruction */
    uint8_t size;
    uint8_t kind; /* enum tl_sim_x86_kind */
    uint8_t zone; /* enum tl_sim_x86_zone */
    uint8_t relative;
};

struct tl_sim_x86_program {
    struct {
        uint64_t base;
        struct tl_buf code;
        uint32_t function, functions; /* first in the table, and how many */
    } parts[TL_SIM_X86_ZONES];
    struct tl_buf insns;     /* struct tl_sim_x86_insn */
    struct tl_buf functions; /* uint32_t: index of the first instruction; one more for the end */
};

/* With `functions` functions in each zone, at most 100. */
void tl_sim_x86_program_init(struct tl_sim_x86_program *program, uint64_t seed, unsigned functions);
void tl_sim_x86_program_fini(struct tl_sim_x86_program *program);

enum tl_isa tl_sim_x86_isa(unsigned zone);

static inline const struct tl_sim_x86_insn *
tl_sim_x86_insn(const struct tl_sim_x86_program *program, uint32_t index)
{
    return (const struct tl_sim_x86_insn *)(const void *)program->insns.p + index;
}

/* Up to `size` bytes of the program at `pc`. Returns how many there are. */
size_t tl_sim_x86_read(const struct tl_sim_x86_program *program, uint64_t pc, uint8_t *out,
                       size_t size);

/* Append it as an ELF64 executable: a segment for each zone, a symbol for each function. */
void tl_sim_x86_program_elf(const struct tl_sim_x86_program *program, struct tl_buf *out);

/* ---- executions ----------------------------------------------------------------------------- */

enum tl_sim_x86_event {
    TL_SIM_X86_EXECUTED,
    TL_SIM_X86_INTERRUPTED, /* in front of the instruction */
    TL_SIM_X86_ABORTED      /* a transaction, in front of the instruction or by it */
};

struct tl_sim_x86_step {
    uint32_t insn, to;   /* indices */
    uint8_t event;       /* enum tl_sim_x86_event */
    bool taken;          /* COND */
    bool in_transaction; /* the instruction */
};

/* Where returns go to; of more than these the oldest is forgotten. */
struct tl_sim_x86_stack {
    uint32_t to[64];
    unsigned n;
};

struct tl_sim_x86_run {
    const struct tl_sim_x86_program *program;
    struct tl_sim_rng rng;
    uint32_t pc; /* index of the next instruction */
    uint64_t cr3;
    bool in_transaction;
    uint32_t fallback;
    unsigned interrupts; /* per 1000 instructions */
    struct tl_sim_x86_stack calls, frames;
};

/* Begins at a function of the user's. */
void tl_sim_x86_run_init(struct tl_sim_x86_run *run, const struct tl_sim_x86_program *program,
                         uint64_t seed);
void tl_sim_x86_step(struct tl_sim_x86_run *run, struct tl_sim_x86_step *out);

#endif
