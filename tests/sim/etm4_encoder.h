/* SPDX-License-Identifier: MIT */
/*
 * An ETMv4 or ETE trace unit: takes what a core does, makes the bytes that the unit would, and
 * tells what can be known from them. For tests, benchmarks and simulated rigs.
 *
 * Deterministic, not thread-safe. Every function returns TL_OK, TL_NOMEM, or what the truth
 * sink returned.
 *
 * Source: Arm IHI0064H; Arm DDI0487 chapter D6.
 */
#ifndef TL_SIM_ETM4_ENCODER_H
#define TL_SIM_ETM4_ENCODER_H

#include "base/buf.h"
#include "setup/setup.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_sim_etm4_options {
    bool ete; /* ETE 1.`minor`, else ETMv4.`minor` */
    uint8_t minor;
    uint8_t trace_id; /* CoreSight trace ID, 0 for a stream that is not formatted */
    bool return_stack;
    bool branch_broadcast; /* an address for every taken branch */
    bool cycle_count;
    uint16_t threshold; /* cycles before a cycle count is worth a packet, at least 4 */
    bool commit_opt;    /* TRCIDR0.COMMOPT: cycle counts carry no commits */
    bool timestamps;
    uint32_t timestamp_every; /* ticks between two, 0: 20000 */
    bool context_id;
    bool vmid;
    uint32_t sync_every;    /* bytes between two A-Syncs, 0: 4096 */
    uint8_t max_spec_depth; /* TRCIDR8: > 0 makes commit packets */
    bool ts_marker;         /* ETE 1.1 and ETMv4.6: a marker before each timestamp */
};

/* Trace units of one system that differ in as much as possible; unit 1 is an ETE 1.`ete_minor`. */
static inline struct tl_sim_etm4_options tl_sim_etm4_unlike(unsigned unit, uint8_t ete_minor)
{
    return (struct tl_sim_etm4_options){
        .ete = unit == 1,
        .minor = unit == 1 ? ete_minor : 4,
        .trace_id = (uint8_t)(0x10 + unit),
        .return_stack = unit != 1,
        .cycle_count = unit != 0,
        .threshold = 8,
        .commit_opt = unit == 1,
        .timestamps = true,
        .timestamp_every = 400,
        .context_id = unit != 2,
        .vmid = unit == 1,
        .sync_every = 700,
        .max_spec_depth = unit == 2 ? 20 : 0,
    };
}

/*
 * What a decoder must find again, in order. Instructions are told once the trace proves them:
 * at the branch, exception or synchronisation behind them.
 */
enum tl_sim_truth_kind {
    TL_SIM_TRUTH_INSN,      /* pc, encoding; `taken` if it changed the flow */
    TL_SIM_TRUTH_EXCEPTION, /* pc = preferred return address, value = exception type */
    TL_SIM_TRUTH_ERET,
    TL_SIM_TRUTH_CONTEXT, /* el, context_id, vmid now in force */
    TL_SIM_TRUTH_TIME,    /* value = timestamp */
    TL_SIM_TRUTH_CYCLES,  /* value; `taken` false: not known */
    TL_SIM_TRUTH_EVENT,   /* value = bits */
    TL_SIM_TRUTH_TRACE_ON,
    TL_SIM_TRUTH_OVERFLOW,
    TL_SIM_TRUTH_ITE /* el, value */
};

struct tl_sim_truth {
    uint8_t kind; /* enum tl_sim_truth_kind */
    uint8_t el;
    bool taken;
    uint32_t encoding;
    uint64_t pc;
    uint64_t value;
    uint32_t context_id;
    uint32_t vmid;
};

typedef int tl_sim_truth_sink(void *context, const struct tl_sim_truth *truth);

struct tl_sim_context {
    uint8_t el;
    bool ns;
    uint32_t context_id;
    uint32_t vmid;
};

struct tl_sim_etm4;

/* `out` gets the trace bytes, appended; its user may drop what he has taken. `truth` may be NULL.
 */
TL_MUST_USE int tl_sim_etm4_new(struct tl_sim_etm4 **e, const struct tl_sim_etm4_options *options,
                                struct tl_buf *out, tl_sim_truth_sink *truth, void *context);
void tl_sim_etm4_free(struct tl_sim_etm4 *e);

/* Fill a setup's source with the registers that this trace unit would show. */
TL_MUST_USE int tl_sim_etm4_source(const struct tl_sim_etm4_options *options,
                                   struct tl_source *source);

/* Tracing begins, or begins again, with the instruction at `pc`. */
TL_MUST_USE int tl_sim_etm4_on(struct tl_sim_etm4 *e, uint64_t pc,
                               const struct tl_sim_context *context);
/* Tracing stops; instructions since the last branch remain unknown. */
TL_MUST_USE int tl_sim_etm4_off(struct tl_sim_etm4 *e);
/* The unit's buffer overflows: as off, and then on again by the next tl_sim_etm4_on(). */
TL_MUST_USE int tl_sim_etm4_overflow(struct tl_sim_etm4 *e);

/* An instruction that is no branch has executed, taking `cycles`. */
TL_MUST_USE int tl_sim_etm4_insn(struct tl_sim_etm4 *e, uint64_t pc, uint32_t encoding,
                                 unsigned cycles);

struct tl_sim_branch {
    uint64_t pc;
    uint32_t encoding;
    bool indirect;
    bool link;
    bool is_return; /* RET: may be taken from the return stack */
    bool eret;
    bool taken;
    uint64_t target;             /* where execution goes on if taken */
    struct tl_sim_context after; /* in force there */
};
TL_MUST_USE int tl_sim_etm4_branch(struct tl_sim_etm4 *e, const struct tl_sim_branch *branch,
                                   unsigned cycles);

/* An exception of `type`, to return to `back`; its handler is at `target`. */
TL_MUST_USE int tl_sim_etm4_exception(struct tl_sim_etm4 *e, unsigned type, uint64_t back,
                                      uint64_t target, const struct tl_sim_context *after);

/* Hardware events, bits 0..3, not 0. */
TL_MUST_USE int tl_sim_etm4_event(struct tl_sim_etm4 *e, unsigned bits);
/* Software instrumentation (ETE 1.3). */
TL_MUST_USE int tl_sim_etm4_ite(struct tl_sim_etm4 *e, unsigned el, uint64_t value);

/* Set the time, in ticks. Timestamps appear at the next branch or exception that is due. */
void tl_sim_etm4_time(struct tl_sim_etm4 *e, uint64_t ticks);

/* Write out what is waiting, e.g. atoms not packed yet. */
TL_MUST_USE int tl_sim_etm4_flush(struct tl_sim_etm4 *e);

#endif
