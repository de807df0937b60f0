/* SPDX-License-Identifier: MIT */
/*
 * Traces in the index, with their labels and notes. A row is changed by comparing it with what was
 * read, and again if somebody else was first.
 */
#include "rados/rados_rows.h"

#include <stdio.h>

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
                                t->decoded_removed,
                                t->insns,
                                t->stored_bytes};
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
    if (in.p < in.end) { /* earlier programs did not write these */
        t->insns = tl_varint_get(&in);
        t->stored_bytes = tl_varint_get(&in);
    }
    return tl_row_close(&in, key, fail);
}

/* Modifies a trace's current row; further changes go into `change`. A result != 0 ends the edit and
 * is returned. */
typedef int trace_edit(void *context, struct tl_catalog_trace *t, struct tl_change *change,
                       struct tl_fail *fail);

typedef int begin_change(struct tl_change *change, struct tl_rados *r, struct tl_bytes owner,
                         struct tl_fail *fail);

/* Retry until nobody else has changed the row meanwhile. TL_NOTFOUND: no such trace. */
static int edit_with(struct tl_rados *r, const char *id, trace_edit *edit, void *context,
                     begin_change *begin, struct tl_fail *fail)
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
            rc = begin(&change, r, tl_text(id), fail);
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
    if (rc == TL_OK)
        tl_rados_say(r, TL_NEWS_ROW, 0, id);
    return rc == TL_AGAIN
               ? tl_fail_set(fail, TL_IO, "trace %.64s is changed by others all the time", id)
               : rc;
}

/* Labels and notes can be changed at any server. */
static int edit_anywhere(struct tl_rados *r, const char *id, trace_edit *edit, void *context,
                         struct tl_fail *fail)
{
    return edit_with(r, id, edit, context, tl_change_begin, fail);
}

int tl_rados_add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                       struct tl_fail *fail)
{
    struct tl_catalog_trace bare = *t;
    struct tl_change change;
    struct tl_row row = {0};
    char key[TL_ROW_KEY];
    bare.notes = 0;
    int r = write_trace(&bare, &row, fail);
    if (r >= 0)
        r = tl_change_begin_trace(&change, tl_rados_backing(catalog), tl_text(t->id), fail);
    if (r >= 0) {
        tl_change_expect(&change, tl_row_key(key, 'T', t->id), tl_text(""));
        tl_change_set(&change, key, tl_row_value(&row));
        tl_change_set(&change, tl_row_age_key(key, t->created_ns, t->id), tl_text(""));
        if (t->content && *t->content)
            tl_change_set(&change, tl_row_content_key(key, t->content, t->id), tl_text(""));
        r = tl_change_commit(&change, fail);
    }
    tl_row_fini(&row);
    if (r == TL_OK)
        tl_rados_say(tl_rados_backing(catalog), TL_NEWS_ROW, 0, t->id);
    return r == TL_AGAIN ? tl_fail_set(fail, TL_EXISTS, "trace %s exists", t->id) : r;
}

static int replace_trace(void *context, struct tl_catalog_trace *t, struct tl_change *change,
                         struct tl_fail *fail)
{
    struct tl_catalog_trace now = *(const struct tl_catalog_trace *)context;
    const char *const content = now.content ? now.content : "";
    char key[TL_ROW_KEY];
    (void)fail;
    if (strcmp(t->content, content) != 0 && *t->content)
        tl_change_remove(change, tl_row_content_key(key, t->content, t->id));
    if (strcmp(t->content, content) != 0 && *content)
        tl_change_set(change, tl_row_content_key(key, content, t->id), tl_text(""));
    now.rig = t->rig;
    now.labels = t->labels;
    now.notes = t->notes;
    now.created_ns = t->created_ns;
    *t = now;
    return TL_OK;
}

int tl_rados_update_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                          struct tl_fail *fail)
{
    struct tl_catalog_trace now = *t;
    return edit_with(tl_rados_backing(catalog), t->id, replace_trace, &now, tl_change_begin_trace,
                     fail);
}

/* Remove the keys that name a trace, together with its row, which may be gone. */
static int remove_names(struct tl_change *change, struct tl_rados *r, const char *id,
                        struct tl_fail *fail)
{
    struct tl_buf value = {0};
    struct tl_catalog_trace t;
    char row[TL_ROW_KEY], key[TL_ROW_KEY];
    int rc = tl_index_get(r, tl_text(id), tl_row_key(row, 'T', id), &value, fail);
    if (rc >= 0 && tl_row_read_trace(&t, row, (struct tl_bytes){value.p, value.n}, NULL) >= 0) {
        tl_change_remove(change, tl_row_age_key(key, t.created_ns, id));
        if (*t.content)
            tl_change_remove(change, tl_row_content_key(key, t.content, id));
    }
    tl_change_remove(change, row);
    tl_buf_fini(&value);
    return rc == TL_NOTFOUND ? TL_OK : rc;
}

