/* SPDX-License-Identifier: MIT */
/* All backends keep the same guarantees. */
#include "pool.h"
#include "store/backend_memory.h"
#include "unit/patience.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef TL_WITH_RADOS
#include "rados/rados_library.h"
#endif

static char folder[64];

static struct tl_backend *open_folder(void)
{
    struct tl_backend *backend;
    struct tl_fail fail = {0};
    if (tl_backend_folder(&backend, folder, &fail) < 0)
        fail_msg("%s", fail.text);
    return backend;
}

static int set_up_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/tl-backend-XXXXXX");
    assert_non_null(mkdtemp(folder));
    *state = open_folder();
    return 0;
}

static int tear_down_folder(void **state)
{
    char command[128];
    tl_backend_free(*state);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static int set_up_memory(void **state)
{
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    *state = backend;
    return 0;
}

static int tear_down_memory(void **state)
{
    tl_backend_free(*state);
    return 0;
}

static int set_up_pool(void **state)
{
    *state = choose_pool() ? open_pool() : NULL;
    return 0;
}

/* A pool whose leases are checked several times a second. */
static int set_up_brisk_pool(void **state)
{
    *state = NULL;
    if (choose_pool()) {
        const size_t n = strlen(pool_url);
        snprintf(pool_url + n, sizeof pool_url - n, "&lease=1");
        *state = open_pool();
    }
    return 0;
}

static int tear_down_pool(void **state)
{
    tl_backend_free(*state);
    return 0;
}

static struct tl_bytes text(const char *s)
{
    return (struct tl_bytes){(const uint8_t *)s, strlen(s)};
}

static int note_key(void *context, const char *key, uint64_t size)
{
    return tl_buf_printf(context, "%s:%llu ", key, (unsigned long long)size);
}

static void objects(void **state)
{
    struct tl_backend *b = *state;
    struct tl_buf out = {0};
    uint64_t size;
    assert_int_equal(b->ops->size(b, "a/b", &size, NULL), TL_NOTFOUND);
    assert_int_equal(tl_backend_put(b, "a/b", text("hello"), NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "a/c.x", text(""), NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "d", text("x"), NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "a/b", text("world!"), NULL), TL_OK);
    assert_int_equal(b->ops->size(b, "a/b", &size, NULL), TL_OK);
    assert_int_equal(size, 6);
    assert_int_equal(b->ops->get(b, "a/b", 2, 3, &out, NULL), TL_OK);
    assert_int_equal(out.n, 3);
    assert_memory_equal(out.p, "rld", 3);
    assert_int_equal(b->ops->get(b, "a/b", 4, SIZE_MAX, &out, NULL), TL_OK);
    assert_int_equal(out.n, 5);
    assert_int_equal(b->ops->get(b, "a/b", 100, 3, &out, NULL), TL_OK);
    assert_int_equal(out.n, 5);
    tl_buf_reset(&out);
    assert_int_equal(b->ops->list(b, "", note_key, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "a/b:6 a/c.x:0 d:1 ");
    assert_int_equal(tl_backend_remove_all(b, "a", NULL), TL_OK);
    assert_int_equal(b->ops->remove(b, "a/b", NULL), TL_OK);
    tl_buf_reset(&out);
    assert_int_equal(b->ops->list(b, "a", note_key, &out, NULL), TL_OK);
    assert_int_equal(out.n, 0);
    assert_int_equal(tl_backend_put(b, "a/b", text("again"), NULL), TL_OK);
    tl_buf_fini(&out);
}

static void several_objects(void **state)
{
    struct tl_backend *b = *state;
    struct tl_buf out = {0};
    const struct tl_object some[] = {{"a/b/1", text("one")},
                                     {"a/b/2", text("two")},
                                     {"a/c/1", text("other")},
                                     {"top", text("t")},
                                     {"a/b/3", text("")}};
    assert_int_equal(b->ops->put_all(b, some, 5, NULL), TL_OK);
    assert_int_equal(b->ops->put_all(b, some, 0, NULL), TL_OK);
    assert_int_equal(b->ops->list(b, "", note_key, &out, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((char *)out.p, "a/b/1:3 a/b/2:3 a/b/3:0 a/c/1:5 top:1 ");
    /* Objects are replaced; with an invalid key, none of them is. */
    const struct tl_object others[] = {{"a/b/2", text("twice")}, {"a//b", text("bad")}};
    assert_int_equal(b->ops->put_all(b, others, 2, NULL), TL_USAGE);
    tl_buf_reset(&out);
    assert_int_equal(b->ops->get(b, "a/b/2", 0, 100, &out, NULL), TL_OK);
    assert_memory_equal(out.p, "two", out.n);
    assert_int_equal(b->ops->put_all(b, others, 1, NULL), TL_OK);
    tl_buf_reset(&out);
    assert_int_equal(b->ops->get(b, "a/b/2", 0, 100, &out, NULL), TL_OK);
    assert_int_equal(out.n, 5);
    tl_buf_fini(&out);
}

/* What is kept open after a read is not used any more when the object was replaced or removed. */
static void read_again(void **state)
{
    struct tl_backend *const b = *state;
    struct tl_buf got = {0};
    char key[32];
    for (int round = 0; round < 2; round++)
        for (int i = round ? 130 : 0; i < 140; i++) {
            snprintf(key, sizeof key, "t/%d", i);
            const struct tl_bytes value = text(round ? "second, and longer" : "first");
            assert_int_equal(tl_backend_put(b, key, value, NULL), TL_OK);
            for (int again = 0; again < 2; again++) {
                tl_buf_reset(&got);
                assert_int_equal(b->ops->get(b, key, 1, 100, &got, NULL), TL_OK);
                assert_int_equal(got.n, value.n - 1);
                assert_memory_equal(got.p, value.p + 1, got.n);
            }
        }
    assert_int_equal(b->ops->remove(b, "t/139", NULL), TL_OK);
    assert_int_equal(b->ops->get(b, "t/139", 0, 100, &got, NULL), TL_NOTFOUND);
    tl_buf_fini(&got);
}

/* The same if another process removed or replaced it. */
static void changed_by_another(void **state)
{
    struct tl_backend *const b = *state, *const other = open_folder();
    struct tl_buf got = {0};
    assert_int_equal(tl_backend_put(b, "t/a", text("one"), NULL), TL_OK);
    assert_int_equal(tl_backend_get_all(b, "t/a", &got, NULL), TL_OK);
    assert_int_equal(tl_backend_put(other, "t/a", text("two"), NULL), TL_OK);
    tl_buf_reset(&got);
    assert_int_equal(tl_backend_get_all(b, "t/a", &got, NULL), TL_OK);
    assert_memory_equal(got.p, "two", 3);
    assert_int_equal(other->ops->remove(other, "t/a", NULL), TL_OK);
    assert_int_equal(b->ops->get(b, "t/a", 0, 3, &got, NULL), TL_NOTFOUND);
    tl_backend_free(other);
    tl_buf_fini(&got);
}

static void keys_are_checked(void **state)
{
    struct tl_backend *b = *state;
    static const char *const bad[] = {"", "/a", "a/", "a//b", "../x", "a/..", ".x", "a b", "a\nb"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_false(tl_key_valid(bad[i]));
        assert_int_equal(tl_backend_put(b, bad[i], text("x"), NULL), TL_USAGE);
    }
    assert_true(tl_key_valid("t/rig-1.a_B/3/cs.10/000001.zstf"));
}

static void logs(void **state)
{
    struct tl_backend *b = *state;
    struct tl_log *log, *reader;
    struct tl_buf out = {0};
    uint64_t size;
    assert_int_equal(b->ops->log_open(b, "r/x", false, &log, &size, NULL), TL_NOTFOUND);
    assert_int_equal(b->ops->log_open(b, "r/x", true, &log, &size, NULL), TL_OK);
    assert_int_equal(size, 0);
    const struct tl_bytes parts[] = {text("abc"), text("defg")};
    assert_int_equal(log->ops->log_write(log, 0, parts, 2, NULL), TL_OK);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    assert_int_equal(b->ops->log_open(b, "r/x", false, &reader, &size, NULL), TL_OK);
    assert_int_equal(size, 7);
    assert_int_equal(reader->ops->log_read(reader, 1, 100, &out, NULL), TL_OK);
    assert_int_equal(out.n, 6);
    assert_memory_equal(out.p, "bcdefg", 6);
    assert_int_equal(log->ops->log_truncate(log, 2, NULL), TL_OK);
    assert_int_equal(log->ops->log_write(log, 2, parts, 1, NULL), TL_OK);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    tl_buf_reset(&out);
    assert_int_equal(reader->ops->log_read(reader, 0, 100, &out, NULL), TL_OK);
    assert_int_equal(out.n, 5);
    assert_memory_equal(out.p, "ababc", 5);
    assert_int_equal(b->ops->remove(b, "r/x", NULL), TL_OK);
    tl_buf_reset(&out);
    const int read = reader->ops->log_read(reader, 0, 100, &out, NULL);
    assert_true(read == TL_OK ? out.n == 5 : read == TL_NOTFOUND);
    log->ops->log_close(log);
    reader->ops->log_close(reader);
    tl_buf_fini(&out);
}

static void leases(void **state)
{
    struct tl_backend *b = *state;
    struct tl_lease *one, *two;
    assert_int_equal(b->ops->lease(b, "x", &one, NULL), TL_OK);
    assert_int_equal(b->ops->lease(b, "x", &two, NULL), TL_DENIED);
    assert_int_equal(b->ops->lease(b, "y", &two, NULL), TL_OK);
    b->ops->lease_release(one);
    assert_int_equal(b->ops->lease(b, "x", &one, NULL), TL_OK);
    b->ops->lease_release(one);
    b->ops->lease_release(two);
}

/* Another process using the same store. */
static struct tl_backend *attach(struct tl_backend *b)
{
    struct tl_backend *other;
    if (strcmp(b->ops->name, "folder") == 0)
        return open_folder();
    if (strcmp(b->ops->name, "rados") == 0)
        return open_pool();
    assert_int_equal(tl_backend_memory_attach(b, &other), TL_OK);
    return other;
}

#ifdef TL_WITH_RADOS
/* Break a lock as the cluster does when it expires, using tl_backend_rados's names. */
static void break_lock(const char *name)
{
    char url[sizeof pool_url], oid[80];
    rados_t cluster;
    rados_ioctx_t io;
    snprintf(url, sizeof url, "%s", pool_url + strlen("rados:"));
    const char *const pool = strtok(url, "?"), *const conf = strtok(NULL, "&") + strlen("conf="),
                      *const space = strtok(NULL, "&") + strlen("namespace=");
    assert_true(tl_librados.create(&cluster, "admin") >= 0);
    assert_true(tl_librados.conf_read_file(cluster, conf) >= 0);
    assert_true(tl_librados.connect(cluster) >= 0);
    assert_true(tl_librados.ioctx_create(cluster, pool, &io) >= 0);
    tl_librados.ioctx_set_namespace(io, space);
    snprintf(oid, sizeof oid, "lease.%s", name);
    assert_int_equal(tl_librados.remove(io, oid), 0); /* this also removes the lock */
    tl_librados.ioctx_destroy(io);
    tl_librados.shutdown(cluster);
}
#else
static void break_lock(const char *name)
{
    (void)name;
}
#endif

static void take_away(struct tl_backend *b, const char *name)
{
    if (strcmp(b->ops->name, "rados") == 0) {
        break_lock(name);
        return;
    }
    char path[128];
    snprintf(path, sizeof(path), "%s/leases/%s", folder, name);
    if (strcmp(b->ops->name, "folder") == 0)
        assert_int_equal(unlink(path), 0);
    else
        tl_backend_memory_expire(b, name);
}

/* After losing a lease, its former holder cannot change anything while the next holder works. */
static void lost_leases_fence(void **state)
{
    struct tl_backend *b = *state, *other = attach(b);
    struct tl_lease *mine, *yours;
    struct tl_log *log;
    struct tl_buf out = {0};
    const struct tl_bytes part = text("abc");
    uint64_t size;
    assert_int_equal(b->ops->lease(b, TL_LEASE_ALL, &mine, NULL), TL_OK);
    assert_int_equal(other->ops->lease(other, TL_LEASE_ALL, &yours, NULL), TL_DENIED);
    assert_int_equal(tl_backend_put(b, "a", text("mine"), NULL), TL_OK);
    assert_int_equal(b->ops->log_open(b, "l", true, &log, &size, NULL), TL_OK);
    assert_int_equal(log->ops->log_write(log, 0, &part, 1, NULL), TL_OK);
    assert_true(b->ops->may_commit(b));
    take_away(b, TL_LEASE_ALL);
    assert_int_equal(other->ops->lease(other, TL_LEASE_ALL, &yours, NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "a", text("still mine"), NULL), TL_DENIED);
    assert_int_equal(b->ops->remove(b, "a", NULL), TL_DENIED);
    assert_int_equal(b->ops->log_open(b, "m", true, &log, &size, NULL), TL_DENIED);
    assert_int_equal(log->ops->log_write(log, 3, &part, 1, NULL), TL_DENIED);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_DENIED);
    assert_int_equal(log->ops->log_truncate(log, 0, NULL), TL_DENIED);
    assert_false(b->ops->may_commit(b));
    assert_int_equal(b->ops->get(b, "a", 0, 100, &out, NULL), TL_OK); /* reading is allowed */
    assert_int_equal(out.n, 4);
    assert_int_equal(tl_backend_put(other, "a", text("yours"), NULL), TL_OK);
    assert_true(other->ops->may_commit(other));
    b->ops->lease_release(mine);
    assert_int_equal(b->ops->lease(b, TL_LEASE_ALL, &mine, NULL), TL_DENIED);
    const uint64_t before = yours->epoch;
    other->ops->lease_release(yours);
    assert_int_equal(b->ops->lease(b, TL_LEASE_ALL, &mine, NULL), TL_OK);
    assert_true(mine->epoch > before);
    assert_int_equal(tl_backend_put(b, "a", text("mine"), NULL), TL_OK);
    b->ops->lease_release(mine);
    log->ops->log_close(log);
    tl_backend_free(other);
    tl_buf_fini(&out);
}

/* A lost lease denies changes of what it guards, and nothing else, until it is released. */
static void leases_guard_a_trace(void **state)
{
    struct tl_backend *b = *state, *other = attach(b);
    struct tl_lease *one, *two, *taken;
    struct tl_log *log;
    const struct tl_bytes part = text("abc");
    uint64_t size;
    assert_true(tl_lease_guards("one", "t/one/1/x") && tl_lease_guards("one", "one"));
    assert_false(tl_lease_guards("one", "t/one2/1/x") || tl_lease_guards("one", "one/two"));
    assert_int_equal(b->ops->lease(b, "one", &one, NULL), TL_OK);
    assert_int_equal(b->ops->lease(b, "two", &two, NULL), TL_OK);
    assert_int_equal(b->ops->log_open(b, "r/one/0", true, &log, &size, NULL), TL_OK);
    assert_int_equal(log->ops->log_write(log, 0, &part, 1, NULL), TL_OK);
    take_away(b, "one");
    assert_int_equal(other->ops->lease(other, "one", &taken, NULL), TL_OK);
    assert_int_equal(other->ops->lease(other, "two", &taken, NULL), TL_DENIED);
    assert_int_equal(tl_backend_put(b, "t/one/1/x", part, NULL), TL_DENIED);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_DENIED);
    assert_int_equal(tl_backend_put(b, "t/two/1/x", part, NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "i/image", part, NULL), TL_OK);
    assert_int_equal(tl_backend_put(other, "t/one/1/x", part, NULL), TL_OK);
    const struct tl_object both[] = {{"t/two/2", part}, {"t/one/2", part}};
    assert_int_equal(b->ops->put_all(b, both, 2, NULL), TL_DENIED);
    log->ops->log_close(log);
    b->ops->lease_release(one);
    assert_int_equal(tl_backend_put(b, "m/one", part, NULL), TL_OK);
    b->ops->lease_release(two);
    other->ops->lease_release(taken);
    tl_backend_free(other);
}

/* If leases are required, nothing of a trace can be changed without one. */
static void leases_are_required(void **state)
{
    struct tl_backend *b = *state;
    struct tl_lease *lease;
    struct tl_log *log;
    const struct tl_bytes part = text("abc");
    uint64_t size;
    static const char *const kinds[] = {"t/x/1/s/0.zstf", "c/x/1/0", "m/x", "r/x/0.pack"};
    b->ops->require_leases(b);
    assert_int_equal(tl_backend_put(b, "i/image", part, NULL), TL_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(tl_backend_put(b, kinds[i], part, NULL), TL_DENIED);
    assert_int_equal(b->ops->log_open(b, "r/x/0.seg", true, &log, &size, NULL), TL_DENIED);
    assert_int_equal(b->ops->lease(b, "x", &lease, NULL), TL_OK);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(tl_backend_put(b, kinds[i], part, NULL), TL_OK);
    assert_int_equal(b->ops->log_open(b, "r/x/0.seg", true, &log, &size, NULL), TL_OK);
    assert_int_equal(log->ops->log_write(log, 0, &part, 1, NULL), TL_OK);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "t/y/1/s/0.zstf", part, NULL), TL_DENIED);
    b->ops->lease_release(lease);
    /* into the part it has already */
    assert_int_equal(log->ops->log_write(log, 3, &part, 1, NULL), TL_OK);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_DENIED);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(b->ops->remove(b, kinds[i], NULL), TL_DENIED);
    log->ops->log_close(log);
}

