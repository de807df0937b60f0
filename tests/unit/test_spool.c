/* SPDX-License-Identifier: MIT */
/* The spool by itself: order, segments, recovery of torn tails, damage, group commit. */
#include "base/crc32c.h"
#include "base/journal.h"
#include "lake_ingest.h"
#include "raw/packed.h"
#include "raw/segment.h"
#include "raw/spool.h"
#include "store/backend_memory.h"
#include "unit/patience.h"
#include "unit/seed.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static uint64_t seed_of_day(void)
{
    const uint64_t seed = test_seed();
    return seed;
}

/* Byte `i` of every test's capture. */
static uint8_t byte_at(uint64_t i)
{
    return (uint8_t)(i * 2654435761u >> 13);
}

static void make(uint64_t offset, size_t n, struct tl_buf *out)
{
    tl_buf_reset(out);
    assert_int_equal(tl_buf_reserve(out, n), TL_OK);
    for (size_t i = 0; i < n; i++)
        out->p[out->n++] = byte_at(offset + i);
}

static struct tl_spool *new_spool(struct tl_backend *backend, uint64_t segment_bytes)
{
    struct tl_spool *spool;
    const struct tl_spool_options options = {.segment_bytes = segment_bytes,
                                             .pending_bytes = 64 << 10};
    assert_int_equal(tl_spool_new(&spool, backend, &options, NULL), TL_OK);
    return spool;
}

static void append(struct tl_capture *c, uint64_t to, uint64_t *random)
{
    struct tl_buf buf = {0};
    while (tl_capture_end(c) < to) {
        const uint64_t at = tl_capture_end(c);
        size_t n = 1 + (size_t)(random_next(random) % 5000);
        if (n > to - at)
            n = (size_t)(to - at);
        make(at, n, &buf);
        assert_int_equal(tl_capture_append(c, at, (struct tl_bytes){buf.p, buf.n}, NULL), TL_OK);
    }
    tl_buf_fini(&buf);
}

/* Give `n` bytes at `at`, within a block. */
static int give(struct tl_capture *c, uint64_t at, size_t n)
{
    struct tl_buf buf = {0};
    make(at, n, &buf);
    uint8_t *const block = malloc(n + 7);
    memcpy(block + 7, buf.p, n);
    tl_buf_fini(&buf);
    const struct tl_given given = {{block + 7, n}, tl_crc32c(0, block + 7, n), block};
    return tl_capture_give(c, at, &given, NULL);
}

static void check_bytes(struct tl_backend *backend, uint64_t from, uint64_t to)
{
    struct tl_spool_reader *reader;
    struct tl_buf buf = {0};
    struct tl_fail fail = {0};
    assert_int_equal(tl_spool_reader_new(&reader, backend, "c"), TL_OK);
    int r;
    while ((r = tl_spool_read(reader, from + buf.n, to, &buf, &fail)) >= 0)
        ;
    if (r != TL_EOF)
        fail_msg("%s", fail.text);
    assert_int_equal(buf.n, to - from);
    for (uint64_t i = 0; i < buf.n; i++)
        if (buf.p[i] != byte_at(from + i))
            fail_msg("byte %llu differs", (unsigned long long)(from + i));
    tl_spool_reader_free(reader);
    tl_buf_fini(&buf);
}

/* Findings of an audit. */
struct found {
    uint64_t offset, n, at;
    unsigned calls;
};

static int note_damage(void *context, const struct tl_spool_damage *damage)
{
    struct found *found = context;
    if (!found)
        fail_msg("%s: 0x%llx is damaged", damage->key, (unsigned long long)damage->at);
    found->offset = damage->offset;
    found->n = damage->n;
    found->at = damage->at;
    found->calls++;
    return TL_OK;
}

/* Blocks that are given, a few bytes or several blocks of the segment, between bytes that are
 * copied; some repeat what is already there. */
