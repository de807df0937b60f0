/* SPDX-License-Identifier: MIT */
/*
 * Copies traces from one store to another: which data, in which order. The source may be in use, so
 * that a trace that changes meanwhile is copied again or left for a later run.
 */
#include "copy/copy.h"
#include "lake/lakeint.h"
#include "rados/rados.h"
#include "raw/spool.h"
#include "store/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 3 };

struct copy {
    struct tl_backend *from, *to;
    struct tl_catalog *source, *target;
    const struct tl_copy_request *request;
    struct tl_copier copier;
    bool shared; /* servers may use the target: each trace is copied under its lease */
    char **ids;  /* of the source's traces, oldest first */
    size_t n_ids, cap_ids;
    struct tl_buf setups; /* when copying selected traces */
    const char *id;       /* the current trace */
    uint64_t done, total;
};

/* ---- copies of rows ------------------------------------------------------------------------- */

static const char *own(const char *text)
{
    return strdup(text ? text : "");
}

static void row_fini(const struct tl_catalog_trace *row)
{
    const char *const texts[] = {row->id,      row->rig,    row->format,  row->setup,
                                 row->message, row->labels, row->earlier, row->content};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free((void *)(uintptr_t)texts[i]);
}

static int row_keep(struct tl_catalog_trace *out, const struct tl_catalog_trace *row)
{
    *out = *row;
    out->id = own(row->id);
    out->rig = own(row->rig);
    out->format = own(row->format);
    out->setup = own(row->setup);
    out->message = own(row->message);
    out->labels = own(row->labels);
    out->earlier = own(row->earlier);
    out->content = own(row->content);
    if (out->id && out->rig && out->format && out->setup && out->message && out->labels &&
        out->earlier && out->content)
        return TL_OK;
    row_fini(out);
    return TL_NOMEM;
}

static bool wanted(const struct tl_copy_request *request, const char *id)
{
    for (size_t i = 0; i < request->n_traces; i++)
        if (strcmp(request->traces[i], id) == 0)
            return true;
    return request->n_traces == 0;
}

static int keep_id(void *context, const struct tl_catalog_trace *row)
{
    struct copy *const c = context;
    if (!wanted(c->request, row->id))
        return TL_OK;
    if (tl_grow(&c->ids, &c->cap_ids, c->n_ids + 1, sizeof *c->ids) < 0 ||
        !(c->ids[c->n_ids] = strdup(row->id)))
        return TL_NOMEM;
    c->n_ids++;
    return c->request->n_traces ? tl_buf_add(&c->setups, row->setup, strlen(row->setup)) : TL_OK;
}

static int keep_row(void *context, const struct tl_catalog_trace *row)
{
    return row_keep(context, row);
}

/* ---- objects -------------------------------------------------------------------------------- */

struct keys {
    struct tl_buf names; /* NUL-terminated, concatenated */
    uint64_t *sizes;
    size_t n, cap;
    uint64_t bytes;
};

static int add_key(void *context, const char *key, uint64_t size)
{
    struct keys *const k = context;
    if (tl_grow(&k->sizes, &k->cap, k->n + 1, sizeof *k->sizes) < 0 ||
        tl_buf_add(&k->names, key, strlen(key) + 1) < 0)
        return TL_NOMEM;
    k->sizes[k->n++] = size;
    k->bytes += size;
    return TL_OK;
}

static void keys_fini(struct keys *k)
{
    tl_buf_fini(&k->names);
    free(k->sizes);
    *k = (struct keys){0};
}

/* List the keys of a trace: its raw bytes, the data of the serving generation, the row's copy. */
static int list_keys(struct tl_backend *backend, const struct tl_catalog_trace *row,
                     struct keys *out, struct tl_fail *fail)
{
    char prefixes[2][128], mirror[80];
    uint64_t size;
    int r = TL_OK;
    snprintf(prefixes[0], sizeof prefixes[0], "r/%.63s", row->id);
    snprintf(prefixes[1], sizeof prefixes[1], "t/%.63s/%llu", row->id,
             (unsigned long long)row->generation);
    for (size_t i = 0; i < 2 && r >= 0; i++)
        r = backend->ops->list(backend, prefixes[i], add_key, out, fail);
    snprintf(mirror, sizeof mirror, "m/%.63s", row->id);
    if (r >= 0)
        r = backend->ops->size(backend, mirror, &size, fail);
    if (r >= 0)
        r = add_key(out, mirror, size);
    return r == TL_NOTFOUND ? TL_OK : tl_copy_nomem(r, fail);
}

