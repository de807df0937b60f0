/* SPDX-License-Identifier: MIT */
/* Labels, deleting, decoding anew, images, verifying: what is done to stored traces. */
#include "lake/lakeint.h"

#include "store/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_trace(struct tl_fail *fail, const char *id)
{
    return tl_fail_set(fail, TL_NOTFOUND, "there is no trace %.64s", id);
}

/* ---- labels --------------------------------------------------------------------------------- */

/* One line of "key=value" lines. */
struct label {
    struct tl_bytes key, value;
};

/* The label at `*at`, which moves to the next line. False: the line has no key. */
static bool next_label(const char **at, struct label *out)
{
    const char *const line = *at;
    const size_t n = strcspn(line, "\n");
    const size_t key = strcspn(line, "=\n");
    *at += n + (line[n] == '\n');
    if (key == 0 || key == n)
        return false;
    out->key = (struct tl_bytes){(const uint8_t *)line, key};
    out->value = (struct tl_bytes){(const uint8_t *)line + key + 1, n - key - 1};
    return true;
}

/* C0, DEL, and C1 in UTF-8: what a terminal would obey. */
static bool has_control(struct tl_bytes text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < 0x20 || text.p[i] == 0x7f ||
            (text.p[i] == 0xc2 && i + 1 < text.n && text.p[i + 1] >= 0x80 && text.p[i + 1] < 0xa0))
            return true;
    return false;
}

static int check_label(const struct label *label, struct tl_fail *fail)
{
    if (label->key.n > TL_LABEL_KEY_BYTES)
        return tl_fail_set(fail, TL_USAGE, "a label's key of %zu bytes; at most %d", label->key.n,
                           TL_LABEL_KEY_BYTES);
    if (label->value.n > TL_LABEL_VALUE_BYTES)
        return tl_fail_set(fail, TL_USAGE, "a label's value of %zu bytes; at most %d",
                           label->value.n, TL_LABEL_VALUE_BYTES);
    if (has_control(label->key) || has_control(label->value))
        return tl_fail_set(fail, TL_USAGE, "a label with a control character");
    return TL_OK;
}

static bool names(const char *labels, struct tl_bytes key)
{
    struct label label;
    while (*labels)
        if (next_label(&labels, &label) && label.key.n == key.n &&
            !memcmp(label.key.p, key.p, key.n))
            return true;
    return false;
}

/* What is removed is not checked: whatever an older store holds can be taken away. */
static int check_labels(const char *old, const char *labels, struct tl_fail *fail)
{
    struct label label;
    size_t n = 0, bytes = 0;
    bool sets = false;
    for (const char *at = labels; *at;) {
        const char *const line = at;
        if (!next_label(&at, &label) && *line != '\n')
            return tl_fail_set(fail, TL_USAGE, "a label is key=value on one line, and has a key");
        if (*line == '\n' || !label.value.n)
            continue;
        const int r = check_label(&label, fail);
        if (r < 0)
            return r;
        sets = true;
        n++;
        bytes += label.key.n + label.value.n;
    }
    for (const char *at = old; *at && sets;)
        if (next_label(&at, &label) && !names(labels, label.key)) {
            n++;
            bytes += label.key.n + label.value.n;
        }
    if (sets && (n > TL_LABELS_MOST || bytes > TL_LABELS_BYTES))
        return tl_fail_set(fail, TL_USAGE,
                           "%zu labels of %zu bytes; a trace has at most %d of %d; remove some", n,
                           bytes, TL_LABELS_MOST, TL_LABELS_BYTES);
    return TL_OK;
}

static int check_new_labels(struct tl_trace *trace, const char *labels, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    const int r = check_labels(trace->labels, labels, fail);
    pthread_mutex_unlock(&trace->lock);
    return r;
}

static int set_line(struct tl_lake *lake, const char *trace, const char *line, size_t n,
                    struct tl_fail *fail)
{
    const char *equals = memchr(line, '=', n);
    if (n == 0)
        return TL_OK;
    char *key = strndup(line, (size_t)(equals - line));
    char *value = strndup(equals + 1, n - (size_t)(equals + 1 - line));
    const int r = key && value ? tl_catalog_set_label(lake->catalog, trace, key, value, fail)
                               : tl_fail_set(fail, TL_NOMEM, "no memory");
    free(key);
    free(value);
    return r;
}

static int reload_labels(struct tl_lake *lake, struct tl_trace *trace, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    int r = tl_catalog_labels(lake->catalog, trace->id, &text, fail);
    if (r >= 0)
        r = tl_buf_add(&text, "", 1);
    if (r >= 0) {
        pthread_mutex_lock(&trace->lock);
        char *old = trace->labels;
        trace->labels = (char *)text.p;
        pthread_mutex_unlock(&trace->lock);
        free(old);
        return TL_OK;
    }
    tl_buf_fini(&text);
    return r;
}

