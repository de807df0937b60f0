/* SPDX-License-Identifier: MIT */
#include "osdhost/capture.h"

#include "osdhost/bringup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MS 5000
#define KEEP     (8u << 20) /* bytes kept while the disk refuses */

static void say(const struct tl_osd_capture *c, const char *format, ...) TL_PRINTF(2, 3);

static void say(const struct tl_osd_capture *c, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    c->log(c->context, line);
}

static void on_durable(void *context, uint64_t offset)
{
}

void tl_osd_capture_init(struct tl_osd_capture *c, struct tl_lake *lake, const char *rig,
                         const char *setup, void *context,
                         void (*log)(void *context, const char *line))
{
    *c = (struct tl_osd_capture){.lake = lake, .setup = setup, .context = context, .log = log};
    snprintf(c->rig, sizeof c->rig, "%s", rig);
}

int tl_osd_capture_add(struct tl_osd_capture *c, struct tl_bytes bytes, int64_t now)
{
    if (!c->held.n)
        c->since = now;
    if (c->held.n + bytes.n > KEEP) {
        c->lost += bytes.n;
        return TL_OK;
    }
    return tl_buf_add(&c->held, bytes.p, bytes.n);
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
        c->described = (char *)text.p; /* else the decoder learns it from the answers */
    else
        tl_buf_fini(&text);
}

int tl_osd_label_connection(struct tl_lake *lake, const char *trace, const char *from)
{
    char label[160];
    snprintf(label, sizeof label, TL_LABEL_CONNECTION "=%.128s", from);
    return tl_lake_set_labels(lake, trace, label, NULL);
}

static int open_trace(struct tl_osd_capture *c, struct tl_fail *fail)
{
    const struct tl_ingest_request request = {
        .rig = c->rig, .setup = c->described ? c->described : c->setup, .client = c->from};
    c->at = 0;
    const int rc =
        tl_ingest_open(c->lake, &request, on_durable, NULL, &c->ingest, c->trace, &c->at, fail);
    if (rc < 0)
        return rc;
    if (c->from)
        (void)!tl_osd_label_connection(c->lake, c->trace, c->from);
    return rc;
}

/* End the trace with what it has. */
static void finish(struct tl_osd_capture *c, const char *why)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    uint64_t durable = c->at;
    const int rc = tl_ingest_finish(c->ingest, &durable, &fail);
    tl_ingest_explain(c->ingest, rc < 0 && fail.text[0] ? fail.text : why);
    tl_ingest_close(c->ingest);
    c->ingest = NULL;
    c->trace[0] = 0;
}

static void hand_over(struct tl_osd_capture *c, int64_t now)
{
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    int rc = c->ingest ? TL_OK : open_trace(c, &fail);
    if (rc >= 0)
        rc = tl_ingest_append(c->ingest, c->at, (struct tl_bytes){c->held.p, c->held.n}, &fail);
    if (rc >= 0) {
        c->at += c->held.n;
        tl_buf_reset(&c->held);
        c->retry = 0;
        return;
    }
    const char *const why = fail.text[0] ? fail.text : tl_err_name(rc);
    if (c->ingest)
        finish(c, why);
    else if (!c->retry)
        say(c, "rig %s: %s", c->rig, why);
    c->retry = now + RETRY_MS;
}

int64_t tl_osd_capture_due(const struct tl_osd_capture *c)
{
    if (!c->held.n)
        return -1;
    if (c->retry)
        return c->retry;
    const bool now = c->ingest || c->described || c->held.n >= TL_OSD_HELD;
    return c->since + (now ? 0 : TL_OSD_HELD_MS);
}

void tl_osd_capture_flush(struct tl_osd_capture *c, int64_t now)
{
    const int64_t due = tl_osd_capture_due(c);
    if (due >= 0 && now >= due)
        hand_over(c, now);
}

void tl_osd_capture_end(struct tl_osd_capture *c, const char *why)
{
    if (c->held.n)
        hand_over(c, INT64_MAX - RETRY_MS);
    if (c->ingest)
        finish(c, why);
    if (c->held.n)
        say(c, "rig %s: %zu bytes could not be stored", c->rig, c->held.n);
    tl_buf_fini(&c->held);
    free(c->described);
    c->described = NULL;
    c->retry = 0;
}
