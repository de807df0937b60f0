/* SPDX-License-Identifier: MIT */
/*
 * Modifies and reads the index. A change is one operation that checks the lease's epoch, so that a
 * server that has lost a trace cannot change it.
 */
#include "base/hash.h"
#include "rados/rados_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE 1000 /* entries per read */

char *tl_index_at(char oid[static 24], unsigned i)
{
    snprintf(oid, 24, "index.%u", i);
    return oid;
}

char *tl_index_of(char oid[static 24], const struct tl_rados *r, struct tl_bytes owner)
{
    const uint64_t h = tl_fnv(TL_FNV, owner.p, owner.n); /* determines the placement permanently */
    return tl_index_at(oid, (unsigned)((h ^ h >> 32) % r->n_index));
}

/* ---- changes -------------------------------------------------------------------------------- */

void tl_op_set(rados_write_op_t op, const char *key, struct tl_bytes value)
{
    const char *const bytes = (const char *)value.p;
    const size_t length = strlen(key);
    tl_librados.write_op_omap_set2(op, &key, &bytes, &length, &value.n, 1);
}

void tl_op_remove(rados_write_op_t op, const char *key)
{
    const size_t length = strlen(key);
    tl_librados.write_op_omap_rm_keys2(op, &key, &length, 1);
}

void tl_op_compare(rados_write_op_t op, const char *key, uint8_t comparison, struct tl_bytes value)
{
    tl_librados.write_op_omap_cmp2(op, key, comparison, (const char *)value.p, strlen(key), value.n,
                                   NULL);
}

struct tl_bytes tl_epoch_value(char out[static TL_EPOCH_TEXT + 1], uint64_t epoch)
{
    snprintf(out, TL_EPOCH_TEXT + 1, "%016llx", (unsigned long long)epoch);
    return tl_text(out);
}

char *tl_epoch_key(char out[static TL_EPOCH_KEY], struct tl_bytes name)
{
    snprintf(out, TL_EPOCH_KEY, "e/%.*s", (int)name.n, (const char *)name.p);
    return out;
}

static void expect_epoch(struct tl_change *c, const char *key, uint64_t epoch)
{
    char text[TL_EPOCH_TEXT + 1];
    tl_change_expect(c, key, tl_epoch_value(text, epoch));
}

int tl_change_begin(struct tl_change *c, struct tl_rados *r, struct tl_bytes owner,
                    struct tl_fail *fail)
{
    *c = (struct tl_change){.r = r, .owner = owner};
    const int may = tl_rados_guard(r, owner, &c->epoch_all, &c->epoch_own, fail);
    if (may < 0)
        return may;
    tl_index_of(c->oid, r, owner);
    c->op = tl_librados.create_write_op();
    if (c->epoch_all)
        expect_epoch(c, "e", c->epoch_all);
    if (c->epoch_own) {
        char key[TL_EPOCH_KEY];
        expect_epoch(c, tl_epoch_key(key, owner), c->epoch_own);
    }
    return TL_OK;
}

int tl_change_begin_trace(struct tl_change *c, struct tl_rados *r, struct tl_bytes trace,
                          struct tl_fail *fail)
{
    const int rc = tl_change_begin(c, r, trace, fail);
    if (rc < 0 || !r->needs_leases || c->epoch_all || c->epoch_own)
        return rc;
    tl_change_drop(c);
    return tl_fail_set(fail, TL_DENIED, "the lease \"%.*s\" is not held", (int)trace.n,
                       (const char *)trace.p);
}

int tl_change_begin_key(struct tl_change *c, struct tl_rados *r, const char *key,
                        struct tl_fail *fail)
{
    return (tl_key_of_trace(key) ? tl_change_begin_trace : tl_change_begin)(c, r, tl_key_owner(key),
                                                                            fail);
}

void tl_change_set(struct tl_change *c, const char *key, struct tl_bytes value)
{
    tl_op_set(c->op, key, value);
}

void tl_change_remove(struct tl_change *c, const char *key)
{
    tl_op_remove(c->op, key);
}

void tl_change_remove_range(struct tl_change *c, const char *from, const char *to)
{
    tl_librados.write_op_omap_rm_range2(c->op, from, strlen(from), to, strlen(to));
}

void tl_change_expect(struct tl_change *c, const char *key, struct tl_bytes value)
{
    tl_op_compare(c->op, key, LIBRADOS_CMPXATTR_OP_EQ, value);
}

void tl_change_expect_any(struct tl_change *c, const char *key)
{
    tl_op_compare(c->op, key, LIBRADOS_CMPXATTR_OP_GT, tl_text(""));
}

