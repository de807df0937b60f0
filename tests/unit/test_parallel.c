/* SPDX-License-Identifier: MIT */
/*
 * Several threads say exactly what one says: every item with all its members, every loss, as items
 * or as what a sink makes of them, on intact and damaged streams of simulated trace units in random
 * configurations, in frames and without, at any chunking, and on real captures.
 */
#include "decode/ops.h"
#include "decode/parallel.h"
#include "sim/program_rng.h"
#include "sim/tpiu_encoder.h"
#include "unit/data.h"
#include "unit/sim_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 16, STREAMS = 128 };

/* All that a decode said, by stream; the last losses are the container's. */
struct log {
    struct tl_buf items[STREAMS], losses[STREAMS + 1];
    struct tl_buf offsets[STREAMS]; /* of the items */
    bool paths, digests;
};

static void log_fini(struct log *log)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        tl_buf_fini(&log->items[i]);
        tl_buf_fini(&log->offsets[i]);
    }
    for (unsigned i = 0; i <= STREAMS; i++)
        tl_buf_fini(&log->losses[i]);
}

static void put(struct tl_buf *b, uint64_t value)
{
    assert_int_equal(tl_buf_add(b, &value, sizeof value), TL_OK);
}

static void put_item(struct tl_buf *b, const struct tl_item *item)
{
    put(b, (uint64_t)item->kind | (uint64_t)item->flags << 8 | (uint64_t)item->sub << 16 |
               (uint64_t)item->n << 32);
    put(b, item->pc);
    put(b, item->value);
    if (item->kind == TL_ITEM_BLOCK) {
        put(b, item->block->pc);
        put(b, item->block->isa);
        assert_int_equal(tl_buf_add(b, item->block->code, item->block->size), TL_OK);
    } else if (item->kind == TL_ITEM_SOFTWARE) {
        assert_int_equal(tl_buf_add(b, item->data, item->n), TL_OK);
    } else if (item->kind == TL_ITEM_NOTE || (item->kind == TL_ITEM_EXCEPTION && item->text)) {
        assert_int_equal(tl_buf_add(b, item->text, strlen(item->text)), TL_OK);
    }
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct log *const log = context;
    struct tl_buf *const b = &log->items[stream->index % STREAMS];
    struct tl_buf *const at = &log->offsets[stream->index % STREAMS];
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind != TL_ITEM_PATH) {
            put_item(b, &items[i]);
            put(at, items[i].offset);
            continue;
        }
        assert_true(log->paths);
        uint64_t insns = 0;
        for (uint32_t k = 0; k < items[i].n; k++) {
            const struct tl_item one = tl_path_item(&items[i], k);
            put_item(b, &one);
            put(at, one.offset);
            insns += one.n;
        }
        assert_int_equal(insns, items[i].value);
    }
    return TL_OK;
}

/* Items and their offsets, a batch as [bytes of items, bytes of offsets, items, offsets]. */
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
    put(out, b->n);
    put(out, at->n);
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

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct log *const log = context;
    struct tl_buf *const b = &log->losses[loss->stream ? loss->stream->index % STREAMS : STREAMS];
    put(b, loss->offset);
    put(b, loss->bytes);
    assert_int_equal(tl_buf_add(b, loss->reason, strlen(loss->reason)), TL_OK);
    return TL_OK;
}

/* `chunk` 0: all at once; else pieces of up to so many bytes, the same for the same seed. */
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
    assert_int_equal(tl_decode_new_threads(&d, setup, image, &sink, threads, &fail), TL_OK);
    if (log->paths)
        tl_decode_paths(d);
    srand(seed);
    for (size_t at = 0; at < in.n;) {
        size_t n = chunk ? 1 + (size_t)rand() % chunk : in.n;
        n = n < in.n - at ? n : in.n - at;
        assert_int_equal(tl_decode_push(d, in.p + at, n), TL_OK);
        at += n;
    }
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

static void same_bytes(const struct tl_buf *a, const struct tl_buf *b)
{
    assert_int_equal(a->n, b->n);
    if (a->n)
        assert_memory_equal(a->p, b->p, a->n);
}

static void assert_same(const struct log *a, const struct log *b)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        same_bytes(&a->items[i], &b->items[i]);
        if (a->paths == b->paths)
            same_bytes(&a->offsets[i], &b->offsets[i]);
    }
    for (unsigned i = 0; i <= STREAMS; i++)
        same_bytes(&a->losses[i], &b->losses[i]);
}

/* Steps of several packets are told at the offset of the first. */
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

