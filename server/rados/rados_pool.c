/* SPDX-License-Identifier: MIT */
/*
 * Connects to the cluster, and runs single operations. All waiting for the cluster is here, where
 * its failures become the lake's errors.
 */
#include "rados/rados_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define SILENT_MS 1000 /* how long a cluster may be silent, in addition to the lease time */
#define FREE_MS   5000 /* between two queries of the free space */

int tl_rados_refused(struct tl_fail *fail, int rc, const char *what, const char *key)
{
    if (rc == -ENOENT)
        return tl_fail_set(fail, TL_NOTFOUND, "%s is not in the store", key);
    const enum tl_err code = rc == -ENOSPC || rc == -EDQUOT      ? TL_NOSPACE
                             : rc == -ESHUTDOWN || rc == -EACCES ? TL_DENIED
                             : rc == -ENOMEM                     ? TL_NOMEM
                                                                 : TL_IO;
    tl_fail_set(fail, code, "cannot %s %s: the cluster says: %s", what, key, strerror(-rc));
    if (fail)
        fail->sys_errno = -rc;
    return code;
}

/* ---- operations ----------------------------------------------------------------------------- */

static int finished(struct tl_flight *f, rados_completion_t done)
{
    tl_librados.aio_wait_for_complete(done);
    const int rc = tl_librados.aio_get_return_value(done);
    tl_librados.aio_release(done);
    if (f->r)
        tl_rados_note_result(f->r, rc);
    return rc;
}

void tl_rados_heard(struct tl_rados *r, int rc)
{
    if (rc != -ETIMEDOUT && rc != -ENOTCONN)
        atomic_store(&r->heard_ms, tl_monotonic_ms());
}

/* Free a slot for one more. */
static bool take_off(struct tl_flight *f, rados_completion_t *done)
{
    if (f->n == TL_FLIGHT) {
        const int rc = finished(f, f->waiting[0]);
        memmove(f->waiting, f->waiting + 1, (TL_FLIGHT - 1) * sizeof(*f->waiting));
        f->n--;
        if (rc < 0 && f->failed == 0)
            f->failed = rc;
    }
    const int rc = tl_librados.aio_create_completion2(NULL, NULL, done);
    if (rc < 0 && f->failed == 0)
        f->failed = rc;
    return rc >= 0;
}

static void submitted(struct tl_flight *f, rados_completion_t done, int rc)
{
    if (rc >= 0) {
        f->waiting[f->n++] = done;
        return;
    }
    tl_librados.aio_release(done);
    if (f->failed == 0)
        f->failed = rc;
}

void tl_flight_write(struct tl_flight *f, struct tl_rados *r, const char *oid, rados_write_op_t op)
{
    rados_completion_t done;
    f->r = r;
    if (take_off(f, &done))
        submitted(f, done, tl_librados.aio_write_op_operate(op, r->io, done, oid, NULL, 0));
    tl_librados.release_write_op(op);
}

void tl_flight_read(struct tl_flight *f, struct tl_rados *r, const char *oid, rados_read_op_t op)
{
    rados_completion_t done;
    if (take_off(f, &done))
        submitted(f, done, tl_librados.aio_read_op_operate(op, r->io, done, oid, 0));
    tl_librados.release_read_op(op);
}

int tl_flight_land(struct tl_flight *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        const int rc = finished(f, f->waiting[i]);
        if (rc < 0 && f->failed == 0)
            f->failed = rc;
    }
    const int failed = f->failed;
    *f = (struct tl_flight){0};
    return failed;
}

int tl_rados_write(struct tl_rados *r, const char *oid, rados_write_op_t op)
{
    struct tl_flight flight = {0};
    tl_flight_write(&flight, r, oid, op);
    const int rc = tl_flight_land(&flight);
    tl_rados_heard(r, rc);
    return rc;
}

