/* SPDX-License-Identifier: MIT */
/*
 * Rows of traces as users see them: one, a page, or all. Those in memory show their present state,
 * the others what the catalog has.
 */
#include "lake/lakeint.h"
#include "query/timing.h"
#include "share/share.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE 256 /* traces read at once */

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

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void fill_times(const struct tl_lane *lane, struct tl_stream_row *row,
                       const struct tl_rows_times *times)
{
    row->has_time = times->anchors > 0 && tl_lane_is_timed(lane);
    row->time_unit_ns = tl_lane_is_in_ns(lane);
    row->time_first = row->has_time ? tl_lane_time(lane, times->first) : 0;
    row->time_last = row->has_time ? tl_lane_time(lane, times->last) : 0;
    row->time_step = row->has_time ? tl_timing_step(lane, times) : 0;
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
    struct tl_rows_times times = sealed->times;
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
        times.first = totals.anchor_first.time;
        times.last = larger(times.last, totals.anchor_last.time);
        times.anchors = larger(times.anchors, totals.anchors);
    }
    fill_times(lane, row, &times);
    fill_clock(lane, row, &clock);
}

/* A lane's position and last timestamp. */
static void find_edge(struct tl_lane *lane, uint64_t *position, uint64_t *time)
{
    struct tl_build_totals totals = {0};
    pthread_mutex_lock(&lane->lock);
    if (lane->build)
        tl_build_totals(lane->build, &totals);
    pthread_mutex_unlock(&lane->lock);
    *position = totals.position;
    *time = totals.anchors > 0 && tl_lane_is_timed(lane)
                ? tl_lane_time(lane, totals.anchor_last.time)
                : 0;
}

static void note_outline(struct tl_lane *lane, struct tl_stream_row *row)
{
    uint64_t position, time;
    find_edge(lane, &position, &time);
    if (position <= row->insns)
        return;
    row->outlined_insns = position;
    row->outlined_time = larger(time, row->time_last);
    if (row->has_time || time == 0)
        return;
    row->has_time = true; /* nothing with a time is indexed yet */
    row->time_unit_ns = tl_lane_is_in_ns(lane);
}

/* Tell what the outline has ahead of the index. */
static void fill_outline(struct tl_gen *outline, struct tl_trace_row *row)
{
    for (size_t i = 0; i < row->n_streams; i++) {
        struct tl_lane *const lane = tl_gen_lane(outline, row->streams[i].name);
        if (lane)
            note_outline(lane, &row->streams[i]);
    }
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

static int fill_row(struct tl_trace *trace, struct tl_trace_row *row)
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
    struct tl_gen *const outline = tl_trace_outline(trace);
    int r = row->labels ? fill_streams(gen, row) : TL_NOMEM;
    if (r >= 0 && outline && outline->number == row->generation)
        fill_outline(outline, row);
    tl_gen_put(outline);
    tl_gen_put(gen);
    return r;
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct page {
    struct tl_lake *lake;
    struct tl_trace **traces;
    size_t n, cap;
    struct tl_trace_place last;
};

static int keep_trace(void *context, const struct tl_catalog_trace *row)
{
    struct page *const page = context;
    const int r = tl_grow(&page->traces, &page->cap, page->n + 1, sizeof(struct tl_trace *));
    return r < 0 ? r
                 : (tl_trace_of_row(page->lake, row, &page->traces[page->n]) < 0
                        ? TL_OK /* only this one cannot be shown */
                        : (page->n++, TL_OK));
}

/* Fill the row of a trace in the catalog, whether or not it is in the table. */
static int fill(struct tl_lake *lake, struct tl_trace *read, struct tl_trace_row *row)
{
    struct tl_trace *const resident = tl_lake_resident(lake, read->id);
    int r = resident ? TL_OK : tl_gen_load(read->serving, NULL);
    const bool damaged = r == TL_BAD; /* rows of it: show what is known */
    if (r >= 0 || damaged)
        r = fill_row(resident ? resident : read, row);
    if (r >= 0 && damaged) {
        row->state = TL_TRACE_FAILED;
        snprintf(
            row->message, sizeof row->message,
            "rows of it are damaged in the catalog; `tracelake verify --repair` makes them anew");
    }
    tl_trace_put(resident);
    return r;
}

static int newest_first(const void *a, const void *b)
{
    const struct tl_trace_row *const x = a, *const y = b;
    return x->created_ns != y->created_ns ? (x->created_ns < y->created_ns ? 1 : -1)
                                          : strcmp(x->id, y->id);
}

static bool is_behind(const struct tl_trace_row *row, const struct tl_trace_place *place)
{
    return row->created_ns != place->created_ns ? row->created_ns < place->created_ns
                                                : strcmp(row->id, place->id) > 0;
}

/* All traces in memory after a place: what can be shown while the store does not respond. */
static int page_at_hand(struct tl_lake *lake, const struct tl_trace_place *after,
                        struct tl_trace_list *list)
{
    struct tl_trace_list all;
    int r = tl_lake_at_hand(lake, &all);
    if (r >= 0)
        r = tl_grow(&list->rows, &(size_t){list->n}, list->n + all.n + 1, sizeof(*list->rows));
    if (r >= 0 && all.n > 0)
        qsort(all.rows, all.n, sizeof(*all.rows), newest_first);
    for (size_t i = 0; r >= 0 && i < all.n; i++) {
        if (after && !is_behind(&all.rows[i], after))
            continue;
        list->rows[list->n++] = all.rows[i];
        all.rows[i].labels = NULL; /* owned by the list now */
        all.rows[i].streams = NULL;
    }
    tl_trace_list_free(&all);
    return r;
}

int tl_lake_page(struct tl_lake *lake, const struct tl_trace_place *after, size_t most,
                 struct tl_trace_list *list)
{
    struct page page = {.lake = lake};
    if (tl_lake_usable(lake, NULL) < 0)
        return page_at_hand(lake, after, list);
    int r = lake->catalog->ops->page(lake->catalog, after, most, keep_trace, &page, NULL);
    const bool more = r > 0;
    if (r >= 0)
        r = tl_grow(&list->rows, &(size_t){list->n}, list->n + page.n + 1, sizeof(*list->rows));
    for (size_t i = 0; i < page.n; i++) {
        if (r >= 0) {
            list->rows[list->n] = (struct tl_trace_row){0};
            r = fill(lake, page.traces[i], &list->rows[list->n]);
            list->n++;
        }
        tl_trace_put(page.traces[i]);
    }
    free(page.traces);
    if (r == TL_IO)
        r = TL_UNREACHABLE; /* a moment later the store is available again, or known to be away */
    return r < 0 ? r : more;
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
            r = fill_row(traces[i], &out->rows[i]);
            out->n = i + 1;
        }
        tl_trace_put(traces[i]);
    }
    free(traces);
    if (r < 0)
        tl_trace_list_free(out);
    return r;
}

int tl_lake_trace(struct tl_lake *lake, const char *id, struct tl_trace_list *out)
{
    *out = (struct tl_trace_list){.revision = tl_lake_revision(lake)};
    struct tl_trace *trace = tl_lake_find_now(lake, id);
    if (!trace)
        return tl_no_content(lake, NULL, id);
    tl_edge_read(trace);
    out->rows = calloc(1, sizeof(*out->rows));
    int r = out->rows ? fill_row(trace, out->rows) : TL_NOMEM;
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
