/* SPDX-License-Identifier: MIT */
/*
 * The catalog in the index objects: its function table, images, rules, and operations on the whole.
 * rados_rows.h describes the layout. Servers of a cluster share it, so that a change is one
 * operation, which fails if another server was first.
 */
#include "base/cancel.h"
#include "rados/rados_rows.h"

#include <stdio.h>
#include <stdlib.h>

#define READY "ready" /* key in the root: the catalog was filled once */

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
    now.announced = false;
    const int r = set_image(tl_rados_backing(catalog), &now, tl_wall_ns(), tl_text(""), fail);
    return r == TL_AGAIN ? TL_OK : r; /* it exists */
}

/* Nothing else in it changes, so that a failed condition shows that another server has done it. */
static int announce_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_backing(catalog);
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
    const int r = tl_change_begin(&change, tl_rados_backing(catalog), tl_text(hash), fail);
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

struct image_call {
    tl_each_image *each;
    void *context;
    struct tl_fail *fail;
};

static int image_row(void *context, const char *key, struct tl_bytes value)
{
    const struct image_call *const call = context;
    struct tl_catalog_image image;
    int64_t created_ns;
    const int r = read_image(&image, key, value, &created_ns, call->fail);
    return r < 0 ? r : call->each(call->context, &image);
}

static int images(struct tl_catalog *catalog, tl_each_image *each, void *context,
                  struct tl_fail *fail)
{
    struct image_call call = {each, context, fail};
    return tl_rows_by_age(tl_rados_backing(catalog), "I/", image_age, image_row, &call, fail);
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
        r = tl_change_begin(&change, tl_rados_backing(catalog), tl_text(RULES), fail);
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
    tl_each_rule *each;
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

static int retention(struct tl_catalog *catalog, tl_each_rule *each, void *context,
                     struct tl_fail *fail)
{
    struct rule_call call = {each, context, fail};
    return tl_index_scan(tl_rados_backing(catalog), tl_text(RULES), "C/", "", rule_row, &call,
                         fail);
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
    const int rc = tl_rados_write(tl_rados_backing(catalog), TL_ROOT, op);
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
    struct tl_rados *const r = tl_rados_backing(catalog);
    struct tl_flight flight = {0};
    for (unsigned i = 0; i < r->n_index; i++) {
        char oid[24];
        const rados_write_op_t op = tl_librados.create_write_op();
        for (const char *kind = "TASNRHYI"; *kind; kind++)
            tl_librados.write_op_omap_rm_range2(op, (char[]){*kind, '/'}, 2, (char[]){*kind, '0'},
                                                2);
        tl_flight_write(&flight, r, tl_index_at(oid, i), op);
    }
    const int rc = tl_flight_land(&flight);
    return rc < 0 ? tl_rados_refused(fail, rc, "clear", "the catalog") : TL_OK;
}

struct check {
    tl_each_finding *each;
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

/* A quick check would read no rows beyond normal operation: only a full check does anything. */
static int check(struct tl_catalog *catalog, bool whole, tl_each_finding *each, void *context,
                 struct tl_fail *fail)
{
    struct check c = {each, context};
    int r = TL_OK;
    for (const char *kind = "TNRHYIC"; whole && r >= 0 && *kind; kind++)
        r = tl_index_scan_all(tl_rados_backing(catalog), (char[]){*kind, '/', '\0'}, check_row, &c,
                              fail);
    return r < 0 ? r : TL_OK;
}

static void close_catalog(struct tl_catalog *catalog)
{
    struct tl_rados_catalog *const c = (struct tl_rados_catalog *)catalog;
    tl_rados_seen_free(c);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Finished or not, changed rows are reported by tl_rados_changes(). */
static int unfinished(struct tl_catalog *catalog, tl_each_trace *each, void *context,
                      struct tl_fail *fail)
{
    (void)catalog, (void)each, (void)context, (void)fail;
    return TL_UNSUPPORTED;
}

static const struct tl_catalog_ops ops = {
    .close = close_catalog,
    .fresh = fresh,
    .ready = ready,
    .clear = clear,
    .check = check,
    .add_trace = tl_rados_add_trace,
    .update_trace = tl_rados_update_trace,
    .remove_traces = tl_rados_remove_traces,
    .page = tl_rados_page,
    .unfinished = unfinished,
    .by_content = tl_rados_by_content,
    .totals = tl_rados_totals,
    .traces = tl_rados_traces,
    .find = tl_rados_find,
    .changes = tl_rados_changes,
    .set_label = tl_rados_set_label,
    .labels = tl_rados_labels,
    .put_note = tl_rados_put_note,
    .remove_note = tl_rados_remove_note,
    .notes = tl_rados_notes,
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
    int rc = tl_omap_get(r, TL_ROOT, READY, &mark, fail);
    const bool is_fresh = rc == TL_NOTFOUND;
    tl_buf_fini(&mark);
    if (rc >= 0 || is_fresh)
        rc = tl_rados_name_all(r, is_fresh, fail);
    if (rc < 0)
        return rc;
    struct tl_rados_catalog *const c = calloc(1, sizeof *c);
    if (!c)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    *c = (struct tl_rados_catalog){.base = {&ops}, .r = r, .fresh = is_fresh};
    pthread_mutex_init(&c->lock, NULL);
    *out = &c->base;
    return TL_OK;
}
