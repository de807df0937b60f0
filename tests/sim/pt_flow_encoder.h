/* SPDX-License-Identifier: MIT */
/*
 * Intel PT of an x86 execution, as a processor writes it, and beside it what a decoder has to say:
 * each instruction, and each event in front of the instruction that it comes before. Not
 * thread-safe; without memory the program ends.
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
    TL_SIM_PT_NOM_FREQ = 20, /* the TSC's rate in 100 MHz … */
    TL_SIM_PT_CRYSTAL = 2,   /* … and against the crystal's, as CPUID tells it */
    TL_SIM_PT_TSC_RATIO = 100,
    TL_SIM_PT_MTC_FREQ = 3
};

enum tl_sim_pt_what {
    TL_SIM_PT_INSN,
    TL_SIM_PT_ENABLED,
    TL_SIM_PT_DISABLED,       /* by the instruction before */
    TL_SIM_PT_ASYNC_DISABLED, /* at `ip`; `value`: where execution went on */
    TL_SIM_PT_ASYNC_BRANCH,   /* at `ip`, to `value` */
    TL_SIM_PT_PAGING,         /* `value`: CR3 */
    TL_SIM_PT_ASYNC_PAGING,
    TL_SIM_PT_OVERFLOW, /* tracing goes on at `ip` */
    TL_SIM_PT_EXEC_MODE,
    TL_SIM_PT_TSX, /* `value`: in a transaction 1, aborted 2 */
    TL_SIM_PT_STOP,
    TL_SIM_PT_VMCS, /* `value`: base */
    TL_SIM_PT_ASYNC_VMCS,
    TL_SIM_PT_EXSTOP,
    TL_SIM_PT_MWAIT,     /* `value`: hints, and extensions above */
    TL_SIM_PT_PWRE,      /* `value`: state, sub-state << 8, by hardware << 16 */
    TL_SIM_PT_PWRX,      /* `value`: last state, deepest << 8, then as the packet's bits */
    TL_SIM_PT_PTWRITE,   /* `value`: payload */
    TL_SIM_PT_CBR,       /* `value`: ratio */
    TL_SIM_PT_INTERRUPT, /* `value`: vector, and CR2 << 8 */
    TL_SIM_PT_IRET,
    TL_SIM_PT_TRIG, /* `value`: which triggers, and that there were several << 8 */
    TL_SIM_PT_WHATS
};

struct tl_sim_pt_truth {
    uint64_t ip, value;
    uint8_t what;     /* enum tl_sim_pt_what */
    uint8_t size;     /* INSN: bytes */
    uint8_t isa;      /* INSN, EXEC_MODE: enum tl_isa */
    bool no_ip;       /* EVENT: the trace does not say where; DISABLED: nor where to */
    bool speculative; /* INSN: in a transaction */
    bool status;      /* said by PSB+ */
};

struct tl_sim_pt_flow_options {
    bool kernel, user; /* what is traced */
    bool filter;       /* of that only the even ones of each four functions */
    bool no_ret_compression;
    bool deferred_tips;
    bool long_tnt;
    bool ptwrite_ip;                /* a FUP behind PTW */
    bool timing;                    /* TSC, TMA, MTC, CYC, CBR */
    bool overflows, power, toggles; /* toggles: tracing is switched off and on meanwhile */
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
    bool wrote;       /* the last step has an outcome in the trace */
    bool transaction; /* as the trace has told */
    uint8_t isa;      /* as the trace has told; enum tl_isa */
    uint64_t cr3, vmcs;
    unsigned straight;     /* instructions since the last outcome … */
    size_t written;        /* … and pt.out.n there */
    uint64_t cycles, told; /* of the core; … that a CYC has told */
    uint64_t mtc;          /* the last one, more than its 8 bits */
    size_t psb;            /* offset of the last one */
    uint64_t tips[16];     /* deferred */
    unsigned n_tips;
    uint64_t calls[64]; /* that a return may be compressed for */
    unsigned n_calls;
};

/* `program` is borrowed. */
void tl_sim_pt_flow_init(struct tl_sim_pt_flow *flow, const struct tl_sim_x86_program *program,
                         const struct tl_sim_pt_flow_options *options, uint64_t seed);
void tl_sim_pt_flow_fini(struct tl_sim_pt_flow *flow);

/* So many steps on, and then to the next that the trace has an outcome of: all of them are in
 * `pt.out` then, and a decoder can say them all. */
void tl_sim_pt_flow_run(struct tl_sim_pt_flow *flow, size_t steps);

/* What `pt.out` holds has been taken: it begins again, empty. */
void tl_sim_pt_flow_taken(struct tl_sim_pt_flow *flow);

/* Options chosen at random. */
void tl_sim_pt_flow_random(struct tl_sim_pt_flow_options *options, struct tl_sim_rng *rng);

/* A truth in words, for comparison. Returns the length. */
int tl_sim_pt_truth_text(char out[128], const struct tl_sim_pt_truth *truth);

#endif
