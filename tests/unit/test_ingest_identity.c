/* SPDX-License-Identifier: MIT */
/* What is stored of a capture, and comparing it with what is pushed. */
#include "base/crc32c.h"
#include "raw/segment.h"
#include "raw/spool.h"
#include "unit/lake_help.h"
#include "unit/random.h"

#define BYTES (300u << 10)

static uint8_t bytes[BYTES];
static struct tl_lake *lake;
static struct tl_backend *backend;
static const char setup[] = "[trace]\nformat = etm4\n";

static void make_bytes(void)
{
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)next();
}

static struct tl_spool *new_spool(struct tl_backend *store)
{
    struct tl_spool *spool;
    const struct tl_spool_options options = {.segment_bytes = 50000};
    assert_int_equal(tl_spool_new(&spool, store, &options, NULL), TL_OK);
    return spool;
}

static void check_sum(struct tl_backend *store, uint64_t end)
{
    uint32_t sum;
    assert_int_equal(tl_spool_sum(store, "c", end, &sum, NULL), TL_OK);
    assert_int_equal(sum, tl_crc32c(0, bytes, end));
}

/* Appended in pieces of any size, closed and opened in between. */
static void sums_are_kept(void **state)
{
    struct tl_backend *store;
    struct tl_capture *c;
    assert_int_equal(tl_backend_memory(&store), TL_OK);
    struct tl_spool *const spool = new_spool(store);
    uint64_t at = 0, durable;
    uint32_t sum;
    while (at < BYTES) {
        assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
        assert_true(tl_capture_sum(c, &durable, &sum));
        assert_int_equal(durable, at);
        assert_int_equal(sum, tl_crc32c(0, bytes, at));
        for (unsigned i = 0; i < 3 && at < BYTES; i++) {
            const uint64_t n = 1 + next() % (BYTES - at < 40000 ? BYTES - at : 40000);
            assert_int_equal(tl_capture_append(c, at, (struct tl_bytes){bytes + at, n}, NULL),
                             TL_OK);
            at += n;
        }
        assert_int_equal(tl_capture_flush(c, NULL), TL_OK);
        assert_true(tl_capture_sum(c, &durable, &sum));
        assert_int_equal(sum, tl_crc32c(0, bytes, at));
        tl_capture_close(c);
        for (unsigned i = 0; i < 5; i++)
            check_sum(store, next() % (at + 1));
    }
    tl_spool_free(spool);
    tl_backend_free(store);
}

/* A log of blocks without sums, as earlier versions wrote them. */
static void write_old(struct tl_backend *store, size_t n)
{
    struct tl_log *log;
    char key[128];
    uint8_t head[TL_SEGMENT_HEAD], block[TL_BLOCK_HEAD];
    uint64_t at;
    tl_segment_head(head, 0);
    assert_int_equal(
        store->ops->log_open(store, tl_segment_key(key, "c", 0), true, &log, &at, NULL), TL_OK);
    assert_int_equal(store->ops->log_write(log, 0, &(struct tl_bytes){head, sizeof head}, 1, NULL),
                     TL_OK);
    at = sizeof head;
    for (size_t from = 0; from < n; from += 1000) {
        const size_t head_n =
            tl_block_head(block, &(struct tl_spool_block){.offset = from, .arrival = 1, .n = 1000},
                          tl_crc32c(0, bytes + from, 1000));
        const struct tl_bytes parts[] = {{block, head_n}, {bytes + from, 1000}};
        assert_int_equal(head_n, 36);
        assert_int_equal(store->ops->log_write(log, at, parts, 2, NULL), TL_OK);
        at += head_n + 1000;
    }
    assert_int_equal(store->ops->log_sync(log, NULL), TL_OK);
    store->ops->log_close(log);
}

static void earlier_captures_are_summed(void **state)
{
    struct tl_backend *store;
    struct tl_capture *c;
    uint64_t durable;
    uint32_t sum;
    assert_int_equal(tl_backend_memory(&store), TL_OK);
    write_old(store, 30000);
    check_sum(store, 12345);
    struct tl_spool *const spool = new_spool(store);
    assert_int_equal(tl_capture_open(spool, "c", NULL, NULL, &c, NULL), TL_OK);
    assert_true(tl_capture_sum(c, &durable, &sum));
    assert_int_equal(durable, 30000);
    assert_int_equal(sum, tl_crc32c(0, bytes, 30000));
    assert_int_equal(tl_capture_append(c, 30000, (struct tl_bytes){bytes + 30000, 5000}, NULL),
                     TL_OK);
    tl_capture_close(c);
    check_sum(store, 35000);
    tl_spool_free(spool);
    tl_backend_free(store);
}

