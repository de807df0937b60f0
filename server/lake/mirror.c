/* SPDX-License-Identifier: MIT */
/*
 * Copies, as objects, of what only the catalog has of a trace, so that a lost catalog can be
 * rebuilt from the objects alone:
 *
 *     m/<trace>  "TLTRACE1 <crc32c of the rest, 8 hex digits>\n", lines of "name=value", of streams
 *                "stream=index protocol lost name", of labels "label=key=value" and of notes
 *                "note=id at to has_time time time_to created updated stream text" (lines of the
 *                text ended by the byte 1), an empty line, and the setup to the end
 *     n/<hash>   an image's name
 *
 * Rows of shards are derived from the shards, rows of images from the images.
 */
#include "lake/mirror.h"

#include "base/crc32c.h"
#include "lake/lakeint.h"
#include "store/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void tl_mirror_key(char out[static 80], const char *id)
{
    snprintf(out, 80, "m/%s", id);
}

/* ---- writing -------------------------------------------------------------------------------- */

static int add_text(struct tl_buf *out, const char *name, const char *value)
{
    return tl_buf_printf(out, "%s=%s\n", name, value);
}

static int add_number(struct tl_buf *out, const char *name, int64_t value)
{
    return tl_buf_printf(out, "%s=%" PRId64 "\n", name, value);
}

