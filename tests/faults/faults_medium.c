/* SPDX-License-Identifier: MIT */
/*
 * The medium fails: no space, I/O errors, short writes, at every change in turn. The rig is
 * informed, nothing is left half-written, and everything continues without a restart once the
 * medium works again.
 */
#include "faults.h"
#include "opening/open.h"

static void push_until_done(struct tl_lake *lake, const struct capture *c, uint64_t *random)
{
    unsigned tries = 0;
    while (!fault_push(lake, "t", c, random, NULL, NULL))
        assert_true(++tries < 1000);
}

static void run(const struct capture *c, uint64_t *random, uint64_t after, uint64_t count,
                enum tl_err code)
{
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_lake *lake = open_lake_sized(backend, FAULT_SHARD, 2);
    tl_backend_memory_refuse(backend, after, count, code);
    push_until_done(lake, c, random);
    if (fault_random(random) % 2)
        fault_house(lake, c, random);
    /* An image whose upload was refused is uploaded again. */
    tl_backend_memory_refuse(backend, 0, 0, TL_IO);
    push_until_done(lake, c, random);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    fault_check(lake, "t", c);
    tl_lake_close(lake);
    tl_backend_free(backend);
}

static void refusals_are_overcome(void **state)
{
    (void)state;
    uint64_t random = fault_seed();
    struct capture c;
    fault_capture(&c, 20000);
    const unsigned rounds = fault_rounds(80);
    for (unsigned i = 0; i < rounds; i++)
        run(&c, &random, fault_random(&random) % 300, 1 + fault_random(&random) % 6,
            fault_random(&random) & 1 ? TL_IO : TL_NOSPACE);
    capture_free(&c);
}

/* On a full disk, stored data can be read, and freed space is used. */
static void a_full_disk_is_no_disaster(void **state)
{
    (void)state;
    uint64_t random = fault_seed();
    struct capture c;
    fault_capture(&c, 20000);
    for (unsigned i = 0; i < fault_rounds(40); i++) {
        struct tl_backend *backend;
        struct tl_buf text = {0};
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        struct tl_lake *lake = open_lake_sized(backend, FAULT_SHARD, 2);
        tl_backend_memory_limit(backend, fault_random(&random) % (2 * c.bytes.n));
        if (fault_push(lake, "t", &c, &random, NULL, NULL)) {
            usleep(1000);
            struct tl_trace_list list;
            if (tl_lake_trace(lake, "t", &list) >= 0) {
                assert_int_not_equal(list.rows[0].state, TL_TRACE_FAILED);
                tl_trace_list_free(&list);
            }
            lake_text(lake, "t", &text);
        }
        tl_backend_memory_limit(backend, UINT64_MAX);
        push_until_done(lake, &c, &random);
        assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
        fault_check(lake, "t", &c);
        tl_buf_fini(&text);
        tl_lake_close(lake);
        tl_backend_free(backend);
    }
    capture_free(&c);
}

/* On a nearly full disk, ingest stops early with a message, before anything is half-written. */
static void ingest_stops_early(void **state)
{
    (void)state;
    struct tl_backend *backend;
    struct tl_lake *lake;
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t at;
    struct capture c;
    fault_capture(&c, 5000);
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    const struct tl_lake_options options = {.min_free_bytes = 1 << 20};
    assert_int_equal(tl_lake_open_on(&lake, backend, &options, NULL), TL_OK);
    const struct tl_ingest_request request = {.rig = "rig", .setup = (const char *)c.setup.p};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, &fail), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){c.bytes.p, 100}, &fail), TL_OK);
    tl_backend_memory_limit(backend, (1 << 20) + 50);
    assert_int_equal(tl_ingest_append(ingest, 100, (struct tl_bytes){c.bytes.p + 100, 100}, &fail),
                     TL_NOSPACE);
    assert_non_null(strstr(fail.text, "free"));
    tl_backend_memory_limit(backend, UINT64_MAX);
    assert_int_equal(tl_ingest_append(ingest, 100, (struct tl_bytes){c.bytes.p + 100, 100}, &fail),
                     TL_OK);
    tl_ingest_close(ingest);
    tl_lake_close(lake);
    tl_backend_free(backend);
    capture_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_overcome),
        cmocka_unit_test(a_full_disk_is_no_disaster),
        cmocka_unit_test(ingest_stops_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