int tl_lake_set_labels(struct tl_lake *lake, const char *id, const char *labels,
                       struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return no_trace(fail, id);
    int r = check_new_labels(trace, labels, fail);
    for (const char *line = labels; *line && r >= 0;) {
        const size_t n = strcspn(line, "\n");
        r = set_line(lake, id, line, n, fail);
        line += n + (line[n] == '\n');
    }
    if (r >= 0)
        r = reload_labels(lake, trace, fail);
    if (r >= 0)
        tl_trace_mirror(trace);
    tl_trace_changed(trace);
    tl_trace_put(trace);
    return r;
}

/* ---- deleting ------------------------------------------------------------------------------- */

static void unlink_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    struct tl_trace **p = &lake->traces;
    while (*p && *p != trace)
        p = &(*p)->next;
    if (*p)
        *p = trace->next;
}

/* No session may hold it, and no new one can come once `deleted` is set. */
static int mark_deleted(struct tl_trace *trace, struct tl_fail *fail)
{
    int r = TL_OK;
    pthread_mutex_lock(&trace->lock);
    if (trace->session)
        r = tl_fail_set(fail, TL_DENIED, "trace %s is being pushed", trace->id);
    else if (trace->deleted)
        r = no_trace(fail, trace->id);
    else
        trace->deleted = true;
    if (r >= 0 && trace->making)
        atomic_store(&trace->making->abandoned, true);
    pthread_mutex_unlock(&trace->lock);
    return r;
}

static void forget_generations(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    atomic_store(&trace->serving->obsolete, true);
    if (trace->making)
        atomic_store(&trace->making->obsolete, true);
    pthread_mutex_unlock(&trace->lock);
}

int tl_lake_delete(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return no_trace(fail, id);
    int r = mark_deleted(trace, fail);
    if (r < 0) {
        tl_trace_put(trace);
        return r;
    }
    pthread_mutex_lock(&lake->lock);
    while (trace->running)
        pthread_cond_wait(&lake->idle, &lake->lock);
    pthread_mutex_unlock(&lake->lock);
    /* The copy goes first, lest a lost catalog bring the trace back. */
    tl_trace_mirror_remove(lake, id);
    r = tl_catalog_remove_trace(lake->catalog, id, fail);
    if (r >= 0) {
        forget_generations(trace);
        /* Space that cannot be freed now is freed by the housekeeper. The name is free only when
         * its raw bytes are gone or known to be garbage, lest those of its next trace go with them.
         */
        tl_lake_bury(lake, id, trace->wanted);
        pthread_mutex_lock(&lake->lock);
        tl_lake_unqueue_locked(lake, trace);
        unlink_locked(lake, trace);
        pthread_mutex_unlock(&lake->lock);
        tl_trace_put(trace); /* the table's */
    } else {
        pthread_mutex_lock(&trace->lock);
        trace->deleted = false;
        trace->mirror_stale = true;
        pthread_mutex_unlock(&trace->lock);
        tl_house_wake(lake);
    }
    tl_trace_put(trace);
    tl_lake_notify(lake);
    return r < 0 ? r : TL_OK;
}

/* ---- decoding anew -------------------------------------------------------------------------- */

int tl_lake_redecode(struct tl_lake *lake, const char *id, const char *setup, struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return no_trace(fail, id);
    pthread_mutex_lock(&trace->lock);
    char *text = strdup(setup ? setup : trace->setup);
    const uint64_t number = trace->wanted + 1;
    pthread_mutex_unlock(&trace->lock);
    struct tl_gen *gen = NULL;
    int r = text ? tl_gen_new(&gen, lake, id, number, text, fail)
                 : tl_fail_set(fail, TL_NOMEM, "no memory");
    if (r < 0) {
        free(text);
        tl_trace_put(trace);
        return r;
    }
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *old = trace->making;
    char *old_setup = NULL;
    if (trace->raw_removed) {
        r = tl_fail_set(fail, TL_DENIED,
                        "the raw bytes of %s were removed by retention; it cannot be decoded anew",
                        id);
    } else if (trace->wanted + 1 != number) {
        r = tl_fail_set(fail, TL_AGAIN, "trace %s is being changed by another; try again", id);
    } else {
        trace->making = gen;
        /* What is served keeps its setup, until another one has been decoded. */
        if (strcmp(text, trace->setup) != 0 && (!old || old == trace->serving)) {
            old_setup = trace->earlier;
            trace->earlier = trace->setup;
        } else {
            old_setup = trace->setup;
        }
        trace->setup = text;
        trace->wanted = number;
        trace->message[0] = '\0';
        trace->state = trace->complete ? TL_TRACE_DECODING : TL_TRACE_LIVE;
        snprintf(trace->format, sizeof(trace->format), "%s", gen->setup.format);
        if (old)
            atomic_store(&old->abandoned, true);
    }
    const bool given_up = r >= 0 && old && old != trace->serving;
    pthread_mutex_unlock(&trace->lock);
    if (r < 0) {
        tl_gen_put(gen);
        free(text);
    } else {
        free(old_setup);
        r = tl_trace_save(trace, fail);
        /* Not before the catalog knows: until then it is what a restart goes on with. */
        if (r >= 0 && given_up)
            atomic_store(&old->obsolete, true);
        tl_gen_put(old);
        tl_lake_queue(lake, trace, 0);
        tl_trace_changed(trace);
    }
    tl_trace_put(trace);
    return r;
}

