/* SPDX-License-Identifier: MIT */
/*
 * An ETMv4 or ETE trace unit: receives what a core does, produces the bytes that the unit would,
 * and reports what a decoder can know from them. For tests, benchmarks and simulated rigs.
 *
 * Deterministic, not thread-safe. Every function returns TL_OK, TL_NOMEM, or the error of the truth
 * sink.
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
    uint8_t trace_id; /* CoreSight trace ID; 0: the stream is not formatted */
    bool return_stack;
    bool branch_broadcast; /* an address for every taken branch */
    bool cycle_count;
    uint16_t threshold; /* minimum number of cycles for a cycle count packet, at least 4 */
    bool commit_opt;    /* TRCIDR0.COMMOPT: cycle counts carry no commits */
    bool timestamps;
    uint32_t timestamp_every; /* ticks between two; 0: 20000 */
    bool context_id;
    bool vmid;
    uint32_t sync_every;    /* bytes between two A-Syncs; 0: 4096 */
    uint8_t max_spec_depth; /* TRCIDR8; > 0: there are commit packets */
    bool ts_marker;         /* ETE 1.1 and ETMv4.6: a marker before each timestamp */
};

/* Trace units of one system that differ as much as possible; unit 1 is an ETE 1.`ete_minor`. */
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
 * What a decoder must produce, in order. Instructions are reported once the trace confirms them: at
 * the next branch, exception or synchronisation.
 */
enum tl_sim_truth_kind {
    TL_SIM_TRUTH_INSN,      /* pc, encoding; `taken` if it changed the flow */
    TL_SIM_TRUTH_EXCEPTION, /* pc = preferred return address, value = exception type */
    TL_SIM_TRUTH_ERET,
    TL_SIM_TRUTH_CONTEXT, /* el, context_id, vmid from now on */
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

/* Trace bytes are appended to `out`; the user may drop bytes from it. `truth` may be NULL. */
TL_MUST_USE int tl_sim_etm4_new(struct tl_sim_etm4 **e, const struct tl_sim_etm4_options *options,
                                struct tl_buf *out, tl_sim_truth_sink *truth, void *context);
void tl_sim_etm4_free(struct tl_sim_etm4 *e);

/* Fill in a setup's source with the register values of this trace unit. */
TL_MUST_USE int tl_sim_etm4_source(const struct tl_sim_etm4_options *options,
                                   struct tl_source *source);

/* Tracing starts or resumes with the instruction at `pc`. */
TL_MUST_USE int tl_sim_etm4_on(struct tl_sim_etm4 *e, uint64_t pc,
                               const struct tl_sim_context *context);
/* Tracing stops; instructions since the last branch remain unknown. */
TL_MUST_USE int tl_sim_etm4_off(struct tl_sim_etm4 *e);
/* The unit's buffer overflows: tracing is off until the next tl_sim_etm4_on(). */
TL_MUST_USE int tl_sim_etm4_overflow(struct tl_sim_etm4 *e);

/* An instruction other than a branch was executed and took `cycles`. */
TL_MUST_USE int tl_sim_etm4_insn(struct tl_sim_etm4 *e, uint64_t pc, uint32_t encoding,
                                 unsigned cycles);

struct tl_sim_branch {
    uint64_t pc;
    uint32_t encoding;
    bool indirect;
    bool link;
    bool is_return; /* RET: the return stack may predict it */
    bool eret;
    bool taken;
    uint64_t target;             /* where execution continues if taken */
    struct tl_sim_context after; /* context there */
};
TL_MUST_USE int tl_sim_etm4_branch(struct tl_sim_etm4 *e, const struct tl_sim_branch *branch,
                                   unsigned cycles);

/* An exception of `type` with return address `back`; its handler is at `target`. */
TL_MUST_USE int tl_sim_etm4_exception(struct tl_sim_etm4 *e, unsigned type, uint64_t back,
                                      uint64_t target, const struct tl_sim_context *after);

/* Hardware events, bits 0..3, not 0. */
TL_MUST_USE int tl_sim_etm4_event(struct tl_sim_etm4 *e, unsigned bits);
/* Software instrumentation (ETE 1.3). */
TL_MUST_USE int tl_sim_etm4_ite(struct tl_sim_etm4 *e, unsigned el, uint64_t value);

/* Set the time, in ticks. A timestamp that is due is sent at the next branch or exception. */
void tl_sim_etm4_time(struct tl_sim_etm4 *e, uint64_t ticks);

/* Write out pending data, e.g. atoms not yet packed. */
TL_MUST_USE int tl_sim_etm4_flush(struct tl_sim_etm4 *e);

#endif
