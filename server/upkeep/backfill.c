/* SPDX-License-Identifier: MIT */
/*
 * Looks at the heads of the stored counts, and counts shards whose head is missing or old, a few at
 * a time: times continue from shard to shard, so each run of them begins one shard earlier.
 */
#include "upkeep/backfill.h"

#include "base/cancel.h"
#include "base/now.h"
#include "lake/lakeint.h"
#include "lake/recount_calls.h"
#include "lake/summed.h"
#include "query/kept.h"

#include <errno.h>
#include <stdlib.h>

enum { RUN = 8 }; /* shards counted together */

struct filling {
    struct tl_lake *lake;
    bool rests;
    bool others;   /* there are traces that other servers work on */
    int64_t since; /* monotonic: working since then */
    size_t counted;
    struct tl_buf ids; /* of traces, NUL-terminated */
    struct tl_kept kept;
    const struct tl_cut *cut;
};

/* ---- leaving processors to others ----------------------------------------------------------- */

/* Rest as long as was worked, or four times as long while anything is decoded. */
static void rest(struct filling *f)
{
    struct tl_lake *const lake = f->lake;
    const int64_t now = tl_monotonic_ns(),
                  until = now + (now - f->since) * (atomic_load(&lake->decodes) > 0 ? 4 : 1);
    int e = 0;
    pthread_mutex_lock(&lake->lock);
    while (f->rests && e != ETIMEDOUT && !atomic_load(&lake->closing))
        e = tl_cond_wait_until(&lake->backfill.wake, &lake->lock, until);
    pthread_mutex_unlock(&lake->lock);
    f->since = tl_monotonic_ns();
}

/* ---- a stream ------------------------------------------------------------------------------- */

static int keep(void *context, size_t row, struct tl_shard_calls *calls)
{
    struct filling *const f = context;
    f->counted++;
    return tl_kept_calls_replace(&f->kept, f->cut, row, calls);
}

static bool is_missing(const struct tl_cut *cut, size_t row)
{
    return !tl_lane_is_incomplete(cut->lane, cut->rows[row].number) && tl_kept_is_missing(cut, row);
}

static int fill_stream(struct filling *f, const struct tl_cut *cut)
{
    int r = TL_OK;
    f->cut = cut;
    for (size_t i = 0, end; i < cut->n_stored && r >= 0; i = end) {
        for (end = i; end < cut->n_stored && end - i < RUN && is_missing(cut, end);)
            end++;
        if (end > i) {
            r = tl_recount_calls(cut, i, end, keep, f, NULL);
            tl_kept_store(&f->kept, cut);
            rest(f);
        } else {
            end++;
        }
        if (r >= 0 || r == TL_BAD || r == TL_IO || r == TL_NOTFOUND)
            r = tl_cancel_check(); /* what cannot be read is left out */
    }
    return r;
}

/* ---- traces --------------------------------------------------------------------------------- */

static bool has_calls(const struct tl_lane *lane)
{
    return !tl_stream_is_derived(lane->name) &&
           !tl_protocol_has(lane->protocol, TL_TRAIT_SOFTWARE) &&
           !tl_protocol_has(lane->protocol, TL_TRAIT_NOTES);
}

static int fill_gen(struct filling *f, struct tl_gen *gen)
{
    struct tl_lane *lane;
    int r = TL_OK;
    for (unsigned i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        struct tl_cut cut;
        if (!has_calls(lane))
            continue;
        r = tl_cut_of_lane(&cut, gen, lane);
        if (r < 0)
            break;
        r = fill_stream(f, &cut);
        tl_cut_close(&cut);
    }
    return r;
}

/* Of a trace that another server works on, that one has the counts. */
static int fill_trace(struct filling *f, const char *id)
{
    struct tl_trace *const trace = tl_lake_find_trace(f->lake, id);
    int r = TL_OK;
    if (!trace)
        return TL_OK;
    pthread_mutex_lock(&trace->lock);
    const bool mine = tl_trace_mine_locked(trace), due = mine && !trace->deleted;
    pthread_mutex_unlock(&trace->lock);
    f->others |= !mine;
    if (due) {
        struct tl_gen *const gen = tl_trace_serving(trace);
        r = fill_gen(f, gen);
        tl_gen_put(gen);
    }
    tl_trace_put(trace);
    return r;
}

static int add_id(void *context, const struct tl_catalog_trace *row)
{
    struct filling *const f = context;
    if (row->state >= TL_TRACE_SEALED && row->insns == 0)
        return TL_OK;
    return tl_buf_add(&f->ids, row->id, strlen(row->id) + 1);
}

int tl_backfill_all(struct tl_lake *lake, bool rests, size_t *counted, struct tl_fail *fail)
{
    struct filling f = {.lake = lake, .rests = rests, .since = tl_monotonic_ns()};
    int r = lake->catalog->ops->traces(lake->catalog, add_id, &f, fail);
    for (size_t at = 0; at < f.ids.n && r >= 0;) {
        const char *const id = (const char *)f.ids.p + at;
        at += strlen(id) + 1;
        r = fill_trace(&f, id);
        rest(&f);
    }
    if (r >= 0 && atomic_load(&lake->closing))
        r = TL_CANCELLED;
    tl_buf_fini(&f.ids);
    *counted = f.counted;
    return r >= 0 && f.others ? TL_AGAIN : r;
}

/* ---- what was done -------------------------------------------------------------------------- */

/* The object says up to which form of counts all traces were gone through. */
static const char key[] = "k/calls";

static bool is_done(struct tl_lake *lake)
{
    struct tl_buf is = {0};
    const bool done = tl_summed_get(lake, key, &is) >= 0 && is.n == strlen(TL_CALLS_FORM) &&
                      !memcmp(is.p, TL_CALLS_FORM, is.n);
    tl_buf_fini(&is);
    return done;
}

static void note_done(struct tl_lake *lake)
{
    struct tl_buf form = {0};
    /* A medium that refuses it will be asked again at the next start. */
    if (tl_buf_add(&form, TL_CALLS_FORM, strlen(TL_CALLS_FORM)) >= 0)
        (void)!tl_summed_put(lake, key, &form, NULL);
    tl_buf_fini(&form);
}

int tl_backfill_check(struct tl_lake *lake, bool repair)
{
    struct tl_buf text = {0};
    const int r = tl_summed_get(lake, key, &text);
    tl_buf_fini(&text);
    if (r == TL_BAD && repair) {
        const int removed = lake->backend->ops->remove(lake->backend, key, NULL);
        return removed < 0 && removed != TL_NOTFOUND ? removed : r;
    }
    return r == TL_NOTFOUND ? TL_OK : r;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool is_closing(void *context)
{
    const struct tl_lake *const lake = context;
    return atomic_load(&lake->closing);
}

static void *run(void *context)
{
    struct tl_lake *const lake = context;
    const struct tl_cancel cancel = {is_closing, lake};
    size_t counted;
    tl_cancel_set(&cancel);
    if (!is_done(lake) && tl_backfill_all(lake, true, &counted, NULL) >= 0)
        note_done(lake);
    return NULL;
}

int tl_backfill_start(struct tl_lake *lake, struct tl_fail *fail)
{
    return tl_chore_start(&lake->backfill, lake, run, "the thread for older counts", fail);
}

void tl_backfill_stop(struct tl_lake *lake)
{
    tl_chore_stop(&lake->backfill, lake);
}