/* Each of them in one operation. */
int tl_rados_remove_traces(struct tl_catalog *catalog, const char *const *ids, size_t n,
                           struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        struct tl_change change;
        r = tl_change_begin_trace(&change, tl_rados_backing(catalog), tl_text(ids[i]), fail);
        if (r < 0)
            break;
        r = remove_names(&change, tl_rados_backing(catalog), ids[i], fail);
        if (r < 0) {
            tl_change_drop(&change);
            break;
        }
        for (const char *kind = "NRHY"; *kind; kind++)
            tl_rows_remove(&change, *kind, ids[i], NULL, 0);
        r = tl_change_commit(&change, fail);
        if (r == TL_OK)
            tl_rados_say(tl_rados_backing(catalog), TL_NEWS_ROW, 0, ids[i]);
    }
    return r;
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

struct trace_call {
    tl_each_trace *each;
    void *context;
    struct tl_fail *fail;
};

static int trace_row(void *context, const char *key, struct tl_bytes value)
{
    const struct trace_call *const call = context;
    struct tl_catalog_trace t;
    const int r = tl_row_read_trace(&t, key, value, call->fail);
    return r < 0 ? r : call->each(call->context, &t);
}

int tl_rados_traces(struct tl_catalog *catalog, tl_each_trace *each, void *context,
                    struct tl_fail *fail)
{
    struct trace_call call = {each, context, fail};
    return tl_rows_by_age(tl_rados_backing(catalog), "T/", trace_age, trace_row, &call, fail);
}

int tl_rados_find(struct tl_catalog *catalog, const char *id, tl_each_trace *each, void *context,
                  struct tl_fail *fail)
{
    struct trace_call call = {each, context, fail};
    struct tl_buf value = {0};
    char key[TL_ROW_KEY];
    int r = tl_index_get(tl_rados_backing(catalog), tl_text(id), tl_row_key(key, 'T', id), &value,
                         fail);
    if (r == TL_NOTFOUND)
        tl_fail_set(fail, TL_NOTFOUND, "there is no trace %.64s", id);
    if (r >= 0)
        r = trace_row(&call, key, (struct tl_bytes){value.p, value.n});
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

int tl_rados_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                       const char *value, struct tl_fail *fail)
{
    struct label_edit edit = {.key = key, .value = value};
    const int r = edit_anywhere(tl_rados_backing(catalog), trace, edit_label, &edit, fail);
    tl_buf_fini(&edit.labels);
    return r != TL_NOTFOUND ? r : *value ? TL_IO : TL_OK;
}

static int add_labels(void *context, const struct tl_catalog_trace *t)
{
    return tl_buf_add(context, t->labels, strlen(t->labels));
}

int tl_rados_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                    struct tl_fail *fail)
{
    const int r = tl_rados_find(catalog, trace, add_labels, out, fail);
    return r == TL_NOTFOUND ? TL_OK : r;
}

/* ---- notes ---------------------------------------------------------------------------------- */

static int read_note(struct tl_note *note, const char *key, struct tl_bytes value,
                     struct tl_fail *fail)
{
    struct tl_varint_reader in;
    if (tl_row_open(&in, value) < 0)
        return tl_row_damaged(key, fail);
    *note = (struct tl_note){.id = tl_row_last_number(key)};
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
    struct note_edit edit = {
        .r = tl_rados_backing(catalog), .trace = trace, .id = id, .note = note};
    const int r = edit_anywhere(edit.r, trace, edit_note, &edit, fail);
    tl_buf_fini(&edit.before);
    tl_row_fini(&edit.row);
    return r;
}

int tl_rados_put_note(struct tl_catalog *catalog, const char *trace, const struct tl_note *note,
                      struct tl_fail *fail)
{
    return change_note(catalog, trace, note->id, note, fail);
}

int tl_rados_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                         struct tl_fail *fail)
{
    return change_note(catalog, trace, id, NULL, fail);
}

struct note_call {
    tl_each_note *each;
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

int tl_rados_notes(struct tl_catalog *catalog, const char *trace, tl_each_note *each, void *context,
                   struct tl_fail *fail)
{
    struct note_call call = {each, context, fail};
    char prefix[TL_ROW_KEY + 1];
    snprintf(prefix, sizeof prefix, "N/%s/", trace);
    return tl_index_scan(tl_rados_backing(catalog), tl_text(trace), prefix, "", note_row, &call,
                         fail);
}
