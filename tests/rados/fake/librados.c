/* SPDX-License-Identifier: MIT */
#include "librados.h"

#include "interposer.h"
#include "model.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void need(bool there)
{
    if (!there)
        abort(); /* out of memory: the test would be meaningless */
}

/* ---- assembling operations ------------------------------------------------------------------ */

/* Keys and values of a result, owned by the caller. */
struct rows {
    struct tl_buf *pairs; /* key, value, … */
    size_t n, cap, at;
};

enum read_kind { READ_BYTES, READ_KEYS, READ_SOME_KEYS };

struct read_step {
    enum read_kind kind;
    uint64_t offset;
    size_t n;
    char *out;
    size_t *got;
    struct tl_buf after, prefix; /* or one key */
    uint64_t most;
    rados_omap_iter_t *rows;
    unsigned char *more;
    int *rval;
};

struct op {
    bool reads;
    struct model_step *steps;
    struct read_step *reading;
    size_t n, cap;
};

static struct op *new_op(bool reads)
{
    struct op *const op = calloc(1, sizeof *op);
    need(op);
    op->reads = reads;
    return op;
}

static struct model_step *add_step(rados_write_op_t handle, enum model_kind kind)
{
    struct op *const op = handle;
    need(tl_grow(&op->steps, &op->cap, op->n + 1, sizeof *op->steps) >= 0);
    op->steps[op->n] = (struct model_step){.kind = kind};
    return &op->steps[op->n++];
}

static struct read_step *add_reading(rados_read_op_t handle, enum read_kind kind)
{
    struct op *const op = handle;
    need(tl_grow(&op->reading, &op->cap, op->n + 1, sizeof *op->reading) >= 0);
    op->reading[op->n] = (struct read_step){.kind = kind};
    return &op->reading[op->n++];
}

static void put(struct tl_buf *to, const char *p, size_t n)
{
    need(tl_buf_add(to, p, n) >= 0);
}

static rados_write_op_t create_write_op(void)
{
    return new_op(false);
}

static rados_read_op_t create_read_op(void)
{
    return new_op(true);
}

static void release_op(void *handle)
{
    struct op *const op = handle;
    for (size_t i = 0; i < op->n; i++) {
        tl_buf_fini(op->reads ? &op->reading[i].after : &op->steps[i].key);
        tl_buf_fini(op->reads ? &op->reading[i].prefix : &op->steps[i].value);
    }
    free(op->steps);
    free(op->reading);
    free(op);
}

static void write_op_create(rados_write_op_t op, int exclusive, const char *category)
{
    (void)category;
    add_step(op, MODEL_CREATE)->exclusive = exclusive == LIBRADOS_CREATE_EXCLUSIVE;
}

static void write_op_write(rados_write_op_t op, const char *bytes, size_t n, uint64_t offset)
{
    struct model_step *const s = add_step(op, MODEL_WRITE);
    s->offset = offset;
    put(&s->value, bytes, n);
}

static void write_op_remove(rados_write_op_t op)
{
    add_step(op, MODEL_REMOVE);
}

static void write_op_omap_cmp2(rados_write_op_t op, const char *key, uint8_t comparison,
                               const char *value, size_t key_n, size_t value_n, int *rval)
{
    struct model_step *const s = add_step(op, MODEL_COMPARE);
    s->comparison = comparison;
    put(&s->key, key, key_n);
    put(&s->value, value, value_n);
    if (rval)
        *rval = 0;
}

static void write_op_omap_set2(rados_write_op_t op, char const *const *keys,
                               char const *const *values, const size_t *key_n,
                               const size_t *value_n, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct model_step *const s = add_step(op, MODEL_SET);
        put(&s->key, keys[i], key_n[i]);
        put(&s->value, values[i], value_n[i]);
    }
}

static void write_op_omap_rm_keys2(rados_write_op_t op, char const *const *keys,
                                   const size_t *key_n, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put(&add_step(op, MODEL_UNSET)->key, keys[i], key_n[i]);
}

static void write_op_omap_rm_range2(rados_write_op_t op, const char *from, size_t from_n,
                                    const char *to, size_t to_n)
{
    struct model_step *const s = add_step(op, MODEL_UNSET_RANGE);
    put(&s->key, from, from_n);
    put(&s->value, to, to_n);
}

static void read_op_read(rados_read_op_t op, uint64_t offset, size_t n, char *out, size_t *got,
                         int *rval)
{
    struct read_step *const s = add_reading(op, READ_BYTES);
    s->offset = offset;
    s->n = n;
    s->out = out;
    s->got = got;
    s->rval = rval;
}

