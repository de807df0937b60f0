/* SPDX-License-Identifier: MIT */
#include "interposer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLIENTS 64

static struct tl_librados inner;

static void need(bool there)
{
    if (!there)
        abort(); /* out of memory: the test would be meaningless */
}

/* ---- faults --------------------------------------------------------------------------------- */

static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned kinds, every; /* every 0: one fault, when `left` is 0 */
    uint64_t random, left, n, passed, clients;
    bool cut[CLIENTS];
} faults;
static atomic_bool deaf;

/* The clients' power, also under faults_lock. */
#define IN_DOUBT 64
static struct {
    bool fails, off, reported; /* `fails`: after `left` more operations */
    uint64_t left, dead;       /* clients up to this number have lost power */
    char dropped[IN_DOUBT][128];
    unsigned n_dropped;
} power;

static uint64_t draw_locked(void)
{
    uint64_t z = faults.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool strikes_locked(void)
{
    if (faults.every > 0)
        return draw_locked() % faults.every == 0;
    return faults.left-- == 0;
}

/* The fault of the next operation, among those that apply to it. */
static unsigned next_fault(unsigned fit)
{
    unsigned chosen = 0;
    pthread_mutex_lock(&faults_lock);
    const unsigned kinds = faults.kinds & fit;
    faults.passed += kinds != 0;
    if (kinds && strikes_locked()) {
        do
            chosen = 1u << draw_locked() % 5;
        while (!(chosen & kinds));
        faults.n++;
    }
    pthread_mutex_unlock(&faults_lock);
    return chosen;
}

void interposer_faults(unsigned kinds, unsigned every, uint64_t seed)
{
    pthread_mutex_lock(&faults_lock);
    faults.kinds = kinds;
    faults.every = every;
    faults.random = seed;
    pthread_mutex_unlock(&faults_lock);
}

void interposer_fault_at(unsigned kinds, uint64_t n)
{
    pthread_mutex_lock(&faults_lock);
    faults.kinds = kinds;
    faults.every = 0;
    faults.left = n;
    faults.passed = 0;
    pthread_mutex_unlock(&faults_lock);
}

uint64_t interposer_suffered(void)
{
    pthread_mutex_lock(&faults_lock);
    const uint64_t n = faults.n;
    pthread_mutex_unlock(&faults_lock);
    return n;
}

uint64_t interposer_passed(void)
{
    pthread_mutex_lock(&faults_lock);
    const uint64_t n = faults.passed;
    pthread_mutex_unlock(&faults_lock);
    return n;
}

void interposer_cut_off(unsigned client, bool off)
{
    pthread_mutex_lock(&faults_lock);
    faults.cut[client % CLIENTS] = off;
    pthread_mutex_unlock(&faults_lock);
}

void interposer_power_fails(uint64_t n, uint64_t seed)
{
    pthread_mutex_lock(&faults_lock);
    power.fails = true;
    power.left = n;
    faults.random = seed;
    pthread_mutex_unlock(&faults_lock);
}

void interposer_power_returns(void)
{
    pthread_mutex_lock(&faults_lock);
    if (power.off)
        power.dead = faults.clients;
    power.fails = power.off = power.reported = false;
    power.n_dropped = 0;
    pthread_mutex_unlock(&faults_lock);
}

static bool was_dropped_locked(const char *oid)
{
    for (unsigned i = 0; i < power.n_dropped; i++)
        if (strcmp(power.dropped[i], oid) == 0)
            return true;
    return false;
}

/* Does an operation reach the cluster? `*silent`: its reply is lost. */
static bool reaches(const char *oid, bool *silent)
{
    bool does = true;
    pthread_mutex_lock(&faults_lock);
    if (power.fails && power.left-- == 0) {
        power.off = true;
        power.fails = false;
    }
    *silent = power.off;
    if (power.off) {
        does = !power.reported && power.n_dropped < IN_DOUBT && !was_dropped_locked(oid) &&
               draw_locked() % 2;
        if (!does && !power.reported && power.n_dropped < IN_DOUBT && !was_dropped_locked(oid))
            snprintf(power.dropped[power.n_dropped++], sizeof *power.dropped, "%s", oid);
    }
    pthread_mutex_unlock(&faults_lock);
    return does;
}

/* A client learns that the power is off: operations begun after this do not count as pending. */
static void learns(void)
{
    pthread_mutex_lock(&faults_lock);
    power.reported = power.off;
    pthread_mutex_unlock(&faults_lock);
}

void interposer_deaf(bool is)
{
    atomic_store(&deaf, is);
}

/* ---- connections ---------------------------------------------------------------------------- */

struct client {
    rados_t inner;
    uint64_t number;
};

struct io {
    rados_ioctx_t inner;
    uint64_t client;
};

static bool is_cut_off(const struct io *io)
{
    pthread_mutex_lock(&faults_lock);
    const bool off = faults.cut[io->client % CLIENTS] || io->client <= power.dead;
    pthread_mutex_unlock(&faults_lock);
    return off;
}

static int create(rados_t *out, const char *id)
{
    struct client *const client = calloc(1, sizeof *client);
    need(client);
    const int rc = inner.create(&client->inner, id);
    if (rc < 0) {
        free(client);
        return rc;
    }
    pthread_mutex_lock(&faults_lock);
    client->number = ++faults.clients;
    pthread_mutex_unlock(&faults_lock);
    *out = client;
    return rc;
}

static rados_t of_client(rados_t cluster)
{
    return ((struct client *)cluster)->inner;
}

static rados_ioctx_t of_io(rados_ioctx_t io)
{
    return ((struct io *)io)->inner;
}

static int conf_read_file(rados_t cluster, const char *path)
{
    return inner.conf_read_file(of_client(cluster), path);
}

static int conf_set(rados_t cluster, const char *option, const char *value)
{
    return inner.conf_set(of_client(cluster), option, value);
}

static int connect_to(rados_t cluster)
{
    return inner.connect(of_client(cluster));
}

static void shut_down(rados_t cluster)
{
    inner.shutdown(of_client(cluster));
    free(cluster);
}

static int cluster_stat(rados_t cluster, struct rados_cluster_stat_t *out)
{
    return inner.cluster_stat(of_client(cluster), out);
}

static int ioctx_create(rados_t cluster, const char *pool, rados_ioctx_t *out)
{
    struct io *const io = calloc(1, sizeof *io);
    need(io);
    io->client = ((struct client *)cluster)->number;
    const int rc = inner.ioctx_create(of_client(cluster), pool, &io->inner);
    if (rc < 0) {
        free(io);
        return rc;
    }
    *out = io;
    return rc;
}

static void ioctx_destroy(rados_ioctx_t io)
{
    inner.ioctx_destroy(of_io(io));
    free(io);
}

static void ioctx_set_namespace(rados_ioctx_t io, const char *space)
{
    inner.ioctx_set_namespace(of_io(io), space);
}

static void set_pool_full_try(rados_ioctx_t io)
{
    inner.set_pool_full_try(of_io(io));
}

/* ---- completions ---------------------------------------------------------------------------- */

struct completion {
    rados_completion_t inner, first; /* `first`: of an operation done twice, else NULL */
    rados_callback_t call;
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t sent;
    bool is_sent;
    int decided; /* the result, if it is not the cluster's; else 0 */
    bool asked;  /* the operation reached the cluster */
};

static int aio_create_completion2(void *context, rados_callback_t call, rados_completion_t *out)
{
    struct completion *const c = calloc(1, sizeof *c);
    need(c);
    c->call = call;
    c->context = context;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->sent, NULL);
    const int rc = inner.aio_create_completion2(context, call, &c->inner);
    need(rc >= 0);
    *out = c;
    return rc;
}