static void given_bytes_come_back(void **state)
{
    (void)state;
    uint64_t random = seed_of_day(), end = 0;
    struct tl_backend *backend;
    struct tl_capture *c;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_spool *spool = new_spool(backend, 3 << 20);
    assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
    for (unsigned i = 0; i < 60; i++) {
        const size_t most = i % 9 == 0 ? 3 << 20
                            : i % 2    ? 100000
                                       : 6000,
                     n = 1 + (size_t)(random_next(&random) % most);
        const uint64_t back = random_next(&random) % (n + 200),
                       at = i % 4 ? end : end - (back < end ? back : end);
        assert_int_equal(give(c, at, n), TL_OK);
        end = at + n > end ? at + n : end;
        append(c, end + i % 3 * 700, &random);
        end = tl_capture_end(c);
    }
    assert_int_equal(give(c, end + 1, 5000), TL_BAD);
    assert_int_equal(tl_capture_flush(c, NULL), TL_OK);
    tl_capture_close(c);
    check_bytes(backend, 0, end);
    assert_int_equal(tl_spool_audit(backend, "c", end, note_damage, NULL, NULL), TL_OK);
    tl_spool_free(spool);
    tl_backend_free(backend);
}

static void bytes_come_back(void **state)
{
    (void)state;
    uint64_t random = seed_of_day();
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_spool *spool = new_spool(backend, 20000);
    struct tl_capture *c;
    uint64_t end = 0;
    for (int round = 0; round < 20; round++) {
        assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
        assert_int_equal(tl_capture_durable(c), end);
        end += random_next(&random) % 30000;
        append(c, end, &random);
        assert_int_equal(tl_capture_flush(c, NULL), TL_OK);
        assert_int_equal(tl_capture_durable(c), end);
        tl_capture_close(c);
        const uint64_t from = end ? random_next(&random) % end : 0;
        check_bytes(backend, from, from + random_next(&random) % (end - from + 1));
    }
    check_bytes(backend, 0, end);
    uint64_t stored;
    assert_int_equal(tl_spool_end(backend, "c", &stored, NULL), TL_OK);
    assert_int_equal(stored, end);
    assert_int_equal(tl_spool_audit(backend, "c", end, note_damage, NULL, NULL), TL_OK);
    struct tl_segments segments = {0};
    assert_int_equal(tl_segments_list(&segments, backend, "c", NULL), TL_OK);
    assert_true(segments.n > 5);
    tl_segments_fini(&segments);
    tl_spool_free(spool);
    tl_backend_free(backend);
}

/* Where the reader says that the connection was lost. */
static void require_joints(struct tl_backend *backend, uint64_t end, const uint64_t *joints,
                           size_t n)
{
    struct tl_spool_reader *reader;
    struct tl_buf buf = {0};
    size_t found = 0;
    assert_int_equal(tl_spool_reader_new(&reader, backend, "c"), TL_OK);
    for (uint64_t at = 0; at < end; at += buf.n) {
        tl_buf_reset(&buf);
        assert_int_equal(tl_spool_read(reader, at, end, &buf, NULL), TL_OK);
        assert_true(tl_spool_reader_arrival(reader) < INT64_MAX);
        if (!tl_spool_reader_rejoined(reader))
            continue;
        assert_true(found < n);
        assert_int_equal(at, joints[found++]);
    }
    assert_int_equal(found, n);
    /* It is before the first byte, not elsewhere in what came with it. */
    for (size_t i = 0; i < n; i++) {
        tl_buf_reset(&buf);
        assert_int_equal(tl_spool_read(reader, joints[i] + 1, end, &buf, NULL), TL_OK);
        assert_false(tl_spool_reader_rejoined(reader));
        tl_buf_reset(&buf);
        assert_int_equal(tl_spool_read(reader, joints[i], end, &buf, NULL), TL_OK);
        assert_true(tl_spool_reader_rejoined(reader));
    }
    tl_spool_reader_free(reader);
    tl_buf_fini(&buf);
}

static void pack_segment(struct tl_backend *backend, uint64_t first, uint64_t to)
{
    struct tl_packed_writer *writer;
    struct tl_segment_walk walk;
    struct tl_segment_piece piece;
    struct tl_bytes object;
    struct tl_log *log;
    uint64_t size;
    char key[128];
    tl_segment_key(key, "c", first);
    assert_int_equal(backend->ops->log_open(backend, key, false, &log, &size, NULL), TL_OK);
    assert_int_equal(tl_packed_writer_new(&writer, first), TL_OK);
    tl_segment_walk_begin(&walk, log, first, to);
    while (tl_segment_walk_next(&walk, true, &piece, NULL) >= 0)
        assert_int_equal(tl_packed_writer_add(writer, (struct tl_bytes){walk.data.p, walk.data.n},
                                              piece.arrival),
                         TL_OK);
    tl_segment_walk_end(&walk);
    log->ops->log_close(log);
    assert_int_equal(backend->ops->remove(backend, key, NULL), TL_OK);
    assert_int_equal(tl_packed_writer_finish(writer, &object), TL_OK);
    assert_int_equal(tl_backend_put(backend, tl_packed_key(key, "c", first), object, NULL), TL_OK);
    tl_packed_writer_free(writer);
}