static void read_op_omap_get_vals2(rados_read_op_t op, const char *after, const char *prefix,
                                   uint64_t most, rados_omap_iter_t *rows, unsigned char *more,
                                   int *rval)
{
    struct read_step *const s = add_reading(op, READ_SOME_KEYS);
    put(&s->after, after, strlen(after) + 1);
    put(&s->prefix, prefix, strlen(prefix) + 1);
    s->most = most;
    s->rows = rows;
    s->more = more;
    s->rval = rval;
}

static void read_op_omap_get_vals_by_keys2(rados_read_op_t op, char const *const *keys, size_t n,
                                           const size_t *key_n, rados_omap_iter_t *rows, int *rval)
{
    struct read_step *const s = add_reading(op, READ_KEYS);
    need(n == 1); /* the only use */
    put(&s->prefix, keys[0], key_n[0]);
    put(&s->prefix, "", 1);
    s->rows = rows;
    s->rval = rval;
}

static int omap_get_next2(rados_omap_iter_t handle, char **key, char **value, size_t *key_n,
                          size_t *value_n)
{
    struct rows *const rows = handle;
    const bool there = rows->at < rows->n;
    *key = there ? (char *)rows->pairs[rows->at].p : NULL;
    *key_n = there ? rows->pairs[rows->at].n : 0;
    *value = there ? (char *)rows->pairs[rows->at + 1].p : NULL;
    *value_n = there ? rows->pairs[rows->at + 1].n : 0;
    rows->at += 2;
    return 0;
}

static void omap_get_end(rados_omap_iter_t handle)
{
    struct rows *const rows = handle;
    for (size_t i = 0; i < rows->n; i++)
        tl_buf_fini(&rows->pairs[i]);
    free(rows->pairs);
    free(rows);
}

/* ---- executing operations ------------------------------------------------------------------- */

static void take_row(void *context, const struct tl_buf *key, const struct tl_buf *value)
{
    struct rows *const rows = context;
    need(tl_grow(&rows->pairs, &rows->cap, rows->n + 2, sizeof *rows->pairs) >= 0);
    rows->pairs[rows->n] = rows->pairs[rows->n + 1] = (struct tl_buf){0};
    need(tl_buf_add(&rows->pairs[rows->n++], key->p, key->n) >= 0);
    need(tl_buf_add(&rows->pairs[rows->n++], value->p, value->n) >= 0);
}

static void take_this(void *context, const struct tl_buf *key, const struct tl_buf *value)
{
    void **const with = context;
    const struct tl_buf *const wanted = with[1];
    if (key->n == wanted->n - 1 && memcmp(key->p, wanted->p, key->n) == 0)
        take_row(with[0], key, value);
}

static int read_one(const char *oid, const struct read_step *s)
{
    if (s->kind == READ_BYTES) {
        const ssize_t n = model_read(oid, s->offset, s->n, s->out);
        *s->got = n < 0 ? 0 : (size_t)n;
        *s->rval = n < 0 ? (int)n : 0;
        return *s->rval;
    }
    struct rows *const rows = calloc(1, sizeof *rows);
    void *with[] = {rows, (void *)(uintptr_t)&s->prefix};
    need(rows);
    int rc = s->kind == READ_KEYS ? model_keys(oid, "", (char *)s->prefix.p, 1, take_this, with)
                                  : model_keys(oid, (char *)s->after.p, (char *)s->prefix.p,
                                               s->most, take_row, rows);
    if (s->more)
        *s->more = rc > 0;
    *s->rows = rows;
    *s->rval = rc < 0 ? rc : 0;
    return *s->rval;
}

static int carry_out(const char *oid, const struct op *op)
{
    int rc = 0;
    if (!op->reads)
        return model_write(oid, op->steps, op->n);
    for (size_t i = 0; i < op->n; i++) {
        const int one = read_one(oid, &op->reading[i]);
        rc = rc < 0 ? rc : one;
    }
    return rc;
}

/* ---- connections ---------------------------------------------------------------------------- */

static atomic_ulong clients;

struct client {
    uint64_t number;
};

struct io {
    uint64_t client;
    char space[128];
};

static int create(rados_t *out, const char *id)
{
    struct client *const client = calloc(1, sizeof *client);
    (void)id;
    need(client);
    client->number = atomic_fetch_add(&clients, 1) + 1;
    *out = client;
    return 0;
}

