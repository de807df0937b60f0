/* SPDX-License-Identifier: MIT */
/*
 * Options are judged by how many packets fitted the program before and since they changed. Counts
 * saturate, so that a long good time does not outweigh a change that is true.
 */
#include "riscv/etrace_support.h"

enum {
    TRUSTED = 16, /* as TL_ETRACE_CONFIRMED, of the options of before, when others come on trial */
    MISFIT = 4    /* packets that fit which one that does not outweighs */
};

/* Does the encoder have what these options need, by its parameters, or those that come with them?
 */
static bool has_tables(const struct tl_etrace_params *params, unsigned options)
{
    struct tl_etrace_params with = *params;
    const struct tl_etrace_params *const p = &with;
    if (!tl_etrace_take_sizes(&with, options))
        return false;
    return (!(options & TL_ETRACE_IMPLICIT_RETURN) || p->return_stack_size ||
            p->call_counter_size) &&
           (!(options & TL_ETRACE_TARGET_CACHE) || p->cache_size) &&
           (!(options & TL_ETRACE_PREDICTION) || p->bpred_size);
}

/* The others come into force, with what was known of them. */
static void exchange(struct tl_etrace_support *s, unsigned *options)
{
    const unsigned now = *options;
    const uint8_t fitted = s->fitted;
    *options = s->others;
    s->fitted = s->others_fitted;
    s->others = now;
    s->others_fitted = fitted;
}

static void take_options(struct tl_etrace_support *s, unsigned wanted, unsigned *options)
{
    if (wanted == *options)
        return;
    if (s->on_trial && wanted == s->others) { /* those of before, told once more */
        exchange(s, options);
        return;
    }
    s->on_trial = s->fitted >= TRUSTED;
    s->others = *options;
    s->others_fitted = TRUSTED;
    *options = wanted;
    s->fitted = 0;
}

struct tl_etrace_verdict tl_etrace_support_settle(struct tl_etrace_support *s,
                                                  const struct tl_etrace_params *params,
                                                  const struct tl_bytes *next, unsigned *options)
{
    const bool old = params->unit == TL_ETRACE_ESP32; /* has none */
    const unsigned wanted = old ? *options : tl_etrace_options(params, s->packet.ioptions);
    s->waits = false;
    if (next && (next->p[0] & 3) != 3)
        return (struct tl_etrace_verdict){.is_contradicted =
                                              wanted != *options || s->packet.qual_status};
    if (!has_tables(params, wanted) || (params->unit == TL_ETRACE_2_1 && s->packet.encoder_mode))
        return (struct tl_etrace_verdict){.takes_status = true, .is_contradicted = true};
    take_options(s, wanted, options);
    s->no_data = (params->unit == TL_ETRACE_REFERENCE || params->unit == TL_ETRACE_2_1) &&
                 !s->packet.denable;
    return (struct tl_etrace_verdict){.takes_status = true,
                                      .is_confirmed = next && (next->p[0] & 3) == 3};
}

bool tl_etrace_support_misfits(struct tl_etrace_support *s, unsigned *options)
{
    if (!s->on_trial)
        return false;
    s->fitted = s->fitted > MISFIT ? (uint8_t)(s->fitted - MISFIT) : 0;
    if (s->fitted > s->others_fitted)
        return false;
    exchange(s, options);
    return s->size > 0;
}

bool tl_etrace_support_refute(struct tl_etrace_support *s, unsigned *options)
{
    exchange(s, options);
    return s->size > 0;
}

void tl_etrace_support_doubt(struct tl_etrace_support *s, unsigned others, int ahead)
{
    s->on_trial = ahead < TL_ETRACE_CONFIRMED;
    s->others = others;
    s->others_fitted = 0;
    s->fitted = (uint8_t)(s->on_trial ? ahead : TL_ETRACE_CONFIRMED);
}

/* Members that do not matter are saved as zero. */
void tl_etrace_support_state(struct tl_etrace_support *s, struct tl_state *state)
{
    if (!s->waits)
        s->packet = (struct tl_etrace_packet){0};
    s->is_first &= s->waits;
    if (!s->on_trial)
        s->others = s->others_fitted = 0;
    if (!s->waits && !s->on_trial)
        s->at = s->size = 0;
    tl_state_bool(state, &s->waits);
    tl_state_bool(state, &s->is_first);
    tl_state_u8(state, &s->packet.qual_status, TL_ETRACE_ENDED_NTR);
    tl_state_u32(state, &s->packet.ioptions);
    tl_state_bool(state, &s->packet.denable);
    tl_state_u64(state, &s->at);
    tl_state_u32(state, &s->size);
    tl_state_u8(state, &s->fitted, TL_ETRACE_CONFIRMED);
    tl_state_bool(state, &s->on_trial);
    tl_state_u32(state, &s->others);
    tl_state_u8(state, &s->others_fitted, TL_ETRACE_CONFIRMED);
    tl_state_bool(state, &s->no_data);
}
