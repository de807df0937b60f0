/* SPDX-License-Identifier: MIT */
/*
 * Decodes areas of Intel PT concurrently. Each advances from one relevant change in the records to
 * the next: it decodes up to where the change takes effect, and then applies it. The area with the
 * earliest change goes first, so that when a thread moves from one CPU to another, its execution on
 * the first one has been decoded before that on the second.
 */
#include "perf/container.h"

#include "base/cancel.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * ---- position of an area -----------------------------------------------------------------------
 */

/* Time of the next change after those applied. */
static uint64_t next_change(const struct tl_perf_area_state *a)
{
    const struct tl_perf_sideband *const s = &a->owner->sideband;
    if (!a->reported)
        return 0;
    if (a->timeless != s->timeless)
        return a->seen + 1;
    return tl_perf_sideband_next(s, a->cpu, a->tid, a->seen);
}

/* Determine the area's next turn, and whether it can be processed. */
static void plan_turn(struct tl_perf_area_state *a)
{
    const uint64_t final = a->owner->sideband.final;
    const uint64_t change = a->left ? 0 : next_change(a);
    const struct tl_perf_point *point = tl_perf_scout_first(&a->scout);
    a->turn = UINT64_MAX;
    a->blocked = false;
    while (point && !a->left && point->time <= final && point->time < change) {
        tl_perf_scout_take(&a->scout); /* nothing to apply there */
        point = tl_perf_scout_first(&a->scout);
    }
    if (!a->left && change <= final) {
        a->turn = change;
        a->blocked = !point;
    } else if (a->left && point && point->time <= final) {
        const struct tl_perf_run run = tl_perf_pt_run(a, point->time);
        a->turn = run.time;
    }
}

/* Decode up to the end of the current thread's execution. */
static int leave(struct tl_perf_area_state *a, uint64_t position)
{
    const int rc = tl_perf_pt_decode(a, position);
    a->left = true;
    if (rc < 0 || !a->owner->setup->threads || !a->decoder)
        return rc;
    return a->decoder->ops->flush ? a->decoder->ops->flush(a->decoder) : TL_OK;
}

/* Others were decoded beyond the area's next change, since more trace waited for it than can be
 * held: what its threads did stands behind what they did later elsewhere. */
static int check_order(struct tl_perf_area_state *a, uint64_t first)
{
    struct tl_perf_decode *const d = a->owner;
    const uint64_t time = a->reported ? a->turn : first;
    char reason[160];
    if (time >= d->turned || !d->hastened || d->overtaken) {
        d->turned = time > d->turned ? time : d->turned;
        return TL_OK;
    }
    d->overtaken = true;
    snprintf(reason, sizeof reason,
             "trace of CPU %" PRId32 " comes after more than %" PRIu64
             " MiB of later trace: it stands too late in its threads' streams",
             a->cpu, d->held_max / 2 >> 20 /* see is_waited_for() */);
    return tl_perf_report_loss(d, a->stream, reason, 0, 0, true);
}

static int take_turn(struct tl_perf_area_state *a)
{
    const struct tl_perf_point point = *tl_perf_scout_first(&a->scout);
    if (!a->left) {
        const int rc = check_order(a, point.time);
        return rc < 0 ? rc : leave(a, point.position);
    }
    a->left = false;
    a->timeless = a->owner->sideband.timeless;
    tl_perf_scout_take(&a->scout);
    const int rc = tl_perf_pt_report(a, point.time);
    a->reported = true;
    a->seen = point.time;
    return rc;
}

/*
 * ---- all areas --------------------------------------------------------------------------------
 */

static struct tl_perf_area_state *earliest(const struct tl_perf_decode *d)
{
    struct tl_perf_area_state *first = NULL;
    for (size_t i = 0; i < d->n_areas; i++) {
        struct tl_perf_area_state *const a = d->areas[i];
        if (a->timed && a->turn < UINT64_MAX && (!first || a->turn < first->turn))
            first = a;
    }
    return first;
}

/*
 * To keep threads' streams in order, all areas wait for one whose bytes before its next change have
 * not all arrived, unless too many bytes are pending. An idle CPU may be waited for up to the end.
 */
static bool is_waited_for(struct tl_perf_decode *d, bool last)
{
    if (last || !d->setup->threads)
        return false;
    const bool full = tl_perf_held(d) > d->held_max / 2;
    d->hastened |= full;
    return !full;
}

/* Is there a CPU on which threads ran, but whose trace has not arrived yet? */
static bool is_one_missing(const struct tl_perf_decode *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n_areas; i++)
        n += d->areas[i]->cpu >= 0 &&
             tl_perf_map_get(&d->sideband.by_cpu, (uint32_t)d->areas[i]->cpu) >= 0;
    return n < d->sideband.n_cpus;
}

static int take_turns(struct tl_perf_decode *d, bool last)
{
    struct tl_perf_area_state *a;
    int rc = TL_OK;
    for (size_t i = 0; i < d->n_areas; i++)
        if (d->areas[i]->timed)
            plan_turn(d->areas[i]);
    if (is_one_missing(d) && is_waited_for(d, last))
        return TL_OK;
    while (rc == TL_OK && (rc = tl_give_way()) == TL_OK && (a = earliest(d))) {
        if (!a->blocked) {
            rc = take_turn(a);
            plan_turn(a);
        } else if (is_waited_for(d, last)) {
            break;
        } else {
            a->turn = UINT64_MAX;
            rc = last ? leave(a, a->scanned) : TL_OK;
        }
    }
    return rc;
}

/* Without times: can records still identify the thread? */
static bool may_be_reported(const struct tl_perf_area_state *a)
{
    const struct tl_perf_sideband *const s = &a->owner->sideband;
    return a->tid >= 0 || s->n_threads > 0 || s->n_heap > 0 || a->owner->info.switches > 0;
}

/* Decode what follows the last change applied. */
static int go_on(struct tl_perf_area_state *a, bool last)
{
    uint64_t known = last || !a->timed ? a->scanned : tl_perf_scout_known(&a->scout);
    int rc = TL_OK;
    if (!a->timed && !last && may_be_reported(a))
        return TL_OK;
    if (!a->timed) /* no times */
        rc = tl_perf_pt_report(a, UINT64_MAX - 1);
    if (rc == TL_OK && known > a->next)
        rc = tl_perf_pt_decode(a, known);
    tl_perf_area_drop(a, a->next);
    return rc;
}

int tl_perf_pt_continue(struct tl_perf_decode *d, bool last)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < d->n_areas; i++) {
        rc = tl_perf_pt_look(d->areas[i], last);
        rc = rc == TL_OK ? tl_give_way() : rc;
    }
    if (rc == TL_OK)
        rc = take_turns(d, last);
    for (size_t i = 0; rc == TL_OK && i < d->n_areas; i++)
        rc = go_on(d->areas[i], last);
    for (size_t i = 0; rc == TL_OK && last && i < d->n_areas; i++)
        rc = tl_perf_pt_finish(d->areas[i]);
    return rc;
}
