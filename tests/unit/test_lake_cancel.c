/* SPDX-License-Identifier: MIT */
/* Long operations of the lake check every few milliseconds whether they have been cancelled, and
 * stop at once if so. Measured by the number of checks and the processor time between them. */
#include "lake_find.h"
#include "lake_insns.h"
#include "lake_lanes.h"
#include "lake_stats.h"
#include "lake_tiles.h"
#include "lake_upkeep.h"
#include "sim_capture.h"

#include "base/cancel.h"

#define STREAM "cs.10"

/* Maximum processor time of the thread between two checks, and after the answer; sanitizers take
 * several times longer. */
#define MAX_NS 60000000

static struct tl_backend *backend;
static struct tl_lake *lake;
static uint64_t pc; /* of some instruction */

/* Counts the checks, and answers yes from number `after` on. */
struct asker {
    uint64_t asked;
    uint64_t after;
    int64_t last_ns;
    int64_t longest_ns;
};

static int64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void lap(struct asker *a)
{
    const int64_t now = thread_ns();
    if (now - a->last_ns > a->longest_ns)
        a->longest_ns = now - a->last_ns;
    a->last_ns = now;
}

static bool ask(void *context)
{
    struct asker *const a = context;
    lap(a);
    return ++a->asked >= a->after;
}

static int set_up(void **state)
{
    (void)state;
    struct capture c;
    const struct sim_options options = {
        .seed = 3, .insns = 400000, .cores = 1, .image = true, .events = true};
    lake = open_memory_lake(&backend, 50000, 1);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 10000);
    capture_free(&c);
    struct tl_buf text = {0};
    const struct tl_range_request request = {
        .trace = "t", .stream = STREAM, .from = 1000, .to = 1010, .format = TL_FORMAT_TEXT};
    fetch(lake, &request, &text);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    const char *const line = strstr((char *)text.p, "\nI ");
    assert_non_null(line);
    pc = strtoull(line + 3, NULL, 16);
    tl_buf_fini(&text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backend, lake);
    return 0;
}

/* ---- long operations; each returns the lake's result ---------------------------------------- */

static int verify(void)
{
    struct tl_buf report = {0};
    const int r = tl_lake_verify(lake, "t", false, &report, NULL);
    tl_buf_fini(&report);
    return r;
}

static int verify_all(void)
{
    struct tl_buf report = {0};
    const int r = tl_lake_verify(lake, "", true, &report, NULL);
    tl_buf_fini(&report);
    return r;
}

static int find(const struct tl_find_request *request)
{
    struct tl_found found;
    const int r = tl_lake_find(lake, request, &found, NULL);
    tl_found_fini(&found);
    return r;
}

static int find_pc(void)
{
    return find(&(struct tl_find_request){.trace = "t",
                                          .stream = STREAM,
                                          .kind = TL_FIND_PC,
                                          .pc_from = pc,
                                          .pc_to = pc + 4,
                                          .to = UINT64_MAX,
                                          .limit = 100000});
}

static int find_event(void)
{
    return find(&(struct tl_find_request){.trace = "t",
                                          .stream = STREAM,
                                          .kind = TL_FIND_EVENT,
                                          .text = "exception",
                                          .to = UINT64_MAX,
                                          .limit = 100000});
}

/* Statistics of parts of shards: those of whole shards are known without reading. */
static int stats(void)
{
    struct tl_stats out;
    const int r = tl_lake_stats(lake, "t", STREAM, 30000, 80000, &out, NULL);
    tl_stats_fini(&out);
    return r;
}

static int slices(void)
{
    const struct tl_slices_request request = {
        .trace = "t", .stream = STREAM, .to = UINT64_MAX, .columns = 64};
    struct tl_slices out;
    const int r = tl_lake_slices(lake, &request, &out, NULL);
    tl_slices_fini(&out);
    return r;
}

static int tile(void)
{
    struct tl_tile out;
    const int r = tl_lake_tile(lake, "t", TL_UNIT_INSN, 5, 0, 0, 0, 0, &out, NULL);
    tl_tile_fini(&out);
    return r;
}

