/* SPDX-License-Identifier: MIT */
/*
 * Hands a device's bytes to a trace and keeps them until they are durable. A device does not send
 * again, so that a failing disk must not cost what it has already sent.
 */
#include "osdhost/capture.h"
#include "base/say.h"
#include "lake_traces.h"
#include "setup/setup.h"

#include "osdhost/bringup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MS 1000
#define KEEP     (8u << 20) /* bytes kept while the disk fails */

/* Called by the spool's thread. */
static void on_durable(void *context, uint64_t offset)
{
    struct tl_osd_capture *const c = context;
    atomic_store(&c->durable, offset);
}

static void drop(struct tl_osd_capture *c, uint64_t to)
{
    const size_t n = to - c->base < c->held.n ? (size_t)(to - c->base) : c->held.n;
    tl_buf_drop(&c->held, n);
    c->base += n;
    c->sent -= n < c->sent ? n : c->sent;
}

static void drop_durable(struct tl_osd_capture *c)
{
    const uint64_t durable = atomic_load(&c->durable);
    const uint64_t sent = c->base + c->sent;
    if (c->ingest && durable > c->base)
        drop(c, durable < sent ? durable : sent);
    if (c->ingest && durable > c->rejoined)
        c->rejoined = UINT64_MAX;
}

void tl_osd_capture_init(struct tl_osd_capture *c, struct tl_lake *lake, const char *rig,
                         const char *setup, void *context,
                         void (*log)(void *context, const char *line))
{
    *c = (struct tl_osd_capture){
        .lake = lake, .setup = setup, .context = context, .log = log, .rejoined = UINT64_MAX};
    snprintf(c->rig, sizeof c->rig, "%s", rig);
}

int tl_osd_capture_add(struct tl_osd_capture *c, struct tl_bytes bytes, int64_t now)
{
    if (!tl_osd_capture_pending(c))
        c->since = now;
    drop_durable(c);
    if (c->held.n + bytes.n > KEEP) {
        c->lost += bytes.n;
        return TL_OK;
    }
    return tl_buf_add(&c->held, bytes.p, bytes.n);
}

bool tl_osd_capture_full(const struct tl_osd_capture *c)
{
    return c->retry && c->held.n > KEEP / 2;
}

bool tl_osd_capture_ahead(struct tl_osd_capture *c)
{
    drop_durable(c);
    return c->held.n > KEEP / 2;
}

size_t tl_osd_capture_pending(const struct tl_osd_capture *c)
{
    return c->held.n - c->sent;
}

void tl_osd_capture_describe(struct tl_osd_capture *c, const struct tl_osd_bringup *b)
{
    struct tl_setup setup;
    struct tl_buf text = {0};
    if (c->ingest || c->described)
        return;
    tl_setup_init(&setup);
    int rc = tl_setup_parse(&setup, c->setup, strlen(c->setup), NULL);
    if (rc >= 0)
        rc = tl_osd_bringup_describe(b, &setup);
    if (rc >= 0)
        rc = tl_setup_write(&setup, &text);
    if (rc >= 0)
        rc = tl_buf_add(&text, "", 1);
    tl_setup_fini(&setup);
    if (rc >= 0)
        c->described = (char *)text.p; /* otherwise the decoder learns it from the answers */
    else
        tl_buf_fini(&text);
}

/* Label a trace with its connection. As tl_lake_set_labels(). */
static int label_connection(struct tl_lake *lake, const char *trace, const char *from)
{
    char label[160];
    snprintf(label, sizeof label, TL_LABEL_CONNECTION "=%.128s", from);
    return tl_lake_set_labels(lake, trace, label, NULL);
}

/* Is the trace that was opened complete, so that nothing can be appended? It is closed then. */
static bool is_over(struct tl_osd_capture *c)
{
    struct tl_identity identity;
    tl_ingest_identity(c->ingest, &identity);
    if (!identity.complete)
        return false;
    tl_ingest_close(c->ingest);
    c->ingest = NULL;
    return true;
}

/* Open the trace, or continue one that waited, after its durable bytes. */
static int open_trace(struct tl_osd_capture *c, struct tl_fail *fail)
{
    const struct tl_ingest_request request = {.rig = c->rig,
                                              .trace = c->trace,
                                              .setup = c->described ? c->described : c->setup,
                                              .resume = c->trace[0] != 0,
                                              .shards = c->shards,
                                              .index = c->index,
                                              .client = c->from};
    uint64_t at = 0;
    atomic_store(&c->durable, 0);
    const int rc =
        tl_ingest_open(c->lake, &request, on_durable, c, &c->ingest, c->trace, &at, fail);
    if (rc < 0)
        return rc;
    c->sent = 0;
    if (c->adopts && is_over(c))
        return TL_DENIED;
    if (c->adopts)
        c->base = c->rejoined = at;
    c->adopts = false;
    if (at > c->base)
        drop(c, at);
    if (at < c->base) /* durable data is lost only by a damaged disk; the rest is still trace */
        c->base = at;
    if (c->from)
        (void)!label_connection(c->lake, c->trace, c->from);
    return rc;
}

static void forget_trace(struct tl_osd_capture *c)
{
    c->ingest = NULL;
    c->trace[0] = 0;
    c->rejoined = UINT64_MAX;
    drop(c, c->base + c->sent);
    c->base = 0;
}

/* Complete the trace with what it has. */
static void finish(struct tl_osd_capture *c, const char *why)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    uint64_t durable = 0;
    const int rc = tl_ingest_finish(c->ingest, &durable, &fail);
    tl_ingest_explain(c->ingest, rc < 0 && fail.text[0] ? fail.text : why);
    tl_ingest_close(c->ingest);
    forget_trace(c);
}