int tl_lake_redecode_back(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return no_trace(fail, id);
    pthread_mutex_lock(&trace->lock);
    const bool has = trace->earlier != NULL;
    char *earlier = has ? strdup(trace->earlier) : NULL;
    pthread_mutex_unlock(&trace->lock);
    int r = TL_OK;
    if (!has)
        r = tl_fail_set(fail, TL_USAGE, "trace %s has had no other setup", id);
    else
        r = earlier ? tl_lake_redecode(lake, id, earlier, fail)
                    : tl_fail_set(fail, TL_NOMEM, "no memory");
    free(earlier);
    tl_trace_put(trace);
    return r;
}

/* ---- images --------------------------------------------------------------------------------- */

static void image_key(char out[static 96], const char *hash)
{
    snprintf(out, 96, "i/%.64s", hash + 7);
}

struct build_id_search {
    const char *build_id;
    char *hash;
};

static int match_build_id(void *context, const struct tl_catalog_image *image)
{
    struct build_id_search *search = context;
    if (strcmp(image->build_id, search->build_id) == 0)
        snprintf(search->hash, 72, "%s", image->hash); /* the newest one counts */
    return TL_OK;
}

int tl_lake_image_hash(struct tl_lake *lake, const char *name, char out[static 72])
{
    char key[96];
    uint64_t size;
    out[0] = '\0';
    if (strncmp(name, "build-id:", 9) == 0 && name[9]) {
        struct build_id_search search = {name + 9, out};
        const int r = tl_catalog_images(lake->catalog, match_build_id, &search, NULL);
        if (r < 0)
            return r;
    } else if (tl_hash_valid(name)) {
        snprintf(out, 72, "%s", name);
    }
    if (!out[0])
        return TL_NOTFOUND;
    image_key(key, out);
    return lake->backend->ops->size(lake->backend, key, &size, NULL);
}

bool tl_lake_has_image(struct tl_lake *lake, const char *name)
{
    char hash[72];
    return tl_lake_image_hash(lake, name, hash) >= 0;
}

/* The build ID note of an ELF file, in hex, by a plain search for its header. */
static void find_build_id(struct tl_bytes elf, char out[static 64])
{
    static const uint8_t note[] = {3, 0, 0, 0, 'G', 'N', 'U', 0};
    out[0] = '\0';
    if (elf.n < 24 || memcmp(elf.p, "\177ELF", 4) != 0)
        return;
    const uint8_t *p = elf.p + 8;
    while ((p = memmem(p, (size_t)(elf.p + elf.n - p), note, sizeof(note)))) {
        const uint32_t name = tl_le32(p - 8), size = tl_le32(p - 4);
        const size_t left = (size_t)(elf.p + elf.n - p) - sizeof(note);
        if (name == 4 && size > 0 && size <= 31 && size <= left) {
            for (uint32_t i = 0; i < size; i++)
                snprintf(out + 2 * i, 3, "%02x", p[8 + i]);
            return;
        }
        p++;
    }
}

/* Traces that were decoded without this image can now do better. */
static int redecode_users(struct tl_lake *lake, const struct tl_image_row *image,
                          struct tl_fail *fail)
{
    char build_id[80];
    snprintf(build_id, sizeof(build_id), "build-id:%s", image->build_id);
    struct tl_trace_list list;
    int r = tl_lake_traces(lake, &list);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list.n && r >= 0; i++) {
        struct tl_trace *trace = tl_lake_find_trace(lake, list.rows[i].id);
        if (!trace)
            continue;
        pthread_mutex_lock(&trace->lock);
        const bool uses = strstr(trace->setup, image->hash) ||
                          (image->build_id[0] && strstr(trace->setup, build_id));
        pthread_mutex_unlock(&trace->lock);
        tl_trace_put(trace);
        if (uses)
            r = tl_lake_redecode(lake, list.rows[i].id, NULL, fail);
        if (r == TL_DENIED || r == TL_NOTFOUND || r == TL_BAD || r == TL_USAGE)
            r = TL_OK; /* that trace stays as it is */
    }
    tl_trace_list_free(&list);
    return r;
}