int tl_rados_read(struct tl_rados *r, const char *oid, rados_read_op_t op)
{
    struct tl_flight flight = {0};
    tl_flight_read(&flight, r, oid, op);
    const int rc = tl_flight_land(&flight);
    tl_rados_heard(r, rc);
    return rc;
}

/* ---- the backend ---------------------------------------------------------------------------- */

static int rados_scratch(struct tl_backend *backend, struct tl_fail *fail)
{
    (void)backend;
    const char *const dir = getenv("TMPDIR");
    char path[4096];
    const int fd = open(dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "%s/tracelake-XXXXXX", dir ? dir : "/tmp");
    const int named = mkostemp(path, O_CLOEXEC);
    if (named < 0)
        return tl_fail_set(fail, TL_IO, "cannot make a scratch file: %s", strerror(errno));
    unlink(path);
    return named;
}

/* The keeper contacts it several times during this period. */
static int rados_usable(struct tl_backend *backend, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_of(backend);
    const long long silent = tl_monotonic_ms() - atomic_load(&r->heard_ms);
    return silent > 1000 * (long long)r->lease_s + SILENT_MS
               ? tl_fail_set(fail, TL_IO, "the cluster has not answered for %lld s", silent / 1000)
               : TL_OK;
}

/* A cluster without a manager does not know it. The monitors are queried from time to time. */
static uint64_t rados_free_bytes(struct tl_backend *backend)
{
    struct tl_rados *const r = tl_rados_of(backend);
    struct rados_cluster_stat_t stat;
    long long last = atomic_load(&r->asked_ms);
    const long long now = tl_monotonic_ms();
    if (now - last >= FREE_MS && atomic_compare_exchange_strong(&r->asked_ms, &last, now))
        atomic_store(&r->free, tl_librados.cluster_stat(r->cluster, &stat) < 0 || stat.kb == 0
                                   ? UINT64_MAX
                                   : stat.kb_avail * 1024);
    return atomic_load(&r->free);
}

static bool rados_may_commit(struct tl_backend *backend)
{
    uint64_t all, own;
    return tl_rados_guard(tl_rados_of(backend), tl_text(TL_LEASE_ALL), &all, &own, NULL) >= 0;
}

static void rados_destroy(struct tl_backend *backend)
{
    struct tl_rados *const r = tl_rados_of(backend);
    tl_rados_news_end(r);
    tl_rados_keep_end(r);
    if (r->has_io)
        tl_librados.ioctx_destroy(r->io);
    if (r->cluster)
        tl_librados.shutdown(r->cluster);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->idle);
    tl_rados_news_fini(&r->news);
    pthread_mutex_destroy(&r->kept_lock);
    for (size_t i = 0; i < TL_ENTRIES_KEPT; i++)
        tl_buf_fini(&r->kept[i].value);
    free(r);
}

static const struct tl_backend_ops rados_ops = {
    .name = "rados",
    .destroy = rados_destroy,
    .put_all = tl_rados_put_all,
    .get = tl_rados_get,
    .size = tl_rados_size,
    .remove = tl_rados_remove,
    .list = tl_rados_list,
    .log_open = tl_rados_log_open,
    .log_write = tl_rados_log_write,
    .log_read = tl_rados_log_read,
    .log_sync_begin = tl_rados_log_sync_begin,
    .log_sync = tl_rados_log_sync,
    .log_truncate = tl_rados_log_truncate,
    .log_close = tl_rados_log_close,
    .lease = tl_rados_lease,
    .lease_release = tl_rados_lease_release,
    .lease_state = tl_rados_lease_state,
    .lease_ask = tl_rados_lease_ask,
    .listen = tl_rados_listen,
    .report = tl_rados_report,
    .require_leases = tl_rados_require_leases,
    .catalog_open = tl_rados_catalog_open,
    .catalog_reset = tl_rados_catalog_reset,
    .scratch = rados_scratch,
    .free_bytes = rados_free_bytes,
    .usable = rados_usable,
    .writable = tl_rados_writable,
    .keep_space = tl_rados_keep_space,
    .may_commit = rados_may_commit,
};

