/* SPDX-License-Identifier: MIT */
/* Packed segments: bytes and arrival times are restored, damage costs a frame, metadata is
 * repaired, and a lake packs complete segments, whatever the medium does in the meantime. */
#include "lake_raw.h"
#include "lake_upkeep.h"
#include "opening/open.h"
#include "unit/lake_help.h"

#include "lake/lakeint.h"
#include "raw/packed.h"
#include "raw/segment.h"
#include "unit/patience.h"
#include "unit/seed.h"

#include <zstd.h>

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Bytes [from, to) of every capture here: no two frames are equal, and they can be compressed. */
static void make(uint64_t from, uint64_t to, struct tl_buf *out)
{
    tl_buf_reset(out);
    assert_int_equal(tl_buf_reserve(out, (size_t)(to - from)), TL_OK);
    for (uint64_t i = from; i < to; i++)
        out->p[out->n++] = (uint8_t)(i % 3 ? i >> 12 : i * 2654435761u >> 17);
}

/* Bytes [first, first + n) in runs, packed as "c"; run k arrived at 1000000 * k. */
static void pack(struct tl_backend *backend, uint64_t first, uint64_t n, uint64_t *random,
                 struct tl_buf *all)
{
    struct tl_packed_writer *writer;
    struct tl_bytes object;
    char key[128];
    make(first, first + n, all);
    assert_int_equal(tl_packed_writer_new(&writer, first), TL_OK);
    for (uint64_t at = 0, run = 1; at < n; run++) {
        uint64_t piece = 1 + next(random) % (next(random) % 8 ? 3000 : 600000);
        piece = piece < n - at ? piece : n - at;
        assert_int_equal(tl_packed_writer_add(writer, (struct tl_bytes){all->p + at, (size_t)piece},
                                              run * 1000000),
                         TL_OK);
        at += piece;
    }
    assert_int_equal(tl_packed_writer_finish(writer, &object), TL_OK);
    assert_int_equal(tl_backend_put(backend, tl_packed_key(key, "c", first), object, NULL), TL_OK);
    tl_packed_writer_free(writer);
}

/* Read all bytes from `from` on; arrival times never decrease. Damaged bytes are skipped. Returns
 * the number of bytes. */
static uint64_t read_all(struct tl_backend *backend, uint64_t first, uint64_t from,
                         const struct tl_buf *all)
{
    struct tl_spool_reader *reader;
    struct tl_buf buf = {0};
    uint64_t at = from, lost = 0, arrival = 0, following;
    const uint64_t end = first + all->n;
    assert_int_equal(tl_spool_reader_new(&reader, backend, "c"), TL_OK);
    while (at < end) {
        tl_buf_reset(&buf);
        const int r = tl_spool_read(reader, at, end, &buf, NULL);
        if (r == TL_BAD) {
            assert_int_equal(tl_spool_skip(reader, at, end, &following, NULL), TL_OK);
            assert_true(following > at && following <= end);
            lost += following - at;
            at = following;
            continue;
        }
        assert_int_equal(r, TL_OK);
        assert_true(buf.n > 0 && buf.n <= end - at);
        assert_memory_equal(buf.p, all->p + (at - first), buf.n);
        assert_true(tl_spool_reader_arrival(reader) >= arrival);
        arrival = tl_spool_reader_arrival(reader);
        at += buf.n;
    }
    tl_spool_reader_free(reader);
    tl_buf_fini(&buf);
    return lost;
}

struct found {
    uint64_t n, at;
    unsigned calls;
};

static int note(void *context, const struct tl_spool_damage *damage)
{
    struct found *found = context;
    found->n = damage->n;
    found->at = damage->at;
    found->calls++;
    return TL_OK;
}

static struct found audit(struct tl_backend *backend, uint64_t end)
{
    struct found found = {0};
    assert_int_equal(tl_spool_audit(backend, "c", end, note, &found, NULL), TL_OK);
    return found;
}