/* The disk is full or fails: it can be repaired while the capture waits. */
static void wait_for_disk(struct tl_osd_capture *c, const char *why, int64_t now)
{
    if (!c->retry)
        tl_say(c->log, c->context, "rig %s: %s; the capture waits", c->rig, why);
    if (c->ingest) {
        tl_ingest_explain(c->ingest, why);
        tl_ingest_close(c->ingest);
        c->ingest = NULL;
    }
    c->retry = now + RETRY_MS;
    c->waits = true;
}

static bool may_pass(int rc)
{
    return rc == TL_NOSPACE || rc == TL_IO || rc == TL_AGAIN;
}

/* An adopted trace that cannot be continued is completed, and another one begun. */
static int open_any(struct tl_osd_capture *c, struct tl_fail *fail)
{
    const int rc = open_trace(c, fail);
    if (rc >= 0 || !c->adopts || may_pass(rc))
        return rc;
    (void)!tl_lake_seal(c->lake, c->trace, NULL);
    c->adopts = false;
    c->trace[0] = 0;
    return open_trace(c, fail);
}

/* Append held bytes up to this offset. */
static int append(struct tl_osd_capture *c, uint64_t to, struct tl_fail *fail)
{
    const uint64_t at = c->base + c->sent;
    const size_t n = to > at ? (size_t)(to - at) : 0;
    const int rc = tl_ingest_append(c->ingest, at, (struct tl_bytes){c->held.p + c->sent, n}, fail);
    if (rc >= 0)
        c->sent += n;
    return rc;
}

static int append_all(struct tl_osd_capture *c, struct tl_fail *fail)
{
    int rc = TL_OK;
    if (c->base + c->sent <= c->rejoined && c->rejoined < c->base + c->held.n) {
        rc = append(c, c->rejoined, fail);
        if (rc >= 0)
            rc = tl_ingest_rejoin(c->ingest, fail);
    }
    return rc < 0 ? rc : append(c, c->base + c->held.n, fail);
}

static void hand_over(struct tl_osd_capture *c, int64_t now)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    int rc = c->ingest ? TL_OK : open_any(c, &fail);
    if (rc >= 0)
        rc = append_all(c, &fail);
    if (rc >= 0) {
        drop_durable(c);
        if (c->retry)
            tl_say(c->log, c->context, "rig %s: the capture goes on", c->rig);
        c->retry = 0;
        c->waits = false;
        return;
    }
    const char *const why = fail.text[0] ? fail.text : tl_err_name(rc);
    if (may_pass(rc)) {
        wait_for_disk(c, why, now);
        return;
    }
    if (c->ingest)
        finish(c, why);
    else if (!c->retry)
        tl_say(c->log, c->context, "rig %s: %s", c->rig, why);
    c->retry = now + RETRY_MS;
    c->waits = false;
}

int64_t tl_osd_capture_due(const struct tl_osd_capture *c)
{
    if (!tl_osd_capture_pending(c) && !c->retry)
        return -1;
    if (c->retry)
        return c->retry;
    const bool now = c->ingest || c->at_once || c->described || c->held.n >= TL_OSD_HELD;
    return c->since + (now ? 0 : TL_OSD_HELD_MS);
}

void tl_osd_capture_flush(struct tl_osd_capture *c, int64_t now)
{
    const int64_t due = tl_osd_capture_due(c);
    if (due >= 0 && now >= due)
        hand_over(c, now);
}

bool tl_osd_capture_rejoin(struct tl_osd_capture *c)
{
    const uint64_t at = c->base + c->held.n;
    if (c->adopts || !c->trace[0] || at == c->rejoined)
        return true;
    if (c->rejoined != UINT64_MAX &&
        (!c->ingest || tl_osd_capture_pending(c) || tl_ingest_rejoin(c->ingest, NULL) < 0))
        return false;
    c->rejoined = at;
    return true;
}

void tl_osd_capture_adopt(struct tl_osd_capture *c, const char *trace)
{
    snprintf(c->trace, sizeof c->trace, "%s", trace);
    c->adopts = true;
}

/* Detach from the trace without completing it. */
static void leave(struct tl_osd_capture *c, const char *why)
{
    if (c->ingest) {
        tl_ingest_explain(c->ingest, why);
        tl_ingest_close(c->ingest);
    }
    forget_trace(c);
}

static void complete(struct tl_osd_capture *c, const char *why)
{
    if (c->ingest)
        finish(c, why);
    else if (c->trace[0] && tl_lake_seal(c->lake, c->trace, NULL) < 0)
        tl_say(c->log, c->context, "rig %s: trace %s is not complete; seal it when there is room",
               c->rig, c->trace);
}

/* `part`: from the trace. */
static void end(struct tl_osd_capture *c, void (*part)(struct tl_osd_capture *c, const char *why),
                const char *why)
{
    if (tl_osd_capture_pending(c) || c->retry)
        hand_over(c, INT64_MAX - RETRY_MS);
    const size_t left = tl_osd_capture_pending(c);
    part(c, why);
    if (left || c->lost)
        tl_say(c->log, c->context, "rig %s: %zu bytes could not be stored", c->rig,
               left + (size_t)c->lost);
    c->trace[0] = 0;
    c->adopts = false;
    c->rejoined = UINT64_MAX;
    c->base = c->sent = 0;
    c->lost = 0;
    tl_buf_fini(&c->held);
    free(c->described);
    c->described = NULL;
    c->retry = 0;
    c->waits = false;
}

void tl_osd_capture_end(struct tl_osd_capture *c, const char *why)
{
    end(c, complete, why);
}

void tl_osd_capture_leave(struct tl_osd_capture *c, const char *why)
{
    end(c, leave, why);
}