/* Is the epoch of a lease we hold still current? TL_DENIED, TL_OK; TL_IO if that is unknown. */
static int check_epoch(struct tl_change *c, const char *key, struct tl_bytes name, uint64_t epoch,
                       struct tl_fail *fail)
{
    struct tl_buf now = {0};
    char mine[TL_EPOCH_TEXT + 1];
    tl_epoch_value(mine, epoch);
    int r = tl_omap_get(c->r, c->oid, key, &now, fail);
    if (r == TL_NOTFOUND || (r >= 0 && (now.n != TL_EPOCH_TEXT || memcmp(now.p, mine, now.n)))) {
        tl_rados_lose(c->r, name, epoch);
        r = tl_fail_set(fail, TL_DENIED, "the lease \"%.*s\" was lost; stop this process",
                        (int)name.n, (const char *)name.p);
    }
    tl_buf_fini(&now);
    return r;
}

void tl_change_submit(struct tl_change *c, struct tl_flight *flight)
{
    tl_flight_write(flight, c->r, c->oid, c->op);
    c->op = NULL;
}

int tl_change_commit(struct tl_change *c, struct tl_fail *fail)
{
    struct tl_flight flight = {0};
    tl_change_submit(c, &flight);
    return tl_change_land(c, &flight, fail);
}

int tl_change_land(struct tl_change *c, struct tl_flight *flight, struct tl_fail *fail)
{
    const int rc = tl_flight_land(flight);
    tl_rados_heard(c->r, rc);
    if (rc >= 0)
        return TL_OK;
    if (rc != -ECANCELED)
        return tl_rados_refused(fail, rc, "change", c->oid);
    int r = TL_OK;
    if (c->epoch_all)
        r = check_epoch(c, "e", tl_text(TL_LEASE_ALL), c->epoch_all, fail);
    if (r >= 0 && c->epoch_own) {
        char key[TL_EPOCH_KEY];
        r = check_epoch(c, tl_epoch_key(key, c->owner), c->owner, c->epoch_own, fail);
    }
    return r < 0 ? r : TL_AGAIN;
}

void tl_change_drop(struct tl_change *c)
{
    tl_librados.release_write_op(c->op);
    c->op = NULL;
}

/* ---- reading -------------------------------------------------------------------------------- */

void tl_omap_begin(struct tl_omap_value *value, struct tl_flight *flight, struct tl_rados *r,
                   const char *oid, const char *key)
{
    const rados_read_op_t op = tl_librados.create_read_op();
    const size_t length = strlen(key);
    *value = (struct tl_omap_value){0};
    tl_librados.read_op_omap_get_vals_by_keys2(op, &key, 1, &length, &value->rows, &value->rval);
    tl_flight_read(flight, r, oid, op);
}

int tl_omap_end(struct tl_omap_value *value, int failed, const char *key, struct tl_buf *out,
                struct tl_fail *fail)
{
    char *found = NULL, *bytes = NULL;
    size_t found_n = 0, n = 0;
    int result = TL_OK;
    if (failed < 0 || value->rval < 0)
        result = tl_rados_refused(fail, failed < 0 ? failed : value->rval, "read", key);
    else if (tl_librados.omap_get_next2(value->rows, &found, &bytes, &found_n, &n) < 0 || !found)
        result = tl_fail_set(fail, TL_NOTFOUND, "%s is not in the store", key);
    else if (tl_buf_add(out, bytes, n) < 0)
        result = tl_fail_set(fail, TL_NOMEM, "no memory");
    if (value->rows)
        tl_librados.omap_get_end(value->rows);
    return result;
}

int tl_omap_get(struct tl_rados *r, const char *oid, const char *key, struct tl_buf *out,
                struct tl_fail *fail)
{
    struct tl_omap_value value;
    struct tl_flight flight = {0};
    tl_omap_begin(&value, &flight, r, oid, key);
    const int rc = tl_flight_land(&flight);
    tl_rados_heard(r, rc);
    return tl_omap_end(&value, rc, key, out, fail);
}

int tl_index_get(struct tl_rados *r, struct tl_bytes owner, const char *key, struct tl_buf *out,
                 struct tl_fail *fail)
{
    char oid[24];
    return tl_omap_get(r, tl_index_of(oid, r, owner), key, out, fail);
}

/* One page of an object's entries, filled by a read operation. */
struct page {
    rados_omap_iter_t rows;
    unsigned char more;
    int rval;
    char last[TL_HEAD_END]; /* key after which it begins, then its last one */
};

