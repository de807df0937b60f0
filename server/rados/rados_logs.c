/* SPDX-License-Identifier: MIT */
/*
 * Logs: an index entry names the pieces with their bytes and how many bytes are valid.
 *
 * Writes go to pieces with a name of the handle's own, many at a time; a sync waits for them and
 * then updates the entry, which fails for a former holder of the lease: what it wrote is in pieces
 * that no entry names. Others see what was synced.
 */
#include "rados/rados_int.h"

#include <stdio.h>
#include <stdlib.h>

/* The blocks of a segment are found one after another. A small read also fetches the bytes that
 * follow, which are considered current for a moment. */
#define AHEAD_BYTES (128u << 10)
#define AHEAD_MS    100

struct rados_log {
    struct tl_log base;
    struct tl_rados *r;
    pthread_mutex_t lock;
    /* Guarded by the lock: */
    struct tl_entry entry; /* includes what was written since the last sync */
    struct tl_buf stored;  /* the entry as stored in the index */
    uint64_t synced;       /* its size */
    bool dirty;
    bool named;     /* `own` is a name for pieces */
    bool announced; /* `own` has an intent, which the first sync removes */
    struct tl_extent own;
    struct tl_flight flight;
    bool begun; /* a sync; its result so far, and if that is none the change of the entry: */
    int begun_result;
    struct tl_fail begun_fail;
    struct tl_change change;
    struct tl_flight change_flight;
    struct tl_buf next;  /* what it stores */
    struct tl_buf ahead; /* bytes from `ahead_at` on, as of `ahead_ms` */
    uint64_t ahead_at;
    int64_t ahead_ms;
    char key[TL_ENTRY_KEY]; /* "k/" and the log's key */
};

static struct rados_log *log_of(struct tl_log *log)
{
    return (struct rados_log *)log;
}

static struct tl_bytes owner_of(const struct rados_log *log)
{
    return tl_key_owner(log->key + 2);
}

static int no_memory(struct tl_fail *fail)
{
    return tl_fail_set(fail, TL_NOMEM, "no memory");
}

/* Read the entry from the index. */
static int refresh_locked(struct rados_log *log, struct tl_fail *fail)
{
    struct tl_buf now = {0};
    struct tl_entry entry = {0};
    int rc = tl_entry_get(log->r, log->key + 2, &now, &entry, fail);
    if (rc >= 0 && entry.kind == 'I') /* not a log: read it as an object */
        rc = tl_fail_set(fail, TL_USAGE, "%s is not a log", log->key + 2);
    if (rc < 0) {
        tl_entry_fini(&entry);
        tl_buf_fini(&now);
        return rc;
    }
    tl_entry_fini(&log->entry);
    tl_buf_fini(&log->stored);
    log->entry = entry;
    log->stored = now;
    log->synced = entry.size;
    return TL_OK;
}

static int create_locked(struct rados_log *log, struct tl_fail *fail)
{
    struct tl_change change;
    struct tl_buf value = {0};
    const struct tl_entry empty = {.kind = 'L'};
    int rc = tl_entry_write(&empty, &value) < 0 ? no_memory(fail) : TL_OK;
    if (rc >= 0)
        rc = tl_change_begin_key(&change, log->r, log->key + 2, fail);
    if (rc >= 0) {
        tl_change_expect(&change, log->key, tl_text(""));
        tl_change_set(&change, log->key, (struct tl_bytes){value.p, value.n});
        rc = tl_change_commit(&change, fail);
    }
    tl_buf_fini(&value);
    return rc == TL_AGAIN ? TL_OK : rc;
}