/* ---- opening -------------------------------------------------------------------------------- */

struct place {
    char pool[128], conf[1024], id[128], space[128];
    unsigned lease_s, n_index;
};

static int bad_url(struct tl_fail *fail, const char *url)
{
    return tl_fail_set(fail, TL_USAGE,
                       "\"%.100s\": write rados:POOL[?conf=FILE&id=NAME&namespace=NS&lease=SECONDS"
                       "&index=N]",
                       url);
}

static bool take_number(const char *value, unsigned most, unsigned *out)
{
    char *end;
    const unsigned long n = strtoul(value, &end, 10);
    *out = (unsigned)n;
    return *value >= '1' && *value <= '9' && !*end && n <= most;
}

static bool take_option(struct place *place, const char *name, const char *value)
{
    const struct {
        const char *name;
        char *text;
        size_t n;
    } texts[] = {{"conf", place->conf, sizeof place->conf},
                 {"id", place->id, sizeof place->id},
                 {"namespace", place->space, sizeof place->space}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(texts[i].name, name) == 0)
            return *value && snprintf(texts[i].text, texts[i].n, "%s", value) < (int)texts[i].n;
    if (strcmp(name, "lease") == 0)
        return take_number(value, 600, &place->lease_s);
    return strcmp(name, "index") == 0 && take_number(value, 4096, &place->n_index);
}

static int parse(struct place *place, const char *url, struct tl_fail *fail)
{
    char copy[2048], *next;
    *place = (struct place){.id = "admin", .lease_s = 2, .n_index = 256};
    if (!tl_is_rados(url) || snprintf(copy, sizeof copy, "%s", url + 6) >= (int)sizeof copy)
        return bad_url(fail, url);
    char *const options = strchr(copy, '?');
    if (options)
        *options = '\0';
    if (!*copy || snprintf(place->pool, sizeof place->pool, "%s", copy) >= (int)sizeof place->pool)
        return bad_url(fail, url);
    for (char *option = options ? options + 1 : NULL; option; option = next) {
        next = strchr(option, '&');
        if (next)
            *next++ = '\0';
        char *const equals = strchr(option, '=');
        if (!equals)
            return bad_url(fail, url);
        *equals = '\0';
        if (!take_option(place, option, equals + 1))
            return bad_url(fail, url);
    }
    return TL_OK;
}

bool tl_is_rados(const char *url)
{
    return strncmp(url, "rados:", 6) == 0;
}