/* Pack all segments, as the lake does. */
static void pack_all(struct tl_backend *backend, uint64_t end)
{
    struct tl_segments segments = {0};
    assert_int_equal(tl_segments_list(&segments, backend, "c", NULL), TL_OK);
    for (size_t i = 0; i < segments.n; i++)
        pack_segment(backend, segments.v[i].first,
                     i + 1 < segments.n ? segments.v[i + 1].first : end);
    tl_segments_fini(&segments);
}

/* Lost connections are known at their places, in logs and packed, whatever blocks and frames there
 * are. */
static void joints_are_kept(void **state)
{
    enum { JOINTS = 12 };
    uint64_t random = seed_of_day(), joints[JOINTS], end = 0;
    struct tl_backend *backend;
    struct tl_capture *c;
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_spool *spool = new_spool(backend, 3 << 20);
    assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
    assert_int_equal(tl_capture_rejoin(c, NULL), TL_OK); /* nothing is before it */
    for (unsigned i = 0; i < JOINTS; i++) {
        end += 1 + random_next(&random) % (i % 3 ? 300000 : 5000);
        if (i % 2)
            append(c, end, &random);
        else
            assert_int_equal(give(c, tl_capture_end(c), (size_t)(end - tl_capture_end(c))), TL_OK);
        if (i % 4 == 3) { /* a server that ends in between says it again */
            assert_int_equal(tl_capture_rejoin(c, NULL), TL_OK);
            tl_capture_close(c);
            assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
        }
        joints[i] = end;
        assert_int_equal(tl_capture_rejoin(c, NULL), TL_OK);
        assert_int_equal(tl_capture_rejoin(c, NULL), TL_OK);
    }
    append(c, end + 200000, &random);
    tl_capture_close(c);
    end += 200000;
    check_bytes(backend, 0, end);
    require_joints(backend, end, joints, JOINTS);
    pack_all(backend, end);
    check_bytes(backend, 0, end);
    require_joints(backend, end, joints, JOINTS);
    tl_spool_free(spool);
    tl_backend_free(backend);
}

static void torn_tails_are_cut(void **state)
{
    (void)state;
    uint64_t random = seed_of_day();
    for (int round = 0; round < 100; round++) {
        struct tl_backend *backend;
        struct tl_capture *c;
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        struct tl_spool *spool = new_spool(backend, 1 + random_next(&random) % 50000);
        assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
        append(c, random_next(&random) % 40000, &random);
        assert_int_equal(tl_capture_flush(c, NULL), TL_OK);
        const uint64_t durable = tl_capture_durable(c);
        append(c, durable + random_next(&random) % 40000, &random);
        tl_backend_memory_cut(backend);
        const uint64_t reported = tl_capture_durable(c);
        tl_capture_close(c);
        tl_spool_free(spool);
        tl_backend_memory_boot(backend, random_next(&random));
        spool = new_spool(backend, 50000);
        assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
        const uint64_t now = tl_capture_durable(c);
        assert_true(now >= reported && reported >= durable);
        append(c, now + 10000, &random);
        assert_int_equal(tl_capture_flush(c, NULL), TL_OK);
        tl_capture_close(c);
        check_bytes(backend, 0, now + 10000);
        tl_spool_free(spool);
        tl_backend_free(backend);
    }
}

/* Check that everything except [from, to) can be read, and that the reader reports that part and
 * skips it. */
static void check_around(struct tl_backend *backend, uint64_t from, uint64_t to, uint64_t end)
{
    struct tl_spool_reader *reader;
    struct tl_buf buf = {0};
    uint64_t at = 0, next;
    assert_int_equal(tl_spool_reader_new(&reader, backend, "c"), TL_OK);
    while (at < end) {
        tl_buf_reset(&buf);
        const int r = tl_spool_read(reader, at, end, &buf, NULL);
        if (r == TL_BAD) {
            assert_int_equal(at, from);
            assert_int_equal(tl_spool_skip(reader, at, end, &next, NULL), TL_OK);
            assert_int_equal(next, to);
            at = next;
            continue;
        }
        assert_int_equal(r, TL_OK);
        for (size_t i = 0; i < buf.n; i++)
            assert_int_equal(buf.p[i], byte_at(at + i));
        at += buf.n;
    }
    tl_spool_reader_free(reader);
    tl_buf_fini(&buf);
}

