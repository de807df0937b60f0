/* SPDX-License-Identifier: MIT */
/*
 * Filling a catalog anew from the store's objects: rows of traces from their copies
 * (lake/mirror.h), those of shards and images from these themselves. So a lost or damaged catalog
 * costs labels of nobody, only time.
 */
#include "upkeep/rebuild.h"

#include "lake/lakeint.h"
#include "lake/mirror.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct row {
    struct tl_catalog_trace trace; /* texts point into `text` */
    struct tl_buf text;
    struct tl_buf labels; /* lines */
    char **streams;
    size_t n_streams, cap_streams;
    char **notes;
    size_t n_notes, cap_notes;
};

static void row_fini(struct row *row)
{
    tl_buf_fini(&row->text);
    tl_buf_fini(&row->labels);
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
    const bool stream = strcmp(name, "stream") == 0, note = strcmp(name, "note") == 0;
    if (strcmp(name, "label") == 0)
        return tl_buf_printf(&row->labels, "%s\n", value);
    if ((stream &&
         tl_grow(&row->streams, &row->cap_streams, row->n_streams + 1, sizeof(char *)) < 0) ||
        (note && tl_grow(&row->notes, &row->cap_notes, row->n_notes + 1, sizeof(char *)) < 0))
        return TL_NOMEM;
    if (note)
        row->notes[row->n_notes++] = value;
    if (stream)
        row->streams[row->n_streams++] = value;
    return TL_OK;
}

/* Parse the object in `row->text`. TL_BAD: it is damaged. */
static int parse(struct row *row)
{
    char *p;
    if (!tl_mirror_is_whole(&row->text) || tl_buf_add(&row->text, "", 1) < 0)
        return TL_BAD;
    p = (char *)row->text.p + TL_MIRROR_HEAD;
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
    if (tl_buf_add(&row->labels, "", 1) < 0)
        return TL_NOMEM;
    row->trace.labels = (const char *)row->labels.p;
    return row->trace.id ? TL_OK : TL_BAD;
}

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
    r = tl_shard_summary_encode(&view->index, &bytes);
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
    tl_mirror_key(key, id);
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
