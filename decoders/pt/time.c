/* SPDX-License-Identifier: MIT */
/*
 * Two parts with the same packets as input: the time, and the length of a cycle. They are separate
 * because a lost packet makes the first inexact at once, whereas the second remains usable until
 * the frequency changes.
 */
#include "pt/time.h"

#include "flow/item.h"

#define MTC_BITS     8  /* bits of the crystal clock count in an MTC */
#define TMA_CTC_BITS 16 /* bits of it in a TMA */
#define TSC_BITS     56
#define MTC_FAST     10 /* with a smaller MTCFreq a lost wrap of the CYC counter can be detected */
#define SKL168_SLACK 0xf00u /* cycles: slightly less than one wrap */

/* ---- units ---------------------------------------------------------------------------------- */

/* Crystal clock ticks from `last` to `ctc`, assuming at most one wrap. */
static enum tl_pt_time_error ctc_since(uint32_t *delta, uint32_t ctc, uint32_t last,
                                       const struct tl_pt_config *config)
{
    if (ctc < last) {
        ctc += 1u << (config->mtc_freq + MTC_BITS);
        if (ctc < last)
            return TL_PT_TIME_BAD_PACKET;
    }
    *delta = ctc - last;
    return TL_PT_TIME_OK;
}

/* Convert to TSC ticks. */
static enum tl_pt_time_error ctc_to_tsc(uint64_t *ticks, uint32_t ctc,
                                        const struct tl_pt_config *config)
{
    if (!config->crystal || !config->tsc_ratio)
        return TL_PT_TIME_BAD_CONFIG;
    *ticks = (uint64_t)ctc * config->tsc_ratio / config->crystal;
    return TL_PT_TIME_OK;
}

/* ---- time ----------------------------------------------------------------------------------- */

void tl_pt_time_tsc(struct tl_pt_time *t, uint64_t tsc)
{
    t->have_tsc = true;
    t->have_tma = t->have_mtc = false;
    t->fell |= tl_time_restarts(t->last, tsc);
    t->tsc = t->base = t->last = tsc;
    t->ctc = 0;
    t->fc = 0;
    t->lost_mtc = t->lost_cyc = 0;
}

enum tl_pt_time_error tl_pt_time_cbr(struct tl_pt_time *t, uint8_t cbr)
{
    if (!cbr)
        return TL_PT_TIME_BAD_PACKET;
    t->have_cbr = true;
    t->cbr = cbr;
    return TL_PT_TIME_OK;
}

enum tl_pt_time_error tl_pt_time_tma(struct tl_pt_time *t, const struct tl_pt_config *config,
                                     uint16_t ctc, uint16_t fc)
{
    if (!t->have_tsc || t->have_tma)
        return TL_PT_TIME_BAD_CONTEXT;
    if (t->have_mtc)
        return TL_PT_TIME_INTERNAL;
    const unsigned top = config->mtc_freq + MTC_BITS;
    t->have_tma = true;
    t->base -= fc;
    t->fc += fc;
    /* A TMA that includes all bits of an MTC replaces one; else the first MTC gives the missing
     * bits. */
    if (top <= TMA_CTC_BITS)
        t->have_mtc = true;
    t->ctc = t->ctc_cyc = ctc & ((1u << top) - 1);
    return TL_PT_TIME_OK;
}

/* Complete a TMA with the upper bits of the first MTC after it. */
static uint32_t ctc_at_tma(uint32_t ctc, uint32_t tma, const struct tl_pt_config *config)
{
    const uint32_t mask = (1u << TMA_CTC_BITS) - 1;
    uint32_t high = ctc & ~mask;
    if ((ctc & mask) < tma) {
        high -= 1u << TMA_CTC_BITS;
        high &= 0xffu << config->mtc_freq;
    }
    return tma | high;
}

enum tl_pt_time_error tl_pt_time_mtc(struct tl_pt_time *t, const struct tl_pt_config *config,
                                     uint8_t mtc)
{
    /* Between TSC and TMA it would look like a wrap. */
    if (t->have_tsc && !t->have_tma)
        return TL_PT_TIME_OK;
    const uint32_t ctc = (uint32_t)mtc << config->mtc_freq;
    uint32_t last = t->ctc, delta;
    const bool had_mtc = t->have_mtc;
    uint64_t ticks;
    if (t->fc || t->lost_cyc || !had_mtc)
        t->ctc_cyc = ctc;
    t->have_mtc = true;
    t->fc = 0;
    t->ctc = ctc;
    t->lost_cyc = 0;
    if (!had_mtc) {
        if (!t->have_tma)
            return TL_PT_TIME_OK;
        last = ctc_at_tma(ctc, last, config);
    }
    enum tl_pt_time_error e = ctc_since(&delta, ctc, last, config);
    if (e != TL_PT_TIME_OK) {
        t->lost_mtc++;
        return e;
    }
    e = ctc_to_tsc(&ticks, delta, config);
    if (e == TL_PT_TIME_OK)
        t->tsc = t->base = t->base + ticks;
    return e;
}