static int connect_to(struct tl_rados *r, const struct place *place, struct tl_fail *fail)
{
    int rc = tl_librados.create(&r->cluster, place->id);
    if (rc < 0) {
        r->cluster = NULL;
        return tl_rados_refused(fail, rc, "use", "librados");
    }
    /* An operation without a response is abandoned, so that callers get an error. */
    static const char *const limits[][2] = {
        {"objecter_timeout", "1"}, /* interval for looking for an OSD again */
        {"objecter_tick_interval", "0.5"},
        {"rados_osd_op_timeout", "15"},
        {"rados_mon_op_timeout", "10"},
        {"client_mount_timeout", "10"}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        tl_librados.conf_set(r->cluster, limits[i][0], limits[i][1]);
    rc = tl_librados.conf_read_file(r->cluster, *place->conf ? place->conf : NULL);
    if (rc < 0)
        return tl_fail_set(fail, TL_USAGE, "cannot read the cluster's configuration %.200s: %s",
                           *place->conf ? place->conf : "ceph.conf", strerror(-rc));
    rc = tl_librados.connect(r->cluster);
    if (rc < 0)
        return tl_fail_set(fail, TL_UNREACHABLE, "the cluster does not answer: %s", strerror(-rc));
    rc = tl_librados.ioctx_create(r->cluster, place->pool, &r->io);
    if (rc < 0)
        return rc == -ENOENT
                   ? tl_fail_set(fail, TL_NOTFOUND, "the cluster has no pool %s", place->pool)
                   : tl_rados_refused(fail, rc, "open pool", place->pool);
    r->has_io = true;
    if (*place->space)
        tl_librados.ioctx_set_namespace(r->io, place->space);
    tl_librados.set_pool_full_try(r->io); /* a full pool fails operations, it does not block */
    return TL_OK;
}

static int read_layout(struct tl_rados *r, struct tl_fail *fail)
{
    struct tl_buf value = {0};
    unsigned layout = 0;
    int rc = tl_omap_get(r, TL_ROOT, "layout", &value, fail);
    if (rc >= 0)
        rc = tl_buf_add(&value, "", 1) < 0 ? tl_fail_set(fail, TL_NOMEM, "no memory") : TL_OK;
    if (rc >= 0 && (sscanf((const char *)value.p, "%u %u", &layout, &r->n_index) != 2 ||
                    layout == 0 || layout > TL_LAYOUT || r->n_index == 0 || r->n_index > 4096))
        rc = tl_fail_set(fail, TL_UNSUPPORTED,
                         "the store was made by a newer tracelake, or is none (layout \"%.40s\")",
                         (const char *)value.p);
    tl_buf_fini(&value);
    r->layout = layout;
    return rc;
}

/* Create the objects, the root last: whoever finds it finds all. */
static int make_layout(struct tl_rados *r, unsigned n_index, struct tl_fail *fail)
{
    struct tl_flight flight = {0};
    char oid[24], text[32];
    for (unsigned i = 0; i < n_index; i++) {
        const rados_write_op_t op = tl_librados.create_write_op();
        tl_librados.write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
        tl_flight_write(&flight, r, tl_index_at(oid, i), op);
    }
    int rc = tl_flight_land(&flight);
    if (rc >= 0) {
        snprintf(text, sizeof text, "%u %u", TL_LAYOUT, n_index);
        const rados_write_op_t op = tl_librados.create_write_op();
        tl_librados.write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
        tl_op_set(op, "layout", tl_text(text));
        rc = tl_rados_write(r, TL_ROOT, op);
    }
    return rc < 0 && rc != -EEXIST ? tl_rados_refused(fail, rc, "make", "the store") : TL_OK;
}

int tl_backend_rados(struct tl_backend **out, const char *url, struct tl_fail *fail)
{
    struct place place;
    int rc = parse(&place, url, fail);
    if (rc >= 0)
        rc = tl_librados_load(fail);
    if (rc < 0)
        return rc;
    struct tl_rados *const r = calloc(1, sizeof(*r));
    if (!r)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    r->base.ops = &rados_ops;
    r->lease_s = place.lease_s;
    atomic_init(&r->free, UINT64_MAX);
    atomic_init(&r->asked_ms, tl_monotonic_ms() - FREE_MS);
    atomic_init(&r->heard_ms, tl_monotonic_ms());
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->wake, NULL);
    pthread_cond_init(&r->idle, NULL);
    tl_rados_news_init(&r->news);
    pthread_mutex_init(&r->kept_lock, NULL);
    if (getrandom(&r->session, sizeof r->session, 0) != sizeof r->session)
        rc = tl_fail_set(fail, TL_IO, "no random bytes: %s", strerror(errno));
    if (rc >= 0)
        rc = connect_to(r, &place, fail);
    if (rc >= 0) {
        rc = read_layout(r, fail);
        if (rc == TL_NOTFOUND) {
            rc = make_layout(r, place.n_index, fail);
            if (rc >= 0)
                rc = read_layout(r, fail);
        }
    }
    if (rc >= 0)
        rc = tl_rados_live(r, fail);
    if (rc >= 0)
        rc = tl_pieces_sweep(r, fail);
    if (rc < 0) {
        rados_destroy(&r->base);
        return rc;
    }
    *out = &r->base;
    return TL_OK;
}
