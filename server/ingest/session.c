/* SPDX-License-Identifier: MIT */
/*
 * Ingest sessions: write a rig's capture to the spool, and wake the decode job. A push of the same
 * rig takes over from an earlier session, which may hang in a dead connection.
 */
#include "ingest/session.h"
#include "base/journal.h"
#include "change/change.h"
#include "ingest/identity.h"
#include "ingest/repack.h"
#include "lake/lakeint.h"
#include "share/share.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct tl_ingest {
    struct tl_lake *lake;
    struct tl_trace *trace;
    atomic_int refs; /* the owner's reference, and that of a session that takes over */
    void (*on_durable)(void *context, uint64_t offset);
    void *context;
    atomic_bool fenced;         /* another session has the trace now */
    atomic_bool moved;          /* another server has the trace now */
    pthread_mutex_t lock;       /* serialises the owner's calls and a takeover */
    struct tl_capture *capture; /* NULL once fenced or closed, or if the trace was complete */
    bool whole;                 /* the trace was complete, and this is neither fenced nor closed */
    struct tl_identity opened;
    uint64_t epoch;
    /* For the journal: */
    char client[64];
    char why[200];
    bool piece;
    uint64_t from;     /* durable offset at the begin */
    uint64_t begun_ns; /* on the monotonic clock */
};

/* Called by the spool's thread. */
static void durable(void *context, uint64_t offset)
{
    struct tl_ingest *ingest = context;
    struct tl_trace *trace = ingest->trace;
    pthread_mutex_lock(&trace->lock);
    trace->raw_bytes = offset;
    const bool packs = tl_repack_due_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    if (packs)
        tl_repack_wake(ingest->lake);
    if (ingest->on_durable)
        ingest->on_durable(ingest->context, offset);
    tl_lake_queue(ingest->lake, trace, 0);
    tl_trace_changed(trace);
}

static bool id_valid(const char *id)
{
    const size_t n = strlen(id);
    if (n == 0 || n >= 64 || id[0] == '.')
        return false;
    for (const char *p = id; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '.' && *p != '_' && *p != '-')
            return false;
    return true;
}

/* "rig-20260131-235959", with a number, from `number` on, appended if that exists. Returns it. */
static unsigned make_id(struct tl_lake *lake, const char *rig, unsigned number, char out[static 64])
{
    const time_t now = time(NULL);
    struct tm t;
    char date[20];
    gmtime_r(&now, &t);
    strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &t);
    for (;; number++) {
        if (number == 1)
            snprintf(out, 64, "%.36s-%s", rig, date);
        else
            snprintf(out, 64, "%.36s-%s-%u", rig, date, number);
        struct tl_trace *trace = tl_lake_find_trace(lake, out);
        tl_trace_put(trace);
        if (!trace)
            return number;
    }
}

/* The rig's name, which a request need not give. */
static const char *rig_of(const struct tl_ingest_request *request)
{
    return request->rig && *request->rig ? request->rig : "rig";
}

/* Create a trace with this id. */
static int create(struct tl_lake *lake, const struct tl_ingest_request *request, const char *id,
                  struct tl_trace **out, struct tl_fail *fail)
{
    const int room = tl_spool_room(lake->spool, 0, fail);
    if (room < 0) {
        atomic_fetch_add(&lake->ingest_refused, 1);
        return room;
    }
    const bool virtual = request->shards == TL_SHARDS_VIRTUAL ||
                         (request->shards == TL_SHARDS_AS_LAKE && lake->options.virtual_shards);
    const enum tl_index index = request->index != TL_INDEX_AS_LAKE ? request->index
                                : lake->options.index_behind       ? TL_INDEX_BEHIND
                                : lake->options.index_auto         ? TL_INDEX_AUTO
                                                                   : TL_INDEX_NOW;
    char labels[64];
    snprintf(labels, sizeof labels, "%s%s", virtual ? TL_LABEL_SHARDS "=virtual\n" : "",
             index == TL_INDEX_BEHIND ? TL_LABEL_INDEX "=behind\n"
             : index == TL_INDEX_AUTO ? TL_LABEL_INDEX "=auto\n"
                                      : "");
    return tl_lake_add_trace(lake, id, rig_of(request), request->setup ? request->setup : "",
                             labels, out, fail);
}

