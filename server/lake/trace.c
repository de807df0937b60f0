/* SPDX-License-Identifier: MIT */
/* A trace: references, row, decode job, and catalog operations. */
#include "base/journal.h"
#include "ingest/decode_job.h"
#include "ingest/resume.h"
#include "lake/lakeint.h"
#include "lake/recorded.h"
#include "share/share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE 256 /* traces read at once */

struct tl_trace *tl_trace_get(struct tl_trace *trace)
{
    atomic_fetch_add(&trace->refs, 1);
    return trace;
}

void tl_trace_put(struct tl_trace *trace)
{
    if (!trace || atomic_fetch_sub(&trace->refs, 1) != 1)
        return;
    tl_gen_put(trace->serving);
    tl_gen_put(trace->making);
    tl_gen_put(trace->edge);
    if (trace->lease)
        trace->lake->backend->ops->lease_release(trace->lease);
    free(trace->setup);
    free(trace->earlier);
    free(trace->labels);
    pthread_mutex_destroy(&trace->lock);
    pthread_mutex_destroy(&trace->opening);
    pthread_mutex_destroy(&trace->owning);
    free(trace);
}

bool tl_trace_is_fresh_locked(const struct tl_trace *trace)
{
    return trace->completed_ns > 0 && tl_monotonic_ns() - trace->completed_ns < TL_FRESH_NS;
}

struct tl_gen *tl_trace_serving(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *gen = tl_gen_get(trace->serving);
    pthread_mutex_unlock(&trace->lock);
    return gen;
}

int tl_trace_save(struct tl_trace *trace, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    trace->updated_ns = tl_lake_now(trace->lake);
    pthread_mutex_unlock(&trace->lock);
    return tl_trace_save_quietly(trace, fail);
}

void tl_trace_digest_locked(struct tl_trace *trace, struct tl_digest *out)
{
    *out = (struct tl_digest){.state = trace->state & 3};
    if (out->state < TL_TRACE_SEALED)
        return;
    out->raw_bytes = trace->raw_removed ? 0 : trace->raw_bytes;
    tl_gen_totals(trace->serving, &out->insns, &out->stored_bytes);
}

/* Write a copy of the row to the catalog; `*again`: the row has changed meanwhile. */
static int save_once(struct tl_trace *trace, bool *again, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    *again = false;
    if (!tl_trace_mine_locked(trace)) { /* its row is maintained by another server */
        pthread_mutex_unlock(&trace->lock);
        return tl_fail_set(fail, TL_DENIED, "another server has trace %.64s now", trace->id);
    }
    const uint64_t number = ++trace->saves;
    char format[sizeof(trace->format)], message[sizeof(trace->message)];
    char *setup = strdup(trace->setup);
    char *earlier = strdup(trace->earlier ? trace->earlier : "");
    snprintf(format, sizeof(format), "%s", trace->format);
    snprintf(message, sizeof(message), "%s", trace->message);
    char content[TL_CONTENT_BYTES];
    snprintf(content, sizeof(content), "%s", trace->content);
    struct tl_digest digest;
    tl_trace_digest_locked(trace, &digest);
    const struct tl_catalog_trace row = {
        .id = trace->id,
        .rig = trace->rig,
        .insns = digest.insns,
        .stored_bytes = digest.stored_bytes,
        .format = format,
        .setup = setup,
        .earlier = earlier,
        .message = message,
        .state = trace->state,
        .complete = trace->complete,
        .created_ns = trace->created_ns,
        .updated_ns = trace->updated_ns,
        .raw_bytes = trace->raw_bytes,
        .decoded_bytes = atomic_load(&trace->serving->decoded),
        .generation = trace->serving->number,
        .wanted = trace->wanted,
        .raw_removed = trace->raw_removed,
        .decoded_removed = trace->decoded_removed,
        .content = content,
    };
    pthread_mutex_unlock(&trace->lock);
    const int r = setup && earlier
                      ? trace->lake->catalog->ops->update_trace(trace->lake->catalog, &row, fail)
                      : tl_fail_set(fail, TL_NOMEM, "no memory");
    free(setup);
    free(earlier);
    pthread_mutex_lock(&trace->lock);
    *again = trace->saves != number;
    if (r >= 0)
        trace->counted = digest;
    pthread_mutex_unlock(&trace->lock);
    return r;
}

