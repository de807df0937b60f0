/* SPDX-License-Identifier: MIT */
/*
 * Detection of changes to the traces' rows by any server. Each change gives an index object a new
 * version, so that only objects with a changed version are read; the checksums of their rows are
 * kept for comparison.
 */
#include "rados/rados_rows.h"

#include <stdlib.h>

#define ASKED 16 /* objects whose version is requested at the same time */

struct tl_seen {
    uint64_t version; /* of the object; 0: it was not read */
    /* For each trace the checksum (4 bytes) and NUL-terminated name, in order. */
    struct tl_buf rows;
    struct tl_catalog_totals totals;
};

void tl_rados_seen_free(struct tl_rados_catalog *c)
{
    for (unsigned i = 0; c->seen && i < c->r->n_index; i++)
        tl_buf_fini(&c->seen[i].rows);
    free(c->seen);
    c->seen = NULL;
}

/* Get the versions of objects [first, first + n). Returns the result of librados. */
static int versions(struct tl_rados *r, unsigned first, unsigned n, uint64_t *out)
{
    rados_completion_t asked[ASKED];
    uint64_t size[ASKED];
    time_t when[ASKED];
    char oid[24];
    unsigned n_asked = 0;
    int rc = 0;
    for (; n_asked < n && rc >= 0; n_asked++) {
        rc = tl_librados.aio_create_completion2(NULL, NULL, &asked[n_asked]);
        if (rc < 0)
            break;
        rc = tl_librados.aio_stat(r->io, tl_index_at(oid, first + n_asked), asked[n_asked],
                                  &size[n_asked], &when[n_asked]);
        if (rc < 0) {
            tl_librados.aio_release(asked[n_asked]);
            break;
        }
    }
    for (unsigned i = 0; i < n_asked; i++) {
        tl_librados.aio_wait_for_complete(asked[i]);
        const int done = tl_librados.aio_get_return_value(asked[i]);
        out[i] = tl_librados.aio_get_version(asked[i]);
        tl_librados.aio_release(asked[i]);
        rc = rc < 0 ? rc : done;
    }
    return rc;
}

struct change_call {
    tl_each_change *each;
    void *context;
    const uint8_t *old, *old_end; /* rows of the last time, to be compared */
    struct tl_buf *now;
    struct tl_catalog_totals totals;
    struct tl_fail *fail;
};

static void add_row(struct tl_catalog_totals *totals, const struct tl_catalog_trace *t)
{
    totals->states[t->state & 3]++;
    if (t->state < TL_TRACE_SEALED)
        return;
    totals->raw_bytes += t->raw_removed ? 0 : t->raw_bytes;
    totals->stored_bytes += t->stored_bytes;
    totals->insns += t->insns;
}

static void add_up(struct tl_catalog_totals *to, const struct tl_catalog_totals *from)
{
    for (size_t i = 0; i < sizeof to->states / sizeof *to->states; i++)
        to->states[i] += from->states[i];
    to->raw_bytes += from->raw_bytes;
    to->stored_bytes += from->stored_bytes;
    to->insns += from->insns;
}

/* Report rows of last time before this name (NULL: all that are left) as gone. */
static int report_gone(struct change_call *call, const char *name)
{
    int r = TL_OK;
    while (r >= 0 && call->old < call->old_end) {
        const char *const id = (const char *)call->old + 4;
        if (name && strcmp(id, name) >= 0)
            break;
        r = call->each(call->context, id, NULL);
        call->old += 4 + strlen(id) + 1;
    }
    return r;
}

static int take_row(void *context, const char *key, struct tl_bytes value)
{
    struct change_call *const call = context;
    const char *const id = key + 2;
    struct tl_catalog_trace t;
    int r = tl_row_read_trace(&t, key, value, call->fail); /* so it has a checksum */
    if (r >= 0) {
        add_row(&call->totals, &t);
        r = report_gone(call, id);
    }
    const uint8_t *const crc = value.p + value.n - 4;
    bool same = false;
    if (r >= 0 && call->old < call->old_end && strcmp((const char *)call->old + 4, id) == 0) {
        same = memcmp(call->old, crc, 4) == 0;
        call->old += 4 + strlen(id) + 1;
    }
    if (r >= 0 && !same)
        r = call->each(call->context, id, &t);
    if (r >= 0)
        r = tl_buf_add(call->now, crc, 4);
    return r < 0 ? r : tl_buf_add(call->now, id, strlen(id) + 1);
}

static int read_object(struct tl_rados_catalog *c, unsigned i, uint64_t version,
                       struct change_call *call)
{
    struct tl_seen *const seen = &c->seen[i];
    struct tl_buf now = {0};
    char oid[24];
    call->old = seen->rows.p;
    call->old_end = seen->rows.p + seen->rows.n;
    call->now = &now;
    call->totals = (struct tl_catalog_totals){0};
    int r = tl_omap_scan(c->r, tl_index_at(oid, i), "T/", "", take_row, call, call->fail);
    if (r >= 0)
        r = report_gone(call, NULL);
    if (r < 0) {
        tl_buf_fini(&now);
        return r;
    }
    tl_buf_fini(&seen->rows);
    seen->rows = now;
    seen->version = version;
    seen->totals = call->totals;
    return TL_OK;
}

int tl_rados_changes(struct tl_catalog *catalog, tl_each_change *each, void *context,
                     struct tl_fail *fail)
{
    struct tl_rados_catalog *const c = (struct tl_rados_catalog *)catalog;
    struct change_call call = {.each = each, .context = context, .fail = fail};
    if (!c->seen && !(c->seen = calloc(c->r->n_index, sizeof *c->seen)))
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    int r = TL_OK;
    for (unsigned first = 0; r >= 0 && first < c->r->n_index; first += ASKED) {
        uint64_t version[ASKED];
        const unsigned left = c->r->n_index - first, n = left < ASKED ? left : ASKED;
        const int rc = versions(c->r, first, n, version);
        if (rc < 0)
            r = tl_rados_refused(fail, rc, "look at", "the catalog");
        for (unsigned i = 0; r >= 0 && i < n; i++)
            if (version[i] != c->seen[first + i].version)
                r = read_object(c, first + i, version[i], &call);
    }
    struct tl_catalog_totals totals = {0};
    for (unsigned i = 0; i < c->r->n_index; i++)
        add_up(&totals, &c->seen[i].totals);
    pthread_mutex_lock(&c->lock);
    c->totals = totals;
    pthread_mutex_unlock(&c->lock);
    return r;
}

int tl_rados_totals(struct tl_catalog *catalog, struct tl_catalog_totals *out, struct tl_fail *fail)
{
    struct tl_rados_catalog *const c = (struct tl_rados_catalog *)catalog;
    (void)fail;
    pthread_mutex_lock(&c->lock);
    *out = c->totals;
    pthread_mutex_unlock(&c->lock);
    return TL_OK;
}