/* A process that wants a lease can ask its holder, who is notified after a while. */
static void leases_are_asked_for(void **state)
{
    struct tl_backend *b = *state, *other = attach(b);
    struct tl_lease *lease;
    uint64_t asked;
    assert_int_equal(b->ops->lease(b, "x", &lease, NULL), TL_OK);
    assert_int_equal(b->ops->lease_state(lease, &asked), TL_OK);
    assert_true(asked == 0);
    assert_int_equal(other->ops->lease_ask(other, "x", UINT64_MAX - 5, NULL), TL_OK);
    for (int64_t since = 0; asked == 0;) {
        keep_waiting(&since, "the holder is asked");
        assert_int_equal(b->ops->lease_state(lease, &asked), TL_OK);
    }
    assert_true(asked == UINT64_MAX - 5);
    b->ops->lease_release(lease);
    /* Acquiring the lease answers the request. */
    assert_int_equal(other->ops->lease(other, "x", &lease, NULL), TL_OK);
    other->ops->lease_release(lease);
    tl_backend_free(other);
}

/* A lease is lost if another process held it in the meantime, even if its lock is free again. */
static void leases_that_another_had_are_lost(void **state)
{
    struct tl_backend *b = *state, *other = attach(b);
    struct tl_lease *mine, *yours;
    uint64_t asked;
    assert_int_equal(b->ops->lease(b, "x", &mine, NULL), TL_OK);
    do /* it may have been renewed in between */
        take_away(b, "x");
    while (other->ops->lease(other, "x", &yours, NULL) == TL_DENIED);
    other->ops->lease_release(yours);
    for (int64_t since = 0; b->ops->lease_state(mine, &asked) != TL_DENIED;)
        keep_waiting(&since, "the lease is lost");
    assert_int_equal(tl_backend_put(b, "t/x/1", text("late"), NULL), TL_DENIED);
    b->ops->lease_release(mine);
    tl_backend_free(other);
}

