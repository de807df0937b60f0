/* SPDX-License-Identifier: MIT */
/*
 * A generated A64 program that resembles a small embedded system: tasks at EL0 with nested calls,
 * loops and table jumps, and a kernel at EL1 with exception vectors, a timer interrupt, system
 * calls and an idle loop. The encodings are real, so any A64 tool can follow it; the executor
 * decides what its branches do (sim/program_core.h).
 *
 * Deterministic: the same options give the same program. Read-only once created.
 */
#ifndef TL_SIM_PROGRAM_H
#define TL_SIM_PROGRAM_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tl_sim_kind {
    TL_SIM_PLAIN,
    TL_SIM_BRANCH,   /* direct: B, BL, B.cond, CBZ, CBNZ, TBZ, TBNZ */
    TL_SIM_INDIRECT, /* BR, BLR */
    TL_SIM_RET,
    TL_SIM_ERET,
    TL_SIM_SVC,
    TL_SIM_ISB,
    TL_SIM_WFI,      /* waits for the next interrupt */
    TL_SIM_TRACE_ITE /* software instrumentation (TRCIT) */
};

struct tl_sim_insn {
    uint32_t encoding;
    uint8_t kind; /* enum tl_sim_kind */
    bool conditional;
    bool link;
    uint8_t percent; /* a conditional branch outside of loops: how often it is taken */
    uint32_t loop;   /* loop + 1: taken until the loop's iterations are used up; 0: none */
    uint32_t target; /* BRANCH: instruction; INDIRECT: first of n_targets in `targets` */
    uint32_t n_targets;
};

struct tl_sim_loop {
    uint32_t min, most; /* iterations */
};

struct tl_sim_function {
    char name[48];
    uint32_t first, n; /* first instruction, and number of them */
};

struct tl_sim_section {
    uint64_t base;
    uint32_t first, n; /* first instruction, and number of them */
};

enum tl_sim_vector { TL_SIM_VECTOR_IRQ_EL1, TL_SIM_VECTOR_SYNC_EL0, TL_SIM_VECTOR_IRQ_EL0 };

#define TL_SIM_TASKS 4 /* the last one is the idle task, at EL1 */

struct tl_sim_program {
    struct tl_sim_section sections[2]; /* tasks, kernel */
    struct tl_sim_insn *insns;
    size_t n_insns, cap_insns;
    struct tl_sim_function *functions;
    size_t n_functions, cap_functions;
    struct tl_sim_loop *loops;
    size_t n_loops, cap_loops;
    uint32_t *targets;
    size_t n_targets, cap_targets;
    uint32_t reset;               /* entry of the kernel */
    uint32_t vectors[3];          /* by enum tl_sim_vector */
    uint32_t tasks[TL_SIM_TASKS]; /* entries of the tasks */
    uint32_t switcher;            /* the kernel function that selects the next task */
};

struct tl_sim_program_options {
    uint64_t seed;
    uint64_t task_base;   /* 0: 0x400000 */
    uint64_t kernel_base; /* 0: 0xffffffc000080000 */
    unsigned extra;       /* random functions in addition to the named ones */
    bool short_loops;     /* few iterations everywhere: much code in few instructions, for tests */
};

/* TL_NOMEM. */
TL_MUST_USE int tl_sim_program_init(struct tl_sim_program *program,
                                    const struct tl_sim_program_options *options);
void tl_sim_program_fini(struct tl_sim_program *program);

/* Address of instruction `index`. */
uint64_t tl_sim_program_address(const struct tl_sim_program *program, uint32_t index);

/* Append a section's code, little-endian. TL_NOMEM. */
TL_MUST_USE int tl_sim_program_code(const struct tl_sim_program *program, unsigned section,
                                    struct tl_buf *out);

/*
 * Append the whole program as an ELF64 executable for AArch64: one executable segment per section,
 * a symbol for each function, and debug information (sim/program_dwarf.h). TL_NOMEM.
 */
TL_MUST_USE int tl_sim_program_elf(const struct tl_sim_program *program, struct tl_buf *out);

#endif