static int add_labels(struct tl_buf *out, const char *labels)
{
    int r = TL_OK;
    for (const char *line = labels; *line && r >= 0;) {
        const size_t n = strcspn(line, "\n");
        r = tl_buf_printf(out, "label=%.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    return r;
}

static int add_stream(struct tl_buf *out, uint64_t index, int protocol, uint64_t lost,
                      const char *name)
{
    return tl_buf_printf(out, "stream=%" PRIu64 " %d %" PRIu64 " %s\n", index, protocol, lost,
                         name);
}

static int add_lanes(struct tl_buf *out, struct tl_gen *gen)
{
    struct tl_lane *lane;
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        const uint64_t lost = lane->lost_bytes;
        pthread_mutex_unlock(&lane->lock);
        r = add_stream(out, lane->index, (int)lane->protocol, lost, lane->name);
    }
    return r;
}

static int add_stream_row(void *context, const struct tl_catalog_stream *stream)
{
    return add_stream(context, stream->index, stream->protocol, stream->lost_bytes, stream->name);
}

static int add_note(void *context, const struct tl_note *note)
{
    struct tl_buf *const out = context;
    int r = tl_buf_printf(out,
                          "note=%" PRIu64 " %" PRIu64 " %" PRIu64 " %d %" PRIu64 " %" PRIu64
                          " %" PRId64 " %" PRId64 " %s ",
                          note->id, note->at, note->to, note->has_time, note->time, note->time_to,
                          note->created_ns, note->updated_ns, note->stream);
    const size_t from = out->n;
    if (r >= 0)
        r = tl_buf_printf(out, "%s\n", note->text);
    for (size_t i = from; r >= 0 && i + 1 < out->n; i++)
        if (out->p[i] == '\n')
            out->p[i] = 1;
    return r;
}

static int add_row(struct tl_buf *out, const struct tl_catalog_trace *t)
{
    int r = add_text(out, "id", t->id);
    if (r >= 0)
        r = add_text(out, "rig", t->rig);
    if (r >= 0)
        r = add_text(out, "format", t->format);
    if (r >= 0)
        r = add_text(out, "message", t->message);
    if (r >= 0)
        r = add_number(out, "state", t->state);
    if (r >= 0)
        r = add_number(out, "complete", t->complete);
    if (r >= 0)
        r = add_number(out, "created", t->created_ns);
    /* A live trace's length is that of its spool. */
    if (r >= 0)
        r = add_number(out, "raw_bytes", t->complete ? (int64_t)t->raw_bytes : 0);
    if (r >= 0)
        r = add_number(out, "decoded_bytes",
                       t->state == TL_TRACE_SEALED ? (int64_t)t->raw_bytes : 0);
    if (r >= 0)
        r = add_number(out, "generation", (int64_t)t->generation);
    if (r >= 0)
        r = add_number(out, "wanted", (int64_t)t->wanted);
    if (r >= 0)
        r = add_number(out, "raw_removed", t->raw_removed);
    if (r >= 0)
        r = add_number(out, "decoded_removed", t->decoded_removed);
    if (r >= 0 && t->content && *t->content)
        r = add_text(out, "content", t->content);
    return r < 0 ? r : add_labels(out, t->labels);
}

static int add_row_locked(struct tl_buf *out, const struct tl_trace *trace)
{
    const struct tl_catalog_trace row = {.id = trace->id,
                                         .rig = trace->rig,
                                         .format = trace->format,
                                         .message = trace->message,
                                         .labels = trace->labels,
                                         .content = trace->content,
                                         .state = trace->state,
                                         .complete = trace->complete,
                                         .created_ns = trace->created_ns,
                                         .raw_bytes = trace->raw_bytes,
                                         .generation = trace->serving->number,
                                         .wanted = trace->wanted,
                                         .raw_removed = trace->raw_removed,
                                         .decoded_removed = trace->decoded_removed};
    return add_row(out, &row);
}

/* Append the part after the streams, and prepend the header. */
static int finish(struct tl_buf *out, struct tl_buf *body, struct tl_lake *lake, const char *id,
                  const char *setup)
{
    int r = lake->catalog->ops->notes(lake->catalog, id, add_note, body, NULL);
    if (r >= 0)
        r = tl_buf_printf(body, "\n%s", setup);
    if (r >= 0)
        r = tl_buf_printf(out, "TLTRACE1 %08" PRIx32 "\n", tl_crc32c(0, body->p, body->n));
    return r < 0 ? r : tl_buf_add(out, body->p, body->n);
}

/* `*number` orders this copy relative to later ones. */
static int compose(struct tl_trace *trace, struct tl_buf *out, uint64_t *number)
{
    struct tl_buf body = {0};
    pthread_mutex_lock(&trace->lock);
    *number = ++trace->mirrors;
    struct tl_gen *gen = tl_gen_get(trace->serving);
    char *setup = strdup(trace->setup);
    int r = setup ? add_row_locked(&body, trace) : TL_NOMEM;
    pthread_mutex_unlock(&trace->lock);
    if (r >= 0)
        r = add_lanes(&body, gen);
    if (r >= 0)
        r = finish(out, &body, trace->lake, trace->id, setup);
    free(setup);
    tl_gen_put(gen);
    tl_buf_fini(&body);
    return r;
}

/* Write it until what was written last is the newest. */
static void write_newest(struct tl_trace *trace)
{
    struct tl_buf text = {0};
    char key[80];
    tl_mirror_key(key, trace->id);
    for (bool again = true; again;) {
        uint64_t number;
        tl_buf_reset(&text);
        int r = compose(trace, &text, &number);
        if (r >= 0)
            r = tl_backend_put(trace->lake->backend, key, (struct tl_bytes){text.p, text.n}, NULL);
        pthread_mutex_lock(&trace->lock);
        again = r >= 0 && trace->mirrors != number; /* the older copy may have been written last */
        trace->mirror_stale = r < 0;
        pthread_mutex_unlock(&trace->lock);
    }
    tl_buf_fini(&text);
}

void tl_trace_mirror(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool begins = tl_trace_mine_locked(trace) && !trace->deleted;
    trace->mirroring += begins;
    pthread_mutex_unlock(&trace->lock);
    if (!begins)
        return;
    write_newest(trace);
    pthread_mutex_lock(&trace->lock);
    if (--trace->mirroring == 0)
        pthread_cond_broadcast(&trace->mirrored);
    pthread_mutex_unlock(&trace->lock);
}

bool tl_mirror_is_whole(const struct tl_buf *stored)
{
    return stored->n >= TL_MIRROR_HEAD && memcmp(stored->p, "TLTRACE1 ", 9) == 0 &&
           strtoul((const char *)stored->p + 9, NULL, 16) ==
               tl_crc32c(0, stored->p + TL_MIRROR_HEAD, stored->n - TL_MIRROR_HEAD);
}

int tl_trace_mirror_check(struct tl_trace *trace, enum tl_mirror_state *state, struct tl_fail *fail)
{
    struct tl_buf text = {0}, stored = {0};
    char key[80];
    tl_mirror_key(key, trace->id);
    pthread_mutex_lock(&trace->lock);
    const bool stale = trace->mirror_stale;
    pthread_mutex_unlock(&trace->lock);
    if (stale) /* the housekeeper would write it soon */
        tl_trace_mirror(trace);
    int r = tl_backend_get_all(trace->lake->backend, key, &stored, fail);
    uint64_t number;
    if (r >= 0)
        r = compose(trace, &text, &number);
    /* For a trace being decoded the copy may be slightly outdated. */
    pthread_mutex_lock(&trace->lock);
    const bool busy =
        trace->making || trace->session || trace->mirror_stale || !tl_trace_mine_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    if (r < 0 || !tl_mirror_is_whole(&stored))
        *state = TL_MIRROR_DAMAGED;
    else if (busy || (stored.n == text.n && memcmp(stored.p, text.p, text.n) == 0))
        *state = TL_MIRROR_SAME;
    else
        *state = TL_MIRROR_OLD;
    tl_buf_fini(&text);
    tl_buf_fini(&stored);
    return r;
}

/* Part of a catalog row that its copy contains. */
struct said {
    struct tl_buf body;
    char *setup;
    uint64_t generation;
};

static int say_row(void *context, const struct tl_catalog_trace *row)
{
    struct said *const said = context;
    said->generation = row->generation;
    said->setup = strdup(row->setup);
    return said->setup ? add_row(&said->body, row) : TL_NOMEM;
}

bool tl_mirror_fits_row(struct tl_lake *lake, const char *id)
{
    struct said said = {0};
    struct tl_buf text = {0}, stored = {0};
    char key[80];
    tl_mirror_key(key, id);
    int r = lake->catalog->ops->find(lake->catalog, id, say_row, &said, NULL);
    if (r >= 0)
        r = lake->catalog->ops->streams(lake->catalog, id, said.generation, add_stream_row,
                                        &said.body, NULL);
    if (r >= 0)
        r = finish(&text, &said.body, lake, id, said.setup);
    if (r >= 0)
        r = tl_backend_get_all(lake->backend, key, &stored, NULL);
    const bool fits = r >= 0 && stored.n == text.n && memcmp(stored.p, text.p, text.n) == 0;
    tl_buf_fini(&stored);
    tl_buf_fini(&text);
    tl_buf_fini(&said.body);
    free(said.setup);
    return fits;
}

void tl_trace_mirror_remove(struct tl_trace *trace)
{
    struct tl_backend *const backend = trace->lake->backend;
    char key[80];
    tl_mirror_key(key, trace->id);
    pthread_mutex_lock(&trace->lock);
    while (trace->mirroring > 0)
        pthread_cond_wait(&trace->mirrored, &trace->lock);
    pthread_mutex_unlock(&trace->lock);
    if (backend->ops->remove(backend, key, NULL) < 0)
        return; /* an orphan, for the housekeeper */
}

/* ---- reading -------------------------------------------------------------------------------- */

/* ---- rebuilding the catalog ----------------------------------------------------------------- */