static void epochs_grow(void **state)
{
    struct tl_backend *b = *state;
    struct tl_lease *lease;
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(b->ops->lease(b, "x", &lease, NULL), TL_OK);
        assert_true(lease->epoch > last);
        last = lease->epoch;
        b->ops->lease_release(lease);
    }
}

/* ---- several threads ------------------------------------------------------------------------- */

enum { WORKERS = 6, ROUNDS = 60 };

struct worker {
    struct tl_backend *b;
    unsigned number;
    int result;
};

/* Each thread has objects of its own, and all replace a shared one, which always reads as one whole
 * version. */
static int work_once(struct worker *w, unsigned round)
{
    struct tl_backend *b = w->b;
    struct tl_buf out = {0};
    char key[64], content[600];
    const char letter = (char)('a' + (w->number + round) % 26);
    const size_t n = 100 + (w->number * 37 + round * 11) % 500;
    memset(content, letter, n);
    const struct tl_bytes bytes = {(const uint8_t *)content, n};
    snprintf(key, sizeof(key), "w/%u/%u", w->number, round % 5);
    int r = tl_backend_put(b, key, bytes, NULL);
    if (r >= 0)
        r = tl_backend_put(b, "w/all", bytes, NULL);
    if (r >= 0)
        r = tl_backend_get_all(b, key, &out, NULL);
    if (r >= 0 && (out.n != n || memcmp(out.p, content, n) != 0))
        r = TL_BAD;
    tl_buf_reset(&out);
    if (r >= 0)
        r = b->ops->get(b, "w/all", 0, 10000, &out, NULL);
    for (size_t i = 1; r >= 0 && i < out.n; i++)
        if (out.p[i] != out.p[0])
            r = TL_BAD;
    tl_buf_reset(&out);
    if (r >= 0)
        r = b->ops->list(b, "w", note_key, &out, NULL);
    if (r >= 0 && round % 3 == 0)
        r = b->ops->remove(b, key, NULL);
    tl_buf_fini(&out);
    return r;
}

