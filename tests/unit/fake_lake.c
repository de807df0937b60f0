/* SPDX-License-Identifier: MIT */
#include "unit/fake_lake.h"

#include "base/cancel.h"
#include "base/crc32c.h"
#include "lake_images.h"
#include "lake_ingest.h"
#include "lake_raw.h"
#include "lake_traces.h"
#include "lake_upkeep.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM     "cs.10"
#define MAX_TRACES 64
#define PIECE      2048       /* instructions in a piece of a range */
#define HELD       (8u << 20) /* maximum of bytes that are not durable; further appends wait */

struct fake_knobs fake;

struct trace {
    bool used;
    bool busy;
    struct tl_trace_row row;
    struct tl_stream_row stream;
    struct tl_buf raw;
    uint64_t durable;
    bool complete;
    char *labels;
    struct tl_ingest *ingest;
};

struct tl_ingest {
    struct tl_lake *lake;
    struct trace *trace;
    void (*on_durable)(void *context, uint64_t offset);
    void *context;
};

struct watcher {
    void (*notify)(void *context);
    void *context;
};

struct tl_lake {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    pthread_t thread;
    bool stopping;
    char why[224]; /* how the last push ended, as passed to tl_ingest_explain() */
    struct trace traces[MAX_TRACES];
    struct watcher watchers[8];
    struct tl_image_row images[8];
    size_t n_images;
    uint64_t revision;
};

static void changed_locked(struct tl_lake *lake, struct trace *t)
{
    t->row.revision = ++lake->revision;
    for (size_t i = 0; i < 8; i++)
        if (lake->watchers[i].notify)
            lake->watchers[i].notify(lake->watchers[i].context);
}

static void slow(void)
{
    const unsigned ms = atomic_load(&fake.slow_ms);
    if (ms)
        usleep(ms * 1000);
}

/* Work that checks from time to time whether it has been cancelled. */
static int work(void)
{
    int rc = TL_OK;
    atomic_fetch_add(&fake.held, 1);
    while (atomic_load(&fake.hold) && (rc = tl_cancel_check()) == TL_OK)
        usleep(1000);
    atomic_fetch_sub(&fake.held, 1);
    if (rc < 0)
        atomic_fetch_add(&fake.cancelled, 1);
    return rc;
}

