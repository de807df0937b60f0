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
    if (s->on_trial && !s->guessed && wanted == s->others) /* those of before, told once more */
        exchange(s, options);
    if (wanted == *options) { /* what was found by trying does not stand against it */
        s->on_trial &= !s->guessed;
        return;
    }
    s->on_trial = s->fitted >= TRUSTED;
    s->guessed = false;
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
    const bool is_confirmed = next && (next->p[0] & 3) == 3;
    const bool is_sure = is_confirmed && s->was_said && s->said == wanted;
    s->was_said |= is_confirmed;
    s->said = is_confirmed ? wanted : s->said;
    s->no_data = (params->unit == TL_ETRACE_REFERENCE || params->unit == TL_ETRACE_2_1) &&
                 !s->packet.denable;
    return (struct tl_etrace_verdict){
        .takes_status = true, .is_confirmed = is_confirmed, .is_sure = is_sure};
}

bool tl_etrace_support_misfits(struct tl_etrace_support *s, unsigned *options)
{
    if (!s->on_trial)
        return false;
    s->fitted = s->fitted > MISFIT ? (uint8_t)(s->fitted - MISFIT) : 0;
    if (s->fitted > s->others_fitted || s->guessed)
        return false;
    exchange(s, options);
    return s->size > 0;
}

bool tl_etrace_support_refute(struct tl_etrace_support *s, unsigned *options)
{
    exchange(s, options);
    return s->size > 0;
}

void tl_etrace_support_doubt(struct tl_etrace_support *s, int ahead)
{
    s->on_trial = s->guessed = ahead < TL_ETRACE_CONFIRMED;
    s->others = s->others_fitted = 0;
    s->fitted = (uint8_t)(s->on_trial ? ahead : TL_ETRACE_CONFIRMED);
}

bool tl_etrace_support_gives_up(struct tl_etrace_support *s)
{
    if (!s->guessed || s->fitted > 0)
        return false;
    s->on_trial = s->guessed = false;
    return true;
}

/* Members that do not matter are saved as zero. */
void tl_etrace_support_state(struct tl_etrace_support *s, struct tl_state *state)
{
    if (!s->waits)
        s->packet = (struct tl_etrace_packet){0};
    s->is_first &= s->waits;
    if (!s->on_trial)
        s->others = s->others_fitted = 0;
    s->guessed &= s->on_trial;
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
    tl_state_bool(state, &s->guessed);
    tl_state_u32(state, &s->others);
    tl_state_u8(state, &s->others_fitted, TL_ETRACE_CONFIRMED);
    tl_state_bool(state, &s->was_said);
    tl_state_u32(state, &s->said);
    tl_state_bool(state, &s->no_data);
}