static void *work(void *context)
{
    struct worker *w = context;
    for (unsigned i = 0; i < ROUNDS && w->result >= 0; i++)
        w->result = work_once(w, i);
    return NULL;
}

static void many_at_a_time(void **state)
{
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.b = *state, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].result, TL_OK);
    }
}

static void scratch_files(void **state)
{
    struct tl_backend *b = *state;
    struct tl_buf keys = {0};
    char back[5] = {0};
    const int fd = b->ops->scratch(b, NULL);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "temp", 4), 4);
    assert_int_equal(pread(fd, back, 4, 0), 4);
    assert_string_equal(back, "temp");
    assert_int_equal(b->ops->list(b, "", note_key, &keys, NULL), TL_OK);
    assert_int_equal(keys.n, 0);
    close(fd);
}

static void a_full_medium_says_so(void **state)
{
    struct tl_backend *b = *state;
    struct tl_log *log;
    uint64_t size;
    tl_backend_memory_limit(b, 10);
    assert_int_equal(tl_backend_put(b, "a", text("12345678"), NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "b", text("12345678"), NULL), TL_NOSPACE);
    assert_int_equal(b->ops->size(b, "b", &size, NULL), TL_NOTFOUND);
    assert_int_equal(b->ops->free_bytes(b), 2);
    /* Each of several objects has its old or its new contents. */
    const struct tl_object some[] = {{"a", text("123456789")}, {"b", text("12")}};
    assert_int_equal(b->ops->put_all(b, some, 2, NULL), TL_NOSPACE);
    assert_int_equal(b->ops->size(b, "b", &size, NULL), TL_NOTFOUND);
    assert_int_equal(tl_backend_put(b, "a", text("1234567890"), NULL), TL_OK);
    assert_int_equal(b->ops->log_open(b, "l", true, &log, &size, NULL), TL_OK);
    const struct tl_bytes part = text("x");
    assert_int_equal(log->ops->log_write(log, 0, &part, 1, NULL), TL_NOSPACE);
    assert_int_equal(b->ops->remove(b, "a", NULL), TL_OK);
    assert_int_equal(log->ops->log_write(log, 0, &part, 1, NULL), TL_OK);
    log->ops->log_close(log);
}

