/* SPDX-License-Identifier: MIT */
/*
 * Time reconstruction from TSC, TMA, MTC, CYC and CBR packets. A TSC gives the exact time. MTC
 * counts the crystal clock between TSCs, CYC the core's cycles between MTCs. The length of a cycle
 * is derived from MTC, TSC or CBR (the calibration) and used until it is updated.
 *
 * Plain data; copies are independent. Not thread-safe.
 *
 * Source: Intel SDM volume 3, Intel Processor Trace, "Reconstructing full timestamps".
 */
#ifndef TL_PT_TIME_H
#define TL_PT_TIME_H

#include "base/state.h"
#include "pt/packet.h"

#define TL_PT_FCR_SHIFT 8 /* fractional bits of the fast-counter-to-cycles ratio */

/* Why a packet could not be used. The time estimate is unchanged. */
enum tl_pt_time_error {
    TL_PT_TIME_OK,
    TL_PT_TIME_BAD_PACKET,  /* CBR of 0, or too many wraps */
    TL_PT_TIME_BAD_CONTEXT, /* TMA without TSC, or a second TMA */
    TL_PT_TIME_BAD_CONFIG,  /* CPUID leaf 15h is not known */
    TL_PT_TIME_NO_TIME,     /* no time information yet */
    TL_PT_TIME_INTERNAL     /* implausibly large numbers */
};

struct tl_pt_time {
    uint64_t tsc;  /* current estimate */
    uint64_t base; /* estimate at the last TSC or MTC */
    uint64_t fc;   /* fast counter ticks since then */
    uint64_t last; /* value of the last TSC */
    uint32_t ctc;  /* crystal clock count at the last MTC or TMA */
    uint32_t ctc_cyc;
    uint32_t lost_mtc, lost_cyc; /* packets that could not be used since the time was exact */
    uint8_t cbr;
    bool have_tsc, have_cbr, have_tma, have_mtc;
    bool
        fell; /* a TSC was less than the one before: the counter began again; cleared by the user */
};

/* The calibration: fast counter ticks per cycle, << TL_PT_FCR_SHIFT. */
struct tl_pt_calibration {
    uint64_t fcr;     /* the ratio if `known`, else 0 */
    uint64_t tsc;     /* value of the last TSC */
    uint64_t cyc_tsc; /* cycles since the last TSC */
    uint64_t cyc_mtc; /* cycles since the last MTC */
    uint32_t ctc;     /* CTC of the last MTC */
    bool known, have_mtc, check_skl168;
};

/* Both structs start all zero: nothing known. */

/* ---- time, packet by packet ------------------------------------------------------------------ */

void tl_pt_time_tsc(struct tl_pt_time *time, uint64_t tsc);
enum tl_pt_time_error tl_pt_time_cbr(struct tl_pt_time *time, uint8_t cbr);
enum tl_pt_time_error tl_pt_time_tma(struct tl_pt_time *time, const struct tl_pt_config *config,
                                     uint16_t ctc, uint16_t fc);
enum tl_pt_time_error tl_pt_time_mtc(struct tl_pt_time *time, const struct tl_pt_config *config,
                                     uint8_t mtc);
/* `fcr`: ratio from the calibration; 0: unknown. */
enum tl_pt_time_error tl_pt_time_cyc(struct tl_pt_time *time, const struct tl_pt_config *config,
                                     uint64_t cyc, uint64_t fcr);

/*
 * ---- calibration, packet by packet; `header`: within PSB+ -------------------------------------
 */

void tl_pt_calibrate_psb(struct tl_pt_calibration *c, const struct tl_pt_config *config);
enum tl_pt_time_error tl_pt_calibrate_tsc(struct tl_pt_calibration *c, uint64_t tsc, bool header);
enum tl_pt_time_error tl_pt_calibrate_cbr(struct tl_pt_calibration *c,
                                          const struct tl_pt_config *config, uint8_t cbr,
                                          bool header);
enum tl_pt_time_error tl_pt_calibrate_mtc(struct tl_pt_calibration *c,
                                          const struct tl_pt_config *config, uint8_t mtc);
static inline void tl_pt_calibrate_cyc(struct tl_pt_calibration *c, uint64_t cyc)
{
    c->cyc_mtc += cyc;
    c->cyc_tsc += cyc;
}

/* ---- both together --------------------------------------------------------------------------- */

struct tl_pt_clock {
    struct tl_pt_time time;
    struct tl_pt_calibration calibration;
};

void tl_pt_clock_init(struct tl_pt_clock *clock);

/*
 * Process a packet of any kind. A missing configuration value makes the time less precise and is
 * not an error.
 */
enum tl_pt_time_error tl_pt_clock_packet(struct tl_pt_clock *clock,
                                         const struct tl_pt_config *config,
                                         const struct tl_pt_packet *packet, bool header);

/* The same for a CYC; inline, since in traces with CYC nearly every second packet is one. */
static inline enum tl_pt_time_error tl_pt_clock_cyc(struct tl_pt_clock *clock,
                                                    const struct tl_pt_config *config, uint64_t cyc)
{
    struct tl_pt_time *const t = &clock->time;
    tl_pt_calibrate_cyc(&clock->calibration, cyc);
    const uint64_t fcr = clock->calibration.fcr;
    if (!fcr) {
        t->lost_cyc++;
        return TL_PT_TIME_OK;
    }
    if (t->fc) {
        t->fc += (cyc * fcr) >> TL_PT_FCR_SHIFT;
        t->tsc = t->base + t->fc;
        return TL_PT_TIME_OK;
    }
    const enum tl_pt_time_error e = tl_pt_time_cyc(t, config, cyc, fcr);
    return e == TL_PT_TIME_BAD_CONFIG ? TL_PT_TIME_OK : e;
}

/* Save or restore the state. */
void tl_pt_clock_state(struct tl_pt_clock *clock, struct tl_state *state);

#endif
