/* SPDX-License-Identifier: MIT */
/*
 * Traces by age and by content: additional keys that name the row in another order. A key may be
 * left behind by an operation of a dead server; the row is authoritative.
 */
#include "rados/rados_rows.h"

#include <stdio.h>
#include <stdlib.h>

char *tl_row_age_key(char out[static TL_ROW_KEY], int64_t created_ns, const char *id)
{
    /* Keys sort in descending age, the newest first. */
    snprintf(out, TL_ROW_KEY, "A/%016llx/%.200s", ~(unsigned long long)created_ns, id);
    return out;
}

char *tl_row_content_key(char out[static TL_ROW_KEY], const char *content, const char *id)
{
    snprintf(out, TL_ROW_KEY, "S/%.80s/%.200s", content, id);
    return out;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* NUL-terminated keys. */
struct keys {
    struct tl_buf text;
    size_t n;
};

static int take_key(void *context, const char *key, struct tl_bytes value)
{
    struct keys *const keys = context;
    (void)value;
    keys->n++;
    return tl_buf_add(&keys->text, key, strlen(key) + 1);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys in order; free the result. */
static const char **sorted(const struct keys *keys)
{
    const char **const out = calloc(keys->n + 1, sizeof *out);
    const char *p = (const char *)keys->text.p;
    for (size_t i = 0; out && i < keys->n; i++) {
        out[i] = p;
        p += strlen(p) + 1;
    }
    if (out)
        qsort(out, keys->n, sizeof *out, by_text);
    return out;
}

/* "A/<16 digits>/<trace>" */
static const char *name_in(const char *key)
{
    return key + 2 + 16 + 1;
}

struct page {
    char place[TL_HEAD_END]; /* key after which it begins, then its last one */
    size_t left;             /* number of rows it may still receive */
    bool more;
};

/* Add to a page: one round over all objects. */
static int add_to_page(struct tl_catalog *catalog, struct page *page, tl_each_trace *each,
                       void *context, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_backing(catalog);
    struct keys keys = {0};
    char end[TL_HEAD_END];
    /* Twice the average number per object. */
    const unsigned most = (unsigned)(2 * page->left / r->n_index) + 4;
    int rc = tl_index_heads(r, "A/", page->place, most, end, take_key, &keys, fail);
    const char **const order = rc < 0 ? NULL : sorted(&keys);
    if (rc >= 0 && !order)
        rc = tl_fail_set(fail, TL_NOMEM, "no memory");
    size_t i = 0;
    for (; rc >= 0 && i < keys.n && page->left > 0; i++) {
        if (*end && strcmp(order[i], end) > 0)
            break;
        rc = tl_rados_find(catalog, name_in(order[i]), each, context, fail);
        page->left -= rc >= 0;
        rc = rc == TL_NOTFOUND ? TL_OK : rc;
        snprintf(page->place, sizeof page->place, "%s", order[i]);
    }
    page->more = *end || i < keys.n;
    free(order);
    tl_buf_fini(&keys.text);
    return rc;
}

int tl_rados_page(struct tl_catalog *catalog, const struct tl_trace_place *after_name, size_t most,
                  tl_each_trace *each, void *context, struct tl_fail *fail)
{
    struct page page = {.left = most, .more = true};
    char key[TL_ROW_KEY];
    if (after_name)
        snprintf(page.place, sizeof page.place, "%s",
                 tl_row_age_key(key, after_name->created_ns, after_name->id));
    int r = TL_OK;
    while (r >= 0 && page.more && page.left > 0)
        r = add_to_page(catalog, &page, each, context, fail);
    return r < 0 ? r : page.more;
}

/* ---- content -------------------------------------------------------------------------------- */

struct newest {
    const char *content;
    int64_t created_ns;
    char id[64];
};

static int take_newest(void *context, const struct tl_catalog_trace *t)
{
    struct newest *const newest = context;
    if (strcmp(t->content, newest->content) == 0 &&
        (!*newest->id || t->created_ns > newest->created_ns)) {
        newest->created_ns = t->created_ns;
        snprintf(newest->id, sizeof newest->id, "%s", t->id);
    }
    return TL_OK;
}

int tl_rados_by_content(struct tl_catalog *catalog, const char *content, tl_each_trace *each,
                        void *context, struct tl_fail *fail)
{
    struct keys keys = {0};
    struct newest newest = {.content = content};
    char prefix[TL_ROW_KEY];
    int r = tl_index_scan_all(tl_rados_backing(catalog), tl_row_content_key(prefix, content, ""),
                              take_key, &keys, fail);
    const char *p = (const char *)keys.text.p;
    for (size_t i = 0; r >= 0 && i < keys.n; i++, p += strlen(p) + 1) {
        r = tl_rados_find(catalog, p + strlen(prefix), take_newest, &newest, fail);
        r = r == TL_NOTFOUND ? TL_OK : r;
    }
    tl_buf_fini(&keys.text);
    if (r < 0)
        return r;
    return *newest.id ? tl_rados_find(catalog, newest.id, each, context, fail) : TL_NOTFOUND;
}

/* ---- stores of an earlier layout ------------------------------------------------------------ */

struct naming {
    struct tl_rados *r;
    struct tl_flight flight;
    struct tl_fail *fail;
};

static int name_row(void *context, const char *key, struct tl_bytes value)
{
    struct naming *const n = context;
    struct tl_catalog_trace t;
    char name[TL_ROW_KEY], oid[24];
    const int r = tl_row_read_trace(&t, key, value, n->fail);
    if (r < 0)
        return r;
    const rados_write_op_t op = tl_librados.create_write_op();
    tl_op_set(op, tl_row_age_key(name, t.created_ns, t.id), tl_text(""));
    if (*t.content)
        tl_op_set(op, tl_row_content_key(name, t.content, t.id), tl_text(""));
    tl_flight_write(&n->flight, n->r, tl_index_of(oid, n->r, tl_text(t.id)), op);
    return TL_OK;
}

int tl_rados_name_all(struct tl_rados *r, bool fresh, struct tl_fail *fail)
{
    struct naming n = {.r = r, .fail = fail};
    char text[32];
    if (r->layout == TL_LAYOUT)
        return TL_OK;
    /* Rows of a catalog that is set aside are removed; a damaged row must not prevent that. */
    const int rc = fresh ? TL_OK : tl_index_scan_all(r, "T/", name_row, &n, fail);
    int done = tl_flight_land(&n.flight);
    if (rc < 0)
        return rc;
    if (done < 0)
        return tl_rados_refused(fail, done, "bring up to date", "the catalog");
    snprintf(text, sizeof text, "%u %u", TL_LAYOUT, r->n_index);
    const rados_write_op_t op = tl_librados.create_write_op();
    tl_op_set(op, "layout", tl_text(text));
    done = tl_rados_write(r, TL_ROOT, op);
    if (done < 0)
        return tl_rados_refused(fail, done, "bring up to date", "the catalog");
    r->layout = TL_LAYOUT;
    return TL_OK;
}