static void only_what_was_synced_survives(void **state)
{
    struct tl_backend *b = *state;
    struct tl_log *log;
    struct tl_buf out = {0};
    uint64_t size;
    assert_int_equal(b->ops->log_open(b, "l", true, &log, &size, NULL), TL_OK);
    const struct tl_bytes part = text("0123456789");
    assert_int_equal(log->ops->log_write(log, 0, &part, 1, NULL), TL_OK);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    assert_int_equal(log->ops->log_write(log, 10, &part, 1, NULL), TL_OK);
    tl_backend_memory_cut(b);
    assert_int_equal(log->ops->log_write(log, 20, &part, 1, NULL), TL_IO);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_IO);
    assert_int_equal(tl_backend_put(b, "o", part, NULL), TL_IO);
    log->ops->log_close(log);
    tl_backend_memory_boot(b, 5);
    assert_int_equal(b->ops->get(b, "l", 0, 100, &out, NULL), TL_OK);
    assert_true(out.n >= 10 && out.n <= 20);
    assert_memory_equal(out.p, "0123456789", 10);
    assert_int_equal(tl_backend_put(b, "o", part, NULL), TL_OK);
    tl_buf_fini(&out);
}

/* Objects and logs of several pieces: replaced, read at any offset, truncated and extended. */
static void many_pieces(void **state)
{
    enum { MIB = 1 << 20, ALL = 11 * MIB };
    struct tl_backend *b = *state;
    struct tl_log *log, *again;
    struct tl_buf out = {0};
    uint64_t size;
    uint8_t *const bytes = malloc(ALL);
    assert_non_null(bytes);
    for (size_t i = 0; i < ALL; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 12));
    const struct tl_bytes all = {bytes, ALL}, half = {bytes, ALL / 2};
    assert_int_equal(tl_backend_put(b, "t/a/1", half, NULL), TL_OK);
    assert_int_equal(tl_backend_put(b, "t/a/1", all, NULL), TL_OK);
    for (size_t at = 1; at < ALL; at += 2999999) {
        tl_buf_reset(&out);
        assert_int_equal(b->ops->get(b, "t/a/1", at, 5 * MIB, &out, NULL), TL_OK);
        assert_int_equal(out.n, ALL - at < 5 * MIB ? ALL - at : 5 * MIB);
        assert_memory_equal(out.p, bytes + at, out.n);
    }
    assert_int_equal(b->ops->log_open(b, "r/a/0", true, &log, &size, NULL), TL_OK);
    for (size_t at = 0; at < ALL; at += MIB / 2) {
        const struct tl_bytes parts[] = {{bytes + at, 1000}, {bytes + at + 1000, MIB / 2 - 1000}};
        assert_int_equal(log->ops->log_write(log, at, parts, 2, NULL), TL_OK);
    }
    assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    assert_int_equal(log->ops->log_truncate(log, 5 * MIB + 3, NULL), TL_OK);
    /* Another handle continues, and then overwrites a part. */
    assert_int_equal(b->ops->log_open(b, "r/a/0", true, &again, &size, NULL), TL_OK);
    assert_int_equal(size, 5 * MIB + 3);
    const struct tl_bytes rest = {bytes + size, ALL - size}, middle = {bytes + 100, 50};
    assert_int_equal(again->ops->log_write(again, size, &rest, 1, NULL), TL_OK);
    assert_int_equal(again->ops->log_sync(again, NULL), TL_OK);
    assert_int_equal(again->ops->log_write(again, 4 * MIB - 20, &middle, 1, NULL), TL_OK);
    assert_int_equal(again->ops->log_sync(again, NULL), TL_OK);
    memcpy(bytes + 4 * MIB - 20, bytes + 100, 50);
    tl_buf_reset(&out);
    assert_int_equal(log->ops->log_read(log, 0, SIZE_MAX, &out, NULL), TL_OK);
    assert_int_equal(out.n, ALL);
    assert_memory_equal(out.p, bytes, ALL);
    log->ops->log_close(log);
    again->ops->log_close(again);
    assert_int_equal(tl_backend_remove_all(b, "r/a", NULL), TL_OK);
    assert_int_equal(b->ops->log_open(b, "r/a/0", false, &log, &size, NULL), TL_NOTFOUND);
    free(bytes);
    tl_buf_fini(&out);
}