/* Mark the operation as pending, or its result as decided. */
static void sent(struct completion *c, int decided, bool asked)
{
    pthread_mutex_lock(&c->lock);
    c->is_sent = true;
    c->decided = decided;
    c->asked = asked;
    pthread_cond_broadcast(&c->sent);
    pthread_mutex_unlock(&c->lock);
}

static int aio_wait_for_complete(rados_completion_t handle)
{
    struct completion *const c = handle;
    pthread_mutex_lock(&c->lock);
    while (!c->is_sent)
        pthread_cond_wait(&c->sent, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (c->decided == -ETIMEDOUT)
        learns();
    if (c->first)
        inner.aio_wait_for_complete(c->first);
    return c->asked ? inner.aio_wait_for_complete(c->inner) : 0;
}

static int aio_get_return_value(rados_completion_t handle)
{
    struct completion *const c = handle;
    return c->decided ? c->decided : inner.aio_get_return_value(c->inner);
}

static uint64_t aio_get_version(rados_completion_t handle)
{
    return inner.aio_get_version(((struct completion *)handle)->inner);
}

/* The submitter of an operation has waited for it, except for notifications. */
static void aio_release(rados_completion_t handle)
{
    struct completion *const c = handle;
    inner.aio_release(c->inner);
    if (c->first)
        inner.aio_release(c->first);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->sent);
    free(c);
}

