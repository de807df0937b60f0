/* SPDX-License-Identifier: MIT */
/*
 * Random x86 programs and their executions: a kernel and a user part of 64 bits, one part of 32 and
 * one of 16 bits, each with functions that contain loops, calls, indirect branches and far
 * transfers. Nothing is computed: the path of an execution is chosen, so it is known without a
 * processor or an instruction decoder. The same seed gives the same program and execution. Not
 * thread-safe.
 *
 * There is no loop between two instructions whose outcome must be in the trace: direct jumps and
 * calls only go forward.
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
    uint32_t target; /* of a direct branch, or of XBEGIN's fallback: index of an instruction */
    uint8_t size;
    uint8_t kind; /* enum tl_sim_x86_kind */
    uint8_t zone; /* enum tl_sim_x86_zone */
    uint8_t relative;
};

struct tl_sim_x86_program {
    struct {
        uint64_t base;
        struct tl_buf code;
        uint32_t function, functions; /* index of the first in the table, and number */
    } parts[TL_SIM_X86_ZONES];
    struct tl_buf insns;     /* struct tl_sim_x86_insn */
    struct tl_buf functions; /* uint32_t: index of the first instruction; one more for the end */
};

/* Create `functions` functions in each zone, at most 100. */
void tl_sim_x86_program_init(struct tl_sim_x86_program *program, uint64_t seed, unsigned functions);
void tl_sim_x86_program_fini(struct tl_sim_x86_program *program);

enum tl_isa tl_sim_x86_isa(unsigned zone);

static inline const struct tl_sim_x86_insn *
tl_sim_x86_insn(const struct tl_sim_x86_program *program, uint32_t index)
{
    return (const struct tl_sim_x86_insn *)(const void *)program->insns.p + index;
}

/* Read up to `size` bytes of the program at `pc`. Returns the number of bytes. */
size_t tl_sim_x86_read(const struct tl_sim_x86_program *program, uint64_t pc, uint8_t *out,
                       size_t size);

/* Append the program as an ELF64 executable: a segment per zone, a symbol per function. */
void tl_sim_x86_program_elf(const struct tl_sim_x86_program *program, struct tl_buf *out);

/* ---- executions ----------------------------------------------------------------------------- */

enum tl_sim_x86_event {
    TL_SIM_X86_EXECUTED,
    TL_SIM_X86_INTERRUPTED, /* before the instruction */
    TL_SIM_X86_ABORTED      /* a transaction was aborted, before or by the instruction */
};

struct tl_sim_x86_step {
    uint32_t insn, to;   /* indices */
    uint8_t event;       /* enum tl_sim_x86_event */
    bool taken;          /* COND */
    bool in_transaction; /* the instruction */
};

/* Return targets; if there are more, the oldest is dropped. */
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

/* Starts at a function of the user part. */
void tl_sim_x86_run_init(struct tl_sim_x86_run *run, const struct tl_sim_x86_program *program,
                         uint64_t seed);
void tl_sim_x86_step(struct tl_sim_x86_run *run, struct tl_sim_x86_step *out);

#endif