/* Create a trace with a free id. Another push of the rig may take that first. */
static int create_any(struct tl_lake *lake, const struct tl_ingest_request *request,
                      const char *rig, struct tl_trace **out, struct tl_fail *fail)
{
    unsigned number = 1;
    int r;
    do {
        char id[64];
        number = make_id(lake, rig, number, id) + 1;
        r = create(lake, request, id, out, fail);
    } while (r == TL_EXISTS);
    return r;
}

/* The trace of this name; without `resume` only a new one. */
static int find_or_create_named(struct tl_lake *lake, const struct tl_ingest_request *request,
                                const char *id, struct tl_trace **out, struct tl_fail *fail)
{
    *out = tl_lake_find_now(lake, id);
    if (!*out) {
        const int r = tl_no_trace(lake, fail, id);
        return r == TL_NOTFOUND ? create(lake, request, id, out, fail) : r;
    }
    if (request->resume)
        return TL_OK;
    tl_trace_put(*out);
    *out = NULL;
    return tl_fail_set(fail, TL_EXISTS, "trace %s exists; resume it or choose another id", id);
}

static int find_or_create(struct tl_lake *lake, const struct tl_ingest_request *request,
                          struct tl_trace **out, struct tl_fail *fail)
{
    enum { TRIES = 4 };
    const char *rig = rig_of(request);
    const char *wanted = request->trace ? request->trace : "";
    if (!id_valid(rig))
        return tl_fail_set(fail, TL_BAD, "\"%.64s\" is no rig name: use [A-Za-z0-9._-]", rig);
    if (!*wanted)
        return create_any(lake, request, rig, out, fail);
    if (!id_valid(wanted))
        return tl_fail_set(fail, TL_BAD, "\"%.64s\" is no trace id: use [A-Za-z0-9._-]", wanted);
    /* A push of the same name, whose rig may be gone already, may create the trace between the two
     * steps; it is there then. */
    int r = find_or_create_named(lake, request, wanted, out, fail);
    for (int tries = 1; (r == TL_EXISTS || r == TL_AGAIN) && request->resume && tries < TRIES;
         tries++)
        r = find_or_create_named(lake, request, wanted, out, fail);
    return r;
}

/* Drop a reference. */
static void put(struct tl_ingest *ingest)
{
    if (atomic_fetch_sub(&ingest->refs, 1) > 1)
        return;
    tl_trace_put(ingest->trace);
    pthread_mutex_destroy(&ingest->lock);
    free(ingest);
}

/* May the request have the trace? A push of the same rig may take it over from an earlier one,
 * which may hang in a dead connection; that one must not take it back while the other has it. */
static int check_claim_locked(const struct tl_trace *trace, const struct tl_ingest_request *request,
                              struct tl_fail *fail)
{
    const char *setup = request->setup;
    const char *rig = rig_of(request);
    if (trace->deleted)
        return tl_fail_set(fail, TL_AGAIN, "trace %s is being deleted; try again", trace->id);
    if (request->epoch > 0 && request->epoch < trace->epoch && (trace->session || trace->complete))
        return tl_fail_set(fail, TL_DENIED, "another push of rig %s has taken over trace %s",
                           trace->rig, trace->id);
    if (trace->session && strcmp(rig, trace->rig) != 0)
        return tl_fail_set(fail, TL_EXISTS, "trace %s is being pushed by rig %s", trace->id,
                           trace->rig);
    /* The client that sent another one may not know that it was accepted. */
    const bool is_known = !setup || !*setup || !strcmp(setup, trace->setup) ||
                          (trace->earlier && !strcmp(setup, trace->earlier));
    if (!is_known)
        return tl_fail_set(
            fail, TL_EXISTS,
            "trace %s was begun with another setup; push it under another name, or give "
            "it this setup by 'tracelake redecode'",
            trace->id);
    return TL_OK;
}

/* Make the trace this session's. `*before`: the previous session, with a reference for the
 * caller. */
