/* SPDX-License-Identifier: MIT */
/*
 * What perf.data says of the trace unit: AUXTRACE_INFO, and how the trace's ticks relate to perf's
 * time. Made into the registers that the stream decoders ask for. Plain data; not thread-safe.
 *
 * Source: tools/perf/util/intel-pt.h, cs-etm.h (headers of the information record).
 */
#ifndef TL_PERF_INFO_H
#define TL_PERF_INFO_H

#include "perf/attr.h"
#include "setup/setup.h"

enum tl_perf_trace { /* the kind of an AUXTRACE_INFO */
                     TL_PERF_TRACE_NONE,
                     TL_PERF_TRACE_PT = 1,
                     TL_PERF_TRACE_BTS = 2,
                     TL_PERF_TRACE_CORESIGHT = 3
};

#define TL_PERF_REGS 16

/* A trace unit of CoreSight. */
struct tl_perf_unit {
    uint8_t protocol; /* enum tl_protocol; NONE: not supported */
    uint32_t cpu;
    uint8_t id;    /* trace ID; 0: not told yet */
    bool takes_id; /* it is told by AUX_OUTPUT_HW_ID records, … */
    bool has_sink; /* … with the sink's number, for which alone it holds */
    uint32_t sink;
    bool doubled; /* a unit of another sink had this ID before */
    uint64_t regs[TL_PERF_REGS];
    size_t n_regs;
};

struct tl_perf_info {
    uint8_t kind; /* enum tl_perf_trace; NONE: not told yet */
    uint32_t pmu;
    bool snapshot;
    struct tl_clock clock;
    /* Intel PT. */
    uint64_t tsc_bit, mtc_bits;
    unsigned mtc_shift;
    uint64_t ratio_n, ratio_d, max_ratio;
    bool per_cpu;
    uint8_t switches; /* 0: none are told, 1: by a tracepoint, 2: SWITCH, 3: SWITCH_CPU_WIDE */
    /* CoreSight. */
    struct tl_perf_unit *units;
    size_t n_units, cap_units;
};

void tl_perf_info_fini(struct tl_perf_info *info);

void tl_perf_info_state(struct tl_perf_info *info, struct tl_state *state);
/* Any clock. */
void tl_perf_clock_state(struct tl_clock *clock, struct tl_state *state);

/* Take an AUXTRACE_INFO record's body. TL_BAD: it is too short; TL_UNSUPPORTED: trace of a kind
 * that is not known, with `fail`; TL_NOMEM. */
TL_MUST_USE int tl_perf_info_read(struct tl_perf_info *info, bool swap, struct tl_bytes body,
                                  struct tl_fail *fail);
/* … and of a TIME_CONV record. */
void tl_perf_info_clock(struct tl_perf_info *info, bool swap, struct tl_bytes body);

/* … and what an AUX_OUTPUT_HW_ID record says of the unit of a CPU. */
void tl_perf_info_hw_id(struct tl_perf_info *info, uint32_t cpu, uint64_t hw_id);
/* May a buffer of this CPU (-1: not known which) have trace of the unit? */
bool tl_perf_info_shares_sink(const struct tl_perf_info *info, int64_t cpu,
                              const struct tl_perf_unit *unit);

/* A source that is told so far: of Intel PT, with the PMU's attribute (NULL: not told) … */
void tl_perf_info_pt(const struct tl_perf_info *info, const struct tl_perf_attr *attr,
                     struct tl_source *source);
/* … or of a CoreSight trace unit, with the stream's name: "cs.10", or, where another sink has that
 * ID too, "cs.10.cpu3". */
void tl_perf_info_unit(const struct tl_perf_unit *unit, struct tl_source *source);

/* Which of the trace's identifiers says who runs: of CoreSight what its units were told to trace,
 * the context ID, or the VMID where Linux runs at EL2. */
enum tl_perf_context { TL_PERF_CONTEXT_ID, TL_PERF_CONTEXT_VMID, TL_PERF_CONTEXT_NONE };
enum tl_perf_context tl_perf_info_context(const struct tl_perf_info *info);

/* Does the trace tell time that can be compared with the records'? Intel PT by its TSC, CoreSight
 * where its timestamps are the virtual counter and TIME_CONV tells how that relates. */
bool tl_perf_info_is_timed(const struct tl_perf_info *info, const struct tl_perf_attr *attr);
/* Do trace units of CoreSight tell timestamps at all? */
bool tl_perf_info_has_stamps(const struct tl_perf_info *info);
/* The clock of all TIME items, and of when images are there: the trace's, else ns of the records.
 */
struct tl_clock tl_perf_info_axis(const struct tl_perf_info *info, const struct tl_perf_attr *attr);

/* "GenuineIntel,6,142,10" as "6/142/10" into `out`; "": it is none. */
void tl_perf_cpuid(const char *cpuid, char *out, size_t size);

#endif