static void bytes_come_back(void **state)
{
    uint64_t random = test_seed();
    struct tl_buf all = {0}, file = {0}, plain = {0};
    char key[128];
    for (int round = 0; round < 12; round++) {
        struct tl_backend *backend;
        uint64_t end;
        const uint64_t n = 1 + next(&random) % (round % 3 ? 2000000 : 1000);
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        pack(backend, 0, n, &random, &all);
        assert_int_equal(read_all(backend, 0, 0, &all), 0);
        assert_int_equal(read_all(backend, 0, next(&random) % n, &all), 0);
        assert_int_equal(audit(backend, n).calls, 0);
        assert_int_equal(tl_spool_end(backend, "c", &end, NULL), TL_OK);
        assert_int_equal(end, n);
        /* zstd ignores our skippable frames, and gives the same bytes. */
        tl_buf_reset(&file);
        assert_int_equal(tl_backend_get_all(backend, tl_packed_key(key, "c", 0), &file, NULL),
                         TL_OK);
        tl_buf_reset(&plain);
        assert_int_equal(tl_buf_reserve(&plain, n + 1), TL_OK);
        plain.n = ZSTD_decompress(plain.p, n + 1, file.p, file.n);
        assert_int_equal(plain.n, n);
        assert_memory_equal(plain.p, all.p, n);
        tl_backend_free(backend);
    }
    tl_buf_fini(&all);
    tl_buf_fini(&file);
    tl_buf_fini(&plain);
}

/* Any flipped bit is detected and costs at most the frame that contains it; redundant metadata is
 * repaired. */
static void damage_costs_a_frame(void **state)
{
    uint64_t random = test_seed();
    struct tl_backend *backend;
    struct tl_buf all = {0}, file = {0};
    char key[128];
    const uint64_t end = 5 * TL_PACKED_FRAME + 12345;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    pack(backend, 0, end, &random, &all);
    assert_int_equal(tl_backend_get_all(backend, tl_packed_key(key, "c", 0), &file, NULL), TL_OK);
    for (size_t i = 0; i < file.n;
         i += i < 80 || i + 128 > file.n ? 1 : 1 + next(&random) % (file.n / 80)) {
        const uint8_t bit = (uint8_t)(1 << next(&random) % 8);
        const struct tl_bytes whole = {file.p, file.n};
        file.p[i] ^= bit;
        assert_int_equal(tl_backend_put(backend, key, whole, NULL), TL_OK);
        const struct found found = audit(backend, end);
        const uint64_t lost = read_all(backend, 0, 0, &all);
        assert_true(lost <= TL_PACKED_FRAME);
        assert_int_equal(found.calls, 1);
        assert_int_equal(found.n, lost);
        assert_int_equal(tl_spool_mend(backend, "c", NULL), TL_OK);
        if (lost == 0)
            assert_int_equal(audit(backend, end).calls, 0);
        assert_int_equal(read_all(backend, 0, 0, &all), lost);
        file.p[i] ^= bit;
    }
    tl_buf_fini(&all);
    tl_buf_fini(&file);
    tl_backend_free(backend);
}

/* Segments are packed again while a reader remembers the locations of their frames: the frames are
 * elsewhere then, with the same bytes. */
static void a_resting_reader_continues(void **state)
{
    enum { SEGMENT = 500000, SEGMENTS = 80 }; /* more than the reader keeps */
    uint64_t random = test_seed();
    struct tl_backend *backend;
    struct tl_spool_reader *reader;
    struct tl_buf all[SEGMENTS] = {0}, buf = {0};
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    for (uint64_t i = 0; i < SEGMENTS; i++)
        pack(backend, i * SEGMENT, SEGMENT, &random, &all[i]);
    assert_int_equal(tl_spool_reader_new(&reader, backend, "c"), TL_OK);
    for (unsigned i = 0; i < 1000; i++) {
        const uint64_t segment = next(&random) % SEGMENTS, at = next(&random) % SEGMENT;
        tl_buf_reset(&buf);
        assert_int_equal(
            tl_spool_read(reader, segment * SEGMENT + at, (segment + 1) * SEGMENT, &buf, NULL),
            TL_OK);
        assert_true(buf.n > 0);
        assert_memory_equal(buf.p, all[segment].p + at, buf.n);
        if (i % 5 == 0)
            tl_spool_reader_rest(reader);
        if (i % 7 == 0)
            pack(backend, segment * SEGMENT, SEGMENT, &random, &all[segment]);
    }
    tl_spool_reader_free(reader);
    for (unsigned i = 0; i < SEGMENTS; i++)
        tl_buf_fini(&all[i]);
    tl_buf_fini(&buf);
    tl_backend_free(backend);
}

