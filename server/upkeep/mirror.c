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
#include "lake/lakeint.h"

#include "base/crc32c.h"
#include "share/share.h"
#include "store/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD 18 /* "TLTRACE1 xxxxxxxx\n" */

static void mirror_key(char out[static 80], const char *id)
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

void tl_trace_mirror(struct tl_trace *trace)
{
    struct tl_backend *backend = trace->lake->backend;
    struct tl_buf text = {0};
    char key[80];
    mirror_key(key, trace->id);
    pthread_mutex_lock(&trace->lock);
    const bool mine = tl_trace_mine_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    for (bool again = mine; again;) {
        uint64_t number;
        tl_buf_reset(&text);
        int r = compose(trace, &text, &number);
        if (r >= 0)
            r = tl_backend_put(backend, key, (struct tl_bytes){text.p, text.n}, NULL);
        pthread_mutex_lock(&trace->lock);
        again = r >= 0 && trace->mirrors != number; /* the older copy may have been written last */
        trace->mirror_stale = r < 0;
        pthread_mutex_unlock(&trace->lock);
    }
    tl_buf_fini(&text);
}

static bool is_whole(const struct tl_buf *stored)
{
    return stored->n >= HEAD && memcmp(stored->p, "TLTRACE1 ", 9) == 0 &&
           strtoul((const char *)stored->p + 9, NULL, 16) ==
               tl_crc32c(0, stored->p + HEAD, stored->n - HEAD);
}