static int claim(struct tl_ingest *ingest, const struct tl_ingest_request *request,
                 struct tl_ingest **before, uint64_t *epoch, struct tl_fail *fail)
{
    struct tl_trace *trace = ingest->trace;
    pthread_mutex_lock(&trace->lock);
    const int r = check_claim_locked(trace, request, fail);
    if (r >= 0) {
        *before = trace->session;
        if (*before)
            atomic_fetch_add(&(*before)->refs, 1);
        trace->session = ingest;
        trace->epoch = request->epoch > 0 && request->epoch >= trace->epoch ? request->epoch
                                                                            : trace->epoch + 1;
        *epoch = trace->epoch;
    }
    pthread_mutex_unlock(&trace->lock);
    return r;
}

/* Appended bytes become durable, or are discarded if the disk fails. */
static void close_capture(struct tl_ingest *ingest)
{
    pthread_mutex_lock(&ingest->lock);
    tl_capture_close(ingest->capture);
    ingest->capture = NULL;
    ingest->whole = false;
    pthread_mutex_unlock(&ingest->lock);
}

/* Ensure that nothing `before` still receives can reach the spool. */
static void fence(struct tl_ingest *before)
{
    atomic_store(&before->fenced, true);
    pthread_mutex_lock(&before->lock);
    /* Its owner may wait for a rig that does not answer. It has not closed it, so it still
     * listens. */
    if ((before->capture || before->whole) && before->on_durable)
        before->on_durable(before->context, before->capture ? tl_capture_durable(before->capture)
                                                            : before->opened.durable);
    pthread_mutex_unlock(&before->lock);
    close_capture(before);
    put(before);
}

void tl_ingest_evict(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->opening);
    pthread_mutex_lock(&trace->lock);
    struct tl_ingest *const before = trace->session;
    if (before) {
        atomic_fetch_add(&before->refs, 1);
        trace->session = NULL;
        trace->idle_ns = tl_monotonic_ns();
    }
    pthread_mutex_unlock(&trace->lock);
    if (before) {
        atomic_store(&before->moved, true);
        fence(before);
    }
    pthread_mutex_unlock(&trace->opening);
}

static void release(struct tl_ingest *ingest)
{
    struct tl_trace *trace = ingest->trace;
    pthread_mutex_lock(&trace->lock);
    if (trace->session == ingest) {
        trace->session = NULL;
        trace->idle_ns = tl_monotonic_ns();
    }
    pthread_mutex_unlock(&trace->lock);
    put(ingest);
}

static void begin_line(struct tl_journal_line *line, const struct tl_ingest *ingest,
                       enum tl_journal_level level, const char *event)
{
    tl_journal_begin(line, level, event);
    tl_journal_text(line, "rig", ingest->trace->rig);
    tl_journal_text(line, "trace", ingest->trace->id);
    tl_journal_text(line, "client", ingest->client);
    tl_journal_number(line, "push", ingest->epoch);
}

static void report_begun(struct tl_ingest *ingest, const struct tl_ingest_request *request)
{
    struct tl_journal_line line;
    snprintf(ingest->client, sizeof ingest->client, "%s", request->client ? request->client : "");
    ingest->begun_ns = (uint64_t)tl_monotonic_ns();
    ingest->piece = request->piece;
    begin_line(&line, ingest, request->piece ? TL_JOURNAL_DEBUG : TL_JOURNAL_INFO, "push begun");
    tl_journal_number(&line, "from", ingest->from);
    tl_journal_end(&line);
}

static void report_ended(const struct tl_ingest *ingest, uint64_t durable, bool complete)
{
    struct tl_journal_line line;
    const bool fenced = atomic_load(&ingest->fenced);
    begin_line(&line, ingest, ingest->piece && !complete ? TL_JOURNAL_DEBUG : TL_JOURNAL_INFO,
               "push ended");
    if (!fenced) { /* otherwise the other push's bytes count */
        tl_journal_number(&line, "bytes", durable - ingest->from);
        tl_journal_number(&line, "durable", durable);
    }
    tl_journal_seconds(&line, "seconds", (uint64_t)tl_monotonic_ns() - ingest->begun_ns);
    tl_journal_text(&line, "complete", complete ? "yes" : "no");
    tl_journal_text(&line, "why",
                    fenced         ? "another push of the rig has taken over"
                    : *ingest->why ? ingest->why
                    : complete     ? "the capture is complete"
                                   : "the connection ended");
    tl_journal_end(&line);
}

