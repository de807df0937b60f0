/* SPDX-License-Identifier: MIT */
/*
 * Intel PT of an x86 execution, as a processor writes it, and the expected decoding: each
 * instruction, and each event before the instruction that follows it. Not thread-safe; if memory
 * runs out, the program ends.
 *
 * Source: Intel SDM volume 3, "Intel Processor Trace", Packet Generation Scenarios.
 */
#ifndef TL_SIM_PT_FLOW_ENCODER_H
#define TL_SIM_PT_FLOW_ENCODER_H

#include "sim/pt_encoder.h"
#include "sim/x86_program.h"

/* The clocks of `timing`: the core runs at CBR * 100 MHz. */
enum {
    TL_SIM_PT_CBR_RATIO = 30,
    TL_SIM_PT_NOM_FREQ = 20, /* TSC frequency in 100 MHz */
    TL_SIM_PT_CRYSTAL = 2,   /* TSC frequency divided by the crystal's, as reported by CPUID */
    TL_SIM_PT_TSC_RATIO = 100,
    TL_SIM_PT_MTC_FREQ = 3
};

enum tl_sim_pt_what {
    TL_SIM_PT_INSN,
    TL_SIM_PT_ENABLED,
    TL_SIM_PT_DISABLED,       /* by the previous instruction */
    TL_SIM_PT_ASYNC_DISABLED, /* at `ip`; `value`: where execution continued */
    TL_SIM_PT_ASYNC_BRANCH,   /* at `ip`, to `value` */
    TL_SIM_PT_PAGING,         /* `value`: CR3 */
    TL_SIM_PT_ASYNC_PAGING,
    TL_SIM_PT_OVERFLOW, /* tracing resumes at `ip` */
    TL_SIM_PT_EXEC_MODE,
    TL_SIM_PT_TSX, /* `value`: 1 in a transaction, 2 aborted */
    TL_SIM_PT_STOP,
    TL_SIM_PT_VMCS, /* `value`: base */
    TL_SIM_PT_ASYNC_VMCS,
    TL_SIM_PT_EXSTOP,
    TL_SIM_PT_MWAIT,     /* `value`: hints, and extensions above */
    TL_SIM_PT_PWRE,      /* `value`: state, sub-state << 8, by hardware << 16 */
    TL_SIM_PT_PWRX,      /* `value`: last state, deepest << 8, then the bits as in the packet */
    TL_SIM_PT_PTWRITE,   /* `value`: payload */
    TL_SIM_PT_CBR,       /* `value`: ratio */
    TL_SIM_PT_INTERRUPT, /* `value`: vector, and CR2 << 8 */
    TL_SIM_PT_IRET,
    TL_SIM_PT_TRIG, /* `value`: which triggers; bit 8: there were several */
    TL_SIM_PT_WHATS
};

struct tl_sim_pt_truth {
    uint64_t ip, value;
    uint64_t tsc;     /* when it happened, finer than any packet tells */
    uint8_t what;     /* enum tl_sim_pt_what */
    uint8_t size;     /* INSN: bytes */
    uint8_t isa;      /* INSN, EXEC_MODE: enum tl_isa */
    bool no_ip;       /* EVENT: the trace contains no location; DISABLED: nor the target */
    bool speculative; /* INSN: inside a transaction */
    bool status;      /* from a PSB+ */
};

struct tl_sim_pt_flow_options {
    bool kernel, user; /* what is traced */
    bool filter;       /* only the even ones of each four functions */
    bool no_ret_compression;
    bool deferred_tips;
    bool long_tnt;
    bool ptwrite_ip;                /* a FUP after PTW */
    bool timing;                    /* TSC, TMA, MTC, CYC, CBR */
    bool overflows, power, toggles; /* toggles: tracing is switched off and on in between */
    bool events;                    /* event trace (CFE, EVD), and triggers (TRIG) */
    unsigned psb_period;            /* bytes; 0: 2000 */
};

struct tl_sim_pt_flow {
    struct tl_sim_pt pt;
    struct tl_buf truth; /* struct tl_sim_pt_truth */
    struct tl_sim_pt_flow_options options;
    struct tl_sim_x86_run run;
    struct tl_sim_rng rng;
    bool begun, enabled, off;
    bool wrote;       /* the last step had an outcome in the trace */
    bool transaction; /* as far as reported in the trace */
    uint8_t isa;      /* as far as reported in the trace; enum tl_isa */
    uint64_t cr3, vmcs;
    unsigned straight;         /* instructions since the last outcome */
    size_t written;            /* pt.out.n at the last outcome */
    uint64_t cycles, reported; /* cycles of the core, and those reported in CYC packets */
    uint64_t mtc;              /* the last one, beyond its 8 bits */
    size_t psb;                /* offset of the last one */
    uint64_t tips[16];         /* deferred */
    unsigned n_tips;
    uint64_t calls[64]; /* for which a return may be compressed */
    unsigned n_calls;
};

/* `program` is borrowed. */
void tl_sim_pt_flow_init(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_program *program,
                         const struct tl_sim_pt_flow_options *options, uint64_t seed);
void tl_sim_pt_flow_fini(struct tl_sim_pt_flow *flow);

/* Run `steps` steps, and continue to the next one with an outcome in the trace: then all of them
 * are in `pt.out`, and a decoder can output all of them. */
void tl_sim_pt_flow_run(struct tl_sim_pt_flow *flow, size_t steps);

/* Start again with an empty buffer after the contents of `pt.out` were taken. */
void tl_sim_pt_flow_taken(struct tl_sim_pt_flow *flow);

/* Random options. */
void tl_sim_pt_flow_random(struct tl_sim_pt_flow_options *options, struct tl_sim_rng *rng);

/* A truth as text, for comparison. Returns the length. */
int tl_sim_pt_truth_text(char out[128], const struct tl_sim_pt_truth *truth);

#endif