static int conf_read_file(rados_t cluster, const char *path)
{
    (void)cluster;
    (void)path;
    return 0;
}

static int conf_set(rados_t cluster, const char *option, const char *value)
{
    (void)cluster;
    (void)option;
    (void)value;
    return 0;
}

static int connect_to(rados_t cluster)
{
    (void)cluster;
    return 0;
}

static void shut_down(rados_t cluster)
{
    free(cluster);
}

static int cluster_stat(rados_t cluster, struct rados_cluster_stat_t *out)
{
    (void)cluster;
    *out = (struct rados_cluster_stat_t){0}; /* there is no manager */
    return 0;
}

static int ioctx_create(rados_t cluster, const char *pool, rados_ioctx_t *out)
{
    struct io *const io = calloc(1, sizeof *io);
    (void)pool;
    need(io);
    io->client = ((struct client *)cluster)->number;
    *out = io;
    return 0;
}

static void ioctx_destroy(rados_ioctx_t io)
{
    free(io);
}

static void ioctx_set_namespace(rados_ioctx_t io, const char *space)
{
    strncpy(((struct io *)io)->space, space, sizeof((struct io *)io)->space - 1);
}

static void set_pool_full_try(rados_ioctx_t io)
{
    (void)io;
}

/* ---- completions ---------------------------------------------------------------------------- */

/* An operation is executed when it is submitted. */
struct completion {
    int rc;
    uint64_t version;
    rados_callback_t call;
    void *context;
};

static int aio_create_completion2(void *context, rados_callback_t call, rados_completion_t *out)
{
    struct completion *const c = calloc(1, sizeof *c);
    need(c);
    c->call = call;
    c->context = context;
    *out = c;
    return 0;
}

static int complete(rados_completion_t handle, int rc, uint64_t version)
{
    struct completion *const c = handle;
    c->rc = rc;
    c->version = version;
    if (c->call)
        c->call(c, c->context);
    return 0;
}

static int aio_wait_for_complete(rados_completion_t handle)
{
    (void)handle;
    return 0;
}

static int aio_get_return_value(rados_completion_t handle)
{
    return ((struct completion *)handle)->rc;
}

static uint64_t aio_get_version(rados_completion_t handle)
{
    return ((struct completion *)handle)->version;
}

static void aio_release(rados_completion_t handle)
{
    free(handle);
}

/* ---- submitting operations ------------------------------------------------------------------ */

static char *name_of(char out[static 256], const struct io *io, const char *oid)
{
    snprintf(out, 256, "%s/%s", io->space, oid);
    return out;
}

static int aio_write_op_operate(rados_write_op_t op, rados_ioctx_t io, rados_completion_t done,
                                const char *oid, time_t *mtime, int flags)
{
    char name[256];
    (void)mtime;
    (void)flags;
    return complete(done, carry_out(name_of(name, io, oid), op), 0);
}

static int aio_read_op_operate(rados_read_op_t op, rados_ioctx_t io, rados_completion_t done,
                               const char *oid, int flags)
{
    char name[256];
    (void)flags;
    return complete(done, carry_out(name_of(name, io, oid), op), 0);
}

static int aio_stat(rados_ioctx_t io, const char *oid, rados_completion_t done, uint64_t *size,
                    time_t *when)
{
    char name[256];
    uint64_t version = 0;
    *size = 0;
    *when = 0;
    const int rc = model_version(name_of(name, io, oid), &version);
    return complete(done, rc, version);
}

/* ---- watch and notify ----------------------------------------------------------------------- */

/* The watchers, with librados's callbacks. */
struct watcher {
    struct watcher *next;
    uint64_t watch;
    rados_watchcb2_t call;
    void *context;
};

static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watcher *watchers;

static void on_told(void *context, uint64_t watch, const void *data, size_t n)
{
    const struct watcher *const w = context;
    w->call(w->context, 1, watch, 0, (void *)(uintptr_t)data, n);
}

static int watch3(rados_ioctx_t handle, const char *oid, uint64_t *out, rados_watchcb2_t call,
                  rados_watcherrcb_t error, uint32_t timeout, void *context)
{
    char name[256];
    (void)error;
    (void)timeout;
    struct watcher *const w = calloc(1, sizeof *w);
    need(w);
    w->call = call;
    w->context = context;
    const int64_t watch = model_watch(name_of(name, handle, oid), on_told, w);
    if (watch < 0) {
        free(w);
        return (int)watch;
    }
    w->watch = *out = (uint64_t)watch;
    pthread_mutex_lock(&watchers_lock);
    w->next = watchers;
    watchers = w;
    pthread_mutex_unlock(&watchers_lock);
    return 0;
}