static bool has_key(const struct keys *k, const char *key)
{
    const char *p = (const char *)k->names.p;
    for (size_t i = 0; i < k->n; i++, p += strlen(p) + 1)
        if (strcmp(p, key) == 0)
            return true;
    return false;
}

static int moved(void *context, uint64_t bytes)
{
    struct copy *const c = context;
    c->done += bytes;
    return c->request->progress
               ? c->request->progress(c->request->context, c->id, c->done, c->total)
               : TL_OK;
}

/* Remove what an earlier copy left and the source has since removed or packed. */
static int remove_stale(const struct copy *c, const struct tl_catalog_trace *row,
                        const struct keys *keys, struct tl_fail *fail)
{
    struct keys there = {0};
    int r = list_keys(c->to, row, &there, fail);
    const char *p = (const char *)there.names.p;
    for (size_t i = 0; i < there.n && r >= 0; i++, p += strlen(p) + 1)
        if (!has_key(keys, p))
            r = c->to->ops->remove(c->to, p, fail);
    keys_fini(&there);
    return r;
}

/* TL_NOTFOUND: something was removed or packed meanwhile. */
static int copy_keys(struct copy *c, const struct keys *keys, struct tl_fail *fail)
{
    int r = TL_OK;
    c->done = 0;
    c->total = keys->bytes;
    const char *p = (const char *)keys->names.p;
    for (size_t i = 0; i < keys->n && r >= 0; i++, p += strlen(p) + 1)
        r = tl_copier_add(&c->copier, p, keys->sizes[i], fail);
    const int flushed = tl_copier_flush(&c->copier, r < 0 ? NULL : fail);
    return r < 0 ? r : flushed;
}

static int copy_objects(struct copy *c, const struct tl_catalog_trace *row, struct tl_fail *fail)
{
    struct keys keys = {0};
    int r = list_keys(c->from, row, &keys, fail);
    if (r >= 0)
        r = copy_keys(c, &keys, fail);
    if (r >= 0)
        r = remove_stale(c, row, &keys, fail);
    keys_fini(&keys);
    return r;
}

/* ---- traces --------------------------------------------------------------------------------- */

/* Check that the raw bytes, as read at the target, match the hash. */
static int check_content(const struct copy *c, const struct tl_catalog_trace *row, bool *right,
                         struct tl_fail *fail)
{
    struct tl_spool_reader *reader;
    struct tl_hash *hash;
    struct tl_buf piece = {0};
    char text[TL_HASH_TEXT];
    uint64_t at = 0;
    *right = true;
    if (!row->content[0] || row->raw_removed)
        return TL_OK;
    int r = tl_hash_new(&hash);
    if (r < 0)
        return tl_copy_nomem(r, fail);
    r = tl_spool_reader_new(&reader, c->to, row->id);
    if (r < 0) {
        tl_hash_free(hash);
        return tl_copy_nomem(r, fail);
    }
    while (r == TL_OK) {
        tl_buf_reset(&piece);
        r = tl_spool_read(reader, at, row->raw_bytes, &piece, fail);
        if (r == TL_OK)
            r = tl_copy_nomem(tl_hash_add(hash, (struct tl_bytes){piece.p, piece.n}), fail);
        at += piece.n;
    }
    if (r == TL_EOF) {
        r = tl_copy_nomem(tl_hash_end(hash, text), fail);
        *right = r >= 0 && strcmp(text, row->content) == 0;
    } else if (r == TL_BAD) {
        r = TL_OK;
        *right = false;
    }
    tl_spool_reader_free(reader);
    tl_buf_fini(&piece);
    tl_hash_free(hash);
    return r;
}

static bool is_busy(const struct tl_catalog_trace *row)
{
    return !row->complete || (row->state != TL_TRACE_SEALED && row->state != TL_TRACE_FAILED) ||
           (row->state == TL_TRACE_SEALED && row->wanted != row->generation) ||
           strcmp(row->message, tl_copy_unfinished) == 0;
}

