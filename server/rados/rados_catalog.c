/* SPDX-License-Identifier: MIT */
/* The catalog in the index objects: traces with labels and notes, images, rules. rados_rows.h says
 * what lies where. */
#include "base/cancel.h"
#include "rados/rados_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define READY "ready" /* key of the root: the catalog was filled once */

/* ---- traces --------------------------------------------------------------------------------- */

static int write_trace(const struct tl_catalog_trace *t, struct tl_row *row, struct tl_fail *fail)
{
    const char *const texts[] = {t->rig,    t->format,  t->setup,  t->message,
                                 t->labels, t->earlier, t->content};
    const uint64_t numbers[] = {(uint64_t)t->state,
                                t->complete,
                                tl_zigzag(t->created_ns),
                                tl_zigzag(t->updated_ns),
                                t->raw_bytes,
                                t->decoded_bytes,
                                t->generation,
                                t->wanted,
                                t->notes,
                                t->raw_removed,
                                t->decoded_removed};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        tl_row_text(row, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        tl_row_number(row, numbers[i]);
    return tl_row_end(row, fail);
}

/* `key` and `value` are borrowed. */
int tl_row_read_trace(struct tl_catalog_trace *t, const char *key, struct tl_bytes value,
                      struct tl_fail *fail)
{
    struct tl_varint_reader in;
    if (tl_row_open(&in, value) < 0)
        return tl_row_damaged(key, fail);
    *t = (struct tl_catalog_trace){.id = key + 2};
    const char **const texts[] = {&t->rig,    &t->format,  &t->setup,  &t->message,
                                  &t->labels, &t->earlier, &t->content};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = tl_row_get_text(&in);
    t->state = (int)tl_varint_get(&in);
    t->complete = tl_varint_get(&in) != 0;
    t->created_ns = tl_varint_get_signed(&in);
    t->updated_ns = tl_varint_get_signed(&in);
    t->raw_bytes = tl_varint_get(&in);
    t->decoded_bytes = tl_varint_get(&in);
    t->generation = tl_varint_get(&in);
    t->wanted = tl_varint_get(&in);
    t->notes = tl_varint_get(&in);
    t->raw_removed = tl_varint_get(&in) != 0;
    t->decoded_removed = tl_varint_get(&in) != 0;
    return tl_row_close(&in, key, fail);
}

/* Changes a trace's row as it is now; what is changed beside it goes into `change`. A result != 0
 * ends it and is returned. */
typedef int trace_edit(void *context, struct tl_catalog_trace *t, struct tl_change *change,
                       struct tl_fail *fail);

/* Until nobody else has changed the row meanwhile. TL_NOTFOUND: there is no such trace. */
static int edit_trace(struct tl_rados *r, const char *id, trace_edit *edit, void *context,
                      struct tl_fail *fail)
{
    struct tl_buf before = {0};
    struct tl_row row = {0};
    char key[TL_ROW_KEY];
    int rc = TL_AGAIN;
    tl_row_key(key, 'T', id);
    for (int tries = 0; rc == TL_AGAIN && tries < TL_ROW_TRIES; tries++) {
        struct tl_catalog_trace t;
        struct tl_change change;
        tl_buf_reset(&before);
        tl_buf_reset(&row.bytes);
        rc = tl_index_get(r, tl_text(id), key, &before, fail);
        if (rc == TL_NOTFOUND)
            tl_fail_set(fail, TL_NOTFOUND, "there is no trace %.64s", id);
        const struct tl_bytes value = {before.p, before.n};
        if (rc >= 0)
            rc = tl_row_read_trace(&t, key, value, fail);
        if (rc >= 0)
            rc = tl_change_begin(&change, r, tl_text(id), fail);
        if (rc < 0)
            break;
        rc = edit(context, &t, &change, fail);
        if (rc == TL_OK)
            rc = write_trace(&t, &row, fail);
        if (rc != TL_OK) {
            tl_change_drop(&change);
            break;
        }
        tl_change_expect(&change, key, value);
        tl_change_set(&change, key, tl_row_value(&row));
        rc = tl_change_commit(&change, fail);
    }
    tl_buf_fini(&before);
    tl_row_fini(&row);
    return rc == TL_AGAIN
               ? tl_fail_set(fail, TL_IO, "trace %.64s is changed by others all the time", id)
               : rc;
}

static int add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                     struct tl_fail *fail)
{
    struct tl_catalog_trace bare = *t;
    struct tl_change change;
    struct tl_row row = {0};
    char key[TL_ROW_KEY];
    bare.labels = "";
    bare.notes = 0;
    int r = write_trace(&bare, &row, fail);
    if (r >= 0)
        r = tl_change_begin(&change, tl_rados_behind(catalog), tl_text(t->id), fail);
    if (r >= 0) {
        tl_change_expect(&change, tl_row_key(key, 'T', t->id), tl_text(""));
        tl_change_set(&change, key, tl_row_value(&row));
        r = tl_change_commit(&change, fail);
    }
    tl_row_fini(&row);
    return r == TL_AGAIN ? tl_fail_set(fail, TL_EXISTS, "trace %s exists", t->id) : r;
}