static int open_named(const char *rig, struct tl_ingest **out, uint64_t *at, struct tl_fail *fail)
{
    char trace[64];
    const struct tl_ingest_request request = {
        .rig = rig, .trace = "t", .setup = setup, .resume = true};
    return tl_ingest_open(lake, &request, NULL, NULL, out, trace, at, fail);
}

static void check_identity(const struct tl_identity *stored, uint64_t n, bool complete)
{
    char content[16] = ""; /* nothing is durable yet: no sum */
    if (n > 0)
        snprintf(content, sizeof content, "crc32c:%08x", tl_crc32c(0, bytes, n));
    assert_int_equal(stored->durable, n);
    assert_int_equal(stored->complete, complete);
    if (strncmp(stored->content, "sha256:", 7) != 0)
        assert_string_equal(stored->content, content);
}

/* Repeated bytes must be those that are there, wherever these are: not durable yet, stored, of a
 * complete capture. */
static void repeated_bytes_are_compared(void **state)
{
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    struct tl_identity stored;
    uint64_t at;
    uint8_t other[2000];
    memcpy(other, bytes, sizeof other);
    other[1500] ^= 1;
    const struct tl_bytes same = {bytes, 2000}, differs = {other, 2000};
    lake = open_memory_lake(&backend, 1 << 20, 1);
    assert_int_equal(open_named("one", &ingest, &at, &fail), TL_OK);
    tl_ingest_identity(ingest, &stored);
    assert_int_equal(stored.durable, 0);
    assert_string_equal(stored.content, "");
    assert_int_equal(tl_ingest_append(ingest, 0, same, &fail), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, same, &fail), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, differs, &fail), TL_EXISTS);
    assert_int_equal(fail.offset, 1500);
    assert_int_equal(tl_ingest_append(ingest, 1000, (struct tl_bytes){bytes + 1000, 3000}, &fail),
                     TL_OK);
    assert_int_equal(tl_lake_identify(lake, "t", &stored, &fail), TL_OK);
    check_identity(&stored, stored.durable, false);
    assert_int_equal(tl_ingest_check(ingest, "crc32c:00000000", &fail), TL_EXISTS);
    tl_ingest_close(ingest);

    assert_int_equal(open_named("two", &ingest, &at, &fail), TL_OK);
    tl_ingest_identity(ingest, &stored);
    check_identity(&stored, 4000, false);
    assert_int_equal(tl_ingest_check(ingest, stored.content, &fail), TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &at, &fail), TL_OK);
    tl_ingest_close(ingest);

    assert_int_equal(open_named("two", &ingest, &at, &fail), TL_OK);
    tl_ingest_identity(ingest, &stored);
    check_identity(&stored, 4000, true);
    assert_int_equal(at, 4000);
    assert_int_equal(tl_ingest_append(ingest, 2000, (struct tl_bytes){bytes + 2000, 2000}, &fail),
                     TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, differs, &fail), TL_EXISTS);
    assert_int_equal(tl_ingest_append(ingest, 4000, same, &fail), TL_DENIED);
    assert_int_equal(tl_ingest_finish(ingest, &at, &fail), TL_OK);
    assert_int_equal(at, 4000);
    tl_ingest_close(ingest);
    assert_int_equal(tl_lake_identify(lake, "none", &stored, &fail), TL_NOTFOUND);
    close_memory_lake(backend, lake);
}

/* Of two pushes of a complete trace the first one is told that the other has it. */
static void complete_traces_are_taken_over(void **state)
{
    struct tl_ingest *first, *second;
    struct tl_fail fail = {0};
    uint64_t at;
    lake = open_memory_lake(&backend, 1 << 20, 1);
    assert_int_equal(open_named("one", &first, &at, &fail), TL_OK);
    assert_int_equal(tl_ingest_append(first, 0, (struct tl_bytes){bytes, 100}, &fail), TL_OK);
    assert_int_equal(tl_ingest_finish(first, &at, &fail), TL_OK);
    tl_ingest_close(first);
    assert_int_equal(open_named("one", &first, &at, &fail), TL_OK);
    assert_int_equal(open_named("one", &second, &at, &fail), TL_OK);
    assert_int_equal(tl_ingest_continues(first, &fail), TL_DENIED);
    assert_int_equal(tl_ingest_append(first, 0, (struct tl_bytes){bytes, 100}, &fail), TL_DENIED);
    assert_int_equal(tl_ingest_append(second, 0, (struct tl_bytes){bytes, 100}, &fail), TL_OK);
    tl_ingest_close(first);
    tl_ingest_close(second);
    close_memory_lake(backend, lake);
}

int main(void)
{
    begin_random();
    make_bytes();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_kept),
        cmocka_unit_test(earlier_captures_are_summed),
        cmocka_unit_test(repeated_bytes_are_compared),
        cmocka_unit_test(complete_traces_are_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