int tl_rados_log_open(struct tl_backend *backend, const char *key, bool create, struct tl_log **out,
                      uint64_t *size, struct tl_fail *fail)
{
    uint64_t all, own;
    if (!tl_key_valid(key))
        return tl_fail_set(fail, TL_USAGE, "\"%.64s\" is not a key", key);
    int rc =
        create ? tl_rados_guard(tl_rados_of(backend), tl_key_owner(key), &all, &own, fail) : TL_OK;
    if (rc < 0)
        return rc;
    struct rados_log *const log = calloc(1, sizeof(*log));
    if (!log)
        return no_memory(fail);
    log->base.ops = backend->ops;
    log->r = tl_rados_of(backend);
    tl_entry_key(log->key, key);
    pthread_mutex_init(&log->lock, NULL);
    rc = refresh_locked(log, fail);
    if (rc == TL_NOTFOUND && create) {
        rc = create_locked(log, fail);
        if (rc >= 0)
            rc = refresh_locked(log, fail);
    }
    if (rc < 0) {
        tl_rados_log_close(&log->base);
        return rc;
    }
    *size = log->entry.size;
    *out = &log->base;
    return TL_OK;
}

/* Choose a name for pieces in which no valid data is overwritten. */
static int name_locked(struct rados_log *log, uint64_t offset, struct tl_fail *fail)
{
    struct tl_change change;
    if (log->named && offset >= log->synced)
        return TL_OK;
    int rc = tl_change_begin_key(&change, log->r, log->key + 2, fail);
    if (rc < 0)
        return rc;
    const struct tl_extent own = tl_piece_new(log->r, offset, 0);
    tl_intent_set(&change, &own);
    rc = tl_change_commit(&change, fail);
    if (rc < 0)
        return rc;
    log->own = own;
    log->named = log->announced = true;
    return TL_OK;
}

int tl_rados_log_write(struct tl_log *base, uint64_t offset, const struct tl_bytes *parts,
                       size_t n_parts, struct tl_fail *fail)
{
    struct rados_log *const log = log_of(base);
    uint64_t n = 0, all, own;
    for (size_t i = 0; i < n_parts; i++)
        n += parts[i].n;
    pthread_mutex_lock(&log->lock);
    int rc = tl_rados_guard(log->r, owner_of(log), &all, &own, fail);
    if (rc >= 0 && offset > log->entry.size)
        rc = tl_fail_set(fail, TL_USAGE, "%s: a write would leave a hole", log->key + 2);
    if (rc >= 0 && n > 0)
        rc = name_locked(log, offset, fail);
    if (rc >= 0 && n > 0) {
        const struct tl_extent x = {log->own.session, log->own.serial, offset, offset + n};
        tl_buf_fini(&log->ahead);
        tl_pieces_write(&log->flight, log->r, &x, offset, parts, n_parts);
        log->dirty = true;
        if (log->flight.failed < 0)
            rc = tl_rados_refused(fail, log->flight.failed, "write", log->key + 2);
        else if (tl_entry_place(&log->entry, &x) < 0)
            rc = no_memory(fail);
    }
    pthread_mutex_unlock(&log->lock);
    return rc;
}

/* `known`: by the entry as it was read earlier, if that is current still; else TL_NOTFOUND. */
static int read_locked(struct rados_log *log, uint64_t offset, size_t n, bool known,
                       struct tl_buf *out, struct tl_fail *fail)
{
    const uint64_t there = offset < log->entry.size ? log->entry.size - offset : 0;
    const size_t some = n < there ? n : (size_t)there;
    if (known)
        return tl_pieces_read_known(log->r, log->key + 2, &log->stored, &log->entry, offset, some,
                                    out)
                   ? TL_OK
                   : TL_NOTFOUND;
    return some == 0 ? TL_OK
                     : tl_pieces_read(log->r, &log->entry, offset, some, out, log->key + 2, fail);
}

/* Take bytes that were read ahead; they are dropped after the last one. */
static bool take_ahead_locked(struct rados_log *log, uint64_t offset, size_t n, struct tl_buf *out)
{
    const uint64_t end = log->ahead_at + log->ahead.n;
    if (log->dirty || offset < log->ahead_at || offset + n > end || n == 0 ||
        tl_monotonic_ms() - log->ahead_ms > AHEAD_MS ||
        tl_buf_add(out, log->ahead.p + (offset - log->ahead_at), n) < 0)
        return false;
    if (offset + n == end)
        tl_buf_fini(&log->ahead);
    return true;
}