static int replace_trace(void *context, struct tl_catalog_trace *t, struct tl_change *change,
                         struct tl_fail *fail)
{
    struct tl_catalog_trace now = *(const struct tl_catalog_trace *)context;
    (void)change;
    (void)fail;
    now.rig = t->rig;
    now.labels = t->labels;
    now.notes = t->notes;
    now.created_ns = t->created_ns;
    *t = now;
    return TL_OK;
}

static int update_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                        struct tl_fail *fail)
{
    struct tl_catalog_trace now = *t;
    return edit_trace(tl_rados_behind(catalog), t->id, replace_trace, &now, fail);
}

/* Each of them in one operation. */
static int remove_traces(struct tl_catalog *catalog, const char *const *ids, size_t n,
                         struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        struct tl_change change;
        char key[TL_ROW_KEY];
        r = tl_change_begin(&change, tl_rados_behind(catalog), tl_text(ids[i]), fail);
        if (r < 0)
            break;
        tl_change_remove(&change, tl_row_key(key, 'T', ids[i]));
        for (const char *kind = "NRHY"; *kind; kind++)
            tl_rows_remove(&change, *kind, ids[i], NULL, 0);
        r = tl_change_commit(&change, fail);
    }
    return r;
}

/* Keys and values of a scan, copied one behind another. */
struct listing {
    struct tl_buf bytes; /* of each: lengths of both (8 bytes each), key and NUL, value */
    size_t n;
};

static int take_row(void *context, const char *key, struct tl_bytes value)
{
    struct listing *const l = context;
    const uint64_t lengths[2] = {strlen(key) + 1, value.n};
    int r = tl_buf_add(&l->bytes, lengths, sizeof lengths);
    if (r >= 0)
        r = tl_buf_add(&l->bytes, key, lengths[0]);
    if (r >= 0)
        r = tl_buf_add(&l->bytes, value.p, value.n);
    l->n++;
    return r;
}

/* The row at `*at`, which moves to the next one. */
static const char *next_row(const uint8_t **at, struct tl_bytes *value)
{
    uint64_t lengths[2];
    memcpy(lengths, *at, sizeof lengths);
    const char *const key = (const char *)*at + sizeof lengths;
    *value = (struct tl_bytes){(const uint8_t *)key + lengths[0], lengths[1]};
    *at = value->p + value->n;
    return key;
}

/* A row in the order in which the catalog tells them: by age, then by name. */
struct aged {
    int64_t created_ns;
    const char *key;
    struct tl_bytes value;
};

static int by_age(const void *a, const void *b)
{
    const struct aged *const x = a, *const y = b;
    return x->created_ns != y->created_ns
               ? (x->created_ns > y->created_ns) - (x->created_ns < y->created_ns)
               : strcmp(x->key, y->key);
}

typedef int age_of(const char *key, struct tl_bytes value, int64_t *created_ns,
                   struct tl_fail *fail);