/* Makes appended bytes durable after a short delay. */
static void *spool(void *argument)
{
    struct tl_lake *const lake = argument;
    pthread_mutex_lock(&lake->lock);
    while (!lake->stopping) {
        for (size_t i = 0; i < MAX_TRACES && !atomic_load(&fake.stall); i++) {
            struct trace *const t = &lake->traces[i];
            if (!t->used || t->durable == t->raw.n)
                continue;
            t->durable = t->raw.n;
            t->row.raw_bytes = t->durable;
            t->row.decoded_bytes = t->durable;
            t->stream.insns = t->durable / 4;
            if (t->ingest)
                t->ingest->on_durable(t->ingest->context, t->durable);
            changed_locked(lake, t);
            pthread_cond_broadcast(&lake->cond);
        }
        pthread_mutex_unlock(&lake->lock);
        usleep(1000);
        pthread_mutex_lock(&lake->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    return NULL;
}

int tl_lake_open(struct tl_lake **out, const struct tl_lake_options *options, struct tl_fail *fail)
{
    struct tl_lake *const lake = calloc(1, sizeof *lake);
    if (!lake)
        return TL_NOMEM;
    pthread_mutex_init(&lake->lock, NULL);
    pthread_cond_init(&lake->cond, NULL);
    atomic_store(&fake.stall, false);
    atomic_store(&fake.fail_append, 0);
    atomic_store(&fake.slow_ms, 0);
    atomic_store(&fake.hold, false);
    atomic_store(&fake.chatty, false);
    atomic_store(&fake.cancelled, 0);
    pthread_create(&lake->thread, NULL, spool, lake);
    *out = lake;
    return TL_OK;
}

static void free_trace(struct trace *t)
{
    tl_buf_fini(&t->raw);
    free(t->labels);
    memset(t, 0, sizeof *t);
}

void tl_lake_close(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    lake->stopping = true;
    pthread_mutex_unlock(&lake->lock);
    pthread_join(lake->thread, NULL);
    for (size_t i = 0; i < MAX_TRACES; i++)
        free_trace(&lake->traces[i]);
    pthread_cond_destroy(&lake->cond);
    pthread_mutex_destroy(&lake->lock);
    free(lake);
}

/* ---- catalog ------------------------------------------------------------------------------ */

static struct trace *find_locked(struct tl_lake *lake, const char *id)
{
    for (size_t i = 0; i < MAX_TRACES; i++)
        if (lake->traces[i].used && !strcmp(lake->traces[i].row.id, id))
            return &lake->traces[i];
    return NULL;
}

static int copy_row(const struct trace *t, struct tl_trace_list *out)
{
    const int rc = tl_grow(&out->rows, &(size_t){out->n}, out->n + 1, sizeof *out->rows);
    if (rc < 0)
        return rc;
    struct tl_trace_row *const row = &out->rows[out->n++];
    *row = t->row;
    row->labels = t->labels ? strdup(t->labels) : NULL;
    row->streams = malloc(sizeof *row->streams);
    row->streams[0] = t->stream;
    row->n_streams = 1;
    return TL_OK;
}

int tl_lake_usable(struct tl_lake *lake, struct tl_fail *fail)
{
    return TL_OK;
}

int tl_lake_plan_retention(struct tl_lake *lake, const struct tl_retention_row *tried,
                           int (*each)(void *context, const struct tl_retention_victim *victim),
                           void *context, bool *paused, struct tl_fail *fail)
{
    *paused = false;
    return each(context, &(struct tl_retention_victim){.trace = "old",
                                                       .what = "raw",
                                                       .scope = tried ? tried->scope : "",
                                                       .by_age = true,
                                                       .age_s = 100,
                                                       .limit = 50,
                                                       .bytes = 1000});
}

int tl_lake_writable(struct tl_lake *lake, struct tl_fail *fail)
{
    return TL_OK;
}

uint64_t tl_lake_revision(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    const uint64_t revision = lake->revision;
    pthread_mutex_unlock(&lake->lock);
    return revision;
}

struct tl_trace_place tl_trace_place_of(const struct tl_trace_row *row)
{
    struct tl_trace_place place = {.created_ns = row->created_ns};
    snprintf(place.id, sizeof place.id, "%s", row->id);
    return place;
}

int tl_lake_page(struct tl_lake *lake, const struct tl_trace_place *after, size_t most,
                 struct tl_trace_list *list)
{
    int rc = TL_OK;
    bool more = false;
    slow();
    pthread_mutex_lock(&lake->lock);
    for (size_t i = MAX_TRACES; i-- && rc == TL_OK && !more;) {
        if (!lake->traces[i].used)
            continue;
        if (after && lake->traces[i].row.created_ns >= after->created_ns)
            continue;
        if (most-- == 0)
            more = true;
        else
            rc = copy_row(&lake->traces[i], list);
    }
    pthread_mutex_unlock(&lake->lock);
    return rc < 0 ? rc : more;
}

int tl_lake_at_hand(struct tl_lake *lake, struct tl_trace_list *out)
{
    return tl_lake_traces(lake, out);
}

int tl_lake_traces(struct tl_lake *lake, struct tl_trace_list *out)
{
    int rc = TL_OK;
    slow();
    *out = (struct tl_trace_list){0};
    pthread_mutex_lock(&lake->lock);
    for (size_t i = MAX_TRACES; i-- && rc == TL_OK;)
        if (lake->traces[i].used)
            rc = copy_row(&lake->traces[i], out);
    out->revision = lake->revision;
    pthread_mutex_unlock(&lake->lock);
    return rc;
}

int tl_lake_trace(struct tl_lake *lake, const char *trace, struct tl_trace_list *out)
{
    *out = (struct tl_trace_list){0};
    pthread_mutex_lock(&lake->lock);
    const struct trace *const t = find_locked(lake, trace);
    const int rc = t ? copy_row(t, out) : TL_NOTFOUND;
    out->revision = lake->revision;
    pthread_mutex_unlock(&lake->lock);
    return rc;
}

bool tl_lake_serves(struct tl_lake *lake, const char *trace, uint64_t generation)
{
    struct tl_trace_list list;
    const bool serves =
        tl_lake_trace(lake, trace, &list) == TL_OK && list.rows[0].generation == generation;
    tl_trace_list_free(&list);
    return serves;
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

int tl_lake_set_labels(struct tl_lake *lake, const char *trace, const char *labels,
                       struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    struct trace *const t = find_locked(lake, trace);
    if (t) {
        free(t->labels);
        t->labels = strdup(labels);
        changed_locked(lake, t);
    }
    pthread_mutex_unlock(&lake->lock);
    return t ? TL_OK : TL_NOTFOUND;
}

int tl_lake_delete(struct tl_lake *lake, const char *trace, struct tl_fail *fail)
{
    int rc = TL_NOTFOUND;
    pthread_mutex_lock(&lake->lock);
    struct trace *const t = find_locked(lake, trace);
    if (t && t->busy) {
        rc = tl_fail_set(fail, TL_DENIED, "a rig is pushing it");
    } else if (t) {
        changed_locked(lake, t);
        free_trace(t);
        rc = TL_OK;
    }
    pthread_mutex_unlock(&lake->lock);
    return rc;
}

int tl_lake_seal(struct tl_lake *lake, const char *trace, struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    struct trace *const t = find_locked(lake, trace);
    if (t)
        t->complete = true;
    pthread_mutex_unlock(&lake->lock);
    return t ? TL_OK : TL_NOTFOUND;
}

size_t tl_lake_delete_all(struct tl_lake *lake, const char *const *traces, size_t n,
                          void (*refused)(void *context, size_t i, int code,
                                          const struct tl_fail *fail),
                          void *context)
{
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        struct tl_fail fail = {0};
        const int rc = tl_lake_delete(lake, traces[i], &fail);
        if (rc < 0)
            refused(context, i, rc, &fail);
        else
            removed++;
    }
    return removed;
}

int tl_lake_redecode_back(struct tl_lake *lake, const char *trace, struct tl_fail *fail)
{
    return tl_lake_redecode(lake, trace, NULL, fail);
}

int tl_lake_redecode(struct tl_lake *lake, const char *trace, const char *setup,
                     struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    struct trace *const t = find_locked(lake, trace);
    if (t) {
        t->row.generation++;
        changed_locked(lake, t);
    }
    pthread_mutex_unlock(&lake->lock);
    return t ? TL_OK : TL_NOTFOUND;
}

int tl_lake_verify(struct tl_lake *lake, const char *trace, bool repair, struct tl_buf *report,
                   struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    const bool there = find_locked(lake, trace);
    pthread_mutex_unlock(&lake->lock);
    int rc = there ? work() : TL_NOTFOUND;
    for (unsigned i = 0; atomic_load(&fake.chatty) && rc == TL_OK && report->n < 8u << 20; i++)
        rc = tl_buf_printf(report, "object %u: offset 0x0: it is damaged\n", i);
    return rc;
}

static struct tl_retention_row fake_rule;
static bool has_fake_rule;

int tl_lake_set_retention(struct tl_lake *lake, const char *scope, const struct tl_retention *rule,
                          struct tl_fail *fail)
{
    if (strcmp(scope, "nonsense") == 0)
        return tl_fail_set(fail, TL_USAGE, "\"%s\" is no scope", scope);
    has_fake_rule = rule != NULL;
    if (rule)
        fake_rule.rule = *rule;
    snprintf(fake_rule.scope, sizeof fake_rule.scope, "%s", scope);
    return TL_OK;
}

int tl_lake_retention(struct tl_lake *lake, struct tl_retention_row **rows, size_t *n)
{
    *rows = malloc(sizeof **rows);
    if (!*rows)
        return TL_NOMEM;
    **rows = fake_rule;
    *n = has_fake_rule;
    return TL_OK;
}

int tl_lake_watch(struct tl_lake *lake, void (*notify)(void *context), void *context)
{
    int handle = TL_LIMIT;
    pthread_mutex_lock(&lake->lock);
    for (int i = 0; i < 8 && handle < 0; i++) {
        if (lake->watchers[i].notify)
            continue;
        lake->watchers[i] = (struct watcher){notify, context};
        handle = i;
    }
    pthread_mutex_unlock(&lake->lock);
    return handle;
}

void tl_lake_unwatch(struct tl_lake *lake, int handle)
{
    pthread_mutex_lock(&lake->lock);
    lake->watchers[handle] = (struct watcher){0};
    pthread_mutex_unlock(&lake->lock);
}

/* ---- ingest ------------------------------------------------------------------------------- */

static struct trace *create_locked(struct tl_lake *lake, const struct tl_ingest_request *request)
{
    for (size_t i = 0; i < MAX_TRACES; i++) {
        struct trace *const t = &lake->traces[i];
        if (t->used)
            continue;
        t->used = true;
        snprintf(t->row.rig, sizeof t->row.rig, "%s", request->rig);
        snprintf(t->row.format, sizeof t->row.format, "tpiu");
        if (request->trace && *request->trace)
            snprintf(t->row.id, sizeof t->row.id, "%s", request->trace);
        else
            snprintf(t->row.id, sizeof t->row.id, "%.40s-%zu", request->rig, i);
        t->row.generation = 1;
        t->row.created_ns = INT64_C(1700000000000000001) + (t - lake->traces);
        t->row.updated_ns = t->row.created_ns;
        strcpy(t->stream.name, STREAM);
        strcpy(t->stream.protocol, "etm4");
        t->stream.has_time = true;
        return t;
    }
    return NULL;
}

int tl_ingest_open(struct tl_lake *lake, const struct tl_ingest_request *request,
                   void (*on_durable)(void *context, uint64_t offset), void *context,
                   struct tl_ingest **out, char trace_id[static 64], uint64_t *durable,
                   struct tl_fail *fail)
{
    struct tl_ingest *const ingest = calloc(1, sizeof *ingest);
    int rc = TL_OK;
    pthread_mutex_lock(&lake->lock);
    struct trace *t = request->trace ? find_locked(lake, request->trace) : NULL;
    if (t && (t->busy || t->complete || !request->resume))
        rc = tl_fail_set(fail, TL_EXISTS, "trace %s exists", request->trace);
    else if (!t && !(t = create_locked(lake, request)))
        rc = tl_fail_set(fail, TL_NOSPACE, "too many traces");
    if (rc == TL_OK) {
        *ingest = (struct tl_ingest){lake, t, on_durable, context};
        t->busy = true;
        t->ingest = ingest;
        strcpy(trace_id, t->row.id);
        *durable = t->durable;
        *out = ingest;
        changed_locked(lake, t);
    } else {
        free(ingest);
    }
    pthread_mutex_unlock(&lake->lock);
    return rc;
}

uint64_t tl_ingest_epoch(const struct tl_ingest *ingest)
{
    return 1;
}

static void identify_locked(const struct trace *t, struct tl_identity *out)
{
    *out = (struct tl_identity){.durable = t->durable, .complete = t->complete};
    if (t->durable)
        snprintf(out->content, sizeof out->content, "crc32c:%08x",
                 tl_crc32c(0, t->raw.p, t->durable));
}

void tl_ingest_identity(const struct tl_ingest *ingest, struct tl_identity *out)
{
    pthread_mutex_lock(&ingest->lake->lock);
    identify_locked(ingest->trace, out);
    pthread_mutex_unlock(&ingest->lake->lock);
}

int tl_ingest_check(struct tl_ingest *ingest, const char *content, struct tl_fail *fail)
{
    return TL_OK;
}

int tl_lake_identify(struct tl_lake *lake, const char *trace, struct tl_identity *out,
                     struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    const struct trace *const t = find_locked(lake, trace);
    if (t)
        identify_locked(t, out);
    pthread_mutex_unlock(&lake->lock);
    return t ? TL_OK : TL_NOTFOUND;
}

int tl_ingest_continues(struct tl_ingest *ingest, struct tl_fail *fail)
{
    return TL_OK;
}

int tl_ingest_append(struct tl_ingest *ingest, uint64_t offset, struct tl_bytes bytes,
                     struct tl_fail *fail)
{
    struct tl_lake *const lake = ingest->lake;
    struct trace *const t = ingest->trace;
    const int failing = atomic_load(&fake.fail_append);
    if (failing)
        return tl_fail_at(fail, failing, offset, "no room");
    pthread_mutex_lock(&lake->lock);
    while (t->raw.n - t->durable > HELD && !lake->stopping)
        pthread_cond_wait(&lake->cond, &lake->lock);
    int rc = TL_OK;
    if (offset > t->raw.n)
        rc = tl_fail_at(fail, TL_BAD, offset, "a hole: bytes from %zu on are missing", t->raw.n);
    const uint64_t skip = rc == TL_OK ? t->raw.n - offset : 0;
    if (rc == TL_OK && skip < bytes.n && t->raw.n == atomic_load(&fake.lost_at))
        atomic_store(&fake.rejoined, t->raw.n);
    if (rc == TL_OK && skip < bytes.n)
        rc = tl_buf_add(&t->raw, bytes.p + skip, bytes.n - skip);
    atomic_fetch_add(&fake.appended, bytes.n);
    pthread_mutex_unlock(&lake->lock);
    return rc;
}

int tl_ingest_give(struct tl_ingest *ingest, uint64_t offset, const struct tl_given *given,
                   struct tl_fail *fail)
{
    const int rc = tl_ingest_append(ingest, offset, given->bytes, fail);
    free(given->block);
    return rc;
}

int tl_ingest_rejoin(struct tl_ingest *ingest, struct tl_fail *fail)
{
    atomic_store(&fake.lost_at, ingest->trace->raw.n);
    return TL_OK;
}

int tl_ingest_finish(struct tl_ingest *ingest, uint64_t *durable, struct tl_fail *fail)
{
    struct tl_lake *const lake = ingest->lake;
    struct trace *const t = ingest->trace;
    pthread_mutex_lock(&lake->lock);
    while (t->durable < t->raw.n && !lake->stopping)
        pthread_cond_wait(&lake->cond, &lake->lock);
    *durable = t->durable;
    t->complete = true;
    t->row.state = TL_TRACE_SEALED;
    changed_locked(lake, t);
    pthread_mutex_unlock(&lake->lock);
    return TL_OK;
}

void tl_ingest_explain(struct tl_ingest *ingest, const char *why)
{
    pthread_mutex_lock(&ingest->lake->lock);
    snprintf(ingest->lake->why, sizeof ingest->lake->why, "%s", why);
    pthread_mutex_unlock(&ingest->lake->lock);
}

bool fake_lake_explained(struct tl_lake *lake, const char *words)
{
    pthread_mutex_lock(&lake->lock);
    const bool found = strstr(lake->why, words);
    pthread_mutex_unlock(&lake->lock);
    return found;
}

void tl_ingest_close(struct tl_ingest *ingest)
{
    struct tl_lake *const lake = ingest->lake;
    pthread_mutex_lock(&lake->lock);
    ingest->trace->busy = false;
    ingest->trace->ingest = NULL;
    ingest->trace->durable = ingest->trace->raw.n;
    ingest->trace->stream.insns = ingest->trace->raw.n / 4;
    changed_locked(lake, ingest->trace);
    pthread_mutex_unlock(&lake->lock);
    free(ingest);
}

struct tl_raw_range {
    struct tl_lake *lake;
    struct trace *trace;
    uint64_t at, to;
};

int tl_raw_open(struct tl_lake *lake, const char *id, uint64_t from, uint64_t to,
                struct tl_raw_range **out, struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    struct trace *const t = find_locked(lake, id);
    const uint64_t end = t ? t->durable : 0;
    pthread_mutex_unlock(&lake->lock);
    if (!t || from > end)
        return tl_fail_set(fail, t ? TL_USAGE : TL_NOTFOUND, "not there");
    struct tl_raw_range *const range = malloc(sizeof *range);
    *range = (struct tl_raw_range){lake, t, from, to < end ? to : end};
    *out = range;
    return TL_OK;
}

int tl_raw_next(struct tl_raw_range *range, uint64_t *offset, struct tl_buf *out,
                struct tl_fail *fail)
{
    const uint64_t left = range->to - range->at;
    const size_t n = left < 1000 ? (size_t)left : 1000;
    *offset = range->at;
    if (n == 0)
        return TL_EOF;
    pthread_mutex_lock(&range->lake->lock);
    const int rc = tl_buf_add(out, range->trace->raw.p + range->at, n);
    pthread_mutex_unlock(&range->lake->lock);
    range->at += n;
    return rc;
}

/* A second for each piece; the connection was lost in front of the third. */
uint64_t tl_raw_arrival(const struct tl_raw_range *range, bool *lost)
{
    const uint64_t piece = (range->at + 999) / 1000;
    *lost = piece == 3;
    return piece * 1000000000;
}

void tl_raw_close(struct tl_raw_range *range)
{
    free(range);
}

int tl_lake_setup(struct tl_lake *lake, const char *id, struct tl_buf *text, struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->lock);
    const bool there = find_locked(lake, id) != NULL;
    pthread_mutex_unlock(&lake->lock);
    return there ? tl_buf_add(text, "[trace]\n", 9) : tl_fail_set(fail, TL_NOTFOUND, "not there");
}

int tl_lake_offset(struct tl_lake *lake, const char *trace, uint64_t *durable, bool *complete)
{
    pthread_mutex_lock(&lake->lock);
    const struct trace *const t = find_locked(lake, trace);
    if (t) {
        *durable = t->durable;
        *complete = t->complete;
    }
    pthread_mutex_unlock(&lake->lock);
    return t ? TL_OK : TL_NOTFOUND;
}

struct tl_bytes fake_lake_raw(struct tl_lake *lake, const char *trace)
{
    pthread_mutex_lock(&lake->lock);
    const struct trace *const t = find_locked(lake, trace);
    const struct tl_bytes bytes = t ? (struct tl_bytes){t->raw.p, t->raw.n} : (struct tl_bytes){0};
    pthread_mutex_unlock(&lake->lock);
    return bytes;
}

#include "unit/fake_images.h"
#include "unit/fake_ranges.h"