/* ---- operations ----------------------------------------------------------------------------- */

/* Operations are assembled twice: librados takes over the one that is submitted. */
struct op {
    bool reads;
    rados_read_op_t read;
    rados_write_op_t write[2];
    atomic_uint uses; /* held by its creator and by a late submission */
};

static struct op *new_op(bool reads)
{
    struct op *const op = calloc(1, sizeof *op);
    need(op);
    op->reads = reads;
    atomic_init(&op->uses, 1);
    return op;
}

static rados_write_op_t create_write_op(void)
{
    struct op *const op = new_op(false);
    op->write[0] = inner.create_write_op();
    op->write[1] = inner.create_write_op();
    return op;
}

static rados_read_op_t create_read_op(void)
{
    struct op *const op = new_op(true);
    op->read = inner.create_read_op();
    return op;
}

static void release_op(void *handle)
{
    struct op *const op = handle;
    if (atomic_fetch_sub(&op->uses, 1) != 1)
        return;
    if (op->reads)
        inner.release_read_op(op->read);
    for (unsigned i = 0; i < 2 && !op->reads; i++)
        inner.release_write_op(op->write[i]);
    free(op);
}

#define BOTH(handle, function, ...)                                                                \
    for (unsigned i = 0; i < 2; i++)                                                               \
    inner.function(((struct op *)(handle))->write[i], __VA_ARGS__)

static void write_op_create(rados_write_op_t op, int exclusive, const char *category)
{
    BOTH(op, write_op_create, exclusive, category);
}

static void write_op_write(rados_write_op_t op, const char *bytes, size_t n, uint64_t offset)
{
    BOTH(op, write_op_write, bytes, n, offset);
}

static void write_op_remove(rados_write_op_t op)
{
    for (unsigned i = 0; i < 2; i++)
        inner.write_op_remove(((struct op *)op)->write[i]);
}

static void write_op_omap_cmp2(rados_write_op_t op, const char *key, uint8_t comparison,
                               const char *value, size_t key_n, size_t value_n, int *rval)
{
    BOTH(op, write_op_omap_cmp2, key, comparison, value, key_n, value_n, rval);
}

static void write_op_omap_set2(rados_write_op_t op, char const *const *keys,
                               char const *const *values, const size_t *key_n,
                               const size_t *value_n, size_t n)
{
    BOTH(op, write_op_omap_set2, keys, values, key_n, value_n, n);
}

static void write_op_omap_rm_keys2(rados_write_op_t op, char const *const *keys,
                                   const size_t *key_n, size_t n)
{
    BOTH(op, write_op_omap_rm_keys2, keys, key_n, n);
}

static void write_op_omap_rm_range2(rados_write_op_t op, const char *from, size_t from_n,
                                    const char *to, size_t to_n)
{
    BOTH(op, write_op_omap_rm_range2, from, from_n, to, to_n);
}

static void read_op_read(rados_read_op_t op, uint64_t offset, size_t n, char *out, size_t *got,
                         int *rval)
{
    inner.read_op_read(((struct op *)op)->read, offset, n, out, got, rval);
}

static void read_op_omap_get_vals2(rados_read_op_t op, const char *after, const char *prefix,
                                   uint64_t most, rados_omap_iter_t *rows, unsigned char *more,
                                   int *rval)
{
    inner.read_op_omap_get_vals2(((struct op *)op)->read, after, prefix, most, rows, more, rval);
}