/* All rows of a kind, oldest first: free `*out` and the listing. */
static int list_aged(struct tl_rados *r, const char *prefix, age_of *age, struct listing *l,
                     struct aged **out, struct tl_fail *fail)
{
    *out = NULL;
    int rc = tl_index_scan_all(r, prefix, take_row, l, fail);
    if (rc >= 0 && !(*out = calloc(l->n + 1, sizeof **out)))
        rc = tl_fail_set(fail, TL_NOMEM, "no memory");
    const uint8_t *at = l->bytes.p;
    for (size_t i = 0; rc >= 0 && i < l->n; i++) {
        (*out)[i].key = next_row(&at, &(*out)[i].value);
        rc = age((*out)[i].key, (*out)[i].value, &(*out)[i].created_ns, fail);
    }
    if (rc >= 0)
        qsort(*out, l->n, sizeof **out, by_age);
    return rc;
}

static int trace_age(const char *key, struct tl_bytes value, int64_t *created_ns,
                     struct tl_fail *fail)
{
    struct tl_catalog_trace t;
    const int r = tl_row_read_trace(&t, key, value, fail);
    if (r >= 0)
        *created_ns = t.created_ns;
    return r;
}

static int all_traces(struct tl_catalog *catalog,
                      int (*each)(void *context, const struct tl_catalog_trace *trace),
                      void *context, struct tl_fail *fail)
{
    struct listing l = {0};
    struct aged *rows;
    int r = list_aged(tl_rados_behind(catalog), "T/", trace_age, &l, &rows, fail);
    for (size_t i = 0; r >= 0 && i < l.n; i++) {
        struct tl_catalog_trace t;
        r = tl_row_read_trace(&t, rows[i].key, rows[i].value, fail);
        if (r >= 0)
            r = each(context, &t);
    }
    free(rows);
    tl_buf_fini(&l.bytes);
    return r < 0 ? r : TL_OK;
}

static int find(struct tl_catalog *catalog, const char *id,
                int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                struct tl_fail *fail)
{
    struct tl_buf value = {0};
    struct tl_catalog_trace t;
    char key[TL_ROW_KEY];
    int r =
        tl_index_get(tl_rados_behind(catalog), tl_text(id), tl_row_key(key, 'T', id), &value, fail);
    if (r == TL_NOTFOUND)
        tl_fail_set(fail, TL_NOTFOUND, "there is no trace %.64s", id);
    if (r >= 0)
        r = tl_row_read_trace(&t, key, (struct tl_bytes){value.p, value.n}, fail);
    if (r >= 0)
        r = each(context, &t);
    tl_buf_fini(&value);
    return r;
}

/* ---- labels --------------------------------------------------------------------------------- */

struct label_edit {
    const char *key, *value;
    struct tl_buf labels;
};

/* Lines are in order of key. */
static int edit_label(void *context, struct tl_catalog_trace *t, struct tl_change *change,
                      struct tl_fail *fail)
{
    struct label_edit *const e = context;
    const size_t key_n = strlen(e->key);
    bool placed = !*e->value;
    int r = TL_OK;
    (void)change;
    tl_buf_reset(&e->labels);
    for (const char *line = t->labels; r >= 0 && (*line || !placed);) {
        const size_t n = strcspn(line, "="), all = strcspn(line, "\n");
        const int order = *line ? memcmp(line, e->key, n < key_n ? n : key_n) : 1;
        const bool same = *line && order == 0 && n == key_n;
        if (!placed && (order > 0 || (order == 0 && n >= key_n))) {
            r = tl_buf_printf(&e->labels, "%s=%s\n", e->key, e->value);
            placed = true;
        }
        if (r >= 0 && *line && !same)
            r = tl_buf_printf(&e->labels, "%.*s\n", (int)all, line);
        line += all + (line[all] == '\n');
    }
    if (r >= 0)
        r = tl_buf_add(&e->labels, "", 1);
    t->labels = (const char *)e->labels.p;
    return r < 0 ? tl_fail_set(fail, TL_NOMEM, "no memory") : TL_OK;
}

