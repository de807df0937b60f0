/* SPDX-License-Identifier: MIT */
/*
 * An outline is a generation of its own, with the number of the one being made, whose builders only
 * outline shards. The newest complete ones stay in memory, some KiB each, others in scratch files,
 * until the index has stored the same; beyond a number of them the outline waits for the index.
 */
#include "decoding/outline_job.h"

#include "base/journal.h"
#include "base/now.h"
#include "decoding/decode_job.h"
#include "decoding/marks.h"
#include "decoding/suspect.h"
#include "lake/away.h"
#include "lake/lakeint.h"

#include <stdlib.h>

#define SHARDS_AHEAD (64u << 10) /* complete shards, at most, but for those of one piece */
#define IN_MEMORY    (4u << 10)  /* … where others cannot be put away */
/* After so many pieces of an outline the index has one. It is rare, since the live edge waits for
 * it. */
#define SHARE 16

/* ---- its life ------------------------------------------------------------------------------- */

static struct tl_gen *begin_outline(struct tl_trace *trace, const struct tl_gen *making)
{
    pthread_mutex_lock(&trace->lock);
    char *const setup = trace->making == making ? strdup(trace->setup) : NULL;
    pthread_mutex_unlock(&trace->lock);
    struct tl_gen *const gen =
        tl_decode_job_beside(trace, making->number, setup, TL_DECODE_OUTLINE);
    if (!gen)
        return NULL;
    gen->job->wants_virtual = true;
    gen->job->most = atomic_load(&trace->lake->outline_piece);
    pthread_mutex_lock(&trace->lock);
    trace->outline = tl_gen_get(gen);
    trace->behind_ns = tl_monotonic_ns();
    pthread_mutex_unlock(&trace->lock);
    return gen;
}

static void report_caught_up(const struct tl_trace *trace)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_INFO, "index has caught up with decoding");
    tl_journal_text(&line, "trace", trace->id);
    tl_journal_text(&line, "rig", trace->rig);
    tl_journal_end(&line);
}

void tl_outline_end(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *const gen = trace->outline;
    trace->outline = NULL;
    pthread_mutex_unlock(&trace->lock);
    if (!gen)
        return;
    tl_decode_job_stop(gen->job);
    tl_mark_drop(gen->job);
    struct tl_gen *const serving = tl_trace_serving(trace);
    if (serving->number == gen->number &&
        atomic_load(&serving->decoded) >= atomic_load(&gen->decoded))
        report_caught_up(trace);
    char marks[192];
    const bool kept = serving->is_virtual || tl_trace_is_virtual(trace);
    if (serving->number != gen->number || !kept)
        tl_lake_discard(trace->lake, tl_mark_key(marks, gen, NULL));
    tl_gen_put(serving);
    tl_gen_put(gen);
}

/* May it have one? Its first decoding may; while it is decoded anew, another is served. */
static bool may_have(struct tl_trace *trace, const struct tl_decode_job *index)
{
    struct tl_gen *const serving = tl_trace_serving(trace);
    const bool first = serving == index->gen;
    tl_gen_put(serving);
    return first && index->broken >= 0 && !index->no_outline && tl_suspect_check(index, NULL) >= 0;
}

static void report_begun(const struct tl_trace *trace, uint64_t lag)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_INFO, "indexing behind decoding");
    tl_journal_text(&line, "trace", trace->id);
    tl_journal_text(&line, "rig", trace->rig);
    tl_journal_number(&line, "lag_bytes", lag);
    tl_journal_end(&line);
}

/* ---- its shards ----------------------------------------------------------------------------- */

/* Complete shards of an outline that the index has not stored. */
struct ahead {
    size_t all, in_memory;
};

/* Let go of files of which the index has all shards. */
static void let_go_of_files_locked(struct tl_lane *lane, uint64_t stored)
{
    size_t n = 0;
    while (n < lane->n_away && tl_away_first(lane->away[n]) + tl_away_n(lane->away[n]) <= stored)
        tl_away_put(lane->away[n++]);
    lane->n_away -= n;
    if (n > 0)
        memmove(lane->away, lane->away + n, lane->n_away * sizeof *lane->away);
}

/* Put a view of the lane away, behind the others. Returns as tl_away_add(). */
static int put_away_locked(struct tl_lane *lane, const struct tl_view *view)
{
    const int r = lane->n_away ? tl_away_add(lane->away[lane->n_away - 1], view) : TL_LIMIT;
    if (r != TL_LIMIT)
        return r;
    if (tl_grow(&lane->away, &lane->cap_away, lane->n_away + 1, sizeof *lane->away) < 0)
        return TL_NOMEM;
    struct tl_away *const away = tl_away_new(lane->gen->lake->backend, view->index.row.number);
    if (!away)
        return TL_NOMEM;
    lane->away[lane->n_away++] = away;
    return tl_away_add(away, view);
}

