/* SPDX-License-Identifier: MIT */
/*
 * A trace's decode job: what is decoded next, what its result means for the trace, and when the
 * next one is due. A generation replaces the served one only once it tells at least as much.
 */
#include "decoding/run.h"

#include "base/journal.h"
#include "decoding/decode_job.h"
#include "decoding/edge_job.h"
#include "decoding/outline_job.h"
#include "decoding/resume.h"
#include "decoding/suspect.h"
#include "lake/jobs.h"
#include "lake/lakeint.h"
#include "lake/recorded.h"

#include <stdio.h>
#include <stdlib.h>

/* Delay between attempts to store shards: doubled up to a quarter of a second, for which a live
 * trace lags behind once the medium takes writes again. */
#define RETRY_FIRST_NS INT64_C(8000000)
#define RETRY_DOUBLED  5
#define NO_MEMORY_NS   INT64_C(250000000)

static int64_t retry_delay(struct tl_decode_job *job)
{
    const unsigned n = job->retries < RETRY_DOUBLED ? job->retries++ : RETRY_DOUBLED;
    return RETRY_FIRST_NS << n;
}

static void set_state(struct tl_trace *trace, enum tl_trace_state state, const char *message)
{
    pthread_mutex_lock(&trace->lock);
    trace->state = (uint8_t)state;
    snprintf(trace->message, sizeof(trace->message), "%s", message);
    pthread_mutex_unlock(&trace->lock);
}

/* The new generation has caught up: let it serve. */
static int swap(struct tl_trace *trace, struct tl_gen *gen, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *old = trace->serving;
    const bool removed = trace->decoded_removed;
    trace->serving = tl_gen_get(gen);
    trace->decoded_removed = false;
    pthread_mutex_unlock(&trace->lock);
    const int r = tl_trace_save(trace, fail);
    if (r < 0) {
        pthread_mutex_lock(&trace->lock);
        trace->serving = old;
        trace->decoded_removed = removed;
        pthread_mutex_unlock(&trace->lock);
        tl_gen_put(gen);
        return r;
    }
    tl_trace_retire(trace, old);
    tl_gen_put(old);
    return TL_OK;
}

/* Positions and events. */
static uint64_t told_by_lane(struct tl_lane *lane)
{
    struct tl_build_totals totals = {0};
    pthread_mutex_lock(&lane->lock);
    const uint64_t positions = tl_lane_sealed_locked(lane), events = lane->rows.totals.events;
    if (lane->build)
        tl_build_totals(lane->build, &totals);
    pthread_mutex_unlock(&lane->lock);
    return (totals.position > positions ? totals.position : positions) +
           (totals.events > events ? totals.events : events);
}

static uint64_t told_by(struct tl_gen *gen)
{
    struct tl_lane *lane;
    uint64_t told = 0;
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++)
        told += told_by_lane(lane);
    return told;
}

/*
 * Would the new generation lose what is served? With an unsuitable setup, decoding again fails or
 * yields nothing.
 */
static bool is_worse(struct tl_trace *trace, struct tl_gen *gen, int r)
{
    struct tl_gen *const serving = tl_trace_serving(trace);
    const bool worse = gen != serving && (r != TL_EOF || told_by(gen) == 0) && told_by(serving) > 0;
    tl_gen_put(serving);
    return worse;
}

/* Keep the serving generation and its setup. The abandoned number is not used again. */
static int give_up(struct tl_trace *trace, struct tl_gen *gen, const char *why,
                   struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    char *const refused = trace->setup;
    if (trace->earlier) {
        trace->setup = trace->earlier;
        trace->earlier = refused;
    }
    snprintf(trace->format, sizeof(trace->format), "%s", trace->serving->setup.format);
    snprintf(trace->message, sizeof(trace->message),
             "decoding anew %.150s; what was there before is kept, and its setup", why);
    trace->state = TL_TRACE_SEALED;
    pthread_mutex_unlock(&trace->lock);
    const int r = tl_trace_save(trace, fail);
    if (r < 0)
        return r; /* retried: the state shows what is served in any case */
    tl_decode_job_stop(gen->job);
    tl_resume_remove(trace->lake, gen->trace, gen->number);
    pthread_mutex_lock(&trace->lock);
    const bool mine = trace->making == gen;
    if (mine)
        trace->making = NULL;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_retire(trace, gen);
    if (mine)
        tl_gen_put(gen);
    tl_trace_changed(trace);
    return TL_OK;
}