/* Is it the same capture, decoded the same way? Fields known only to one of them are ignored. */
static bool is_same(const struct tl_catalog_trace *a, const struct tl_catalog_trace *b)
{
    return strcmp(a->rig, b->rig) == 0 && a->created_ns == b->created_ns &&
           a->raw_bytes == b->raw_bytes && a->state == b->state && a->generation == b->generation &&
           (!a->content[0] || !b->content[0] || strcmp(a->content, b->content) == 0);
}

static int copy_whole(struct copy *c, const struct tl_catalog_trace *row,
                      enum tl_copy_outcome *outcome, struct tl_fail *fail)
{
    bool right = true;
    int r = TL_NOTFOUND;
    for (unsigned i = 0; i < TRIES && r == TL_NOTFOUND; i++)
        r = copy_objects(c, row, fail);
    if (r >= 0)
        r = tl_copy_rows(&(struct tl_copied_rows){c->source, c->target}, row, fail);
    if (r == TL_NOTFOUND || r == TL_AGAIN) { /* it is being decoded again, or removed */
        *outcome = TL_COPY_BUSY;
        return TL_OK;
    }
    if (r >= 0)
        r = check_content(c, row, &right, fail);
    *outcome = right ? TL_COPY_DONE : TL_COPY_DAMAGED;
    return r;
}

/* Copy the row, under its lease if there are leases of traces. */
static int copy_row(struct copy *c, const struct tl_catalog_trace *row,
                    enum tl_copy_outcome *outcome, struct tl_fail *fail)
{
    struct tl_catalog_trace there;
    int r = c->target->ops->find(c->target, row->id, keep_row, &there, fail);
    if (r < 0 && r != TL_NOTFOUND)
        return tl_copy_nomem(r, fail);
    const bool any = r >= 0 && strcmp(there.message, tl_copy_unfinished) != 0;
    const bool same = any && is_same(row, &there);
    if (r >= 0)
        row_fini(&there);
    *outcome = same           ? TL_COPY_THERE
               : is_busy(row) ? TL_COPY_BUSY
               : any          ? TL_COPY_OTHER
                              : TL_COPY_DONE;
    return *outcome == TL_COPY_DONE ? copy_whole(c, row, outcome, fail) : TL_OK;
}

static int copy_trace(struct copy *c, const char *id, struct tl_fail *fail)
{
    enum tl_copy_outcome outcome = TL_COPY_BUSY;
    struct tl_catalog_trace row;
    struct tl_lease *lease = NULL;
    c->id = id;
    c->done = 0;
    int r = c->source->ops->find(c->source, id, keep_row, &row, fail);
    if (r == TL_NOTFOUND)
        return TL_OK; /* removed meanwhile */
    if (r < 0)
        return tl_copy_nomem(r, fail);
    if (c->shared)
        r = c->to->ops->lease(c->to, id, &lease, fail);
    if (r >= 0)
        r = copy_row(c, &row, &outcome, fail);
    if (lease)
        c->to->ops->lease_release(lease);
    row_fini(&row);
    if (r == TL_DENIED && c->shared) { /* a server is using it */
        outcome = TL_COPY_BUSY;
        r = TL_OK;
    }
    if (r >= 0 && c->request->report)
        c->request->report(c->request->context, id, outcome, c->done);
    return r;
}

static void report_missing(const struct copy *c)
{
    for (size_t i = 0; i < c->request->n_traces; i++) {
        bool found = false;
        for (size_t k = 0; k < c->n_ids && !found; k++)
            found = strcmp(c->ids[k], c->request->traces[i]) == 0;
        if (!found && c->request->report)
            c->request->report(c->request->context, c->request->traces[i], TL_COPY_MISSING, 0);
    }
}

/* ---- images, retention ---------------------------------------------------------------------- */

struct images {
    struct tl_catalog_image *v; /* owns its strings */
    size_t n, cap;
    const struct copy *copy;
};

/* When copying selected traces: images named by their setups, and sources. */
static bool image_wanted(const struct copy *c, const struct tl_catalog_image *image)
{
    const char *const setups = (const char *)c->setups.p;
    return c->request->n_traces == 0 || strncmp(image->name, "source:", 7) == 0 ||
           strstr(setups, image->hash) ||
           (image->build_id && image->build_id[0] && strstr(setups, image->build_id));
}