static int set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                     const char *value, struct tl_fail *fail)
{
    struct label_edit edit = {.key = key, .value = value};
    const int r = edit_trace(tl_rados_behind(catalog), trace, edit_label, &edit, fail);
    tl_buf_fini(&edit.labels);
    return r != TL_NOTFOUND ? r : *value ? TL_IO : TL_OK;
}

static int add_labels(void *context, const struct tl_catalog_trace *t)
{
    return tl_buf_add(context, t->labels, strlen(t->labels));
}

static int labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                  struct tl_fail *fail)
{
    const int r = find(catalog, trace, add_labels, out, fail);
    return r == TL_NOTFOUND ? TL_OK : r;
}

/* ---- notes ---------------------------------------------------------------------------------- */

static int read_note(struct tl_note *note, const char *key, struct tl_bytes value,
                     struct tl_fail *fail)
{
    struct tl_varint_reader in;
    if (tl_row_open(&in, value) < 0)
        return tl_row_damaged(key, fail);
    *note = (struct tl_note){.id = strtoull(strrchr(key, '/') + 1, NULL, 16)};
    snprintf(note->stream, sizeof note->stream, "%s", tl_row_get_text(&in));
    snprintf(note->text, sizeof note->text, "%s", tl_row_get_text(&in));
    note->at = tl_varint_get(&in);
    note->to = tl_varint_get(&in);
    note->has_time = tl_varint_get(&in) != 0;
    note->time = tl_varint_get(&in);
    note->time_to = tl_varint_get(&in);
    note->created_ns = tl_varint_get_signed(&in);
    note->updated_ns = tl_varint_get_signed(&in);
    return tl_row_close(&in, key, fail);
}

struct note_edit {
    struct tl_rados *r;
    const char *trace;
    uint64_t id;
    const struct tl_note *note; /* NULL: it is removed */
    struct tl_buf before;
    struct tl_row row;
};

static int edit_note(void *context, struct tl_catalog_trace *t, struct tl_change *change,
                     struct tl_fail *fail)
{
    struct note_edit *const e = context;
    struct tl_note old;
    char key[TL_ROW_KEY];
    tl_row_key_of(key, 'N', e->trace, &e->id, 1);
    tl_buf_reset(&e->before);
    tl_buf_reset(&e->row.bytes);
    int r = tl_index_get(e->r, tl_text(e->trace), key, &e->before, fail);
    const bool is_new = r == TL_NOTFOUND;
    if (is_new && !e->note)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no note %llu", (unsigned long long)e->id);
    if (!e->note) {
        t->notes--;
        tl_change_remove(change, key);
        return r;
    }
    if (!is_new && r >= 0)
        r = read_note(&old, key, (struct tl_bytes){e->before.p, e->before.n}, fail);
    if (!is_new && r < 0)
        return r;
    tl_row_text(&e->row, e->note->stream);
    tl_row_text(&e->row, e->note->text);
    const uint64_t numbers[] = {e->note->at,
                                e->note->to,
                                e->note->has_time,
                                e->note->time,
                                e->note->time_to,
                                tl_zigzag(is_new ? e->note->created_ns : old.created_ns),
                                tl_zigzag(e->note->updated_ns)};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        tl_row_number(&e->row, numbers[i]);
    r = tl_row_end(&e->row, fail);
    t->notes += is_new;
    if (r >= 0)
        tl_change_set(change, key, tl_row_value(&e->row));
    return r;
}

static int change_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                       const struct tl_note *note, struct tl_fail *fail)
{
    struct note_edit edit = {.r = tl_rados_behind(catalog), .trace = trace, .id = id, .note = note};
    const int r = edit_trace(edit.r, trace, edit_note, &edit, fail);
    tl_buf_fini(&edit.before);
    tl_row_fini(&edit.row);
    return r;
}