/* Open the capture of a claimed trace for appending, unless it is complete. */
static int open_capture(struct tl_ingest *ingest, struct tl_fail *fail)
{
    struct tl_trace *const trace = ingest->trace;
    struct tl_identity *const opened = &ingest->opened;
    pthread_mutex_lock(&trace->lock);
    ingest->whole = trace->complete;
    pthread_mutex_unlock(&trace->lock);
    if (ingest->whole) {
        tl_trace_identify(trace, opened);
        return TL_OK;
    }
    const int r =
        tl_capture_open(ingest->lake->spool, trace->id, durable, ingest, &ingest->capture, fail);
    if (r < 0)
        return r;
    uint32_t sum;
    if (tl_capture_sum(ingest->capture, &opened->durable, &sum) && opened->durable > 0)
        tl_identity_set_sum(opened, sum);
    pthread_mutex_lock(&trace->lock);
    trace->raw_bytes = opened->durable;
    pthread_mutex_unlock(&trace->lock);
    return TL_OK;
}

int tl_ingest_open(struct tl_lake *lake, const struct tl_ingest_request *request,
                   void (*on_durable)(void *context, uint64_t offset), void *context,
                   struct tl_ingest **out, char trace_id[static 64], uint64_t *at,
                   struct tl_fail *fail)
{
    struct tl_ingest *ingest = calloc(1, sizeof(*ingest));
    if (!ingest)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    ingest->lake = lake;
    ingest->on_durable = on_durable;
    ingest->context = context;
    atomic_store(&ingest->refs, 1);
    pthread_mutex_init(&ingest->lock, NULL);
    int r = find_or_create(lake, request, &ingest->trace, fail);
    struct tl_trace *trace = ingest->trace;
    if (r < 0) {
        put(ingest);
        return r;
    }
    struct tl_ingest *before = NULL;
    const char *const rig = rig_of(request);
    const uint64_t push = request->epoch > TL_PIN_ASK ? request->epoch : UINT64_MAX;
    r = tl_trace_pin(trace, strcmp(rig, trace->rig) == 0 ? push : TL_PIN_ASK, fail);
    if (r < 0) {
        put(ingest);
        return r;
    }
    pthread_mutex_lock(&trace->opening);
    r = claim(ingest, request, &before, &ingest->epoch, fail);
    if (before)
        fence(before);
    if (r >= 0)
        r = open_capture(ingest, fail);
    *at = ingest->opened.durable;
    pthread_mutex_unlock(&trace->opening);
    tl_trace_unpin(trace); /* the session keeps it */
    if (r < 0) {
        struct tl_trace *const refused = tl_trace_get(trace);
        release(ingest);
        tl_trace_delete_empty(refused);
        tl_trace_put(refused);
        return r;
    }
    memcpy(trace_id, trace->id, 64);
    *out = ingest;
    ingest->from = *at;
    report_begun(ingest, request);
    tl_lake_queue(lake, trace, 0);
    tl_trace_changed(trace);
    return TL_OK;
}

static bool is_complete(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool complete = trace->complete;
    pthread_mutex_unlock(&trace->lock);
    return complete;
}

uint64_t tl_ingest_epoch(const struct tl_ingest *ingest)
{
    return ingest->epoch;
}

void tl_ingest_identity(const struct tl_ingest *ingest, struct tl_identity *out)
{
    *out = ingest->opened;
}

bool tl_trace_pushed_sum(struct tl_trace *trace, uint64_t *at, uint32_t *sum)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_ingest *const ingest = trace->session;
    if (ingest)
        atomic_fetch_add(&ingest->refs, 1);
    pthread_mutex_unlock(&trace->lock);
    if (!ingest)
        return false;
    pthread_mutex_lock(&ingest->lock);
    const bool known = ingest->capture && tl_capture_sum(ingest->capture, at, sum);
    pthread_mutex_unlock(&ingest->lock);
    put(ingest);
    return known;
}