static int keep_image(void *context, const struct tl_catalog_image *image)
{
    struct images *const s = context;
    if (!image_wanted(s->copy, image))
        return TL_OK;
    if (tl_grow(&s->v, &s->cap, s->n + 1, sizeof *s->v) < 0)
        return TL_NOMEM;
    struct tl_catalog_image *const one = &s->v[s->n++];
    *one = *image;
    one->hash = own(image->hash);
    one->name = own(image->name);
    one->build_id = own(image->build_id);
    return one->hash && one->name && one->build_id ? TL_OK : TL_NOMEM;
}

/* A missing image must be uploaded again; not all have a name. */
static int copy_image(struct copy *c, const struct tl_catalog_image *image, struct tl_fail *fail)
{
    struct keys keys = {0};
    char key[TL_HASH_TEXT + 8];
    uint64_t size;
    int r = TL_OK;
    for (const char *kind = "in"; *kind && r >= 0; kind++) {
        snprintf(key, sizeof key, "%c/%.64s", *kind, image->hash + 7);
        r = c->from->ops->size(c->from, key, &size, fail);
        if (r >= 0)
            r = add_key(&keys, key, size);
        r = r == TL_NOTFOUND ? TL_OK : tl_copy_nomem(r, fail);
    }
    c->id = image->name;
    if (r >= 0)
        r = copy_keys(c, &keys, fail);
    keys_fini(&keys);
    if (r >= 0)
        r = c->target->ops->add_image(c->target, image, fail);
    return r >= 0 && image->announced ? c->target->ops->announce_image(c->target, image->hash, fail)
                                      : r;
}

static int copy_images(struct copy *c, struct tl_fail *fail)
{
    struct images s = {.copy = c};
    int r = tl_copy_nomem(c->source->ops->images(c->source, keep_image, &s, fail), fail);
    for (size_t i = 0; i < s.n && r >= 0; i++)
        r = copy_image(c, &s.v[i], fail);
    for (size_t i = 0; i < s.n; i++) {
        free((void *)(uintptr_t)s.v[i].hash);
        free((void *)(uintptr_t)s.v[i].name);
        free((void *)(uintptr_t)s.v[i].build_id);
    }
    free(s.v);
    return r;
}

struct rules {
    struct {
        char *scope;
        struct tl_retention rule;
    } * v;
    size_t n, cap;
};

static int keep_rule(void *context, const char *scope, const struct tl_retention *rule)
{
    struct rules *const s = context;
    if (tl_grow(&s->v, &s->cap, s->n + 1, sizeof *s->v) < 0)
        return TL_NOMEM;
    s->v[s->n].rule = *rule;
    s->v[s->n].scope = strdup(scope);
    return s->v[s->n++].scope ? TL_OK : TL_NOMEM;
}

static void rules_fini(struct rules *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].scope);
    free(s->v);
}

/*
 * Copy rules for scopes that have none at the target. They come last: until then nothing is removed
 * by them.
 */
static int copy_retention(const struct copy *c, struct tl_fail *fail)
{
    struct rules ours = {0}, theirs = {0};
    int r = c->source->ops->retention(c->source, keep_rule, &ours, fail);
    if (r >= 0)
        r = c->target->ops->retention(c->target, keep_rule, &theirs, fail);
    r = tl_copy_nomem(r, fail);
    for (size_t i = 0; i < ours.n && r >= 0; i++) {
        bool there = false;
        for (size_t k = 0; k < theirs.n && !there; k++)
            there = strcmp(ours.v[i].scope, theirs.v[k].scope) == 0;
        if (!there)
            r = c->target->ops->set_retention(c->target, ours.v[i].scope, &ours.v[i].rule, fail);
    }
    rules_fini(&ours);
    rules_fini(&theirs);
    return r;
}

/* ---- both stores ---------------------------------------------------------------------------- */

static int any_key(void *context, const char *key, uint64_t size)
{
    *(bool *)context = true;
    return 1;
}

static int open_source(struct copy *c, struct tl_fail *fail)
{
    int r = tl_catalog_open(&c->source, c->from, fail);
    if (r >= 0 && c->source->ops->fresh(c->source))
        r = tl_fail_set(fail, TL_NOTFOUND, "there is no lake; nothing is copied");
    return r;
}

