/* SPDX-License-Identifier: MIT */
/*
 * What time it is, by TSC, TMA, MTC, CYC and CBR packets. A TSC tells it exactly. MTC counts the
 * crystal clock between two of them, CYC the core's cycles between two MTC; how long a cycle is is
 * learnt from MTC, TSC or CBR (the calibration) and used until it is learnt anew.
 *
 * Plain data; a copy goes on by itself. Not thread-safe.
 *
 * Source: Intel SDM volume 3, Intel Processor Trace, "Reconstructing full timestamps".
 */
#ifndef TL_PT_TIME_H
#define TL_PT_TIME_H

#include "base/state.h"
#include "pt/packet.h"

#define TL_PT_FCR_SHIFT 8 /* fractional bits of the ratio of fast counter to cycles */

/* Why a packet did not help. Time is as good as it was. */
enum tl_pt_time_error {
    TL_PT_TIME_OK,
    TL_PT_TIME_BAD_PACKET,  /* a CBR of 0, a wrap too many */
    TL_PT_TIME_BAD_CONTEXT, /* TMA without TSC, or a second one */
    TL_PT_TIME_BAD_CONFIG,  /* CPUID leaf 15h is not told */
    TL_PT_TIME_NO_TIME,     /* nothing is known yet */
    TL_PT_TIME_INTERNAL     /* numbers too large to be true */
};

struct tl_pt_time {
    uint64_t tsc;  /* the estimate */
    uint64_t base; /* it at the last TSC or MTC */
    uint64_t fc;   /* fast counter since */
    uint32_t ctc;  /* crystal clock count at the last MTC or TMA */
    uint32_t ctc_cyc;
    uint32_t lost_mtc, lost_cyc; /* packets that did not count since time was exact */
    uint8_t cbr;
    bool have_tsc, have_cbr, have_tma, have_mtc;
};

/* The calibration: fast counter ticks for a cycle, << TL_PT_FCR_SHIFT. */
struct tl_pt_calibration {
    uint64_t fcr;     /* … if `known`, else 0 */
    uint64_t tsc;     /* at the last TSC */
    uint64_t cyc_tsc; /* cycles since */
    uint64_t cyc_mtc; /* cycles since the last MTC */
    uint32_t ctc;     /* at the last MTC */
    bool known, have_mtc, check_skl168;
};

/* Zeroed, both know nothing. */

/* ---- the clock, packet by packet ------------------------------------------------------------ */

void tl_pt_time_tsc(struct tl_pt_time *time, uint64_t tsc);
enum tl_pt_time_error tl_pt_time_cbr(struct tl_pt_time *time, uint8_t cbr);
enum tl_pt_time_error tl_pt_time_tma(struct tl_pt_time *time, const struct tl_pt_config *config,
                                     uint16_t ctc, uint16_t fc);
enum tl_pt_time_error tl_pt_time_mtc(struct tl_pt_time *time, const struct tl_pt_config *config,
                                     uint8_t mtc);
/* `fcr`: of the calibration; 0: not known. */
enum tl_pt_time_error tl_pt_time_cyc(struct tl_pt_time *time, const struct tl_pt_config *config,
                                     uint64_t cyc, uint64_t fcr);

/* ---- the calibration, packet by packet; `header`: within PSB+ -------------------------------- */

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

/* ---- both ------------------------------------------------------------------------------------ */

struct tl_pt_clock {
    struct tl_pt_time time;
    struct tl_pt_calibration calibration;
};

void tl_pt_clock_init(struct tl_pt_clock *clock);

/*
 * A packet of any kind. A configuration that is not told makes time less precise and is no error.
 */
enum tl_pt_time_error tl_pt_clock_packet(struct tl_pt_clock *clock,
                                         const struct tl_pt_config *config,
                                         const struct tl_pt_packet *packet, bool header);

/* The same of a CYC, as nearly every second packet is where there are any. */
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

/* Into bytes or from them. */
void tl_pt_clock_state(struct tl_pt_clock *clock, struct tl_state *state);

#endif