static int put_note(struct tl_catalog *catalog, const char *trace, const struct tl_note *note,
                    struct tl_fail *fail)
{
    return change_note(catalog, trace, note->id, note, fail);
}

static int remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                       struct tl_fail *fail)
{
    return change_note(catalog, trace, id, NULL, fail);
}

struct note_call {
    int (*each)(void *context, const struct tl_note *note);
    void *context;
    struct tl_fail *fail;
};

static int note_row(void *context, const char *key, struct tl_bytes value)
{
    const struct note_call *const call = context;
    struct tl_note note;
    const int r = read_note(&note, key, value, call->fail);
    return r < 0 ? r : call->each(call->context, &note);
}

static int notes(struct tl_catalog *catalog, const char *trace,
                 int (*each)(void *context, const struct tl_note *note), void *context,
                 struct tl_fail *fail)
{
    struct note_call call = {each, context, fail};
    char prefix[TL_ROW_KEY + 1];
    snprintf(prefix, sizeof prefix, "N/%s/", trace);
    return tl_index_scan(tl_rados_behind(catalog), tl_text(trace), prefix, "", note_row, &call,
                         fail);
}

/* ---- images --------------------------------------------------------------------------------- */

static int read_image(struct tl_catalog_image *image, const char *key, struct tl_bytes value,
                      int64_t *created_ns, struct tl_fail *fail)
{
    struct tl_varint_reader in;
    if (tl_row_open(&in, value) < 0)
        return tl_row_damaged(key, fail);
    *image = (struct tl_catalog_image){.hash = key + 2};
    image->name = tl_row_get_text(&in);
    image->build_id = tl_row_get_text(&in);
    image->size = tl_varint_get(&in);
    image->announced = tl_varint_get(&in) != 0;
    *created_ns = tl_varint_get_signed(&in);
    return tl_row_close(&in, key, fail);
}

static int set_image(struct tl_rados *r, const struct tl_catalog_image *image, int64_t created_ns,
                     struct tl_bytes before, struct tl_fail *fail)
{
    struct tl_row row = {0};
    struct tl_change change;
    char key[TL_ROW_KEY];
    tl_row_text(&row, image->name);
    tl_row_text(&row, image->build_id);
    tl_row_number(&row, image->size);
    tl_row_number(&row, image->announced);
    tl_row_number(&row, tl_zigzag(created_ns));
    int rc = tl_row_end(&row, fail);
    if (rc >= 0)
        rc = tl_change_begin(&change, r, tl_text(image->hash), fail);
    if (rc >= 0) {
        tl_change_expect(&change, tl_row_key(key, 'I', image->hash), before);
        tl_change_set(&change, key, tl_row_value(&row));
        rc = tl_change_commit(&change, fail);
    }
    tl_row_fini(&row);
    return rc;
}

static int add_image(struct tl_catalog *catalog, const struct tl_catalog_image *image,
                     struct tl_fail *fail)
{
    struct tl_catalog_image now = *image;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    now.announced = false;
    const int r = set_image(tl_rados_behind(catalog), &now,
                            (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, tl_text(""), fail);
    return r == TL_AGAIN ? TL_OK : r; /* it is there */
}

/* Nothing else of it changes, so that one attempt that loses shows that another has done it. */
static int announce_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_behind(catalog);
    struct tl_catalog_image image;
    struct tl_buf before = {0};
    char key[TL_ROW_KEY];
    int64_t created_ns;
    int rc = tl_index_get(r, tl_text(hash), tl_row_key(key, 'I', hash), &before, fail);
    const struct tl_bytes value = {before.p, before.n};
    if (rc >= 0)
        rc = read_image(&image, key, value, &created_ns, fail);
    if (rc >= 0 && !image.announced) {
        image.announced = true;
        rc = set_image(r, &image, created_ns, value, fail);
    }
    tl_buf_fini(&before);
    return rc == TL_NOTFOUND || rc == TL_AGAIN ? TL_OK : rc;
}

