/* SPDX-License-Identifier: MIT */
/*
 * Trace unit parameters in perf.data: AUXTRACE_INFO, and the relation of trace ticks to perf's
 * time. Converted to the registers that the stream decoders need. Plain data; not thread-safe.
 *
 * Source: tools/perf/util/intel-pt.h, cs-etm.h (headers of the information record); for RISC-V the
 * two series proposed for Linux, rvtrace, which are told apart by the record's size.
 */
#ifndef TL_PERF_INFO_H
#define TL_PERF_INFO_H

#include "perf/attr.h"
#include "setup/setup.h"

/* Kind of trace of an AUXTRACE_INFO; numbers of perf's auxtrace.h. */
enum tl_perf_trace {
    TL_PERF_TRACE_NONE,
    TL_PERF_TRACE_PT = 1,
    TL_PERF_TRACE_BTS = 2,
    TL_PERF_TRACE_CORESIGHT = 3,
    TL_PERF_TRACE_SPE = 4,
    TL_PERF_TRACE_RISCV = 8
};

/* What tells of context switches; numbers of perf's intel-pt.h. */
enum tl_perf_switches {
    TL_PERF_SWITCHES_NONE,
    TL_PERF_SWITCHES_TRACEPOINT, /* samples of sched:sched_switch */
    TL_PERF_SWITCHES_RECORDS,    /* SWITCH */
    TL_PERF_SWITCHES_CPU_WIDE    /* SWITCH_CPU_WIDE */
};

#define TL_PERF_REGS 16

/* Registers of a RISC-V trace encoder: fields of the Trace Control Interface. */
enum tl_perf_riscv {
    TL_PERF_FORMAT,
    TL_PERF_CONTEXTS,
    TL_PERF_INHIBIT_SRC,
    TL_PERF_SRC_BITS,
    TL_PERF_SRC_ID
};

/* A CoreSight trace unit, or a RISC-V trace encoder. */
struct tl_perf_unit {
    uint8_t protocol; /* enum tl_protocol; NONE: not supported */
    uint32_t cpu;
    uint8_t id;    /* trace ID; 0: not known yet */
    bool takes_id; /* the ID is given by AUX_OUTPUT_HW_ID records */
    bool has_sink; /* with the number of the sink for which it is valid */
    uint32_t sink;
    bool doubled; /* a unit of another sink had this ID before */
    uint64_t regs[TL_PERF_REGS];
    size_t n_regs;
};

struct tl_perf_info {
    uint8_t kind;          /* enum tl_perf_trace; NONE: not known yet */
    uint32_t pmu;          /* number of the trace unit's type of events (attr.type) */
    bool snapshot;         /* buffers have the last bytes of the trace, without those before */
    struct tl_clock clock; /* from trace ticks to perf's time */
    /* Intel PT. Bits are those of an event's configuration (attr.config). */
    uint64_t tsc_bit, mtc_bits;
    unsigned mtc_shift;
    uint64_t ratio_n, ratio_d; /* CPUID 15h: TSC is the crystal clock times n / d; 0: unknown */
    uint64_t max_ratio;        /* maximum without turbo, of TSC to the bus clock; 0: unknown */
    bool per_cpu;              /* a buffer for each processor, not for each thread */
    uint8_t switches;          /* enum tl_perf_switches */
    /* CoreSight and RISC-V; of RISC-V there may be none, then only the setup says what it is. */
    struct tl_perf_unit *units;
    size_t n_units, cap_units;
};

void tl_perf_info_fini(struct tl_perf_info *info);

void tl_perf_info_state(struct tl_perf_info *info, struct tl_state *state);
/* Save or restore any clock. */
void tl_perf_clock_state(struct tl_clock *clock, struct tl_state *state);

/* Parse an AUXTRACE_INFO record's body. Returns TL_BAD: too short; TL_UNSUPPORTED: unknown kind of
 * trace, with `fail`; TL_NOMEM. */
TL_MUST_USE int tl_perf_info_read(struct tl_perf_info *info, bool swap, struct tl_bytes body,
                                  struct tl_fail *fail);
/* Parse a TIME_CONV record's body. */
void tl_perf_info_clock(struct tl_perf_info *info, bool swap, struct tl_bytes body);

/* Apply an AUX_OUTPUT_HW_ID record: the trace ID of a CPU's unit. */
void tl_perf_info_hw_id(struct tl_perf_info *info, uint32_t cpu, uint64_t hw_id);
/* Can a buffer of this CPU (-1: unknown) contain trace of the unit? */
bool tl_perf_info_shares_sink(const struct tl_perf_info *info, int64_t cpu,
                              const struct tl_perf_unit *unit);

/* Fill in a source from what is known so far: of Intel PT, with the PMU's attribute (NULL:
 * unknown). */
void tl_perf_info_pt(const struct tl_perf_info *info, const struct tl_perf_attr *attr,
                     struct tl_source *source);
/* The same for a CoreSight trace unit, including the stream's name: "cs.10", or, if another sink
 * also has that ID, "cs.10.cpu3". */
void tl_perf_info_unit(const struct tl_perf_unit *unit, struct tl_source *source);

/* Which trace identifier identifies the running thread: for CoreSight what its units were
 * configured to trace, the context ID, or the VMID if Linux runs at EL2. */
enum tl_perf_context { TL_PERF_CONTEXT_ID, TL_PERF_CONTEXT_VMID, TL_PERF_CONTEXT_NONE };
enum tl_perf_context tl_perf_info_context(const struct tl_perf_info *info);

/* Are contexts in streams threads, not processes? */
static inline bool tl_perf_info_has_threads(const struct tl_perf_info *info)
{
    return info->kind == TL_PERF_TRACE_CORESIGHT || info->kind == TL_PERF_TRACE_SPE;
}

/* Fill in the source of a RISC-V encoder: "nt.SRC", "et.SRC", or in CoreSight frames "cs.ID". */
void tl_perf_info_encoder(const struct tl_perf_unit *unit, bool framed, struct tl_source *source);

/* Can the trace's time be compared with the records'? Intel PT: if it has TSC; CoreSight: if
 * timestamps are the virtual counter and TIME_CONV gives its relation; Arm SPE: if it does. */
bool tl_perf_info_is_timed(const struct tl_perf_info *info, const struct tl_perf_attr *attr);
/* Do the CoreSight trace units generate timestamps? */
bool tl_perf_info_has_stamps(const struct tl_perf_info *info);
/* The clock of all TIME items and of image validity: the trace's, else the records' ns. */
struct tl_clock tl_perf_info_axis(const struct tl_perf_info *info, const struct tl_perf_attr *attr);

/* Convert "GenuineIntel,6,142,10" to "6/142/10" in `out`; "" if it has another form. */
void tl_perf_cpuid(const char *cpuid, char *out, size_t size);

#endif