static void read_op_omap_get_vals_by_keys2(rados_read_op_t op, char const *const *keys, size_t n,
                                           const size_t *key_n, rados_omap_iter_t *rows, int *rval)
{
    inner.read_op_omap_get_vals_by_keys2(((struct op *)op)->read, keys, n, key_n, rows, rval);
}

/* ---- submitting operations ------------------------------------------------------------------ */

struct sent_op {
    struct sent_op *next;
    struct io *io;
    char oid[128];
    struct op *op;
    struct completion *done;
    unsigned fault;
};

static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t late_wake = PTHREAD_COND_INITIALIZER;
static struct sent_op *late, **late_end = &late; /* in order; the first may be in progress */

static void arrive(const struct sent_op *s)
{
    struct completion *const c = s->done;
    bool silent;
    int rc = 0;
    if (is_cut_off(s->io) || !reaches(s->oid, &silent)) {
        sent(c, -ETIMEDOUT, false);
        return;
    }
    if (s->fault == FAULT_REFUSED || s->fault == FAULT_FULL) {
        sent(c, s->fault == FAULT_FULL ? -EDQUOT : -EIO, false);
        return;
    }
    if (s->op->reads) {
        rc = inner.aio_read_op_operate(s->op->read, s->io->inner, c->inner, s->oid, 0);
    } else {
        if (s->fault == FAULT_TWICE) {
            need(inner.aio_create_completion2(NULL, NULL, &c->first) >= 0);
            rc = inner.aio_write_op_operate(s->op->write[1], s->io->inner, c->first, s->oid, NULL,
                                            0);
        }
        if (rc >= 0)
            rc = inner.aio_write_op_operate(s->op->write[0], s->io->inner, c->inner, s->oid, NULL,
                                            0);
    }
    sent(c, rc < 0 ? rc : silent || s->fault == FAULT_LOST ? -ETIMEDOUT : 0, rc >= 0);
}

static void *deliver(void *context)
{
    (void)context;
    pthread_mutex_lock(&late_lock);
    for (;;) {
        while (!late)
            pthread_cond_wait(&late_wake, &late_lock);
        struct sent_op *const s = late;
        pthread_mutex_unlock(&late_lock);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* other operations overtake it */
        pthread_mutex_lock(&late_lock);
        /* Later operations on the same object arrive after it: see overtakes_locked(). */
        arrive(s);
        late = s->next;
        if (!late)
            late_end = &late;
        release_op(s->op);
        free(s);
    }
    return NULL;
}

/* May it overtake late operations? */
static bool overtakes_locked(const struct sent_op *s)
{
    for (const struct sent_op *l = late; l; l = l->next)
        if (l->io == s->io && strcmp(l->oid, s->oid) == 0 && !(l->op->reads && s->op->reads))
            return false;
    return true;
}

static int send_op(struct op *op, rados_ioctx_t io, rados_completion_t done, const char *oid)
{
    struct sent_op one = {.io = io, .op = op, .done = done};
    one.fault = next_fault(op->reads ? FAULT_REFUSED | FAULT_LATE : FAULTS);
    snprintf(one.oid, sizeof one.oid, "%s", oid);
    pthread_mutex_lock(&late_lock);
    const bool now = one.fault != FAULT_LATE && overtakes_locked(&one);
    if (!now) {
        struct sent_op *const s = malloc(sizeof *s);
        need(s);
        *s = one;
        atomic_fetch_add(&op->uses, 1);
        *late_end = s;
        late_end = &s->next;
        pthread_cond_signal(&late_wake);
    }
    pthread_mutex_unlock(&late_lock);
    if (now)
        arrive(&one);
    return 0;
}

static int aio_write_op_operate(rados_write_op_t op, rados_ioctx_t io, rados_completion_t done,
                                const char *oid, time_t *mtime, int flags)
{
    (void)mtime;
    (void)flags;
    return send_op(op, io, done, oid);
}

static int aio_read_op_operate(rados_read_op_t op, rados_ioctx_t io, rados_completion_t done,
                               const char *oid, int flags)
{
    (void)flags;
    return send_op(op, io, done, oid);
}