struct announced_search {
    const char *hash;
    bool announced;
};

static int find_announced(void *context, const struct tl_catalog_image *image)
{
    struct announced_search *search = context;
    if (strcmp(image->hash, search->hash) == 0)
        search->announced = image->announced;
    return TL_OK;
}

int tl_image_describe(const char *name, struct tl_bytes content, struct tl_image_row *row)
{
    *row = (struct tl_image_row){.size = content.n};
    snprintf(row->name, sizeof(row->name), "%s", name ? name : "");
    find_build_id(content, row->build_id);
    return tl_hash_text(content, row->hash);
}

int tl_lake_put_image(struct tl_lake *lake, const char *name, struct tl_bytes content,
                      struct tl_image_row *row, struct tl_fail *fail)
{
    struct tl_backend *backend = lake->backend;
    char key[96], name_key[96];
    int r = tl_image_describe(name, content, row);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "cannot hash an image");
    struct announced_search search = {row->hash, false};
    r = tl_catalog_images(lake->catalog, find_announced, &search, fail);
    if (r < 0)
        return r;
    const bool known = tl_lake_has_image(lake, row->hash);
    if (known && search.announced)
        return TL_OK;
    image_key(key, row->hash);
    snprintf(name_key, sizeof(name_key), "n/%s", key + 2);
    const struct tl_bytes text = {(const uint8_t *)row->name, strlen(row->name)};
    r = tl_backend_put(backend, name_key, text, fail);
    if (r >= 0 && !known)
        r = tl_backend_put(backend, key, content, fail);
    if (r < 0)
        return r;
    const struct tl_catalog_image image = {
        .hash = row->hash, .name = row->name, .build_id = row->build_id, .size = row->size};
    r = tl_catalog_add_image(lake->catalog, &image, fail);
    if (r >= 0)
        r = redecode_users(lake, row, fail);
    return r < 0 ? r : tl_catalog_announce_image(lake->catalog, row->hash, fail);
}

struct image_list {
    struct tl_image_row *rows;
    size_t n, cap;
};

static int add_image_row(void *context, const struct tl_catalog_image *image)
{
    struct image_list *list = context;
    const int r = tl_grow(&list->rows, &list->cap, list->n + 1, sizeof(*list->rows));
    if (r < 0)
        return r;
    struct tl_image_row *row = &list->rows[list->n++];
    *row = (struct tl_image_row){.size = image->size};
    snprintf(row->hash, sizeof(row->hash), "%s", image->hash);
    snprintf(row->name, sizeof(row->name), "%s", image->name);
    snprintf(row->build_id, sizeof(row->build_id), "%s", image->build_id);
    return TL_OK;
}

int tl_lake_images(struct tl_lake *lake, struct tl_image_row **rows, size_t *n)
{
    struct image_list list = {0};
    const int r = tl_catalog_images(lake->catalog, add_image_row, &list, NULL);
    if (r < 0) {
        free(list.rows);
        return r;
    }
    *rows = list.rows;
    *n = list.n;
    return TL_OK;
}

int tl_lake_bind_image(struct tl_lake *lake, const char *id, const struct tl_lake_binding *binding,
                       struct tl_fail *fail)
{
    const char *const hash = binding->hash, *const space = binding->space;
    if (!tl_lake_has_image(lake, hash))
        return tl_fail_set(fail, TL_NOTFOUND, "image %.80s is not there; upload it first", hash);
    const int bits = space && *space ? tl_space_parse(space) : TL_SPACE_ANY;
    if (bits < 0)
        return tl_fail_set(fail, TL_USAGE, "\"%.32s\" is no memory space", space);
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return no_trace(fail, id);
    struct tl_setup setup;
    struct tl_buf text = {0};
    tl_setup_init(&setup);
    pthread_mutex_lock(&trace->lock);
    int r = tl_setup_parse(&setup, trace->setup, strlen(trace->setup), fail);
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    if (r >= 0)
        r = tl_grow(&setup.images, &setup.cap_images, setup.n_images + 1, sizeof(*setup.images));
    if (r >= 0) {
        struct tl_setup_image *image = &setup.images[setup.n_images++];
        *image = (struct tl_setup_image){.file = strdup(hash),
                                         .address = binding->address,
                                         .offset = binding->offset,
                                         .length = binding->length ? binding->length : UINT64_MAX,
                                         .space = (unsigned)bits,
                                         .context = binding->context,
                                         .span = binding->span};
        r = image->file ? tl_setup_write(&setup, &text) : TL_NOMEM;
    }
    if (r >= 0)
        r = tl_buf_add(&text, "", 1);
    if (r >= 0)
        r = tl_lake_redecode(lake, id, (const char *)text.p, fail);
    tl_buf_fini(&text);
    tl_setup_fini(&setup);
    return r;
}