static void anything_ends(void **state)
{
    uint64_t random = test_seed();
    struct tl_backend *backend;
    struct tl_buf all = {0}, file = {0}, bad = {0};
    char key[128];
    const uint64_t end = 3 * TL_PACKED_FRAME + 99;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    pack(backend, 0, end, &random, &all);
    assert_int_equal(tl_backend_get_all(backend, tl_packed_key(key, "c", 0), &file, NULL), TL_OK);
    for (int round = 0; round < 60; round++) {
        tl_buf_reset(&bad);
        assert_int_equal(tl_buf_add(&bad, file.p, next(&random) % (file.n + 1)), TL_OK);
        for (uint64_t k = next(&random) % 20; bad.n > 0 && k-- > 0;)
            bad.p[next(&random) % bad.n] = (uint8_t)next(&random);
        assert_int_equal(tl_backend_put(backend, key, (struct tl_bytes){bad.p, bad.n}, NULL),
                         TL_OK);
        const uint64_t lost = read_all(backend, 0, 0, &all);
        assert_true(lost == 0 || audit(backend, end).calls > 0);
        assert_int_equal(tl_spool_mend(backend, "c", NULL), TL_OK);
        assert_int_equal(read_all(backend, 0, 0, &all), lost);
    }
    tl_buf_fini(&all);
    tl_buf_fini(&file);
    tl_buf_fini(&bad);
    tl_backend_free(backend);
}

/* ---- packed by a lake ------------------------------------------------------------------------ */

#define SEGMENT 40000

static struct tl_lake *open_packing(struct tl_backend *backend)
{
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {
        .decode_threads = 1, .min_free_bytes = 1, .segment_bytes = SEGMENT};
    if (tl_lake_open_on(&lake, backend, &options, &fail) < 0)
        fail_msg("%s", fail.text);
    return lake;
}

struct forms {
    unsigned logs, packed;
};

static int count_form(void *context, const char *key, uint64_t size)
{
    struct forms *forms = context;
    forms->logs += strstr(key, ".seg") != NULL;
    forms->packed += strstr(key, ".zst") != NULL;
    return TL_OK;
}

static struct forms forms_of(struct tl_backend *backend)
{
    struct forms forms = {0};
    assert_int_equal(backend->ops->list(backend, "r/c", count_form, &forms, NULL), TL_OK);
    return forms;
}

static void wait_packed(struct tl_backend *backend)
{
    for (int64_t since = 0; forms_of(backend).logs > 0;)
        keep_waiting(&since, "no log is left");
}

/* Push bytes [at, to), in consecutive pieces. */
static void push_to(struct tl_lake *lake, uint64_t to, bool finish, struct tl_buf *all)
{
    const struct tl_ingest_request request = {
        .rig = "r", .trace = "c", .setup = "[trace]\nformat=itm\n", .resume = true};
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t at;
    make(0, to, all);
    if (tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, &fail) < 0)
        fail_msg("%s", fail.text);
    for (; at < to; at += 5000) {
        const size_t n = to - at < 5000 ? (size_t)(to - at) : 5000;
        if (tl_ingest_append(ingest, at, (struct tl_bytes){all->p + at, n}, &fail) < 0)
            fail_msg("%s", fail.text);
    }
    if (finish)
        assert_int_equal(tl_ingest_finish(ingest, &at, &fail), TL_OK);
    tl_ingest_close(ingest);
}