/* Why this session may not go on; TL_OK: nobody has taken over. */
static int fenced(const struct tl_ingest *ingest, struct tl_fail *fail)
{
    if (!atomic_load(&ingest->fenced))
        return TL_OK;
    if (atomic_load(&ingest->moved))
        return tl_fail_set(fail, TL_AGAIN, "another server has trace %s now; push it again",
                           ingest->trace->id);
    return tl_fail_set(fail, TL_DENIED, "another push of rig %s has taken over trace %s",
                       ingest->trace->rig, ingest->trace->id);
}

/* Convert the store's rejection without a lease, before the sharing thread has ended the push. */
static int explain_denied(const struct tl_ingest *ingest, int r, struct tl_fail *fail)
{
    return r == TL_DENIED && ingest->lake->shared && !atomic_load(&ingest->fenced) &&
                   !is_complete(ingest->trace)
               ? tl_fail_set(fail, TL_AGAIN, "another server has trace %s now; push it again",
                             ingest->trace->id)
               : r;
}

int tl_ingest_continues(struct tl_ingest *ingest, struct tl_fail *fail)
{
    pthread_mutex_lock(&ingest->lock);
    /* fence() wakes the owner before it closes the capture. */
    int r = fenced(ingest, fail);
    if (r >= 0 && ingest->capture)
        r = explain_denied(ingest, tl_capture_failed(ingest->capture, fail), fail);
    pthread_mutex_unlock(&ingest->lock);
    if (r == TL_NOSPACE)
        atomic_fetch_add(&ingest->lake->ingest_refused, 1);
    return r;
}

/* May these bytes be appended at `offset`? Those that are there already must be the same. */
static int may_append_locked(struct tl_ingest *ingest, uint64_t offset, struct tl_bytes bytes,
                             struct tl_fail *fail)
{
    if (!ingest->capture && !ingest->whole)
        return fenced(ingest, fail);
    const uint64_t end = ingest->capture ? tl_capture_end(ingest->capture) : ingest->opened.durable;
    if (is_complete(ingest->trace) && bytes.n > 0 && offset + bytes.n > end)
        return tl_fail_at(fail, TL_DENIED, offset, "the capture was declared complete");
    if (offset >= end || bytes.n == 0)
        return TL_OK;
    const int r = ingest->capture ? tl_capture_flush(ingest->capture, fail) : TL_OK;
    return r < 0 ? r : tl_trace_compare(ingest->trace, offset, bytes, end, fail);
}

static int appended_locked(struct tl_ingest *ingest, int r, struct tl_fail *fail)
{
    if (r == TL_NOSPACE)
        atomic_fetch_add(&ingest->lake->ingest_refused, 1);
    return explain_denied(ingest, r, fail);
}

int tl_ingest_append(struct tl_ingest *ingest, uint64_t offset, struct tl_bytes bytes,
                     struct tl_fail *fail)
{
    pthread_mutex_lock(&ingest->lock);
    int r = may_append_locked(ingest, offset, bytes, fail);
    if (r >= 0 && ingest->capture)
        r = tl_capture_append(ingest->capture, offset, bytes, fail);
    r = appended_locked(ingest, r, fail);
    pthread_mutex_unlock(&ingest->lock);
    return r;
}

int tl_ingest_give(struct tl_ingest *ingest, uint64_t offset, const struct tl_given *given,
                   struct tl_fail *fail)
{
    pthread_mutex_lock(&ingest->lock);
    int r = may_append_locked(ingest, offset, given->bytes, fail);
    if (r >= 0 && ingest->capture)
        r = tl_capture_give(ingest->capture, offset, given, fail);
    else
        free(given->block);
    r = appended_locked(ingest, r, fail);
    pthread_mutex_unlock(&ingest->lock);
    return r;
}

