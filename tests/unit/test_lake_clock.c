/* SPDX-License-Identifier: MIT */
/* The lake's estimate of a rig's clock, during decoding and after reopening, for a capture whose
 * blocks have the arrival times that a rig with a known clock would produce. */
#include "unit/sim_capture.h"

#include "base/crc32c.h"
#include "raw/segment.h"
#include "sim/program_rng.h"

#include <math.h>

#define UNIX  UINT64_C(1790000000000000000)
#define PIECE 1024
#define TICK  50000 /* ns per tick in the setup, so that the capture lasts seconds */
#define AHEAD 40e-6 /* the rig's clock is faster than configured, by this fraction */

static struct tl_backend *backend;
static struct tl_lake *lake;

struct last {
    uint64_t ticks;
};

static int stream(void *context, const struct tl_decode_stream *s)
{
    return TL_OK;
}

static int items(void *context, const struct tl_decode_stream *s, const struct tl_item *p, size_t n)
{
    struct last *const last = context;
    for (size_t i = 0; i < n; i++)
        if (tl_item_is_anchor(&p[i]) && p[i].value > last->ticks)
            last->ticks = p[i].value;
    return TL_OK;
}

/*
 * Write the raw bytes again, with each piece arriving up to a millisecond after its last timestamp.
 */
static uint64_t rewrite(const struct capture *c, const char *id)
{
    struct last last = {0};
    const struct tl_decode_sink sink = {.context = &last, .stream = stream, .items = items};
    struct tl_setup setup;
    struct tl_decode *decode;
    struct tl_log *log;
    struct tl_sim_rng rng = {.state = 77};
    char key[128], prefix[128];
    uint8_t head[TL_SEGMENT_HEAD], block[TL_BLOCK_HEAD];
    uint64_t at = 0, arrival = UNIX;
    snprintf(prefix, sizeof(prefix), "r/%s", id);
    assert_int_equal(tl_backend_remove_all(backend, prefix, NULL), TL_OK);
    assert_int_equal(
        backend->ops->log_open(backend, tl_segment_key(key, id, 0), true, &log, &at, NULL), TL_OK);
    tl_segment_head(head, 0);
    assert_int_equal(
        backend->ops->log_write(log, 0, &(struct tl_bytes){head, sizeof(head)}, 1, NULL), TL_OK);
    at = sizeof(head);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_parse(&setup, (char *)c->setup.p, c->setup.n - 1, NULL), TL_OK);
    assert_int_equal(tl_decode_new(&decode, &setup, NULL, &sink, NULL), TL_OK);
    for (size_t from = 0; from < c->bytes.n; from += PIECE) {
        const size_t n = c->bytes.n - from < PIECE ? c->bytes.n - from : PIECE;
        const struct tl_bytes data = {c->bytes.p + from, n};
        assert_int_equal(tl_decode_push(decode, data.p, n), TL_OK);
        const uint64_t due = UNIX + (uint64_t)((double)last.ticks * TICK / (1 + AHEAD)) +
                             tl_sim_below(&rng, 1000000);
        arrival = due > arrival ? due : arrival + 1;
        const size_t head_n = tl_block_head(
            block, &(struct tl_spool_block){.offset = from, .arrival = arrival, .n = (uint32_t)n},
            tl_crc32c(0, data.p, n));
        const struct tl_bytes parts[] = {{block, head_n}, data};
        assert_int_equal(backend->ops->log_write(log, at, parts, 2, NULL), TL_OK);
        at += head_n + n;
    }
    assert_int_equal(backend->ops->log_sync(log, NULL), TL_OK);
    backend->ops->log_close(log);
    assert_int_equal(tl_decode_finish(decode), TL_OK);
    tl_decode_free(decode);
    tl_setup_fini(&setup);
    return arrival;
}

static struct tl_stream_row row_of(const char *id)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    const struct tl_stream_row row = list.rows[0].streams[0];
    tl_trace_list_free(&list);
    return row;
}

static void assert_clock(uint64_t end)
{
    const struct tl_stream_row row = row_of("t");
    const struct tl_stream_clock *const c = &row.clock;
    assert_true(row.time_unit_ns && c->pairs >= 8);
    assert_true(c->rate_error > 0 && fabs(c->rate - 1 / (1 + AHEAD)) <= c->rate_error);
    assert_true(c->rate_error < 1000e-6);
    assert_true(c->spread_ns <= 1000000);
    const double was = (double)row.time_last / (1 + AHEAD);
    const double by =
        (double)(c->unix_ns - UNIX) + ((double)row.time_last - (double)c->at) * c->rate;
    assert_true(fabs(by - was) <= 1000000);
    assert_true(end - UNIX >= UINT64_C(1000000000));
}

static void clock_of_a_rig(void **state)
{
    (void)state;
    const struct sim_options options = {.seed = 5, .insns = 400000, .cores = 1, .events = true};
    struct capture c;
    struct tl_fail fail = {0};
    lake = open_memory_lake(&backend, 1 << 18, 1);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 4096);
    assert_int_equal(row_of("t").clock.pairs, 0); /* it arrived within no time */
    tl_lake_close(lake);
    const uint64_t end = rewrite(&c, "t");
    lake = open_lake_sized(backend, 1 << 18, 1);
    char *const hz = strstr((char *)c.setup.p, "clock=100000000");
    assert_non_null(hz);
    memcpy(hz, "clock=20000    ", 15);
    assert_int_equal(tl_lake_redecode(lake, "t", (char *)c.setup.p, &fail), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_clock(end);
    tl_lake_close(lake);
    lake = open_lake_sized(backend, 1 << 18, 1);
    assert_clock(end);
    close_memory_lake(backend, lake);
    capture_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(clock_of_a_rig)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
