/* SPDX-License-Identifier: MIT */
/*
 * Several threads give exactly the result of one: every item with all its members and every loss,
 * as items or as the sink's digests, for intact and damaged streams of simulated trace units in
 * random configurations, in frames and without, of RISC-V, for any chunking, and for real captures.
 */
#include "base/crew.h"
#include "import/bundle.h"
#include "unit/data.h"
#include "unit/decode_log.h"
#include "unit/etm3_world.h"
#include "unit/etrace_world.h"
#include "unit/nexus_world.h"
#include "unit/sim_loading.h"
#include "unit/sim_streams.h"
#include "unit/split_help.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6 };

/* Digest a batch of items as [bytes of items, bytes of offsets, items, offsets]. */
static int on_digest(void *context, const struct tl_decode_stream *stream, struct tl_buf *out,
                     const struct tl_item *items, size_t n)
{
    const struct log *const log = context;
    struct log *const own = calloc(1, sizeof *own);
    assert_non_null(own);
    own->paths = log->paths;
    assert_int_equal(on_items(own, stream, items, n), TL_OK);
    const struct tl_buf *const b = &own->items[stream->index % STREAMS];
    const struct tl_buf *const at = &own->offsets[stream->index % STREAMS];
    log_number(out, b->n);
    log_number(out, at->n);
    assert_int_equal(tl_buf_add(out, b->p, b->n), TL_OK);
    assert_int_equal(tl_buf_add(out, at->p, at->n), TL_OK);
    log_fini(own);
    free(own);
    return TL_OK;
}

static int on_digested(void *context, const struct tl_decode_stream *stream, struct tl_bytes digest)
{
    struct log *const log = context;
    assert_true(digest.n > 0);
    if (stream->index < sizeof log->steps.v / sizeof *log->steps.v)
        steps_stop(&log->steps.v[stream->index],
                   false); /* after items that the check has not seen */
    while (digest.n > 0) {
        const size_t n = tl_le64(digest.p), n_at = tl_le64(digest.p + 8);
        struct tl_buf *const b = &log->items[stream->index % STREAMS];
        struct tl_buf *const at = &log->offsets[stream->index % STREAMS];
        assert_int_equal(tl_buf_add(b, digest.p + 16, n), TL_OK);
        assert_int_equal(tl_buf_add(at, digest.p + 16 + n, n_at), TL_OK);
        digest.p += 16 + n + n_at;
        digest.n -= 16 + n + n_at;
    }
    return TL_OK;
}

/* `chunk` 0: all at once; otherwise in pieces of up to that many bytes, determined by the seed. */
static void decode(const struct tl_setup *setup, const struct tl_image *image, struct tl_bytes in,
                   unsigned threads, size_t chunk, unsigned seed, struct log *log)
{
    const struct tl_decode_sink sink = {.context = log,
                                        .items = on_items,
                                        .loss = on_loss,
                                        .digest = log->digests ? on_digest : NULL,
                                        .digested = log->digests ? on_digested : NULL};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    struct tl_crew *crew;
    assert_int_equal(tl_crew_new(&crew, threads), TL_OK);
    assert_int_equal(tl_decode_new(&d, setup, image, &sink, &fail), TL_OK);
    if (log->paths)
        tl_decode_allow_paths(d);
    assert_int_equal(tl_decode_set_crew(d, crew), TL_OK);
    srand(seed);
    for (size_t at = 0; at < in.n;) {
        size_t n = chunk ? 1 + (size_t)rand() % chunk : in.n;
        n = n < in.n - at ? n : in.n - at;
        assert_int_equal(tl_decode_push(d, in.p + at, n), TL_OK);
        at += n;
    }
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_crew_free(crew);
}

/* Steps from several packets are reported at the offset of the first. */
static void assert_earlier(const struct log *paths, const struct log *blocks)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        const struct tl_buf *const a = &paths->offsets[i], *const b = &blocks->offsets[i];
        assert_int_equal(a->n, b->n);
        for (size_t k = 0; k < a->n; k += 8)
            assert_true(tl_le64(a->p + k) <= tl_le64(b->p + k));
    }
}

static void compare(const struct tl_setup *setup, const struct tl_image *image, struct tl_bytes in,
                    size_t chunk, unsigned seed)
{
    struct log blocks = {0}, paths = {.paths = true};
    decode(setup, image, in, 1, chunk, seed, &blocks);
    decode(setup, image, in, 1, chunk, seed, &paths);
    assert_same(&blocks, &paths);
    assert_earlier(&paths, &blocks);
    for (unsigned threads = 2; threads <= 4; threads += 2) {
        struct log many = {.paths = (seed + threads) % 4 > 1, .digests = (seed + threads) / 2 % 2};
        decode(setup, image, in, threads, chunk, seed, &many);
        assert_same(many.paths ? &paths : &blocks, &many);
        log_fini(&many);
    }
    log_fini(&blocks);
    log_fini(&paths);
}