static int remove_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    struct tl_change change;
    char key[TL_ROW_KEY];
    const int r = tl_change_begin(&change, tl_rados_behind(catalog), tl_text(hash), fail);
    if (r < 0)
        return r;
    tl_change_remove(&change, tl_row_key(key, 'I', hash));
    return tl_change_commit(&change, fail);
}

static int image_age(const char *key, struct tl_bytes value, int64_t *created_ns,
                     struct tl_fail *fail)
{
    struct tl_catalog_image image;
    return read_image(&image, key, value, created_ns, fail);
}

static int images(struct tl_catalog *catalog,
                  int (*each)(void *context, const struct tl_catalog_image *image), void *context,
                  struct tl_fail *fail)
{
    struct listing l = {0};
    struct aged *rows;
    int r = list_aged(tl_rados_behind(catalog), "I/", image_age, &l, &rows, fail);
    for (size_t i = 0; r >= 0 && i < l.n; i++) {
        struct tl_catalog_image image;
        r = read_image(&image, rows[i].key, rows[i].value, &rows[i].created_ns, fail);
        if (r >= 0)
            r = each(context, &image);
    }
    free(rows);
    tl_buf_fini(&l.bytes);
    return r < 0 ? r : TL_OK;
}

/* ---- retention ------------------------------------------------------------------------------ */

#define RULES "retention" /* their owner */

static int set_retention(struct tl_catalog *catalog, const char *scope,
                         const struct tl_retention *rule, struct tl_fail *fail)
{
    struct tl_row row = {0};
    struct tl_change change;
    char key[TL_ROW_KEY];
    tl_row_key(key, 'C', scope);
    if (rule) {
        tl_row_number(&row, rule->raw_age_s);
        tl_row_number(&row, rule->raw_bytes);
        tl_row_number(&row, rule->decoded_age_s);
        tl_row_number(&row, rule->decoded_bytes);
    }
    int r = tl_row_end(&row, fail);
    if (r >= 0)
        r = tl_change_begin(&change, tl_rados_behind(catalog), tl_text(RULES), fail);
    if (r >= 0) {
        if (rule)
            tl_change_set(&change, key, tl_row_value(&row));
        else
            tl_change_remove(&change, key);
        r = tl_change_commit(&change, fail);
    }
    tl_row_fini(&row);
    return r;
}

struct rule_call {
    int (*each)(void *context, const char *scope, const struct tl_retention *rule);
    void *context;
    struct tl_fail *fail;
};

static int rule_row(void *context, const char *key, struct tl_bytes value)
{
    const struct rule_call *const call = context;
    struct tl_varint_reader in;
    struct tl_retention rule;
    if (tl_row_open(&in, value) < 0)
        return tl_row_damaged(key, call->fail);
    rule.raw_age_s = tl_varint_get(&in);
    rule.raw_bytes = tl_varint_get(&in);
    rule.decoded_age_s = tl_varint_get(&in);
    rule.decoded_bytes = tl_varint_get(&in);
    const int r = tl_row_close(&in, key, call->fail);
    return r < 0 ? r : call->each(call->context, key + 2, &rule);
}