/* ---- in a pool ----------------------------------------------------------------------------- */

#define IN_POOL(test)                                                                              \
    static void test##_in_a_pool(void **state)                                                     \
    {                                                                                              \
        if (!*state)                                                                               \
            skip_pool();                                                                           \
        test(state);                                                                               \
    }
IN_POOL(objects)
IN_POOL(several_objects)
IN_POOL(read_again)
IN_POOL(keys_are_checked)
IN_POOL(logs)
IN_POOL(leases)
IN_POOL(lost_leases_fence)
IN_POOL(leases_guard_a_trace)
IN_POOL(leases_are_required)
IN_POOL(leases_are_asked_for)
IN_POOL(leases_that_another_had_are_lost)
IN_POOL(epochs_grow)
IN_POOL(many_at_a_time)
IN_POOL(scratch_files)
IN_POOL(many_pieces)

int main(void)
{
#define ALL(test)                                                                                  \
    cmocka_unit_test_setup_teardown(test, set_up_folder, tear_down_folder),                        \
        cmocka_unit_test_setup_teardown(test, set_up_memory, tear_down_memory),                    \
        cmocka_unit_test_setup_teardown(test##_in_a_pool, set_up_pool, tear_down_pool)
#define FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up_folder, tear_down_folder)
#define MEMORY(test) cmocka_unit_test_setup_teardown(test, set_up_memory, tear_down_memory)
    const struct CMUnitTest tests[] = {
        ALL(objects),
        ALL(several_objects),
        ALL(read_again),
        FOLDER(changed_by_another),
        ALL(keys_are_checked),
        ALL(logs),
        ALL(leases),
        ALL(lost_leases_fence),
        ALL(leases_guard_a_trace),
        cmocka_unit_test_setup_teardown(leases_are_required_in_a_pool, set_up_pool, tear_down_pool),
        cmocka_unit_test_setup_teardown(leases_are_asked_for_in_a_pool, set_up_brisk_pool,
                                        tear_down_pool),
        cmocka_unit_test_setup_teardown(leases_that_another_had_are_lost_in_a_pool,
                                        set_up_brisk_pool, tear_down_pool),
        ALL(epochs_grow),
        ALL(many_at_a_time),
        ALL(scratch_files),
        ALL(many_pieces),
        MEMORY(a_full_medium_says_so),
        MEMORY(only_what_was_synced_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