/* Any damaged byte is reported with its position; the bytes around it are still read, and more can
 * be appended. */
static void damage_is_found(void **state)
{
    (void)state;
    uint64_t random = seed_of_day();
    struct tl_backend *backend;
    struct tl_capture *c;
    const uint64_t end = 100000;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_spool *spool = new_spool(backend, 1 << 20);
    assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
    while (tl_capture_end(c) < end) {
        append(c, tl_capture_end(c) + 2500, &random);
        assert_int_equal(tl_capture_flush(c, NULL), TL_OK);
    }
    tl_capture_close(c);
    char key[128];
    struct tl_buf file = {0};
    tl_segment_key(key, "c", 0);
    assert_int_equal(tl_backend_get_all(backend, key, &file, NULL), TL_OK);
    for (size_t i = 0; i < file.n; i += i < 600 ? 1 : 1 + random_next(&random) % 500) {
        const uint8_t bit = (uint8_t)(1 << random_next(&random) % 8);
        file.p[i] ^= bit;
        const struct tl_bytes whole = {file.p, file.n};
        assert_int_equal(tl_backend_put(backend, key, whole, NULL), TL_OK);
        struct found found = {0};
        assert_int_equal(tl_spool_audit(backend, "c", end, note_damage, &found, NULL), TL_OK);
        assert_int_equal(found.calls, 1);
        assert_true(found.at <= i && i - found.at < 5200);
        assert_true(found.n > 0 || i < TL_SEGMENT_HEAD);
        check_around(backend, found.offset, found.offset + found.n, end);
        /* Resuming keeps what follows the damage, unless that is at the very end. */
        assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
        const uint64_t durable = tl_capture_durable(c);
        assert_true(durable == end ||
                    (found.offset + found.n + 2500 >= end && durable >= found.offset));
        tl_capture_close(c);
        assert_int_equal(tl_spool_mend(backend, "c", NULL), TL_OK);
        if (found.n == 0)
            assert_int_equal(tl_spool_audit(backend, "c", end, note_damage, NULL, NULL), TL_OK);
        file.p[i] ^= bit;
    }
    tl_buf_fini(&file);
    tl_spool_free(spool);
    tl_backend_free(backend);
}

struct progress {
    pthread_mutex_t lock;
    uint64_t offset;
    unsigned calls;
};

static void on_durable(void *context, uint64_t offset)
{
    struct progress *p = context;
    pthread_mutex_lock(&p->lock);
    assert_true(offset > p->offset);
    p->offset = offset;
    p->calls++;
    pthread_mutex_unlock(&p->lock);
}

/* Syncs of a folder are slow enough that many appends of many rigs share one. */
static void commits_are_shared(void **state)
{
    (void)state;
    char dir[] = "/tmp/tl-spool-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct tl_backend *backend;
    assert_int_equal(tl_backend_folder(&backend, dir, NULL), TL_OK);
    struct tl_spool *spool = new_spool(backend, 0);
    struct tl_capture *captures[4];
    struct progress progress[4] = {{.lock = PTHREAD_MUTEX_INITIALIZER},
                                   {.lock = PTHREAD_MUTEX_INITIALIZER},
                                   {.lock = PTHREAD_MUTEX_INITIALIZER},
                                   {.lock = PTHREAD_MUTEX_INITIALIZER}};
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "c%d", i);
        assert_int_equal(tl_capture_open(spool, name, on_durable, &progress[i], &captures[i], NULL),
                         TL_OK);
    }
    for (uint64_t at = 0; at < 4000; at++)
        for (int i = 0; i < 4; i++) {
            const uint8_t byte = byte_at(at);
            assert_int_equal(tl_capture_append(captures[i], at, (struct tl_bytes){&byte, 1}, NULL),
                             TL_OK);
        }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tl_capture_flush(captures[i], NULL), TL_OK);
        tl_capture_close(captures[i]);
        assert_int_equal(progress[i].offset, 4000);
        assert_true(progress[i].calls < 4000);
    }
    struct tl_spool_counters counters;
    tl_spool_counters(spool, &counters);
    assert_int_equal(counters.bytes, 16000);
    print_message("16000 appends in %llu commits\n", (unsigned long long)counters.commits);
    tl_spool_free(spool);
    tl_backend_free(backend);
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* Messages to the operator: one when it is full, one when there is space again, and each
 * refusal. */