static struct tl_sim_core_options random_options(struct tl_sim_rng *rng)
{
    struct tl_sim_core_options o = {
        .seed = tl_sim_below(rng, 1 << 30),
        .irq_every = tl_sim_below(rng, 2) ? 3000 : 0,
        .fault_every = tl_sim_below(rng, 2) ? 5000 : 0,
        .event_every = tl_sim_below(rng, 2) ? 700 : 0,
        .off_every = tl_sim_below(rng, 3) ? 0 : 20000,
        .overflow_every = tl_sim_below(rng, 3) ? 0 : 30000,
    };
    o.etm = (struct tl_sim_etm4_options){
        .ete = tl_sim_below(rng, 3) == 0,
        .minor = 2,
        .trace_id = 0x10,
        .return_stack = tl_sim_below(rng, 2),
        .branch_broadcast = tl_sim_below(rng, 4) == 0,
        .cycle_count = tl_sim_below(rng, 2),
        .threshold = 16,
        .commit_opt = tl_sim_below(rng, 2),
        .timestamps = tl_sim_below(rng, 2),
        .timestamp_every = 3000,
        .context_id = tl_sim_below(rng, 2),
        .vmid = tl_sim_below(rng, 2),
        .sync_every = tl_sim_below(rng, 2) ? 1024 : 4096,
        .max_spec_depth = tl_sim_below(rng, 3) ? 0 : (uint8_t)(1 + tl_sim_below(rng, 12)),
    };
    if (o.etm.ete)
        o.etm.minor = (uint8_t)tl_sim_below(rng, 4);
    o.etm.ts_marker = o.etm.ete && o.etm.minor >= 1 && tl_sim_below(rng, 2);
    if (o.etm.max_spec_depth)
        o.etm.commit_opt = false;
    return o;
}

static void damage(struct tl_buf *trace, struct tl_sim_rng *rng)
{
    for (unsigned k = 0; k < 20; k++) {
        const size_t at = tl_sim_below(rng, (uint32_t)trace->n - 64);
        switch (tl_sim_below(rng, 4)) {
        case 0:
            trace->p[at] ^= (uint8_t)(1 << tl_sim_below(rng, 8));
            break;
        case 1:
            memset(trace->p + at, (int)tl_sim_below(rng, 256), tl_sim_below(rng, 32));
            break;
        case 2: /* an A-Sync and trace info where there are none */
            memset(trace->p + at, 0, 11);
            memcpy(trace->p + at + 11, "\x80\x01\x01\x00", 4);
            break;
        default: /* … and as the tail of a longer run of zeros */
            memset(trace->p + at, 0, 20);
            memcpy(trace->p + at + 20, "\x80\x01", 2);
            break;
        }
    }
}

static void wrap_frames(struct tl_buf *trace)
{
    struct tl_tpiu_encoder e;
    uint32_t random = 1;
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 1);
    for (size_t at = 0; at < trace->n;) {
        random = random * 1664525 + 1013904223;
        size_t n = 1 + (random >> 8) % 3000;
        n = n < trace->n - at ? n : trace->n - at;
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x10, trace->p + at, n), TL_OK);
        if (random >> 28 == 0)
            assert_int_equal(tl_tpiu_encoder_add(&e, 0x33, trace->p, 7), TL_OK);
        at += n;
    }
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    tl_buf_fini(trace);
    *trace = e.out;
}

static void simulated_streams(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {20};
    for (unsigned round = 0; round < ROUNDS; round++) {
        const struct tl_sim_program_options shape = {
            .seed = round, .extra = 40, .short_loops = round % 2};
        const struct tl_sim_core_options options = random_options(&rng);
        struct world w;
        world_init(&w, &shape, &options, 300000, 40);
        if (round % 2)
            damage(&w.trace, &rng);
        if (round % 3 == 2) {
            w.setup.container = TL_CONTAINER_TPIU;
            wrap_frames(&w.trace);
        }
        const size_t chunk = round % 4 == 3 ? 200000 : 0;
        compare(&w.setup, round % 8 == 5 ? NULL : w.image, (struct tl_bytes){w.trace.p, w.trace.n},
                chunk, round);
        world_fini(&w);
    }
}

/*
 * Parts that turn out to be too much to be kept: bytes that nothing comes of make them long, and
 * then each byte becomes many items.
 */
static void parts_that_fill(void **state)
{
    (void)state;
    const struct tl_sim_program_options shape = {.seed = 5, .extra = 40};
    const struct tl_sim_core_options options = {
        .seed = 5, .etm = {.minor = 2, .trace_id = 0x10, .return_stack = true, .sync_every = 1024}};
    struct world w;
    struct tl_buf in = {0};
    world_init(&w, &shape, &options, 300000, 40);
    uint8_t nothing[4096]; /* the trace's first bytes, A-Sync and trace info, and ignore packets */
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

/* ---- real captures ------------------------------------------------------------------------- */

static void compare_buffer(const struct tl_snapshot_buffer *buffer)
{
    struct tl_buf bytes = {0};
    struct tl_image *image;
    struct tl_fail fail = {0};
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&buffer->setup, image, NULL, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_buf_read_file(&bytes, buffer->path, (size_t)1 << 30, &fail), TL_OK);
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
        struct tl_snapshot snapshot;
        struct tl_fail fail = {0};
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || tl_snapshot_read(&snapshot, path, NULL, NULL, &fail) < 0)
            continue;
        for (size_t i = 0; i < snapshot.n_buffers; i++)
            compare_buffer(&snapshot.buffers[i]);
        tl_snapshot_fini(&snapshot);
    }
    closedir(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_streams),
        cmocka_unit_test(parts_that_fill),
        cmocka_unit_test(real_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