/* Called if nothing is pending. */
static int read_ahead_locked(struct rados_log *log, uint64_t offset, size_t n, bool known,
                             struct tl_buf *out, struct tl_fail *fail)
{
    const int64_t now = tl_monotonic_ms();
    tl_buf_reset(&log->ahead);
    const int rc = read_locked(log, offset, AHEAD_BYTES, known, &log->ahead, fail);
    log->ahead_at = offset;
    log->ahead_ms = now;
    if (rc < 0) {
        tl_buf_fini(&log->ahead);
        return rc;
    }
    const size_t some = n < log->ahead.n ? n : log->ahead.n;
    const bool whole = some == log->ahead.n;
    const int added = some > 0 && tl_buf_add(out, log->ahead.p, some) < 0 ? no_memory(fail) : TL_OK;
    if (whole || added < 0)
        tl_buf_fini(&log->ahead);
    return added;
}

static int read_some_locked(struct rados_log *log, uint64_t offset, size_t n, bool known,
                            struct tl_buf *out, struct tl_fail *fail)
{
    return !log->dirty && n < AHEAD_BYTES ? read_ahead_locked(log, offset, n, known, out, fail)
                                          : read_locked(log, offset, n, known, out, fail);
}

/* The log may have grown, and its pieces may have been dropped, since the entry was read. */
static int read_clean_locked(struct rados_log *log, uint64_t offset, size_t n, struct tl_buf *out,
                             struct tl_fail *fail)
{
    int rc = TL_NOTFOUND;
    if (offset < log->entry.size && n <= log->entry.size - offset)
        rc = read_some_locked(log, offset, n, true, out, NULL);
    for (int tries = 0; rc == TL_NOTFOUND && tries < 2; tries++) {
        rc = refresh_locked(log, fail);
        if (rc >= 0)
            rc = read_some_locked(log, offset, n, false, out, fail);
    }
    return rc;
}

/* Wait for writes in flight: librados does not order reads after writes. */
int tl_rados_log_read(struct tl_log *base, uint64_t offset, size_t n, struct tl_buf *out,
                      struct tl_fail *fail)
{
    struct rados_log *const log = log_of(base);
    int rc = TL_OK;
    pthread_mutex_lock(&log->lock);
    if (!take_ahead_locked(log, offset, n, out)) {
        const int landed = log->dirty ? tl_flight_land(&log->flight) : 0;
        if (landed < 0) {
            log->flight.failed = landed; /* the sync must also report it */
            rc = tl_rados_refused(fail, landed, "write", log->key + 2);
        } else {
            rc = log->dirty ? read_some_locked(log, offset, n, false, out, fail)
                            : read_clean_locked(log, offset, n, out, fail);
        }
    }
    pthread_mutex_unlock(&log->lock);
    return rc;
}

/* Start storing the entry in the index, in place of the previous one; store_end_locked() follows.
 */
static int store_begin_locked(struct rados_log *log, struct tl_fail *fail)
{
    struct tl_change *const change = &log->change;
    struct tl_entry before = {0};
    tl_buf_reset(&log->next);
    int rc = tl_entry_write(&log->entry, &log->next) < 0 ||
                     tl_entry_parse(&before, (struct tl_bytes){log->stored.p, log->stored.n}) < 0
                 ? no_memory(fail)
                 : TL_OK;
    if (rc >= 0)
        rc = tl_change_begin_key(change, log->r, log->key + 2, fail);
    if (rc >= 0) {
        tl_change_expect(change, log->key, (struct tl_bytes){log->stored.p, log->stored.n});
        tl_change_set(change, log->key, (struct tl_bytes){log->next.p, log->next.n});
        if (log->announced) {
            tl_intent_expect(change, &log->own);
            tl_intent_remove(change, &log->own);
        }
        tl_pieces_drop(change, &before, &log->entry);
        tl_change_submit(change, &log->change_flight);
    }
    tl_entry_fini(&before);
    return rc;
}