static void trouble_is_reported(void **state)
{
    struct tl_backend *backend;
    struct tl_spool *spool;
    struct tl_capture *capture;
    struct tl_fail fail = {0};
    char got[4096];
    int ends[2];
    const struct tl_bytes bytes = {(const uint8_t *)"12345678", 8};
    const struct tl_spool_options options = {.min_free = 1000};
    assert_int_equal(pipe(ends), 0);
    tl_journal_open(ends[1], TL_JOURNAL_JSON, TL_JOURNAL_INFO);
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    assert_int_equal(tl_spool_new(&spool, backend, &options, &fail), TL_OK);
    assert_int_equal(tl_capture_open(spool, "a", NULL, NULL, &capture, &fail), TL_OK);
    tl_backend_memory_limit(backend, 1000); /* less than 8 bytes above the minimum free space */
    for (int i = 0; i < 3; i++)
        assert_int_equal(tl_capture_append(capture, 0, bytes, &fail), TL_NOSPACE);
    tl_spool_limit(spool, 500);
    assert_int_equal(tl_capture_append(capture, 0, bytes, &fail), TL_OK);
    assert_int_equal(tl_capture_flush(capture, &fail), TL_OK);
    for (int64_t since = 0; !tl_histogram_used(tl_spool_commits(spool));)
        keep_waiting(&since, "counted"); /* shortly after the bytes are durable */
    tl_backend_memory_limit(backend, UINT64_MAX);
    tl_backend_memory_refuse(backend, 0, 1, TL_IO);
    assert_int_equal(tl_capture_append(capture, 8, bytes, &fail), TL_OK);
    assert_true(tl_capture_flush(capture, &fail) < 0);
    tl_capture_close(capture);
    tl_spool_free(spool);
    tl_backend_free(backend);
    tl_journal_open(-1, TL_JOURNAL_TEXT, TL_JOURNAL_INFO);
    close(ends[1]);
    const ssize_t n = read(ends[0], got, sizeof got - 1);
    assert_true(n > 0);
    got[n] = 0;
    close(ends[0]);
    unsigned lines = 0;
    for (const char *p = got; (p = strchr(p, '\n')); p++)
        lines++;
    if (lines != 3 ||
        !strstr(got, "\"event\":\"disk full: no more trace is taken\",\"free_bytes\":1000,"
                     "\"min_free_bytes\":1000}") ||
        !strstr(got, "\"event\":\"disk has room: trace is taken again\"") ||
        !strstr(got, "\"event\":\"raw bytes refused by the disk\",\"trace\":\"a\",\"durable\":8,"))
        fail_msg("%s", got);
}

/* ---- a sync that takes long -------------------------------------------------------------------
 */

/* A memory backend whose syncs wait while they are held back. */
static struct {
    struct tl_backend_ops ops;
    const struct tl_backend_ops *real;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held, fails;
    unsigned syncing, writes; /* pending syncs, and writes so far */
} held = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int held_open(struct tl_backend *backend, const char *key, bool create, struct tl_log **out,
                     uint64_t *size, struct tl_fail *fail)
{
    const int r = held.real->log_open(backend, key, create, out, size, fail);
    if (r >= 0)
        (*out)->ops = &held.ops;
    return r;
}

static int held_write(struct tl_log *log, uint64_t offset, const struct tl_bytes *parts, size_t n,
                      struct tl_fail *fail)
{
    const int r = held.real->log_write(log, offset, parts, n, fail);
    pthread_mutex_lock(&held.lock);
    held.writes++;
    pthread_cond_broadcast(&held.changed);
    pthread_mutex_unlock(&held.lock);
    return r;
}

static int held_sync(struct tl_log *log, struct tl_fail *fail)
{
    pthread_mutex_lock(&held.lock);
    held.syncing++;
    pthread_cond_broadcast(&held.changed);
    while (held.held)
        pthread_cond_wait(&held.changed, &held.lock);
    held.syncing--;
    const bool fails = held.fails;
    pthread_mutex_unlock(&held.lock);
    return fails ? tl_fail_set(fail, TL_IO, "the medium failed") : held.real->log_sync(log, fail);
}

