/* SPDX-License-Identifier: MIT */
/*
 * A core that executes a generated program (sim/program.h) with a seeded random generator, timer
 * interrupts, system calls, task switches and idle times, traced by sim/etm4_encoder.h. A timestamp
 * tick is 10 cycles.
 *
 * Deterministic, not thread-safe. It can be stepped without end, in constant memory.
 */
#ifndef TL_SIM_PROGRAM_CORE_H
#define TL_SIM_PROGRAM_CORE_H

#include "sim/etm4_encoder.h"
#include "sim/program.h"

struct tl_sim_core_options {
    uint64_t seed;
    uint32_t irq_every;      /* cycles between timer interrupts, 0: 200000 */
    uint32_t fault_every;    /* instructions between data faults, 0: none */
    uint32_t event_every;    /* instructions between hardware events, 0: none */
    uint32_t off_every;      /* instructions between untraced sections; 0: none */
    uint32_t overflow_every; /* instructions between overflows, 0: none */
    struct tl_sim_etm4_options etm;
};

/* Options for all kinds of trace, selected by the lowest three bits of `kinds`: broadcast, return
 * stack, cycle counts. */
static inline struct tl_sim_core_options tl_sim_core_kinds(uint64_t random, unsigned kinds)
{
    return (struct tl_sim_core_options){.seed = random,
                                        .irq_every = 4000,
                                        .fault_every = 3000,
                                        .etm = {.minor = 4,
                                                .branch_broadcast = kinds & 1,
                                                .return_stack = kinds & 2,
                                                .cycle_count = kinds & 4,
                                                .threshold = 8,
                                                .timestamps = kinds & 4,
                                                .timestamp_every = 50,
                                                .sync_every = 3000}};
}

struct tl_sim_core;

/*
 * `program` is borrowed for the lifetime of the core. Trace bytes are appended to `trace`; the
 * expected decoding goes to `truth` (may be NULL). TL_NOMEM.
 */
TL_MUST_USE int tl_sim_core_new(struct tl_sim_core **core, const struct tl_sim_program *program,
                                const struct tl_sim_core_options *options, struct tl_buf *trace,
                                tl_sim_truth_sink *truth, void *context);
void tl_sim_core_free(struct tl_sim_core *core);

/* Execute `n` instructions. TL_NOMEM, or the error of the truth sink. */
TL_MUST_USE int tl_sim_core_step(struct tl_sim_core *core, uint64_t n);

/* Write out the data pending in the trace unit; stepping may continue. */
TL_MUST_USE int tl_sim_core_flush(struct tl_sim_core *core);

/* Number of cycles and instructions so far. */
uint64_t tl_sim_core_cycles(const struct tl_sim_core *core);
uint64_t tl_sim_core_insns(const struct tl_sim_core *core);

#endif