/* Everything is decoded and sealed. */
static int seal_trace(struct tl_trace *trace, struct tl_gen *gen, struct tl_fail *fail)
{
    /* Problems must persist over a server restart. */
    char message[sizeof gen->message];
    pthread_mutex_lock(&gen->lock);
    memcpy(message, gen->message, sizeof message);
    pthread_mutex_unlock(&gen->lock);
    set_state(trace, TL_TRACE_SEALED, message);
    const int r = tl_trace_save(trace, fail);
    if (r < 0) {
        set_state(trace, TL_TRACE_DECODING, fail->text);
        return r;
    }
    tl_decode_job_stop(gen->job);
    tl_resume_remove(trace->lake, gen->trace, gen->number);
    pthread_mutex_lock(&trace->lock);
    const bool done = trace->making == gen;
    if (done)
        trace->making = NULL;
    else
        trace->state = TL_TRACE_DECODING; /* it is to be decoded again already */
    pthread_mutex_unlock(&trace->lock);
    if (done)
        tl_gen_put(gen);
    return TL_OK;
}

static bool is_making(struct tl_trace *trace, const struct tl_gen *gen)
{
    pthread_mutex_lock(&trace->lock);
    const bool is = trace->making == gen;
    pthread_mutex_unlock(&trace->lock);
    return is;
}

/*
 * The existing shards were made from different items (another decoder version): decode everything
 * again.
 */
static int64_t start_over(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_fail fail = {0};
    tl_decode_job_stop(gen->job);
    if (tl_trace_redecode(trace, NULL, NULL, &fail) < 0)
        set_state(trace, TL_TRACE_FAILED, fail.text);
    return 0;
}

/* Another server, which may not change the trace while this one decodes it, may have received a
 * missing image: is the trace decoded again? */
static bool takes_image(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_fail fail = {0};
    pthread_mutex_lock(&gen->lock);
    struct tl_program *const program = gen->program;
    pthread_mutex_unlock(&gen->lock);
    return trace->lake->shared && program &&
           tl_program_is_outdated(program, trace->lake, &gen->setup) &&
           tl_trace_redecode(trace, NULL, NULL, &fail) >= 0;
}

void tl_trace_image_came(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *const gen = tl_trace_mine_locked(trace) && !trace->deleted
                                   ? tl_gen_get(trace->making ? trace->making : trace->serving)
                                   : NULL;
    pthread_mutex_unlock(&trace->lock);
    if (gen)
        (void)takes_image(trace, gen); /* if that fails: at the capture's end */
    tl_gen_put(gen);
}

/* A capture pushed without a program may itself describe what was in memory: must it be decoded
 * again with that? */
static bool takes_recorded(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    pthread_mutex_lock(&trace->lock);
    char *const from = trace->making == gen || !trace->making ? strdup(trace->setup) : NULL;
    pthread_mutex_unlock(&trace->lock);
    const bool takes = from && tl_recorded_setup(gen, &text, &fail) == TL_OK &&
                       tl_trace_redecode(trace, from, (const char *)text.p, &fail) >= 0;
    tl_buf_fini(&text);
    free(from);
    return takes;
}

static void report_failed(const struct tl_trace *trace, const char *why)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_WARNING, "decoding failed");
    tl_journal_text(&line, "trace", trace->id);
    tl_journal_text(&line, "rig", trace->rig);
    tl_journal_text(&line, "why", why);
    tl_journal_end(&line);
}

static int64_t after_job(struct tl_trace *trace, struct tl_gen *gen, int r, bool last,
                         struct tl_fail *fail)
{
    if (!is_making(trace, gen))
        return 0;
    if (r >= 0 || r == TL_EOF || r == TL_CANCELLED)
        tl_gen_wait(gen, NULL);
    const bool failed = r != TL_OK && r != TL_EOF && r != TL_CANCELLED && r != TL_NOSPACE &&
                        r != TL_IO && !(r == TL_DENIED && trace->lake->shared);
    if ((failed || (r == TL_EOF && last)) && is_worse(trace, gen, r))
        return give_up(trace, gen, failed ? fail->text : "told nothing", fail) < 0
                   ? retry_delay(gen->job)
                   : -1;
    if (r == TL_EOF && is_worse(trace, gen, r))
        return -1; /* of a live trace that has yielded more: more bytes may come */
    if (r == TL_EOF && gen != trace->serving)
        r = swap(trace, gen, fail) < 0 ? TL_IO : TL_EOF;
    if (r == TL_EOF && last && (takes_recorded(trace, gen) || takes_image(trace, gen)))
        return 0;
    if (r == TL_EOF && last)
        r = seal_trace(trace, gen, fail) < 0 ? TL_IO : TL_EOF;
    if (r == TL_OK || r == TL_CANCELLED || r == TL_EOF) {
        gen->job->retries = 0;
        return r == TL_EOF ? -1 : 0;
    }
    if (!failed) {
        tl_gen_wait(gen, fail->text);
        return retry_delay(gen->job);
    }
    if (r == TL_BAD && gen->job->broken == TL_BAD && gen->job->resumed)
        return start_over(trace, gen);
    report_failed(trace, fail->text);
    set_state(trace, TL_TRACE_FAILED, fail->text);
    return tl_trace_save(trace, fail) < 0 ? retry_delay(gen->job) : -1;
}