static void check_lake(struct tl_lake *lake, const struct tl_buf *all)
{
    struct tl_raw_range *range;
    struct tl_buf got = {0}, report = {0};
    struct tl_fail fail = {0};
    uint64_t offset;
    int r;
    if (tl_raw_open(lake, "c", 0, UINT64_MAX, &range, &fail) < 0)
        fail_msg("%s", fail.text);
    while ((r = tl_raw_next(range, &offset, &got, &fail)) >= 0)
        ;
    if (r != TL_EOF)
        fail_msg("%s", fail.text);
    tl_raw_close(range);
    assert_int_equal(got.n, all->n);
    assert_memory_equal(got.p, all->p, all->n);
    if ((r = tl_lake_verify(lake, "c", false, &report, &fail)) != 0)
        fail_msg("%d: %.*s %s", r, (int)report.n, (char *)report.p, fail.text);
    tl_buf_fini(&got);
    tl_buf_fini(&report);
}

/* Complete segments are packed while more bytes arrive, the last one when the capture is
 * complete. */
static void lakes_pack(void **state)
{
    struct tl_backend *backend;
    struct tl_buf all = {0};
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_lake *lake = open_packing(backend);
    push_to(lake, 3 * (SEGMENT + TL_SPOOL_BLOCK), false, &all);
    for (int64_t since = 0; forms_of(backend).packed == 0;)
        keep_waiting(&since, "a segment is packed");
    check_lake(lake, &all);
    tl_lake_close(lake);
    lake = open_packing(backend);
    check_lake(lake, &all);
    push_to(lake, 3 * (SEGMENT + TL_SPOOL_BLOCK) + 77777, true, &all);
    wait_packed(backend);
    check_lake(lake, &all);
    /* Pushing it again reports that everything is stored, and changes nothing. */
    push_to(lake, 3 * (SEGMENT + TL_SPOOL_BLOCK) + 77777, true, &all);
    check_lake(lake, &all);
    assert_int_equal(tl_lake_delete(lake, "c", NULL), TL_OK);
    push_to(lake, 1000, true, &all);
    wait_packed(backend);
    check_lake(lake, &all);
    tl_lake_close(lake);
    tl_buf_fini(&all);
    tl_backend_free(backend);
}

static bool has_refused(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    const bool refused = lake->repack_refused;
    pthread_mutex_unlock(&lake->lock);
    return refused;
}

/* The power fails at any change while segments are being packed: no byte is lost. */
static void power_cuts_cost_nothing(void **state)
{
    struct tl_buf all = {0};
    const uint64_t end = 6 * SEGMENT;
    uint64_t random = test_seed();
    for (uint64_t after = 0; after < 14; after++) {
        struct tl_backend *backend;
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        struct tl_lake *lake = open_packing(backend);
        push_to(lake, end, true, &all);
        assert_int_equal(wait_done(lake, "c"), TL_TRACE_SEALED);
        wait_packed(backend);
        tl_lake_close(lake);
        /* Convert back to logs, as a killed server leaves them. */
        struct tl_spool *spool;
        struct tl_capture *capture;
        const struct tl_spool_options options = {.segment_bytes = SEGMENT};
        assert_int_equal(tl_backend_remove_all(backend, "r/c", NULL), TL_OK);
        assert_int_equal(tl_spool_new(&spool, backend, &options, NULL), TL_OK);
        assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &capture, NULL), TL_OK);
        for (uint64_t at = 0; at < end; at += SEGMENT / 2) {
            assert_int_equal(
                tl_capture_append(capture, at, (struct tl_bytes){all.p + at, SEGMENT / 2}, NULL),
                TL_OK);
            assert_int_equal(tl_capture_flush(capture, NULL), TL_OK);
        }
        tl_capture_close(capture);
        tl_spool_free(spool);
        const unsigned logs = forms_of(backend).logs;
        assert_true(logs > 3);
        lake = open_packing(backend);
        tl_backend_memory_refuse(backend, after, 1, TL_OK);
        while (!has_refused(lake) && forms_of(backend).logs > 0)
            usleep(500);
        tl_lake_close(lake);
        tl_backend_memory_boot(backend, next(&random));
        lake = open_packing(backend);
        check_lake(lake, &all);
        wait_packed(backend);
        check_lake(lake, &all);
        close_memory_lake(backend, lake);
    }
    tl_buf_fini(&all);
}

/* ---- beside a push --------------------------------------------------------------------------- */

/* A memory backend whose syncs wait while they are held back, and which observes the packing
 * thread: that reads nothing before syncs are held back, and asks for the space left when it
 * considers waiting. */