int tl_trace_save_row(struct tl_trace *trace, struct tl_fail *fail)
{
    bool again = true;
    int r = TL_OK;
    /* With two concurrent saves the older copy may be written last: repeat. */
    while (again && r >= 0)
        r = save_once(trace, &again, fail);
    return r;
}

int tl_trace_save_quietly(struct tl_trace *trace, struct tl_fail *fail)
{
    /* Until both are written, which may take long, the copy is not what it should be. */
    pthread_mutex_lock(&trace->lock);
    trace->mirror_stale = trace->mirror_stale || tl_trace_mine_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    const int r = tl_trace_save_row(trace, fail);
    if (r >= 0)
        tl_trace_mirror(trace);
    return r;
}

void tl_trace_changed(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    trace->revision++;
    trace->updated_ns = tl_lake_now(trace->lake);
    pthread_mutex_unlock(&trace->lock);
    tl_lake_notify(trace->lake);
}

/* ---- the decode job ------------------------------------------------------------------------- */

/* Delay between attempts to store shards: doubled up to about a second. */
#define RETRY_FIRST_NS INT64_C(8000000)
#define RETRY_DOUBLED  7

static int64_t retry_delay(struct tl_gen *gen)
{
    const unsigned n = gen->retries < RETRY_DOUBLED ? gen->retries++ : RETRY_DOUBLED;
    return RETRY_FIRST_NS << n;
}

static void set_state(struct tl_trace *trace, enum tl_trace_state state, const char *message)
{
    pthread_mutex_lock(&trace->lock);
    trace->state = (uint8_t)state;
    snprintf(trace->message, sizeof(trace->message), "%s", message);
    pthread_mutex_unlock(&trace->lock);
}

void tl_trace_retire(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_catalog *const catalog = trace->lake->catalog;
    if (catalog->ops->drop_shards(catalog, trace->id, gen->number, UINT64_MAX, 0, NULL) < 0)
        tl_housekeeper_wake(trace->lake);
    atomic_store(&gen->obsolete, true);
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

/* Convert to the unit shown to users. If a clock with known rate appears to deviate by more than 1
 * %, the capture was not pushed while it was recorded. */
static void fill_clock(const struct tl_lane *lane, struct tl_stream_row *row,
                       const struct tl_clock_relation *clock)
{
    const struct tl_clock *const known = &lane->gen->setup.clock;
    const double hz = (double)lane->clock_hz;
    const double unit = known->known ? ldexp((double)known->mult, -(int)known->shift)
                        : hz > 0     ? 1e9 / hz
                                     : 1;
    const double rate = clock->ns_per_tick / unit;
    if (clock->pairs == 0 || (row->time_unit_ns && fabs(rate - 1) > 0.01))
        return;
    row->clock = (struct tl_stream_clock){
        .pairs = clock->pairs,
        .at = tl_lane_time(lane, clock->ticks),
        .unix_ns = clock->unix_ns,
        .rate = rate,
        .rate_error = clock->error / unit,
        .spread_ns = clock->spread_ns,
    };
}

static void fill_source(const struct tl_setup *setup, struct tl_stream_row *row)
{
    for (size_t i = 0; i < setup->n_sources; i++) {
        const struct tl_source *const s = &setup->sources[i];
        if (strcmp(s->name, row->name) != 0)
            continue;
        snprintf(row->core, sizeof(row->core), "%s", s->core);
        snprintf(row->device, sizeof(row->device), "%s", s->device);
        return;
    }
}

static void fill_stream(struct tl_lane *lane, struct tl_stream_row *row);

static uint64_t told_by(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    const size_t n = gen->n_lanes;
    pthread_mutex_unlock(&gen->lock);
    uint64_t reported = 0;
    for (size_t i = 0; i < n; i++) {
        struct tl_stream_row row = {0};
        fill_stream(tl_gen_lane_at(gen, i), &row);
        reported += row.insns + row.events;
    }
    return reported;
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
    tl_gen_stop(gen);
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
    tl_gen_stop(gen);
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
    tl_gen_stop(gen);
    if (tl_lake_redecode(trace->lake, trace->id, NULL, &fail) < 0)
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
           tl_lake_redecode(trace->lake, trace->id, NULL, &fail) >= 0;
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
    const bool takes = tl_recorded_setup(gen, &text, &fail) == TL_OK &&
                       tl_lake_redecode(trace->lake, trace->id, (const char *)text.p, &fail) >= 0;
    tl_buf_fini(&text);
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
                   ? retry_delay(gen)
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
        gen->retries = 0;
        return r == TL_EOF ? -1 : 0;
    }
    if (!failed) {
        tl_gen_wait(gen, fail->text);
        return retry_delay(gen);
    }
    if (r == TL_BAD && gen->broken == TL_BAD && gen->resumed)
        return start_over(trace, gen);
    report_failed(trace, fail->text);
    set_state(trace, TL_TRACE_FAILED, fail->text);
    return tl_trace_save(trace, fail) < 0 ? retry_delay(gen) : -1;
}