static void hold(bool on, bool fails)
{
    pthread_mutex_lock(&held.lock);
    held.held = on;
    held.fails = fails;
    pthread_cond_broadcast(&held.changed);
    pthread_mutex_unlock(&held.lock);
}

/* Append eight bytes, which are being synced while syncs are held back, and eight more, which are
 * written in the meantime. */
static void append_after_sync(struct tl_capture *capture, uint64_t at)
{
    const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    hold(true, false);
    assert_int_equal(tl_capture_append(capture, at, (struct tl_bytes){bytes, 8}, NULL), TL_OK);
    pthread_mutex_lock(&held.lock);
    while (held.syncing == 0)
        pthread_cond_wait(&held.changed, &held.lock);
    const unsigned writes = held.writes;
    pthread_mutex_unlock(&held.lock);
    assert_int_equal(tl_capture_append(capture, at + 8, (struct tl_bytes){bytes, 8}, NULL), TL_OK);
    pthread_mutex_lock(&held.lock);
    while (held.writes == writes)
        pthread_cond_wait(&held.changed, &held.lock);
    pthread_mutex_unlock(&held.lock);
    assert_int_equal(tl_capture_durable(capture), at);
}

/* A failure is also reported, with the same offset as before. */
static void on_settled(void *context, uint64_t offset)
{
    struct progress *p = context;
    pthread_mutex_lock(&p->lock);
    assert_true(offset >= p->offset);
    p->offset = offset;
    pthread_mutex_unlock(&p->lock);
}

static void written_after_a_sync(void **state)
{
    (void)state;
    struct tl_backend *backend;
    struct tl_capture *capture;
    struct tl_spool_reader *reader;
    struct tl_buf got = {0};
    struct tl_fail fail = {0};
    struct progress progress = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    held.real = backend->ops;
    held.ops = *backend->ops;
    held.ops.log_open = held_open;
    held.ops.log_write = held_write;
    held.ops.log_sync = held_sync;
    backend->ops = &held.ops;
    struct tl_spool *spool = new_spool(backend, 0);
    assert_int_equal(tl_capture_open(spool, "a", on_settled, &progress, &capture, NULL), TL_OK);

    append_after_sync(capture, 0);
    hold(false, false);
    assert_int_equal(tl_capture_flush(capture, &fail), TL_OK);
    assert_int_equal(tl_capture_durable(capture), 16);

    /* Both fail, and the durable end is unchanged. */
    append_after_sync(capture, 16);
    hold(false, true);
    assert_int_equal(tl_capture_flush(capture, &fail), TL_IO);
    assert_int_equal(tl_capture_durable(capture), 16);
    assert_int_equal(tl_capture_append(capture, 16, (struct tl_bytes){bytes, 8}, &fail), TL_IO);
    tl_capture_close(capture);
    assert_int_equal(progress.offset, 16);

    hold(false, false);
    assert_int_equal(tl_capture_open(spool, "a", on_settled, &progress, &capture, NULL), TL_OK);
    assert_int_equal(tl_capture_end(capture), 16);
    assert_int_equal(tl_capture_append(capture, 16, (struct tl_bytes){bytes, 8}, &fail), TL_OK);
    assert_int_equal(tl_capture_flush(capture, &fail), TL_OK);
    tl_capture_close(capture);
    assert_int_equal(progress.offset, 24);
    assert_int_equal(tl_spool_reader_new(&reader, backend, "a"), TL_OK);
    while (got.n < 24)
        assert_int_equal(tl_spool_read(reader, got.n, 24, &got, &fail), TL_OK);
    for (size_t i = 0; i < 24; i += 8)
        assert_memory_equal(got.p + i, bytes, 8);
    tl_spool_reader_free(reader);
    tl_buf_fini(&got);
    tl_spool_free(spool);
    backend->ops = held.real;
    tl_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_is_reported),   cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(given_bytes_come_back), cmocka_unit_test(joints_are_kept),
        cmocka_unit_test(torn_tails_are_cut),    cmocka_unit_test(damage_is_found),
        cmocka_unit_test(commits_are_shared),    cmocka_unit_test(written_after_a_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