static struct {
    struct tl_backend_ops ops;
    const struct tl_backend_ops *real;
    struct tl_lake *lake;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held, reads;
    unsigned considered;
} beside = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool is_packing_locked(void)
{
    return beside.lake && pthread_equal(pthread_self(), beside.lake->repack.thread);
}

static int beside_open(struct tl_backend *backend, const char *key, bool create,
                       struct tl_log **out, uint64_t *size, struct tl_fail *fail)
{
    const int r = beside.real->log_open(backend, key, create, out, size, fail);
    if (r >= 0)
        (*out)->ops = &beside.ops;
    return r;
}

static int beside_read(struct tl_log *log, uint64_t offset, size_t n, struct tl_buf *out,
                       struct tl_fail *fail)
{
    pthread_mutex_lock(&beside.lock);
    while (is_packing_locked() && !beside.reads)
        pthread_cond_wait(&beside.changed, &beside.lock);
    pthread_mutex_unlock(&beside.lock);
    return beside.real->log_read(log, offset, n, out, fail);
}

static int beside_sync(struct tl_log *log, struct tl_fail *fail)
{
    pthread_mutex_lock(&beside.lock);
    while (beside.held)
        pthread_cond_wait(&beside.changed, &beside.lock);
    pthread_mutex_unlock(&beside.lock);
    return beside.real->log_sync(log, fail);
}

static uint64_t beside_free_bytes(struct tl_backend *backend)
{
    (void)backend;
    pthread_mutex_lock(&beside.lock);
    beside.considered += is_packing_locked();
    pthread_cond_broadcast(&beside.changed);
    pthread_mutex_unlock(&beside.lock);
    return UINT64_MAX;
}

static void set_beside(struct tl_lake *lake, bool is_held, bool reads)
{
    pthread_mutex_lock(&beside.lock);
    beside.lake = lake;
    beside.held = is_held;
    beside.reads = reads;
    pthread_cond_broadcast(&beside.changed);
    pthread_mutex_unlock(&beside.lock);
}

/* While many bytes of another capture wait for the disk, nothing is packed; afterwards it is. */
static void packing_waits_for_pushes(void **state)
{
    const struct tl_ingest_request request = {
        .rig = "r", .trace = "d", .setup = "[trace]\nformat=itm\n"};
    static const uint8_t zeros[2 << 20];
    struct tl_backend *backend;
    struct tl_ingest *ingest;
    struct tl_buf all = {0};
    char id[64];
    uint64_t at;
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    beside.real = backend->ops;
    beside.ops = *backend->ops;
    beside.ops.log_open = beside_open;
    beside.ops.log_read = beside_read;
    beside.ops.log_sync = beside_sync;
    beside.ops.free_bytes = beside_free_bytes;
    backend->ops = &beside.ops;
    struct tl_lake *lake = open_packing(backend);
    set_beside(lake, false, false);
    push_to(lake, 3 * SEGMENT, true, &all);
    const unsigned logs = forms_of(backend).logs;
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, NULL), TL_OK);
    set_beside(lake, true, false);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){zeros, sizeof zeros}, NULL),
                     TL_OK);
    set_beside(lake, true, true);
    pthread_mutex_lock(&beside.lock);
    while (beside.considered < 3)
        pthread_cond_wait(&beside.changed, &beside.lock);
    pthread_mutex_unlock(&beside.lock);
    assert_int_equal(forms_of(backend).logs, logs);
    assert_int_equal(forms_of(backend).packed, 0);
    set_beside(lake, false, true);
    wait_packed(backend);
    check_lake(lake, &all);
    tl_ingest_close(ingest);
    set_beside(NULL, false, true);
    tl_lake_close(lake);
    tl_buf_fini(&all);
    backend->ops = beside.real;
    tl_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(damage_costs_a_frame),
        cmocka_unit_test(anything_ends),
        cmocka_unit_test(lakes_pack),
        cmocka_unit_test(power_cuts_cost_nothing),
        cmocka_unit_test(packing_waits_for_pushes),
        cmocka_unit_test(a_resting_reader_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