/* Cycles in the last MTC period, for a CYC that spans several periods. */
static enum tl_pt_time_error recent_cycles(uint64_t *cyc, const struct tl_pt_time *t,
                                           const struct tl_pt_config *config, uint64_t fcr)
{
    uint32_t delta;
    uint64_t ticks;
    if (t->ctc == t->ctc_cyc)
        return TL_PT_TIME_OK;
    enum tl_pt_time_error e = ctc_since(&delta, t->ctc, t->ctc_cyc, config);
    if (e == TL_PT_TIME_OK)
        e = ctc_to_tsc(&ticks, delta, config);
    if (e != TL_PT_TIME_OK)
        return e;
    const uint64_t before = (ticks << TL_PT_FCR_SHIFT) / fcr;
    *cyc = *cyc < before ? 0 : *cyc - before;
    return TL_PT_TIME_OK;
}

enum tl_pt_time_error tl_pt_time_cyc(struct tl_pt_time *t, const struct tl_pt_config *config,
                                     uint64_t cyc, uint64_t fcr)
{
    if (!fcr) {
        t->lost_cyc++;
        return TL_PT_TIME_OK;
    }
    if (!t->fc) {
        const enum tl_pt_time_error e = recent_cycles(&cyc, t, config, fcr);
        if (e != TL_PT_TIME_OK)
            return e;
    }
    t->fc += (cyc * fcr) >> TL_PT_FCR_SHIFT;
    t->tsc = t->base + t->fc;
    return TL_PT_TIME_OK;
}

/* ---- the calibration ------------------------------------------------------------------------ */

static void set_fcr(struct tl_pt_calibration *c, uint64_t fcr)
{
    c->fcr = fcr;
    c->known = true;
}

void tl_pt_calibrate_psb(struct tl_pt_calibration *c, const struct tl_pt_config *config)
{
    c->check_skl168 |= config->errata.skl168;
}

enum tl_pt_time_error tl_pt_calibrate_tsc(struct tl_pt_calibration *c, uint64_t tsc, bool header)
{
    const uint64_t last = c->tsc, cyc = c->cyc_tsc;
    c->tsc = tsc;
    c->cyc_tsc = 0;
    /* Outside PSB+ time may have been lost; and MTC is more precise. */
    if (!header || !last || !cyc || c->have_mtc)
        return TL_PT_TIME_OK;
    if (tsc < last)
        tsc += UINT64_C(1) << TSC_BITS;
    if (tsc < last)
        return TL_PT_TIME_BAD_PACKET;
    if ((tsc - last) >> (64 - TL_PT_FCR_SHIFT))
        return TL_PT_TIME_INTERNAL;
    set_fcr(c, ((tsc - last) << TL_PT_FCR_SHIFT) / cyc);
    return TL_PT_TIME_OK;
}

enum tl_pt_time_error tl_pt_calibrate_cbr(struct tl_pt_calibration *c,
                                          const struct tl_pt_config *config, uint8_t cbr,
                                          bool header)
{
    if (!header) /* frequency change */
        *c = (struct tl_pt_calibration){0};
    if (!config->nom_freq)
        return TL_PT_TIME_OK;
    if (!cbr)
        return TL_PT_TIME_BAD_PACKET;
    set_fcr(c, ((uint64_t)config->nom_freq << TL_PT_FCR_SHIFT) / cbr);
    return TL_PT_TIME_OK;
}

/* May a CYC before the PSB have been dropped (erratum SKL168)? */
static bool lacks_cycles(const struct tl_pt_calibration *c, const struct tl_pt_config *config,
                         uint32_t ctc, uint64_t ticks, uint64_t cyc)
{
    if (ctc > 1u << config->mtc_freq)
        return true;
    return config->mtc_freq < MTC_FAST && c->known &&
           (c->fcr * (cyc + SKL168_SLACK)) >> TL_PT_FCR_SHIFT < ticks;
}