static int aio_stat(rados_ioctx_t io, const char *oid, rados_completion_t done, uint64_t *size,
                    time_t *when)
{
    struct completion *const c = done;
    bool silent;
    const int rc = is_cut_off(io) || !reaches(oid, &silent) || silent ? -ETIMEDOUT
                   : next_fault(FAULT_REFUSED)                        ? -EIO
                                                                      : 0;
    const int asked = rc < 0 ? rc : inner.aio_stat(of_io(io), oid, c->inner, size, when);
    sent(c, asked, asked >= 0);
    return 0;
}

/* ---- synchronous operations ----------------------------------------------------------------- */

/* Does an operation reach the cluster? `*silent`: its reply is lost. */
static bool gets_through(rados_ioctx_t io, const char *oid, bool *silent)
{
    *silent = true;
    const bool does = !is_cut_off(io) && reaches(oid, silent);
    if (*silent)
        learns();
    return does;
}

static int lock_exclusive(rados_ioctx_t io, const char *oid, const char *name, const char *cookie,
                          const char *text, struct timeval *duration, uint8_t flags)
{
    const unsigned fault = next_fault(FAULT_REFUSED | FAULT_LOST);
    bool silent;
    if (!gets_through(io, oid, &silent))
        return -ETIMEDOUT;
    if (fault == FAULT_REFUSED)
        return -EIO;
    const int rc = inner.lock_exclusive(of_io(io), oid, name, cookie, text, duration, flags);
    return silent || fault == FAULT_LOST ? -ETIMEDOUT : rc;
}

static int unlock(rados_ioctx_t io, const char *oid, const char *name, const char *cookie)
{
    bool silent;
    const int rc = gets_through(io, oid, &silent) ? inner.unlock(of_io(io), oid, name, cookie) : 0;
    return silent ? -ETIMEDOUT : rc;
}

static int remove_object(rados_ioctx_t io, const char *oid)
{
    bool silent;
    const int rc = gets_through(io, oid, &silent) ? inner.remove(of_io(io), oid) : 0;
    return silent ? -ETIMEDOUT : rc;
}

/* ---- watch and notify ----------------------------------------------------------------------- */

/* A watcher and its client. */
struct watcher {
    struct watcher *next;
    struct io *io;
    uint64_t watch;
    rados_watchcb2_t call;
    rados_watcherrcb_t error;
    void *context;
};

static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct watcher *watchers;

static int notify_ack(rados_ioctx_t io, const char *oid, uint64_t id, uint64_t watch,
                      const char *text, int n)
{
    return inner.notify_ack(of_io(io), oid, id, watch, text, n);
}

static void on_notify(void *context, uint64_t id, uint64_t watch, uint64_t from, void *data,
                      size_t n)
{
    const struct watcher *const w = context;
    if (!atomic_load(&deaf) && !is_cut_off(w->io))
        w->call(w->context, id, watch, from, data, n);
}

static void on_error(void *context, uint64_t watch, int error)
{
    const struct watcher *const w = context;
    w->error(w->context, watch, error);
}

static int watch3(rados_ioctx_t io, const char *oid, uint64_t *out, rados_watchcb2_t call,
                  rados_watcherrcb_t error, uint32_t timeout, void *context)
{
    bool silent;
    if (!gets_through(io, oid, &silent) || silent)
        return -ETIMEDOUT;
    if (next_fault(FAULT_REFUSED))
        return -EIO;
    struct watcher *const w = calloc(1, sizeof *w);
    need(w);
    *w = (struct watcher){.io = io, .call = call, .error = error, .context = context};
    const int rc = inner.watch3(of_io(io), oid, out, on_notify, on_error, timeout, w);
    if (rc < 0) {
        free(w);
        return rc;
    }
    w->watch = *out;
    pthread_mutex_lock(&watchers_lock);
    w->next = watchers;
    watchers = w;
    pthread_mutex_unlock(&watchers_lock);
    return rc;
}

