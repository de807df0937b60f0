/* SPDX-License-Identifier: MIT */
/*
 * The alarm comes amid a push, when bytes behind it may have been delivered or not, as they were
 * chunked. So the frame decoder is put back to the push's beginning and fed again, up to exactly
 * the frame of the alarm, with those calls muted that were made already.
 */
#include "frame/align.h"

#include <stdlib.h>
#include <string.h>

#define FRAME    16
#define PATIENCE ((uint64_t)1 << 16)

#define ALARM_FRAMES 4 /* frames with unknown sources that are enough, … */
#define ALARM_APART  3 /* … with at most two between them that have none */

static const char OUT_OF_STEP[] = "frames out of step";

void tl_align_init(struct tl_align *a, struct tl_tpiu *tpiu, tl_align_trial *trial, void *context)
{
    *a = (struct tl_align){.tpiu = tpiu, .trial = trial, .context = context, .patience = PATIENCE};
}

void tl_align_fini(struct tl_align *a)
{
    free(a->window);
    a->window = NULL;
}

bool tl_align_muted(struct tl_align *a)
{
    return a->calls++ < a->mute;
}

static uint64_t next_offset(const struct tl_align *a)
{
    return a->tpiu->start + a->tpiu->raw;
}

/* An unknown source speaks in this frame; is it enough for an alarm? */
static bool is_alarm(struct tl_align *a, uint64_t frame)
{
    if (a->troubled == frame + 1)
        return false;
    if (frame + 1 - a->troubled > ALARM_APART)
        a->trouble = 0;
    a->troubled = frame + 1;
    return ++a->trouble >= ALARM_FRAMES;
}

int tl_align_unknown(struct tl_align *a, const struct tl_run *run)
{
    if (!a->trial || a->fed_again || a->tpiu->sync != TL_TPIU_ALIGNED)
        return TL_OK;
    const uint64_t start = a->tpiu->start;
    const uint64_t last = (tl_run_offset(run, run->n - 1) - start) / FRAME;
    for (uint64_t f = (run->offset - start) / FRAME; f <= last; f++) {
        if (start + f * FRAME < a->quiet_until || !is_alarm(a, f))
            continue;
        a->alarm = true;
        a->held_from = start + (f + 1) * FRAME;
        return TL_CANCELLED;
    }
    return TL_OK;
}

/* ---- trying ------------------------------------------------------------------------------- */

/* The alignment that loses least, 0 unless another one is clearly better. */
static size_t best_alignment(struct tl_align *a)
{
    uint64_t as_it_is = 0, least = UINT64_MAX;
    size_t best = 0;
    if (a->held < 2 * FRAME)
        return 0;
    const size_t n = (a->held - FRAME) & ~(size_t)(FRAME - 1);
    for (size_t phase = 0; phase < FRAME; phase++) {
        const uint64_t lost = a->trial(a->context, a->window + phase, n);
        if (phase == 0)
            as_it_is = lost;
        if (lost < least) {
            least = lost;
            best = phase;
        }
    }
    return least < as_it_is - as_it_is / 4 ? best : 0;
}

/* The window is full, or all there is: decide, and go on with it. */
static int go_on(struct tl_align *a)
{
    uint8_t *const window = a->window;
    const size_t held = a->held;
    const size_t phase = best_alignment(a);
    int rc = TL_OK;
    a->window = NULL;
    a->held = 0;
    a->trouble = 0;
    a->troubled = 0;
    if (phase == 0) {
        a->quiet_until = a->held_from + a->patience;
        a->patience *= a->patience < (uint64_t)1 << 40 ? 2 : 1;
    } else {
        const struct tl_tpiu_sink sink = a->tpiu->sink;
        a->patience = PATIENCE;
        a->quiet_until = a->held_from + held;
        rc = tl_tpiu_finish(a->tpiu);
        if (rc == TL_OK && sink.loss)
            rc = sink.loss(sink.context, OUT_OF_STEP, a->held_from, phase);
        if (rc == TL_OK && sink.reset)
            rc = sink.reset(sink.context, a->held_from + phase);
        tl_tpiu_init(a->tpiu, a->tpiu->sync, a->held_from + phase, &sink);
    }
    if (rc == TL_OK)
        rc = tl_align_push(a, window + phase, held - phase);
    free(window);
    return rc;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Keep back bytes; returns how many were taken. */
static size_t keep(struct tl_align *a, const uint8_t *p, size_t n)
{
    const size_t room = TL_ALIGN_WINDOW - a->held;
    n = n < room ? n : room;
    memcpy(a->window + a->held, p, n);
    a->held += n;
    return n;
}

static int begin_window(struct tl_align *a)
{
    a->alarm = false;
    a->held = 0;
    a->window = malloc(TL_ALIGN_WINDOW);
    return a->window ? TL_OK : TL_NOMEM;
}

/* Returns the bytes passed on before an alarm, or all. */
static int64_t pass_frames(struct tl_align *a, const uint8_t *p, size_t n)
{
    uint8_t before[offsetof(struct tl_tpiu, buffer)];
    const uint64_t from = next_offset(a);
    memcpy(before, a->tpiu, sizeof before);
    a->calls = 0;
    int rc = tl_tpiu_push(a->tpiu, p, n);
    if (!a->alarm)
        return rc < 0 ? rc : (int64_t)n;
    memcpy(a->tpiu, before, sizeof before);
    a->mute = a->calls - 1;
    a->calls = 0;
    a->fed_again = true;
    n = (size_t)(a->held_from - from);
    rc = tl_tpiu_push(a->tpiu, p, n);
    a->mute = 0;
    a->fed_again = false;
    if (rc == TL_OK)
        rc = begin_window(a);
    return rc < 0 ? rc : (int64_t)n;
}

int tl_align_push(struct tl_align *a, const uint8_t *p, size_t n)
{
    if (!a->trial || a->tpiu->sync != TL_TPIU_ALIGNED)
        return tl_tpiu_push(a->tpiu, p, n);
    while (n > 0) {
        int64_t done;
        int rc = TL_OK;
        if (a->window) {
            done = (int64_t)keep(a, p, n);
            rc = a->held == TL_ALIGN_WINDOW ? go_on(a) : TL_OK;
        } else {
            done = pass_frames(a, p, n);
        }
        if (rc < 0 || done < 0)
            return rc < 0 ? rc : (int)done;
        p += done;
        n -= (size_t)done;
    }
    return TL_OK;
}

int tl_align_finish(struct tl_align *a)
{
    while (a->window) {
        const int rc = go_on(a);
        if (rc < 0)
            return rc;
    }
    return tl_tpiu_finish(a->tpiu);
}