/* ---- simulated streams --------------------------------------------------------------------- */

static void simulated_streams(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {20};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        streamed_world(&w, round, 300000, 40, &rng);
        const size_t chunk = round % 4 == 3 ? 200000 : 0;
        compare(&w.setup, round % 8 == 5 ? NULL : w.image, (struct tl_bytes){w.trace.p, w.trace.n},
                chunk, round);
        world_fini(&w);
    }
}

/* A part that is decoded ahead does not know the time at first. */
static void code_that_changes(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        const struct tl_sim_etm4_options etm = loading_etm(round);
        struct tl_sim_loading l;
        struct world w;
        loading_world(&w, &l, &etm, round, 200000, 10000);
        compare(&w.setup, w.image, (struct tl_bytes){w.trace.p, w.trace.n}, round % 2 ? 70000 : 0,
                round);
        tl_sim_loading_fini(&l);
        world_fini(&w);
    }
}

/* Parts too large to be kept: bytes without any output make them long, and then each byte becomes
 * many items. */
static void parts_that_fill(void **state)
{
    (void)state;
    const struct tl_sim_program_options shape = {.seed = 5, .extra = 40};
    const struct tl_sim_core_options options = {
        .seed = 5, .etm = {.minor = 2, .trace_id = 0x10, .return_stack = true, .sync_every = 1024}};
    struct world w;
    struct tl_buf in = {0};
    world_init(&w, &shape, &options, 300000, 40);
    /* the beginning of the trace (A-Sync, Trace Info), then Ignore packets */
    uint8_t nothing[4096];
    memset(nothing, 0x70, sizeof nothing);
    memcpy(nothing, w.trace.p, 16);
    for (unsigned i = 0; i < 300; i++)
        assert_int_equal(tl_buf_add(&in, nothing, sizeof nothing), TL_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(tl_buf_add(&in, w.trace.p, w.trace.n), TL_OK);
    compare(&w.setup, w.image, (struct tl_bytes){in.p, in.n}, 0, 0);
    tl_buf_fini(&in);
    world_fini(&w);
}

/* Otherwise the results could be equal only because a single thread does everything. */
static void parts_are_of_use(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        struct world w;
        const struct tl_sim_program_options shape = {.seed = round, .extra = 40};
        const struct tl_sim_core_options options = {.seed = round,
                                                    .etm = {.minor = 2,
                                                            .trace_id = 0x10,
                                                            .return_stack = round % 2,
                                                            .timestamps = round > 1,
                                                            .timestamp_every = 3000,
                                                            .context_id = round == 3,
                                                            .sync_every = 1024}};
        world_init(&w, &shape, &options, 400000, 60);
        assert_met(&tl_etm4_ops, &w.setup.sources[0], w.image, &w.trace, false);
        world_fini(&w);
    }
    const struct tl_sim_etm4_options etm = loading_etm(0);
    struct tl_sim_loading l;
    struct world w;
    loading_world(&w, &l, &etm, 1, 400000, 30000);
    assert_met(&tl_etm4_ops, &w.setup.sources[0], w.image, &w.trace, false);
    tl_sim_loading_fini(&l);
    world_fini(&w);
}