static int unwatch2(rados_ioctx_t io, uint64_t watch)
{
    const int rc = inner.unwatch2(of_io(io), watch);
    pthread_mutex_lock(&watchers_lock);
    struct watcher **p = &watchers;
    while (*p && ((*p)->watch != watch || (*p)->io != io))
        p = &(*p)->next;
    struct watcher *const w = *p;
    if (w)
        *p = w->next;
    pthread_mutex_unlock(&watchers_lock);
    free(w);
    return rc;
}

/* The notification may be lost, or arrive twice. */
static int aio_notify(rados_ioctx_t io, const char *oid, rados_completion_t done, const char *text,
                      int n, uint64_t timeout_ms, char **reply, size_t *reply_n)
{
    struct completion *const c = done;
    const unsigned fault = next_fault(FAULT_REFUSED | FAULT_TWICE);
    bool silent;
    if (is_cut_off(io) || !reaches(oid, &silent) || fault == FAULT_REFUSED) {
        c->call(done, c->context);
        return 0;
    }
    if (fault == FAULT_TWICE) {
        need(inner.aio_create_completion2(NULL, NULL, &c->first) >= 0);
        (void)!inner.aio_notify(of_io(io), oid, c->first, text, n, timeout_ms, NULL, NULL);
    }
    return inner.aio_notify(of_io(io), oid, c->inner, text, n, timeout_ms, reply, reply_n);
}

/* ---- in place of the library ---------------------------------------------------------------- */

static void start_delivery(void)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, deliver, NULL) == 0);
    pthread_detach(thread);
}

void interpose(const struct tl_librados *functions)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* functions that read rows of an omap are used unchanged */
    struct tl_librados table = *functions;
    inner = *functions;
    table.aio_create_completion2 = aio_create_completion2;
    table.aio_get_return_value = aio_get_return_value;
    table.aio_get_version = aio_get_version;
    table.aio_notify = aio_notify;
    table.aio_read_op_operate = aio_read_op_operate;
    table.aio_release = aio_release;
    table.aio_stat = aio_stat;
    table.aio_wait_for_complete = aio_wait_for_complete;
    table.aio_write_op_operate = aio_write_op_operate;
    table.cluster_stat = cluster_stat;
    table.conf_read_file = conf_read_file;
    table.conf_set = conf_set;
    table.connect = connect_to;
    table.create = create;
    table.create_read_op = create_read_op;
    table.create_write_op = create_write_op;
    table.ioctx_create = ioctx_create;
    table.ioctx_destroy = ioctx_destroy;
    table.ioctx_set_namespace = ioctx_set_namespace;
    table.lock_exclusive = lock_exclusive;
    table.notify_ack = notify_ack;
    table.read_op_omap_get_vals2 = read_op_omap_get_vals2;
    table.read_op_omap_get_vals_by_keys2 = read_op_omap_get_vals_by_keys2;
    table.read_op_read = read_op_read;
    table.release_read_op = release_op;
    table.release_write_op = release_op;
    table.remove = remove_object;
    table.set_pool_full_try = set_pool_full_try;
    table.shutdown = shut_down;
    table.unlock = unlock;
    table.unwatch2 = unwatch2;
    table.watch3 = watch3;
    table.write_op_create = write_op_create;
    table.write_op_omap_cmp2 = write_op_omap_cmp2;
    table.write_op_omap_rm_keys2 = write_op_omap_rm_keys2;
    table.write_op_omap_rm_range2 = write_op_omap_rm_range2;
    table.write_op_omap_set2 = write_op_omap_set2;
    table.write_op_remove = write_op_remove;
    table.write_op_write = write_op_write;
    pthread_once(&once, start_delivery);
    interposer_faults(0, 1, 0);
    interposer_deaf(false);
    pthread_mutex_lock(&faults_lock);
    faults.n = faults.clients = 0;
    memset(&power, 0, sizeof power);
    memset(faults.cut, 0, sizeof faults.cut);
    pthread_mutex_unlock(&faults_lock);
    tl_librados_use(&table);
}

int interpose_library(struct tl_fail *fail)
{
    static struct tl_librados library; /* as loaded */
    static bool loaded;
    const int r = loaded ? TL_OK : tl_librados_load(fail);
    if (r < 0)
        return r;
    if (!loaded)
        library = tl_librados;
    loaded = true;
    interpose(&library);
    return TL_OK;
}