static int store_end_locked(struct rados_log *log, struct tl_fail *fail)
{
    struct tl_entry before = {0};
    int rc = tl_change_land(&log->change, &log->change_flight, fail);
    if (rc == TL_AGAIN) {
        /* Done by an attempt whose answer was lost, or by another process. */
        struct tl_buf now = {0};
        rc = tl_index_get(log->r, owner_of(log), log->key, &now, fail);
        if (rc >= 0 && (now.n != log->next.n || memcmp(now.p, log->next.p, now.n) != 0))
            rc = tl_fail_set(fail, TL_DENIED, "%s: another process writes it", log->key + 2);
        tl_buf_fini(&now);
    }
    if (rc < 0)
        return rc;
    /* Without memory for this they stay announced, and are removed when this process has ended. */
    if (tl_entry_parse(&before, (struct tl_bytes){log->stored.p, log->stored.n}) >= 0)
        tl_pieces_discard(log->r, owner_of(log), &before, &log->entry);
    tl_entry_fini(&before);
    tl_buf_fini(&log->stored);
    log->stored = log->next;
    log->next = (struct tl_buf){0};
    log->synced = log->entry.size;
    log->dirty = false;
    log->announced = false;
    if (log->entry.n == 0)
        log->named = false; /* its pieces were removed with the rest */
    return rc;
}

/* Wait for the bytes, then start storing the entry. */
static int sync_begin_locked(struct rados_log *log, struct tl_fail *fail)
{
    uint64_t all, own;
    const int rc = tl_rados_guard(log->r, owner_of(log), &all, &own, fail);
    const int landed = tl_flight_land(&log->flight);
    if (rc < 0)
        return rc;
    if (landed < 0)
        return tl_rados_refused(fail, landed, "write", log->key + 2);
    return log->dirty ? store_begin_locked(log, fail) : TL_OK;
}

void tl_rados_log_sync_begin(struct tl_log *base)
{
    struct rados_log *const log = log_of(base);
    pthread_mutex_lock(&log->lock);
    log->begun_fail = (struct tl_fail){0};
    log->begun_result = sync_begin_locked(log, &log->begun_fail);
    log->begun = true;
    pthread_mutex_unlock(&log->lock);
}

int tl_rados_log_sync(struct tl_log *base, struct tl_fail *fail)
{
    struct rados_log *const log = log_of(base);
    pthread_mutex_lock(&log->lock);
    int rc = log->begun_result;
    if (!log->begun)
        rc = sync_begin_locked(log, fail);
    else if (rc < 0 && fail)
        *fail = log->begun_fail;
    log->begun = false;
    if (rc >= 0 && log->dirty)
        rc = store_end_locked(log, fail);
    pthread_mutex_unlock(&log->lock);
    return rc;
}

int tl_rados_log_truncate(struct tl_log *base, uint64_t size, struct tl_fail *fail)
{
    struct rados_log *const log = log_of(base);
    uint64_t all, own;
    pthread_mutex_lock(&log->lock);
    int rc = tl_rados_guard(log->r, owner_of(log), &all, &own, fail);
    const int landed = tl_flight_land(&log->flight);
    if (rc >= 0 && landed < 0 && size > log->synced)
        rc = tl_rados_refused(fail, landed, "write", log->key + 2);
    tl_buf_fini(&log->ahead);
    if (rc >= 0 && size < log->entry.size) {
        tl_entry_cut(&log->entry, size);
        rc = store_begin_locked(log, fail);
        if (rc >= 0)
            rc = store_end_locked(log, fail);
    }
    pthread_mutex_unlock(&log->lock);
    return rc;
}

void tl_rados_log_close(struct tl_log *base)
{
    if (!base)
        return;
    struct rados_log *const log = log_of(base);
    (void)!tl_flight_land(&log->flight);
    (void)!tl_flight_land(&log->change_flight);
    tl_buf_fini(&log->next);
    tl_entry_fini(&log->entry);
    tl_buf_fini(&log->stored);
    tl_buf_fini(&log->ahead);
    pthread_mutex_destroy(&log->lock);
    free(log);
}