static int retention(struct tl_catalog *catalog,
                     int (*each)(void *context, const char *scope, const struct tl_retention *rule),
                     void *context, struct tl_fail *fail)
{
    struct rule_call call = {each, context, fail};
    return tl_index_scan(tl_rados_behind(catalog), tl_text(RULES), "C/", "", rule_row, &call, fail);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static bool fresh(const struct tl_catalog *catalog)
{
    return ((const struct tl_rados_catalog *)catalog)->fresh;
}

static int ready(struct tl_catalog *catalog, struct tl_fail *fail)
{
    const rados_write_op_t op = tl_librados.create_write_op();
    tl_op_set(op, READY, tl_text("1"));
    const int rc = tl_rados_write(tl_rados_behind(catalog), TL_ROOT, op);
    if (rc < 0)
        return tl_rados_refused(fail, rc, "fill", "the catalog");
    ((struct tl_rados_catalog *)catalog)->fresh = false;
    return TL_OK;
}

int tl_rados_catalog_reset(struct tl_backend *backend, struct tl_fail *fail)
{
    const rados_write_op_t op = tl_librados.create_write_op();
    tl_op_remove(op, READY);
    const int rc = tl_rados_write(tl_rados_of(backend), TL_ROOT, op);
    return rc < 0 ? tl_rados_refused(fail, rc, "set aside", "the catalog") : TL_OK;
}

static int clear(struct tl_catalog *catalog, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_behind(catalog);
    struct tl_flight flight = {0};
    for (unsigned i = 0; i < r->n_index; i++) {
        char oid[24];
        const rados_write_op_t op = tl_librados.create_write_op();
        for (const char *kind = "TNRHYI"; *kind; kind++)
            tl_librados.write_op_omap_rm_range2(op, (char[]){*kind, '/'}, 2, (char[]){*kind, '0'},
                                                2);
        tl_flight_write(&flight, r, tl_index_at(oid, i), op);
    }
    const int rc = tl_flight_land(&flight);
    return rc < 0 ? tl_rados_refused(fail, rc, "clear", "the catalog") : TL_OK;
}

struct check {
    int (*each)(void *context, const char *finding);
    void *context;
};

static int check_row(void *context, const char *key, struct tl_bytes value)
{
    const struct check *const check = context;
    struct tl_varint_reader in;
    char finding[TL_ROW_KEY + 32];
    if (tl_cancel_check() < 0)
        return TL_CANCELLED;
    if (tl_row_open(&in, value) >= 0)
        return TL_OK;
    snprintf(finding, sizeof finding, "row %.*s is damaged", TL_ROW_KEY, key);
    return check->each(check->context, finding);
}

/* A page looks at no row but what it reads: only the whole is looked at. */
static int check(struct tl_catalog *catalog, bool whole,
                 int (*each)(void *context, const char *finding), void *context,
                 struct tl_fail *fail)
{
    struct check c = {each, context};
    int r = TL_OK;
    for (const char *kind = "TNRHYIC"; whole && r >= 0 && *kind; kind++)
        r = tl_index_scan_all(tl_rados_behind(catalog), (char[]){*kind, '/', '\0'}, check_row, &c,
                              fail);
    return r < 0 ? r : TL_OK;
}

static void close_catalog(struct tl_catalog *catalog)
{
    tl_rados_seen_free((struct tl_rados_catalog *)catalog);
    free(catalog);
}

static const struct tl_catalog_ops ops = {
    .close = close_catalog,
    .fresh = fresh,
    .ready = ready,
    .clear = clear,
    .check = check,
    .add_trace = add_trace,
    .update_trace = update_trace,
    .remove_traces = remove_traces,
    .traces = all_traces,
    .find = find,
    .changes = tl_rados_changes,
    .set_label = set_label,
    .labels = labels,
    .put_note = put_note,
    .remove_note = remove_note,
    .notes = notes,
    .put_stream = tl_rados_put_stream,
    .streams = tl_rados_streams,
    .add_shards = tl_rados_add_shards,
    .shards = tl_rados_shards,
    .summaries = tl_rados_summaries,
    .check_summary = tl_rados_check_summary,
    .drop_shards = tl_rados_drop_shards,
    .drop_others = tl_rados_drop_others,
    .set_retention = set_retention,
    .retention = retention,
    .add_image = add_image,
    .announce_image = announce_image,
    .remove_image = remove_image,
    .images = images,
};

int tl_rados_catalog_open(struct tl_backend *backend, struct tl_catalog **out, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_of(backend);
    struct tl_buf mark = {0};
    const int rc = tl_omap_get(r, TL_ROOT, READY, &mark, fail);
    tl_buf_fini(&mark);
    if (rc < 0 && rc != TL_NOTFOUND)
        return rc;
    struct tl_rados_catalog *const c = calloc(1, sizeof *c);
    if (!c)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    *c = (struct tl_rados_catalog){.base = {&ops}, .r = r, .fresh = rc == TL_NOTFOUND};
    *out = &c->base;
    return TL_OK;
}