static int decode(struct tl_trace *trace, struct tl_decode_job *job, uint64_t end, bool last,
                  struct tl_fail *fail)
{
    if (!job->decode)
        job->wants_virtual = tl_trace_is_virtual(trace);
    return tl_decode_job_run(job, trace, end, last, fail);
}

int64_t tl_trace_run_job(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *gen = trace->making && !trace->deleted ? tl_gen_get(trace->making) : NULL;
    const uint64_t end = trace->raw_bytes;
    const bool last = trace->complete;
    const bool failed = trace->state == TL_TRACE_FAILED;
    const bool elsewhere = !tl_trace_mine_locked(trace) && !trace->deleted;
    pthread_mutex_unlock(&trace->lock);
    if (!gen && elsewhere)
        return tl_edge_run(trace);
    if (!gen || failed) {
        tl_outline_end(trace);
        tl_gen_put(gen);
        return -1;
    }
    struct tl_decode_job *const job = tl_decode_job_of(gen);
    if (!job) {
        tl_gen_put(gen);
        return NO_MEMORY_NS;
    }
    const enum tl_outline_turn outline = tl_outline_run(trace, job, end, last);
    if (outline == TL_OUTLINE_MORE) {
        tl_gen_put(gen);
        tl_trace_changed(trace);
        return 0;
    }
    struct tl_fail fail = {0};
    /* Decoding stops later than ingest, and before there is no space for the catalog. */
    struct tl_lake *lake = trace->lake;
    const uint64_t most = atomic_load(&lake->index_end), upto = end < most ? end : most;
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    const bool full = left < atomic_load(&lake->min_free) / 2;
    if (full)
        atomic_fetch_add(&lake->decode_waits, 1);
    const int r = full ? tl_fail_set(&fail, TL_NOSPACE, "only %llu MiB are free",
                                     (unsigned long long)(left >> 20))
                       : decode(trace, job, upto, last && upto == end, &fail);
    tl_jobs_leave(lake, trace, TL_JOB_STORES); /* what is left to do is the medium's */
    const int64_t delay = after_job(trace, gen, r, last && upto == end, &fail);
    if (!is_making(trace, gen))
        tl_outline_end(trace);
    tl_gen_put(gen);
    tl_trace_changed(trace);
    return outline == TL_OUTLINE_YIELD ? 0 : delay;
}

/* Continue where an earlier run stopped: load shards from the catalog, raw bytes from the spool. */
int tl_trace_revive(struct tl_trace *trace, struct tl_fail *fail)
{
    struct tl_lake *const lake = trace->lake;
    int r = TL_OK;
    uint64_t end;
    pthread_mutex_lock(&trace->lock);
    const bool grows = !trace->complete && !trace->raw_removed;
    pthread_mutex_unlock(&trace->lock);
    if (grows)
        r = tl_spool_end(lake->backend, trace->id, &end, fail);
    pthread_mutex_lock(&trace->lock);
    if (r >= 0 && grows)
        trace->raw_bytes = end;
    const bool over = trace->state == TL_TRACE_FAILED || trace->state == TL_TRACE_SEALED;
    struct tl_gen *gen = r < 0 || over ? NULL : tl_gen_get(trace->serving);
    const uint64_t wanted = trace->wanted;
    char *const setup = gen && wanted != gen->number ? strdup(trace->setup) : NULL;
    pthread_mutex_unlock(&trace->lock);
    if (!gen)
        return r;
    if (wanted != gen->number) {
        tl_gen_put(gen);
        gen = NULL;
        r = setup ? tl_gen_new(&gen, lake, trace->id, wanted, setup, fail)
                  : tl_fail_set(fail, TL_NOMEM, "no memory");
        if (r >= 0)
            r = tl_gen_load(gen, fail);
        free(setup);
    }
    struct tl_decode_job *const job = r >= 0 ? tl_decode_job_of(gen) : NULL;
    if (r >= 0 && !job)
        r = tl_fail_set(fail, TL_NOMEM, "no memory");
    if (r < 0) {
        tl_gen_put(gen);
        return r;
    }
    tl_suspect_revive(job);
    pthread_mutex_lock(&trace->lock);
    trace->making = gen;
    pthread_mutex_unlock(&trace->lock);
    tl_lake_queue(lake, trace, 0);
    return TL_OK;
}