static int decode(struct tl_trace *trace, struct tl_gen *gen, uint64_t end, bool last,
                  struct tl_fail *fail)
{
    if (!gen->decode)
        gen->wants_virtual = tl_trace_is_virtual(trace);
    return tl_gen_decode(gen, end, last, fail);
}

int64_t tl_lake_run_job(struct tl_trace *trace)
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
        tl_gen_put(gen);
        return -1;
    }
    struct tl_fail fail = {0};
    /* Decoding stops later than ingest, and before there is no space for the catalog. */
    struct tl_lake *lake = trace->lake;
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    const bool full = left < atomic_load(&lake->min_free) / 2;
    if (full)
        atomic_fetch_add(&lake->decode_waits, 1);
    const int r = full ? tl_fail_set(&fail, TL_NOSPACE, "only %llu MiB are free",
                                     (unsigned long long)(left >> 20))
                       : decode(trace, gen, end, last, &fail);
    const int64_t delay = after_job(trace, gen, r, last, &fail);
    tl_gen_put(gen);
    tl_trace_changed(trace);
    return delay;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void fill_times(const struct tl_lane *lane, struct tl_stream_row *row, uint64_t anchors,
                       uint64_t first, uint64_t last)
{
    anchors = tl_lane_is_timed(lane) ? anchors : 0;
    row->has_time = anchors > 0;
    row->time_unit_ns = lane->clock_hz != 0 || lane->gen->setup.clock.known;
    row->time_first = anchors > 0 ? tl_lane_time(lane, first) : 0;
    row->time_last = anchors > 0 ? tl_lane_time(lane, last) : 0;
}

static void fill_stream(struct tl_lane *lane, struct tl_stream_row *row)
{
    struct tl_build_totals totals = {0};
    pthread_mutex_lock(&lane->lock);
    snprintf(row->name, sizeof(row->name), "%s", lane->name);
    snprintf(row->protocol, sizeof(row->protocol), "%s", tl_format_of(lane->protocol)->name);
    fill_source(&lane->gen->setup, row);
    row->sealed_insns = tl_lane_sealed_locked(lane);
    row->shards = lane->rows.n;
    row->lost_bytes = lane->lost_bytes;
    const struct tl_rows_totals *const sealed = &lane->rows.totals;
    uint64_t first = sealed->time_first, last = sealed->time_last, anchors = sealed->anchors;
    row->events = sealed->events;
    row->gaps = sealed->gaps;
    row->stored_bytes = sealed->bytes;
    if (lane->build)
        tl_build_totals(lane->build, &totals);
    row->insns = larger(row->sealed_insns, totals.position);
    const struct tl_clock_relation clock = lane->clock;
    pthread_mutex_unlock(&lane->lock);
    row->events = larger(row->events, totals.events);
    row->gaps = larger(row->gaps, totals.gaps);
    if (totals.anchors > 0) {
        first = totals.anchor_first.time;
        last = larger(last, totals.anchor_last.time);
        anchors += totals.anchors;
    }
    fill_times(lane, row, anchors, first, last);
    fill_clock(lane, row, &clock);
}

static int fill_streams(struct tl_gen *gen, struct tl_trace_row *row)
{
    pthread_mutex_lock(&gen->lock);
    const size_t n = gen->n_lanes;
    if (row->message[0] == '\0')
        snprintf(row->message, sizeof(row->message), "%s",
                 gen->waits[0] ? gen->waits : gen->message);
    pthread_mutex_unlock(&gen->lock);
    row->decoded_bytes = atomic_load(&gen->decoded);
    row->streams = calloc(n + 1, sizeof(*row->streams));
    if (!row->streams)
        return TL_NOMEM;
    row->n_streams = n;
    for (size_t i = 0; i < n; i++)
        fill_stream(tl_gen_lane_at(gen, i), &row->streams[i]);
    return TL_OK;
}