static int range(enum tl_range_format format)
{
    const struct tl_range_request request = {
        .trace = "t", .stream = STREAM, .to = UINT64_MAX, .format = format};
    struct tl_range *range;
    struct tl_buf out = {0};
    int r = tl_range_open(lake, &request, &range, NULL);
    while (r >= 0) {
        tl_buf_reset(&out);
        r = tl_range_next(range, &out, NULL);
        if (r < 0)
            tl_range_close(range);
    }
    tl_buf_fini(&out);
    return r == TL_EOF ? TL_OK : r;
}

static int range_text(void)
{
    return range(TL_FORMAT_TEXT);
}

static int range_zstf(void)
{
    return range(TL_FORMAT_ZSTF);
}

static int ignore_row(void *context, const struct tl_insn_row *row)
{
    (void)context;
    (void)row;
    return TL_OK;
}

static int insns(void)
{
    return tl_lake_insns(lake, "t", STREAM, 1000, 4096, ignore_row, NULL, NULL);
}

static int locate(void)
{
    struct tl_position at;
    return tl_lake_locate(lake, "t", STREAM, TL_UNIT_INSN, 123456, &at, NULL);
}

static const struct {
    const char *name;
    int (*run)(void);
    uint64_t min; /* checks of a complete run */
} works[] = {
    {"verify", verify, 20},   {"verify all", verify_all, 20},
    {"find pc", find_pc, 10}, {"find event", find_event, 10},
    {"stats", stats, 3},      {"slices", slices, 5},
    {"tile", tile, 5},        {"text", range_text, 10},
    {"zstf", range_zstf, 10}, {"insns", insns, 1},
    {"locate", locate, 1},
};

static int run(size_t i, uint64_t after, struct asker *a)
{
    const struct tl_cancel cancel = {ask, a};
    *a = (struct asker){.after = after, .last_ns = thread_ns()};
    assert_null(tl_cancel_set(&cancel));
    const int r = works[i].run();
    lap(a);
    assert_ptr_equal(tl_cancel_set(NULL), &cancel);
    return r;
}

static void cancelled_work_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        struct asker a;
        int r = run(i, UINT64_MAX, &a);
        print_message("%s: asked %llu times, at most %lld us apart\n", works[i].name,
                      (unsigned long long)a.asked, (long long)a.longest_ns / 1000);
        assert_int_equal(r, TL_OK);
        r = run(i, UINT64_MAX, &a); /* now with indexes in the cache, as in the next runs */
        assert_int_equal(r, TL_OK);
        assert_true(a.asked >= works[i].min);
        assert_true(a.longest_ns < MAX_NS);
        const uint64_t all = a.asked;
        const uint64_t places[] = {1, 2, all / 3 + 1, all / 2 + 1, all};
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            const uint64_t after = places[k] < all ? places[k] : all;
            r = run(i, after, &a);
            if (r != TL_CANCELLED)
                fail_msg("%s returned %d, cancelled at question %llu", works[i].name, r,
                         (unsigned long long)after);
            assert_true(a.asked <= after + 2); /* cleaning up may check again */
            assert_true(a.longest_ns < MAX_NS);
        }
        assert_int_equal(works[i].run(), TL_OK); /* nothing was left incomplete */
    }
}

/* A cancelled repair leaves each object either unchanged or complete. */
static void cancelled_repair_continues(void **state)
{
    (void)state;
    struct tl_buf file = {0};
    struct tl_buf report = {0};
    char key[192];
    int r;
    tl_shard_key(key, "t", 1, STREAM, 2);
    assert_int_equal(tl_backend_get_all(backend, key, &file, NULL), TL_OK);
    file.p[file.n - 40] ^= 1; /* of the private index */
    assert_int_equal(tl_backend_put(backend, key, (struct tl_bytes){file.p, file.n}, NULL), TL_OK);
    tl_lake_forget_views(lake, "");
    for (uint64_t after = 1;; after += 7) {
        struct asker a;
        r = run(1, after, &a);
        if (r != TL_CANCELLED)
            break;
    }
    assert_true(r >= 0);
    assert_int_equal(tl_lake_verify(lake, "t", false, &report, NULL), 0);
    tl_buf_fini(&report);
    tl_buf_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelled_work_ends),
        cmocka_unit_test(cancelled_repair_continues),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