/* The trace several times, as of a sink that was emptied several times: enough to be split. */
static void repeat(struct tl_buf *trace, size_t size)
{
    const size_t n = trace->n;
    while (trace->n < size) {
        assert_int_equal(tl_buf_reserve(trace, n), TL_OK);
        assert_int_equal(tl_buf_add(trace, trace->p, n), TL_OK);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

struct account {
    struct tl_decode *decode;
    size_t most; /* bytes told while items were delivered */
};

static int on_account(void *context, const struct tl_decode_stream *stream,
                      const struct tl_item *items, size_t n)
{
    struct account *const a = context;
    const size_t now = tl_decode_bytes(a->decode);
    (void)stream;
    (void)items;
    (void)n;
    a->most = now > a->most ? now : a->most;
    return TL_OK;
}

static int on_account_loss(void *context, const struct tl_decode_loss *loss)
{
    (void)context;
    (void)loss;
    return TL_OK;
}

/* What parts keep is told while they keep it, not only once it is given back. */
static void rooms_in_use_are_told(void **state)
{
    (void)state;
    enum { ABOUT = 2 << 20 }; /* what blocks and buffers may change by */
    const struct tl_sim_program_options shape = {.seed = 5, .extra = 40};
    const struct tl_sim_core_options options = {
        .seed = 5, .etm = {.minor = 2, .trace_id = 0x10, .return_stack = true, .sync_every = 1024}};
    struct world w;
    struct account a = {0};
    const struct tl_decode_sink sink = {
        .context = &a, .items = on_account, .loss = on_account_loss};
    struct tl_fail fail = {0};
    struct tl_crew *crew;
    world_init(&w, &shape, &options, 300000, 40);
    repeat(&w.trace, 1 << 20);
    assert_int_equal(tl_crew_new(&crew, 2), TL_OK);
    assert_int_equal(tl_decode_new(&a.decode, &w.setup, w.image, &sink, &fail), TL_OK);
    assert_int_equal(tl_decode_set_crew(a.decode, crew), TL_OK);
    assert_int_equal(tl_decode_push(a.decode, w.trace.p, w.trace.n), TL_OK);
    const size_t after = tl_decode_bytes(a.decode);
    assert_true(after > 2 * ABOUT);
    assert_true(a.most + ABOUT > after);
    tl_decode_free(a.decode);
    tl_crew_free(crew);
    world_fini(&w);
}

/* ---- ETMv3 and PTM ------------------------------------------------------------------------- */

static void older_etm(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {31};
    for (unsigned round = 0; round < 2 * ROUNDS; round++) {
        struct etm3_world w;
        etm3_world_init(&w, round, 20000, &rng);
        repeat(&w.trace, 150000);
        if (round % 3 == 2)
            etm3_damage(&w.trace, &rng);
        compare(&w.setup, round % 8 == 5 ? NULL : w.image, (struct tl_bytes){w.trace.p, w.trace.n},
                round % 4 == 3 ? 100000 : 0, round);
        etm3_world_fini(&w);
    }
    for (unsigned round = 0; round < 4; round++) {
        struct etm3_world w;
        etm3_world_init(&w, round, 20000, &rng);
        repeat(&w.trace, 150000);
        assert_met(&tl_etm3_ops, &w.setup.sources[0], w.image, &w.trace, false);
        etm3_world_fini(&w);
    }
}

/* ---- RISC-V -------------------------------------------------------------------------------- */

static void n_trace(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {21};
    for (unsigned round = 0; round < 2 * ROUNDS; round++) {
        struct nexus_world w;
        nexus_world_init(&w, round, 40000, &rng);
        repeat(&w.trace, 150000);
        if (round % 3 == 2)
            nexus_damage(&w.trace, &rng);
        compare(&w.setup, round % 8 == 5 ? NULL : w.image, (struct tl_bytes){w.trace.p, w.trace.n},
                round % 4 == 3 ? 100000 : 0, round);
        nexus_world_fini(&w);
    }
}

/* But where a counter of time wrapped, one thread does it all. */
static void n_trace_parts_are_of_use(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {22};
    unsigned wrapped = 0;
    for (unsigned round = 0; round < 12; round++) {
        struct nexus_world w;
        nexus_world_init(&w, round, 40000, &rng);
        repeat(&w.trace, 150000);
        struct tl_source source = w.setup.sources[0];
        source.protocol = w.options.sifive ? TL_PROTO_NEXUS_SIFIVE : TL_PROTO_N_TRACE;
        assert_int_equal(tl_source_set_reg(&source, "trTeSrcBits", w.options.src_bits), TL_OK);
        if (w.options.times && w.options.time_bits)
            wrapped++;
        else
            assert_met(&tl_nexus_stream_ops, &source, w.image, &w.trace, false);
        nexus_world_fini(&w);
    }
    assert_in_range(wrapped, 1, 6);
}

static void e_trace(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        struct etrace_world w;
        etrace_world_init(&w, round, 40000);
        compare(&w.setup, w.image, (struct tl_bytes){w.trace.bytes.p, w.trace.bytes.n}, 0, round);
        etrace_world_fini(&w);
    }
}

/* ---- real captures ------------------------------------------------------------------------- */

static void compare_buffer(const struct tl_bundle_capture *buffer)
{
    struct tl_buf bytes = {0};
    struct tl_image *image;
    struct tl_fail fail = {0};
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&buffer->setup, image, NULL, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_bundle_bytes(buffer, &bytes, &fail), TL_OK);
    compare(&buffer->setup, image, (struct tl_bytes){bytes.p, bytes.n}, 0, 1);
    tl_buf_fini(&bytes);
    tl_image_free(image);
}

static void real_captures(void **state)
{
    (void)state;
    char dir[4096];
    DIR *const list = test_data(dir, sizeof dir, "coresight/snapshots") ? opendir(dir) : NULL;
    if (!list)
        skip();
    for (const struct dirent *e; (e = readdir(list));) {
        char path[5000];
        struct tl_bundle snapshot;
        struct tl_fail fail = {0};
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || tl_snapshot_read(&snapshot, path, NULL, NULL, &fail) < 0)
            continue;
        for (size_t i = 0; i < snapshot.n_captures; i++)
            compare_buffer(&snapshot.captures[i]);
        tl_bundle_fini(&snapshot);
    }
    closedir(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_streams),
        cmocka_unit_test(code_that_changes),
        cmocka_unit_test(parts_that_fill),
        cmocka_unit_test(parts_are_of_use),
        cmocka_unit_test(rooms_in_use_are_told),
        cmocka_unit_test(older_etm),
        cmocka_unit_test(n_trace),
        cmocka_unit_test(n_trace_parts_are_of_use),
        cmocka_unit_test(e_trace),
        cmocka_unit_test(real_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