int tl_trace_fill_row(struct tl_trace *trace, struct tl_trace_row *row)
{
    *row = (struct tl_trace_row){.created_ns = trace->created_ns};
    snprintf(row->id, sizeof(row->id), "%s", trace->id);
    snprintf(row->rig, sizeof(row->rig), "%s", trace->rig);
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *gen = tl_gen_get(trace->serving);
    row->state = trace->state;
    snprintf(row->format, sizeof(row->format), "%s", trace->format);
    row->updated_ns = trace->updated_ns;
    row->raw_bytes = trace->raw_bytes;
    row->generation = gen->number;
    row->revision = trace->revision;
    row->raw_removed = trace->raw_removed;
    row->decoded_removed = trace->decoded_removed;
    snprintf(row->content, sizeof(row->content), "%s", trace->content);
    snprintf(row->message, sizeof(row->message), "%s", trace->message);
    row->labels = strdup(trace->labels ? trace->labels : "");
    row->notes = trace->notes;
    pthread_mutex_unlock(&trace->lock);
    const int r = row->labels ? fill_streams(gen, row) : TL_NOMEM;
    tl_gen_put(gen);
    return r;
}

int tl_lake_traces(struct tl_lake *lake, struct tl_trace_list *out)
{
    struct tl_trace_place place;
    int r = 1;
    *out = (struct tl_trace_list){.revision = tl_lake_revision(lake)};
    while (r > 0) {
        const size_t before = out->n;
        r = tl_lake_page(lake, before ? &place : NULL, PAGE, out);
        if (out->n == before)
            break;
        if (r > 0)
            place = tl_trace_place_of(&out->rows[out->n - 1]);
    }
    if (r < 0)
        tl_trace_list_free(out);
    return r < 0 ? r : TL_OK;
}

int tl_lake_at_hand(struct tl_lake *lake, struct tl_trace_list *out)
{
    struct tl_trace **traces;
    size_t n;
    *out = (struct tl_trace_list){.revision = tl_lake_revision(lake)};
    int r = tl_lake_all_resident(lake, &traces, &n);
    out->rows = calloc(n + 1, sizeof(*out->rows));
    if (!out->rows)
        r = TL_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (r >= 0) {
            r = tl_trace_fill_row(traces[i], &out->rows[i]);
            out->n = i + 1;
        }
        tl_trace_put(traces[i]);
    }
    free(traces);
    if (r < 0)
        tl_trace_list_free(out);
    return r;
}

uint64_t tl_lake_revision(struct tl_lake *lake)
{
    return atomic_load(&lake->revision);
}

int tl_lake_trace(struct tl_lake *lake, const char *id, struct tl_trace_list *out)
{
    *out = (struct tl_trace_list){.revision = tl_lake_revision(lake)};
    struct tl_trace *trace = tl_lake_find_now(lake, id);
    if (!trace)
        return tl_no_content(lake, NULL, id);
    tl_edge_read(trace);
    out->rows = calloc(1, sizeof(*out->rows));
    int r = out->rows ? tl_trace_fill_row(trace, out->rows) : TL_NOMEM;
    out->n = out->rows ? 1 : 0;
    tl_trace_put(trace);
    if (r < 0)
        tl_trace_list_free(out);
    return r;
}

bool tl_lake_serves(struct tl_lake *lake, const char *id, uint64_t generation)
{
    struct tl_trace *const trace = tl_lake_resident(lake, id);
    if (!trace)
        return false;
    pthread_mutex_lock(&trace->lock);
    const bool serves = !trace->deleted && trace->serving->number == generation;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    return serves;
}

struct tl_trace_place tl_trace_place_of(const struct tl_trace_row *row)
{
    struct tl_trace_place place = {.created_ns = row->created_ns};
    snprintf(place.id, sizeof(place.id), "%s", row->id);
    return place;
}

void tl_trace_list_free(struct tl_trace_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->rows[i].labels);
        free(list->rows[i].streams);
    }
    free(list->rows);
    *list = (struct tl_trace_list){0};
}