/* Put away the oldest outlines but for the newest of each lane; if that fails they stay. */
static void put_away_of(struct tl_lane *lane)
{
    const size_t kept = atomic_load(&lane->gen->lake->outlines_kept);
    size_t n = 0;
    pthread_mutex_lock(&lane->lock);
    while (lane->n_pending - n > kept && put_away_locked(lane, lane->pending[n]) >= 0)
        n++;
    tl_lane_drop_pending_locked(lane, n);
    pthread_mutex_unlock(&lane->lock);
}

static void put_away(struct tl_gen *gen)
{
    struct tl_lane *lane;
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++)
        put_away_of(lane);
}

/* Let go of the lane's first shards, up to this number, which the index has stored. Returns how
 * many there are behind them. */
static struct ahead let_go(struct tl_lane *lane, uint64_t stored)
{
    pthread_mutex_lock(&lane->lock);
    size_t n = 0;
    let_go_of_files_locked(lane, stored);
    while (n < lane->n_pending && lane->pending[n]->index.row.number < stored)
        n++;
    tl_lane_drop_pending_locked(lane, n);
    struct ahead left = {.in_memory = lane->n_pending, .all = lane->n_pending};
    for (size_t i = 0; i < lane->n_away; i++)
        left.all += tl_away_n(lane->away[i]);
    pthread_mutex_unlock(&lane->lock);
    return left;
}

/* Returns how far it is ahead of the index. */
static struct ahead let_go_of_indexed(struct tl_gen *gen, struct tl_gen *making)
{
    struct tl_lane *lane;
    struct ahead left = {0};
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++) {
        struct tl_lane *const index = tl_gen_lane(making, lane->name);
        uint64_t stored = 0;
        if (index) {
            pthread_mutex_lock(&index->lock);
            stored = index->rows.n;
            pthread_mutex_unlock(&index->lock);
        }
        const struct ahead one = let_go(lane, stored);
        left.all += one.all;
        left.in_memory += one.in_memory;
    }
    return left;
}

/* What it has found streams of is asked by their names and numbers, which will be the same. */
static int tell_streams(struct tl_gen *gen, struct tl_decode_job *index)
{
    struct tl_lane *lane, *added;
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++)
        if (!tl_gen_lane(index->gen, lane->name)) {
            index->unsaved = true;
            r = tl_gen_add_lane(index->gen, lane->name, lane->protocol, &added);
        }
    return r;
}

/* ---- the job -------------------------------------------------------------------------------- */

static bool run(struct tl_trace *trace, struct tl_decode_job *index, struct tl_gen *gen,
                uint64_t end, bool last)
{
    struct tl_fail fail = {0};
    if (atomic_load(&index->gen->decoded) == atomic_load(&gen->decoded)) {
        pthread_mutex_lock(&trace->lock);
        trace->behind_ns = tl_monotonic_ns();
        pthread_mutex_unlock(&trace->lock);
    }
    const struct ahead ahead = let_go_of_indexed(gen, index->gen);
    const bool far = ahead.all >= SHARDS_AHEAD || ahead.in_memory >= IN_MEMORY;
    if (gen->job->finished || far || (atomic_load(&gen->decoded) == end && !last))
        return false;
    int r = tl_decode_job_run(gen->job, trace, end, last, &fail);
    put_away(gen);
    if (r >= 0 || r == TL_EOF)
        r = tell_streams(gen, index) < 0 ? TL_NOMEM : r;
    if (r == TL_OK || r == TL_EOF || r == TL_CANCELLED)
        return r == TL_OK;
    /* Whatever it is, the index has it, too, and says so. */
    index->no_outline = r != TL_IO && r != TL_NOSPACE;
    tl_outline_end(trace);
    return false;
}

enum tl_outline_turn tl_outline_run(struct tl_trace *trace, struct tl_decode_job *index,
                                    uint64_t end, bool last)
{
    const struct tl_gen *const making = index->gen;
    struct tl_gen *gen = tl_trace_outline(trace);
    const uint64_t begins = tl_trace_index_lag(trace), indexed = atomic_load(&making->decoded),
                   lag = end - indexed;
    /* One that was begun because of a lag ends with it. */
    const bool over =
        gen && (gen->number != making->number || (indexed == atomic_load(&gen->decoded) &&
                                                  begins == trace->lake->options.lag_bytes));
    if (begins == UINT64_MAX || over || !may_have(trace, index)) {
        tl_gen_put(gen);
        tl_outline_end(trace);
        return TL_OUTLINE_DONE;
    }
    if (!gen && lag >= begins && (gen = begin_outline(trace, making)))
        report_begun(trace, lag);
    const bool more = gen && run(trace, index, gen, end, last);
    const size_t piece = atomic_load(&trace->lake->outline_piece);
    const uint64_t outlined = gen ? atomic_load(&gen->decoded) : 0;
    const bool yields = more && outlined >= index->due;
    if (yields || !more)
        index->due = outlined + SHARE * piece;
    index->most = gen ? piece : 0;
    tl_gen_put(gen);
    return yields ? TL_OUTLINE_YIELD : more ? TL_OUTLINE_MORE : TL_OUTLINE_DONE;
}