int tl_ingest_rejoin(struct tl_ingest *ingest, struct tl_fail *fail)
{
    pthread_mutex_lock(&ingest->lock);
    int r = ingest->capture ? tl_capture_rejoin(ingest->capture, fail) : fenced(ingest, fail);
    r = appended_locked(ingest, r, fail);
    pthread_mutex_unlock(&ingest->lock);
    return r;
}

int tl_trace_complete(struct tl_trace *trace, uint64_t bytes, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    trace->raw_bytes = bytes;
    trace->complete = true;
    trace->completed_ns = tl_monotonic_ns();
    if (trace->state == TL_TRACE_LIVE)
        trace->state = TL_TRACE_DECODING;
    pthread_mutex_unlock(&trace->lock);
    const int r = tl_trace_save(trace, fail);
    if (r < 0) {
        pthread_mutex_lock(&trace->lock);
        trace->complete = false;
        if (trace->state == TL_TRACE_DECODING)
            trace->state = TL_TRACE_LIVE;
        pthread_mutex_unlock(&trace->lock);
        return r;
    }
    tl_lake_queue(trace->lake, trace, 0);
    tl_trace_changed(trace);
    tl_housekeeper_wake(trace->lake); /* compute the capture's hash */
    tl_repack_wake(trace->lake);
    return TL_OK;
}

int tl_ingest_check(struct tl_ingest *ingest, const char *content, struct tl_fail *fail)
{
    struct tl_identity stored = {0};
    uint32_t sum;
    pthread_mutex_lock(&ingest->lock);
    const int r = ingest->capture ? tl_capture_flush(ingest->capture, fail) : fenced(ingest, fail);
    if (r >= 0 && ingest->capture && tl_capture_sum(ingest->capture, &stored.durable, &sum))
        tl_identity_set_sum(&stored, sum);
    pthread_mutex_unlock(&ingest->lock);
    if (r < 0)
        return explain_denied(ingest, r, fail);
    if (!stored.content[0] || strcmp(stored.content, content) == 0)
        return TL_OK;
    return tl_fail_set(
        fail, TL_EXISTS,
        "what is stored of trace %s are not the bytes of this capture; push it under "
        "another name",
        ingest->trace->id);
}

int tl_ingest_finish(struct tl_ingest *ingest, uint64_t *at, struct tl_fail *fail)
{
    struct tl_trace *trace = ingest->trace;
    pthread_mutex_lock(&ingest->lock);
    int r = ingest->capture ? tl_capture_flush(ingest->capture, fail) : fenced(ingest, fail);
    if (r >= 0)
        *at = ingest->capture ? tl_capture_durable(ingest->capture) : ingest->opened.durable;
    pthread_mutex_unlock(&ingest->lock);
    if (r < 0)
        return explain_denied(ingest, r, fail);
    if (is_complete(trace) || *at == 0)
        return TL_OK; /* an empty capture is deleted: tl_ingest_close() */
    return explain_denied(ingest, tl_trace_complete(trace, *at, fail), fail);
}

void tl_ingest_explain(struct tl_ingest *ingest, const char *why)
{
    snprintf(ingest->why, sizeof ingest->why, "%s", why);
}

void tl_ingest_close(struct tl_ingest *ingest)
{
    if (!ingest)
        return;
    struct tl_trace *trace = tl_trace_get(ingest->trace);
    close_capture(ingest);
    pthread_mutex_lock(&trace->lock);
    const uint64_t durable = trace->raw_bytes;
    const bool complete = trace->complete;
    const bool piece = ingest->piece; /* the next one is a push of its own */
    pthread_mutex_unlock(&trace->lock);
    report_ended(ingest, durable, complete);
    release(ingest);
    if (!piece)
        tl_trace_delete_empty(trace);
    tl_trace_changed(trace);
    tl_trace_put(trace);
}

int tl_lake_offset(struct tl_lake *lake, const char *id, uint64_t *at, bool *complete)
{
    struct tl_trace *trace = tl_lake_find_now(lake, id);
    if (!trace)
        return tl_no_content(lake, NULL, id);
    pthread_mutex_lock(&trace->lock);
    *at = trace->raw_bytes;
    *complete = trace->complete;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    return TL_OK;
}