/* A store that has objects but no catalog is a damaged lake, not a new one. */
static int open_target(struct copy *c, struct tl_fail *fail)
{
    bool any = false;
    int r = tl_catalog_open(&c->target, c->to, fail);
    if (r < 0 || !c->target->ops->fresh(c->target))
        return r;
    r = c->to->ops->list(c->to, "m", any_key, &any, fail);
    if (r < 0)
        return r;
    if (any)
        return tl_fail_set(fail, TL_BAD,
                           "the store that is to be written has traces, but its catalog is lost; "
                           "start a server with it once, which makes it anew");
    r = c->target->ops->clear(c->target, fail);
    return r < 0 ? r : c->target->ops->ready(c->target, fail);
}

static int run(struct copy *c, struct tl_fail *fail)
{
    struct tl_lease *lease = NULL;
    int r = open_source(c, fail);
    if (r >= 0 && c->shared)
        r = c->to->ops->lease(c->to, "catalog", &lease, fail);
    if (r >= 0)
        r = open_target(c, fail);
    if (lease)
        c->to->ops->lease_release(lease);
    if (r >= 0)
        r = tl_copy_nomem(c->source->ops->traces(c->source, keep_id, c, fail), fail);
    if (r >= 0)
        r = tl_copy_nomem(tl_buf_add(&c->setups, "", 1), fail);
    if (r < 0)
        return r;
    report_missing(c);
    if (c->n_ids > 0 || c->request->n_traces == 0)
        r = copy_images(c, fail);
    for (size_t i = 0; i < c->n_ids && r >= 0; i++)
        r = copy_trace(c, c->ids[i], fail);
    return r >= 0 && c->request->n_traces == 0 ? copy_retention(c, fail) : r;
}

int tl_lake_copy_between(struct tl_backend *from, struct tl_backend *to,
                         const struct tl_copy_request *request, struct tl_fail *fail)
{
    struct copy c = {
        .from = from, .to = to, .request = request, .shared = to->ops->lease_ask != NULL};
    struct tl_lease *lease = NULL;
    int r = c.shared ? TL_OK : to->ops->lease(to, TL_LEASE_ALL, &lease, fail);
    if (r == TL_DENIED)
        return tl_fail_set(fail, r, "a server works with the store that is to be written; end it");
    if (r < 0)
        return r;
    c.copier = (struct tl_copier){.from = from, .to = to, .moved = moved, .context = &c};
    r = run(&c, fail);
    tl_copier_fini(&c.copier);
    for (size_t i = 0; i < c.n_ids; i++)
        free(c.ids[i]);
    free(c.ids);
    tl_buf_fini(&c.setups);
    tl_catalog_close(c.source);
    tl_catalog_close(c.target);
    if (lease)
        to->ops->lease_release(lease);
    return r;
}

/* `made`: create it if it does not exist. */
static int open_store(struct tl_backend **out, const char *place, bool made, struct tl_fail *fail)
{
    char path[4096];
    if (tl_is_rados(place))
        return tl_backend_rados(out, place, fail);
    snprintf(path, sizeof path, "%s/objects", place);
    if (!made && access(path, F_OK) != 0)
        return tl_fail_set(fail, TL_NOTFOUND, "%s is no data folder of a server", place);
    return tl_backend_folder(out, place, fail);
}

static bool same_place(const char *a, const char *b)
{
    char *const x = realpath(a, NULL), *const y = realpath(b, NULL);
    const bool same = strcmp(a, b) == 0 || (x && y && strcmp(x, y) == 0);
    free(x);
    free(y);
    return same;
}

int tl_lake_copy(const struct tl_copy_request *request, struct tl_fail *fail)
{
    struct tl_backend *from = NULL, *to = NULL;
    if (same_place(request->from, request->to))
        return tl_fail_set(fail, TL_USAGE, "%s and %s are the same store", request->from,
                           request->to);
    int r = open_store(&from, request->from, false, fail);
    if (r >= 0)
        r = open_store(&to, request->to, true, fail);
    if (r >= 0)
        r = tl_lake_copy_between(from, to, request, fail);
    tl_backend_free(to);
    tl_backend_free(from);
    return r;
}