static int unwatch2(rados_ioctx_t io, uint64_t watch)
{
    (void)io;
    model_unwatch(watch);
    pthread_mutex_lock(&watchers_lock);
    struct watcher **p = &watchers;
    while (*p && (*p)->watch != watch)
        p = &(*p)->next;
    struct watcher *const w = *p;
    if (w)
        *p = w->next;
    pthread_mutex_unlock(&watchers_lock);
    free(w);
    return 0;
}

static int aio_notify(rados_ioctx_t io, const char *oid, rados_completion_t done, const char *text,
                      int n, uint64_t timeout_ms, char **reply, size_t *reply_n)
{
    char name[256];
    (void)timeout_ms;
    (void)reply;
    (void)reply_n;
    return complete(done, model_notify(name_of(name, io, oid), text, (size_t)n), 0);
}

static int notify_ack(rados_ioctx_t io, const char *oid, uint64_t id, uint64_t watch,
                      const char *text, int n)
{
    (void)io;
    (void)oid;
    (void)id;
    (void)watch;
    (void)text;
    (void)n;
    return 0;
}

/* ---- synchronous operations ----------------------------------------------------------------- */

static int lock_exclusive(rados_ioctx_t handle, const char *oid, const char *name,
                          const char *cookie, const char *text, struct timeval *duration,
                          uint8_t flags)
{
    const struct io *const io = handle;
    char full[256];
    (void)name;
    (void)text;
    return model_lock(name_of(full, io, oid), io->client, cookie,
                      duration ? duration->tv_sec * 1000 + duration->tv_usec / 1000 : 0, flags);
}

static int unlock(rados_ioctx_t handle, const char *oid, const char *name, const char *cookie)
{
    const struct io *const io = handle;
    char full[256];
    (void)name;
    return model_unlock(name_of(full, io, oid), io->client, cookie);
}

static int remove_object(rados_ioctx_t io, const char *oid)
{
    const struct model_step step = {.kind = MODEL_REMOVE};
    char name[256];
    return model_write(name_of(name, io, oid), &step, 1);
}

/* ---- in place of the library ---------------------------------------------------------------- */

void fake_librados(void)
{
    static const struct tl_librados functions = {
        .aio_create_completion2 = aio_create_completion2,
        .aio_get_return_value = aio_get_return_value,
        .aio_get_version = aio_get_version,
        .aio_notify = aio_notify,
        .aio_read_op_operate = aio_read_op_operate,
        .aio_release = aio_release,
        .aio_stat = aio_stat,
        .aio_wait_for_complete = aio_wait_for_complete,
        .aio_write_op_operate = aio_write_op_operate,
        .cluster_stat = cluster_stat,
        .conf_read_file = conf_read_file,
        .conf_set = conf_set,
        .connect = connect_to,
        .create = create,
        .create_read_op = create_read_op,
        .create_write_op = create_write_op,
        .ioctx_create = ioctx_create,
        .ioctx_destroy = ioctx_destroy,
        .ioctx_set_namespace = ioctx_set_namespace,
        .lock_exclusive = lock_exclusive,
        .notify_ack = notify_ack,
        .omap_get_end = omap_get_end,
        .omap_get_next2 = omap_get_next2,
        .read_op_omap_get_vals2 = read_op_omap_get_vals2,
        .read_op_omap_get_vals_by_keys2 = read_op_omap_get_vals_by_keys2,
        .read_op_read = read_op_read,
        .release_read_op = release_op,
        .release_write_op = release_op,
        .remove = remove_object,
        .set_pool_full_try = set_pool_full_try,
        .shutdown = shut_down,
        .unlock = unlock,
        .unwatch2 = unwatch2,
        .watch3 = watch3,
        .write_op_create = write_op_create,
        .write_op_omap_cmp2 = write_op_omap_cmp2,
        .write_op_omap_rm_keys2 = write_op_omap_rm_keys2,
        .write_op_omap_rm_range2 = write_op_omap_rm_range2,
        .write_op_omap_set2 = write_op_omap_set2,
        .write_op_remove = write_op_remove,
        .write_op_write = write_op_write,
    };
    model_clear();
    interpose(&functions);
}