int tl_trace_mirror_check(struct tl_trace *trace, enum tl_mirror_state *state, struct tl_fail *fail)
{
    struct tl_buf text = {0}, stored = {0};
    char key[80];
    mirror_key(key, trace->id);
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
    if (r < 0 || !is_whole(&stored))
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
    mirror_key(key, id);
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

void tl_trace_mirror_remove(struct tl_lake *lake, const char *id)
{
    char key[80];
    mirror_key(key, id);
    if (lake->backend->ops->remove(lake->backend, key, NULL) < 0)
        return; /* an orphan, for the housekeeper */
}

/* ---- reading -------------------------------------------------------------------------------- */

struct row {
    struct tl_catalog_trace trace; /* texts point into `text` */
    struct tl_buf text;
    char **labels;
    size_t n_labels, cap_labels;
    char **streams;
    size_t n_streams, cap_streams;
    char **notes;
    size_t n_notes, cap_notes;
};

static void row_fini(struct row *row)
{
    tl_buf_fini(&row->text);
    free(row->labels);
    free(row->streams);
    free(row->notes);
}

static int take_line(struct row *row, char *name, char *value)
{
    struct tl_catalog_trace *t = &row->trace;
    const struct {
        const char *name;
        const char **text;
    } texts[] = {{"id", &t->id},
                 {"rig", &t->rig},
                 {"format", &t->format},
                 {"message", &t->message},
                 {"content", &t->content}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (strcmp(name, texts[i].name) == 0)
            *texts[i].text = value;
    const uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(name, "state") == 0)
        t->state = (int)number;
    else if (strcmp(name, "complete") == 0)
        t->complete = number != 0;
    else if (strcmp(name, "created") == 0)
        t->created_ns = t->updated_ns = (int64_t)number;
    else if (strcmp(name, "raw_bytes") == 0)
        t->raw_bytes = number;
    else if (strcmp(name, "decoded_bytes") == 0)
        t->decoded_bytes = number;
    else if (strcmp(name, "generation") == 0)
        t->generation = number;
    else if (strcmp(name, "wanted") == 0)
        t->wanted = number;
    else if (strcmp(name, "raw_removed") == 0)
        t->raw_removed = number != 0;
    else if (strcmp(name, "decoded_removed") == 0)
        t->decoded_removed = number != 0;
    const bool label = strcmp(name, "label") == 0, stream = strcmp(name, "stream") == 0;
    const bool note = strcmp(name, "note") == 0;
    if ((label && tl_grow(&row->labels, &row->cap_labels, row->n_labels + 1, sizeof(char *)) < 0) ||
        (stream &&
         tl_grow(&row->streams, &row->cap_streams, row->n_streams + 1, sizeof(char *)) < 0) ||
        (note && tl_grow(&row->notes, &row->cap_notes, row->n_notes + 1, sizeof(char *)) < 0))
        return TL_NOMEM;
    if (note)
        row->notes[row->n_notes++] = value;
    if (label)
        row->labels[row->n_labels++] = value;
    if (stream)
        row->streams[row->n_streams++] = value;
    return TL_OK;
}

/* Parse the object in `row->text`. TL_BAD: it is damaged. */
static int parse(struct row *row)
{
    char *p = (char *)row->text.p;
    const size_t n = row->text.n;
    if (n < HEAD || memcmp(p, "TLTRACE1 ", 9) != 0 ||
        strtoul(p + 9, NULL, 16) != tl_crc32c(0, row->text.p + HEAD, n - HEAD) ||
        tl_buf_add(&row->text, "", 1) < 0)
        return TL_BAD;
    p = (char *)row->text.p + HEAD;
    row->trace = (struct tl_catalog_trace){.rig = "rig", .format = "", .message = "", .labels = ""};
    while (*p && *p != '\n') {
        char *end = strchr(p, '\n'), *equals = strchr(p, '=');
        if (!end || !equals || equals > end)
            return TL_BAD;
        *end = *equals = '\0';
        const int r = take_line(row, p, equals + 1);
        if (r < 0)
            return r;
        p = end + 1;
    }
    row->trace.setup = *p ? p + 1 : "";
    return row->trace.id ? TL_OK : TL_BAD;
}

/* ---- rebuilding the catalog ----------------------------------------------------------------- */

struct names {
    struct tl_buf keys; /* NUL-terminated, concatenated */
};

static int add_name(void *context, const char *key, uint64_t size)
{
    struct names *names = context;
    return tl_buf_add(&names->keys, key, strlen(key) + 1);
}

static int list_names(struct tl_lake *lake, const char *prefix, struct names *out,
                      struct tl_fail *fail)
{
    return lake->backend->ops->list(lake->backend, prefix, add_name, out, fail);
}

static int rebuild_shard(struct tl_lake *lake, const struct tl_catalog_trace *t, uint64_t stream,
                         const char *key, struct tl_fail *fail)
{
    struct tl_view *view;
    struct tl_buf bytes = {0};
    int r = tl_view_open(&view, lake->backend, key, fail);
    if (r < 0)
        return r;
    r = tl_buckets_encode_summary(&view->index.buckets, &bytes);
    const struct tl_catalog_shard shard = {
        .stream = stream, .row = view->index.row, .summary = {bytes.p, bytes.n}};
    if (r >= 0)
        r = lake->catalog->ops->add_shards(lake->catalog, t->id, t->generation, &shard, 1, fail);
    tl_buf_fini(&bytes);
    tl_view_put(view);
    return r;
}

/* Add a stream's shards as long as they are intact and contiguous; `*whole`: all were. */
static int rebuild_stream(struct tl_lake *lake, const struct tl_catalog_trace *t, const char *line,
                          bool *whole, struct tl_fail *fail)
{
    char name[32], key[192];
    struct tl_catalog_stream stream = {.name = name};
    uint64_t lost, size;
    unsigned index;
    if (sscanf(line, "%u %d %" SCNu64 " %31s", &index, &stream.protocol, &lost, name) != 4)
        return TL_OK;
    stream.index = index;
    stream.lost_bytes = lost;
    int r = lake->catalog->ops->put_stream(lake->catalog, t->id, t->generation, &stream, fail);
    for (uint64_t number = 0; r >= 0; number++) {
        tl_shard_key(key, t->id, t->generation, name, number);
        if (lake->backend->ops->size(lake->backend, key, &size, NULL) == TL_NOTFOUND)
            tl_virtual_key(key, t->id, t->generation, name, number);
        if (lake->backend->ops->size(lake->backend, key, &size, NULL) == TL_NOTFOUND)
            return TL_OK;
        r = rebuild_shard(lake, t, stream.index, key, fail);
        if (r == TL_BAD) {
            *whole = false;
            return TL_OK;
        }
    }
    return r;
}

static int rebuild_note(struct tl_lake *lake, const char *trace, const char *line,
                        struct tl_fail *fail)
{
    struct tl_note note = {0};
    int has_time, text = 0;
    if (sscanf(line,
               "%" SCNu64 " %" SCNu64 " %" SCNu64 " %d %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64
               " %31s%n",
               &note.id, &note.at, &note.to, &has_time, &note.time, &note.time_to, &note.created_ns,
               &note.updated_ns, note.stream, &text) != 9)
        return TL_OK;
    note.has_time = has_time != 0;
    snprintf(note.text, sizeof note.text, "%s", line[text] ? line + text + 1 : "");
    for (char *p = note.text; *p; p++)
        if (*p == 1)
            *p = '\n';
    return lake->catalog->ops->put_note(lake->catalog, trace, &note, fail);
}

static int rebuild_trace(struct tl_lake *lake, struct row *row, struct tl_fail *fail)
{
    struct tl_catalog_trace *t = &row->trace;
    bool whole = true;
    int r = lake->catalog->ops->add_trace(lake->catalog, t, fail);
    for (size_t i = 0; r >= 0 && i < row->n_labels; i++) {
        char *equals = strchr(row->labels[i], '=');
        if (!equals)
            continue;
        *equals = '\0';
        r = lake->catalog->ops->set_label(lake->catalog, t->id, row->labels[i], equals + 1, fail);
    }
    for (size_t i = 0; r >= 0 && i < row->n_notes; i++)
        r = rebuild_note(lake, t->id, row->notes[i], fail);
    for (size_t i = 0; r >= 0 && i < row->n_streams; i++)
        r = rebuild_stream(lake, t, row->streams[i], &whole, fail);
    /* Decoding again restores what is missing after a damaged shard. */
    if (r >= 0 && !whole && !t->raw_removed && t->wanted == t->generation) {
        t->wanted = t->generation + 1;
        t->state = t->complete ? TL_TRACE_DECODING : TL_TRACE_LIVE;
        r = lake->catalog->ops->update_trace(lake->catalog, t, fail);
    }
    return r;
}

/* Raw bytes without any other data: kept as a trace that cannot be decoded yet. */
static int rebuild_raw(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    uint64_t end;
    int r = tl_spool_end(lake->backend, id, &end, fail);
    if (r < 0)
        return r;
    const struct tl_catalog_trace t = {
        .id = id,
        .rig = "rig",
        .format = "",
        .setup = "",
        .message = "its setup was lost with the catalog; give one: redecode --config",
        .state = TL_TRACE_FAILED,
        .complete = true,
        .created_ns = tl_lake_now(lake),
        .updated_ns = tl_lake_now(lake),
        .raw_bytes = end,
        .generation = 1,
        .wanted = 1};
    r = lake->catalog->ops->add_trace(lake->catalog, &t, fail);
    return r == TL_EXISTS ? TL_OK : r;
}

static int rebuild_image(struct tl_lake *lake, const char *key, struct tl_fail *fail)
{
    struct tl_buf content = {0}, name = {0};
    struct tl_image_row row;
    char name_key[96];
    snprintf(name_key, sizeof(name_key), "n/%.80s", key + 2);
    int r = tl_backend_get_all(lake->backend, name_key, &name, NULL);
    if (r >= 0 || r == TL_NOTFOUND)
        r = tl_buf_add(&name, "", 1);
    if (r >= 0)
        r = tl_backend_get_all(lake->backend, key, &content, fail);
    if (r >= 0)
        r = tl_image_describe((const char *)name.p, (struct tl_bytes){content.p, content.n}, &row);
    if (r >= 0 && strcmp(row.hash + 7, key + 2) == 0) { /* otherwise it is damaged */
        const struct tl_catalog_image image = {
            .hash = row.hash, .name = row.name, .build_id = row.build_id, .size = row.size};
        r = lake->catalog->ops->add_image(lake->catalog, &image, fail);
        if (r >= 0)
            r = lake->catalog->ops->announce_image(lake->catalog, row.hash, fail);
    }
    tl_buf_fini(&content);
    tl_buf_fini(&name);
    return r;
}

static int rebuild_mirrored(struct tl_lake *lake, const char *key, struct tl_fail *fail)
{
    struct row row = {0};
    int r = tl_backend_get_all(lake->backend, key, &row.text, fail);
    if (r >= 0)
        r = parse(&row);
    if (r >= 0 && strcmp(row.trace.id, key + 2) == 0)
        r = rebuild_trace(lake, &row, fail);
    row_fini(&row);
    return r == TL_BAD || r == TL_EXISTS ? TL_OK
                                         : r; /* then use what the raw bytes alone provide */
}

/* Is the copy of a trace's row whole? Only then its rows may be replaced. */
static bool has_mirror(struct tl_lake *lake, const char *key)
{
    struct row row = {0};
    const bool has = tl_backend_get_all(lake->backend, key, &row.text, NULL) >= 0 &&
                     parse(&row) >= 0 && strcmp(row.trace.id, key + 2) == 0;
    row_fini(&row);
    return has;
}

/* Its present state, if it is in memory: is it being received or decoded? */
static bool is_busy(struct tl_lake *lake, const char *id)
{
    struct tl_trace *const trace = tl_lake_resident(lake, id);
    if (!trace)
        return false;
    pthread_mutex_lock(&trace->lock);
    const bool busy = trace->state < TL_TRACE_SEALED || trace->making || trace->session;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    return busy;
}

int tl_lake_restore_rows(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    const struct tl_catalog_damage all = {.table = TL_DAMAGED_TRACE, .trace = id, .key = ""};
    char key[80];
    mirror_key(key, id);
    if (is_busy(lake, id))
        return tl_fail_set(fail, TL_AGAIN, "trace %.64s is being received or decoded", id);
    if (!has_mirror(lake, key))
        return tl_fail_set(fail, TL_BAD,
                           "m/%.64s is damaged, too; start once with --rebuild-catalog", id);
    int r = lake->catalog->ops->purge(lake->catalog, &all, fail);
    if (r >= 0)
        r = rebuild_mirrored(lake, key, fail);
    struct tl_trace *const trace = tl_lake_resident(lake, id);
    if (trace)
        tl_lake_unlink(lake, trace);
    tl_trace_put(trace);
    return r;
}

int tl_lake_restore_images(struct tl_lake *lake, struct tl_fail *fail)
{
    struct names names = {0};
    int r = list_names(lake, "i", &names, fail);
    for (size_t at = 0; r >= 0 && at < names.keys.n;) {
        const char *const key = (const char *)names.keys.p + at;
        r = rebuild_image(lake, key, fail);
        at += strlen(key) + 1;
    }
    tl_buf_fini(&names.keys);
    return r;
}

static int rebuild_key(struct tl_lake *lake, const char *key, struct tl_fail *fail)
{
    char id[64];
    switch (key[0]) {
    case 'i':
        return rebuild_image(lake, key, fail);
    case 'm':
        return rebuild_mirrored(lake, key, fail);
    default:
        snprintf(id, sizeof(id), "%.*s", (int)strcspn(key + 2, "/"), key + 2);
        return rebuild_raw(lake, id, fail);
    }
}

int tl_lake_rebuild_catalog(struct tl_lake *lake, struct tl_fail *fail)
{
    static const char *const prefixes[] = {"i", "m", "r"};
    struct names names = {0};
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < sizeof(prefixes) / sizeof(*prefixes); i++)
        r = list_names(lake, prefixes[i], &names, fail);
    for (size_t at = 0; r >= 0 && at < names.keys.n;) {
        const char *key = (const char *)names.keys.p + at;
        r = rebuild_key(lake, key, fail);
        at += strlen(key) + 1;
    }
    tl_buf_fini(&names.keys);
    return r;
}