enum tl_pt_time_error tl_pt_calibrate_mtc(struct tl_pt_calibration *c,
                                          const struct tl_pt_config *config, uint8_t mtc)
{
    const uint32_t last = c->ctc, ctc = (uint32_t)mtc << config->mtc_freq;
    const uint64_t cyc = c->cyc_mtc;
    const bool check = c->check_skl168;
    uint32_t delta;
    uint64_t ticks;
    c->check_skl168 = false;
    if (c->have_mtc && !cyc) /* the next MTC will distribute the cycles over both periods */
        return TL_PT_TIME_OK;
    const bool first = !c->have_mtc;
    c->have_mtc = true;
    c->cyc_mtc = 0;
    c->ctc = ctc;
    if (first)
        return TL_PT_TIME_OK;
    enum tl_pt_time_error e = ctc_since(&delta, ctc, last, config);
    if (e == TL_PT_TIME_OK)
        e = ctc_to_tsc(&ticks, delta, config);
    if (e != TL_PT_TIME_OK)
        return e;
    if (ticks >> (64 - TL_PT_FCR_SHIFT))
        return TL_PT_TIME_INTERNAL;
    if (!check || !lacks_cycles(c, config, delta, ticks, cyc))
        set_fcr(c, (ticks << TL_PT_FCR_SHIFT) / cyc);
    return TL_PT_TIME_OK;
}

/* ---- both together --------------------------------------------------------------------------- */

void tl_pt_clock_init(struct tl_pt_clock *clock)
{
    clock->time = (struct tl_pt_time){0};
    clock->calibration = (struct tl_pt_calibration){0};
}

/* The worse of two errors; a missing configuration value is not an error. */
static enum tl_pt_time_error worse(enum tl_pt_time_error a, enum tl_pt_time_error b)
{
    if (a != TL_PT_TIME_OK && a != TL_PT_TIME_BAD_CONFIG)
        return a;
    return b == TL_PT_TIME_BAD_CONFIG ? TL_PT_TIME_OK : b;
}

enum tl_pt_time_error tl_pt_clock_packet(struct tl_pt_clock *clock,
                                         const struct tl_pt_config *config,
                                         const struct tl_pt_packet *p, bool header)
{
    struct tl_pt_time *const t = &clock->time;
    struct tl_pt_calibration *const c = &clock->calibration;
    enum tl_pt_time_error e;
    switch (p->kind) {
    case TL_PT_PSB:
        tl_pt_calibrate_psb(c, config);
        return TL_PT_TIME_OK;
    case TL_PT_TSC:
        e = tl_pt_calibrate_tsc(c, p->tsc, header);
        if (e == TL_PT_TIME_OK)
            tl_pt_time_tsc(t, p->tsc);
        return e;
    case TL_PT_CBR:
        e = tl_pt_calibrate_cbr(c, config, p->cbr, header);
        return e == TL_PT_TIME_OK ? tl_pt_time_cbr(t, p->cbr) : e;
    case TL_PT_TMA:
        return worse(TL_PT_TIME_OK, tl_pt_time_tma(t, config, p->tma.ctc, p->tma.fc));
    case TL_PT_MTC:
        e = tl_pt_calibrate_mtc(c, config, p->mtc);
        if (e != TL_PT_TIME_OK && e != TL_PT_TIME_BAD_CONFIG)
            return e;
        return worse(e, tl_pt_time_mtc(t, config, p->mtc));
    case TL_PT_CYC:
        return tl_pt_clock_cyc(clock, config, p->cyc);
    default:
        return TL_PT_TIME_OK;
    }
}

void tl_pt_clock_state(struct tl_pt_clock *clock, struct tl_state *s)
{
    struct tl_pt_time *const t = &clock->time;
    struct tl_pt_calibration *const c = &clock->calibration;
    tl_state_u64(s, &t->tsc);
    tl_state_u64(s, &t->base);
    tl_state_u64(s, &t->fc);
    tl_state_u64(s, &t->last);
    tl_state_u32(s, &t->ctc);
    tl_state_u32(s, &t->ctc_cyc);
    tl_state_u32(s, &t->lost_mtc);
    tl_state_u32(s, &t->lost_cyc);
    tl_state_u8(s, &t->cbr, UINT8_MAX);
    tl_state_bool(s, &t->have_tsc);
    tl_state_bool(s, &t->have_cbr);
    tl_state_bool(s, &t->have_tma);
    tl_state_bool(s, &t->have_mtc);
    tl_state_bool(s, &t->fell);
    tl_state_u64(s, &c->fcr);
    tl_state_u64(s, &c->tsc);
    tl_state_u64(s, &c->cyc_tsc);
    tl_state_u64(s, &c->cyc_mtc);
    tl_state_u32(s, &c->ctc);
    tl_state_bool(s, &c->known);
    tl_state_bool(s, &c->have_mtc);
    tl_state_bool(s, &c->check_skl168);
}