static rados_read_op_t page_op(struct page *page, const char *prefix, unsigned most)
{
    const rados_read_op_t op = tl_librados.create_read_op();
    page->rows = NULL;
    page->more = 0;
    page->rval = 0;
    tl_librados.read_op_omap_get_vals2(op, page->last, prefix, most, &page->rows, &page->more,
                                       &page->rval);
    return op;
}

static int page_each(struct page *page, tl_index_each *each, void *context)
{
    char *key = NULL, *value = NULL;
    size_t length = 0, n = 0;
    int r = TL_OK;
    while (r == TL_OK && tl_librados.omap_get_next2(page->rows, &key, &value, &length, &n) >= 0 &&
           key) {
        snprintf(page->last, sizeof page->last, "%.*s", (int)length, key);
        r = each(context, page->last, (struct tl_bytes){(const uint8_t *)value, n});
    }
    return r;
}

static int finish_page(struct page *page, int rc, const char *oid, tl_index_each *each,
                       void *context, struct tl_fail *fail)
{
    if (rc >= 0)
        rc = page->rval;
    const int r = rc < 0 ? tl_rados_refused(fail, rc, "list", oid) : page_each(page, each, context);
    if (page->rows)
        tl_librados.omap_get_end(page->rows);
    page->rows = NULL;
    return r;
}

/* Continue after the page's last key. */
static int scan_on(struct tl_rados *r, struct page *page, const char *oid, const char *prefix,
                   tl_index_each *each, void *context, struct tl_fail *fail)
{
    int result = TL_OK;
    while (result == TL_OK && page->more) {
        const int rc = tl_rados_read(r, oid, page_op(page, prefix, PAGE));
        result = finish_page(page, rc, oid, each, context, fail);
    }
    return result;
}

int tl_omap_scan(struct tl_rados *r, const char *oid, const char *prefix, const char *after_name,
                 tl_index_each *each, void *context, struct tl_fail *fail)
{
    struct page page = {.more = 1};
    snprintf(page.last, sizeof page.last, "%s", after_name);
    return scan_on(r, &page, oid, prefix, each, context, fail);
}

int tl_index_scan(struct tl_rados *r, struct tl_bytes owner, const char *prefix,
                  const char *after_name, tl_index_each *each, void *context, struct tl_fail *fail)
{
    char oid[24];
    return tl_omap_scan(r, tl_index_of(oid, r, owner), prefix, after_name, each, context, fail);
}

/*
 * Scan all objects, several at a time; `end` NULL: all their keys, otherwise as tl_index_heads().
 */
static int scan_objects(struct tl_rados *r, const char *prefix, const char *after_name,
                        unsigned most, char *end, tl_index_each *each, void *context,
                        struct tl_fail *fail)
{
    int result = TL_OK;
    for (unsigned first = 0; result == TL_OK && first < r->n_index; first += TL_FLIGHT) {
        struct page pages[TL_FLIGHT] = {{0}};
        struct tl_flight flight = {0};
        char oid[24];
        unsigned n = r->n_index - first < TL_FLIGHT ? r->n_index - first : TL_FLIGHT;
        for (unsigned i = 0; i < n; i++) {
            snprintf(pages[i].last, sizeof pages[i].last, "%s", after_name);
            tl_flight_read(&flight, r, tl_index_at(oid, first + i),
                           page_op(&pages[i], prefix, most));
        }
        const int rc = tl_flight_land(&flight);
        for (unsigned i = 0; i < n; i++) {
            tl_index_at(oid, first + i);
            if (result != TL_OK) {
                if (pages[i].rows)
                    tl_librados.omap_get_end(pages[i].rows);
                continue;
            }
            result = finish_page(&pages[i], rc, oid, each, context, fail);
            if (result == TL_OK && !end)
                result = scan_on(r, &pages[i], oid, prefix, each, context, fail);
            if (result == TL_OK && end && pages[i].more &&
                (!*end || strcmp(pages[i].last, end) < 0))
                snprintf(end, TL_HEAD_END, "%s", pages[i].last);
        }
    }
    return result;
}

int tl_index_scan_all(struct tl_rados *r, const char *prefix, tl_index_each *each, void *context,
                      struct tl_fail *fail)
{
    return scan_objects(r, prefix, "", PAGE, NULL, each, context, fail);
}

int tl_index_heads(struct tl_rados *r, const char *prefix, const char *after_name, unsigned most,
                   char end[static TL_HEAD_END], tl_index_each *each, void *context,
                   struct tl_fail *fail)
{
    *end = '\0';
    return scan_objects(r, prefix, after_name, most < PAGE ? most : PAGE, end, each, context, fail);
}
