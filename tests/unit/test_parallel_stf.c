/* SPDX-License-Identifier: MIT */
/* .zstf files written by several threads equal those written by one, byte for byte; a failing write
 * ends the decode, whichever thread compresses the chunks. */
#include "base/crew.h"
#include "decode/split.h"
#include "sim/program_rng.h"
#include "stf/close.h"
#include "stf/flow/flow_writer.h"
#include "stf/zstf_pool.h"
#include "unit/sim_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { HELPERS = 3, CHUNKS = 48, MARKERS = 3000 };

/* ---- the pool ------------------------------------------------------------------------------ */

struct order {
    struct tl_zstf_packer *packer; /* compresses the same frames for comparison */
    uint64_t given;                /* chunks returned so far */
    uint64_t fail_at;              /* writing this chunk fails */
    struct tl_buf frame;
};

static int check_order(const struct tl_zstf_job *job)
{
    struct order *const o = job->context;
    if (o->given == o->fail_at)
        return TL_IO;
    assert_int_equal(job->markers, o->given);
    assert_int_equal(job->start_pc, o->given * 3);
    tl_buf_reset(&o->frame);
    assert_int_equal(tl_zstf_pack(o->packer, (struct tl_bytes){job->stf.p, job->stf.n}, &o->frame),
                     TL_OK);
    assert_int_equal(job->frame.n, o->frame.n);
    assert_memory_equal(job->frame.p, o->frame.p, o->frame.n);
    o->given++;
    return TL_OK;
}

struct helpers {
    struct tl_zstf_pool *pool;
    atomic_bool stop;
    pthread_t threads[HELPERS];
    unsigned n;
};

static void *help(void *context)
{
    struct helpers *const h = context;
    while (!atomic_load(&h->stop))
        if (!tl_zstf_pool_work(h->pool))
            usleep(100);
    return NULL;
}

static void helpers_start(struct helpers *h, struct tl_zstf_pool *pool, unsigned n)
{
    *h = (struct helpers){.pool = pool};
    for (; h->n < n; h->n++)
        assert_int_equal(pthread_create(&h->threads[h->n], NULL, help, h), 0);
}

static void helpers_stop(struct helpers *h)
{
    atomic_store(&h->stop, true);
    for (unsigned i = 0; i < h->n; i++)
        pthread_join(h->threads[i], NULL);
}

/* Fill chunk `i`: the larger ones together exceed the pool's memory. */
static void fill(struct tl_buf *stf, unsigned i, struct tl_sim_rng *rng)
{
    const size_t n = (i % 3 == 2 ? 2u << 20 : 0) + tl_sim_below(rng, 5000) + 1;
    assert_int_equal(tl_buf_reserve(stf, n + 64), TL_OK);
    for (; stf->n < n; stf->n += 64)
        memset(stf->p + stf->n, (int)tl_sim_below(rng, 256), 64);
    stf->n = n;
}

static void run_pool(unsigned threads, unsigned n_helpers, uint64_t fail_at)
{
    struct order order = {.fail_at = fail_at};
    struct tl_zstf_pool *pool;
    struct tl_zstf_job job = {.context = &order};
    struct tl_sim_rng rng = {3};
    struct helpers helpers;
    assert_int_equal(tl_zstf_packer_new(&order.packer, 1), TL_OK);
    assert_int_equal(tl_zstf_pool_new(&pool, 1, threads, check_order), TL_OK);
    helpers_start(&helpers, pool, n_helpers);
    int rc = TL_OK;
    for (unsigned i = 0; i < CHUNKS && rc == TL_OK; i++) {
        job.markers = i;
        job.start_pc = (uint64_t)i * 3;
        fill(&job.stf, i, &rng);
        rc = tl_zstf_pool_add(pool, &job);
        assert_true(rc < 0 || job.stf.n == 0);
        assert_true(threads > 1 || rc < 0 || order.given == i + 1);
    }
    if (rc == TL_OK)
        rc = tl_zstf_pool_drain(pool);
    assert_int_equal(rc, fail_at < CHUNKS ? TL_IO : TL_OK);
    assert_int_equal(order.given, fail_at < CHUNKS ? fail_at : CHUNKS);
    helpers_stop(&helpers);
    assert_true(rc < 0 || !tl_zstf_pool_work(pool));
    tl_zstf_pool_free(pool);
    tl_zstf_packer_free(order.packer);
    tl_buf_fini(&order.frame);
    tl_buf_fini(&job.stf);
}

static void chunks_come_in_order(void **state)
{
    (void)state;
    run_pool(1, 0, UINT64_MAX);
    run_pool(4, 0, UINT64_MAX); /* no helpers */
    run_pool(2, 1, UINT64_MAX);
    run_pool(4, HELPERS, UINT64_MAX);
}

static void what_cannot_be_written_ends(void **state)
{
    (void)state;
    run_pool(1, 0, 0);
    run_pool(4, 0, 18);
    run_pool(4, HELPERS, CHUNKS / 2);
    run_pool(2, 1, CHUNKS - 1);
}

/* ---- a decode ------------------------------------------------------------------------------ */

struct out {
    struct tl_stf_flow *flow;
    struct tl_zstf_writer *writer;
    struct tl_zstf_pool *pool;
    struct tl_zstf_job job;
    struct tl_buf file;
    uint64_t done;
    uint64_t left; /* bytes that still fit */
};

static int write_frame(const struct tl_zstf_job *job)
{
    struct out *const o = job->context;
    if (job->frame.n > o->left)
        return TL_NOSPACE;
    o->left -= job->frame.n;
    return tl_zstf_writer_frame(o->writer, (struct tl_bytes){job->frame.p, job->frame.n},
                                job->stf.n, job->markers, job->start_pc, &o->file);
}

static int add_chunk(struct out *o)
{
    const uint64_t markers = tl_stf_flow_markers(o->flow);
    struct tl_stf_piece piece = {.stf = o->job.stf};
    o->job.markers = markers - o->done;
    o->job.start_pc = tl_stf_flow_chunk_pc(o->flow);
    tl_stf_flow_swap(o->flow, &piece);
    o->job.stf = piece.stf;
    o->done = markers;
    return tl_zstf_pool_add(o->pool, &o->job);
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct out *const o = context;
    struct tl_stf_flow_at at = {0};
    int rc;
    (void)stream;
    while ((rc = tl_stf_flow_items(o->flow, items, n, o->done + MARKERS, &at)) == TL_AGAIN)
        if ((rc = add_chunk(o)) < 0)
            return rc;
    return rc;
}

static bool help_pack(void *context)
{
    return tl_zstf_pool_work(context);
}

/* Decode all of `w` into `file`, which has space for `room` bytes of frames. Returns the first
 * error. */
static int decode(const struct world *w, unsigned threads, uint64_t room, struct tl_buf *file)
{
    const struct tl_stf_flow_options options = {.comments = true};
    struct out o = {.left = room};
    const struct tl_decode_sink sink = {.context = &o, .items = on_items};
    struct tl_decode *d;
    uint8_t head[TL_ZSTF_HEAD];
    o.job.context = &o;
    assert_int_equal(tl_stf_flow_new(&o.flow, &options, NULL), TL_OK);
    assert_int_equal(tl_zstf_writer_new(&o.writer, MARKERS, 0), TL_OK);
    assert_int_equal(tl_zstf_writer_begin(o.writer, &o.file), TL_OK);
    assert_int_equal(tl_zstf_pool_new(&o.pool, 0, threads, write_frame), TL_OK);
    struct tl_crew *crew;
    struct tl_crew_work work = {.piece = help_pack, .context = o.pool};
    assert_int_equal(tl_crew_new(&crew, threads), TL_OK);
    assert_int_equal(tl_decode_new(&d, &w->setup, w->image, &sink, NULL), TL_OK);
    tl_decode_allow_paths(d);
    tl_decode_set_code(d, tl_stf_block_code);
    assert_int_equal(tl_decode_set_crew(d, crew), TL_OK);
    if (threads > 1)
        assert_int_equal(tl_crew_offer(crew, &work), TL_OK);
    int rc = TL_OK;
    for (size_t at = 0; rc == TL_OK && at < w->trace.n;) { /* in two pushes */
        const size_t n = at ? w->trace.n - at : w->trace.n / 2;
        rc = tl_decode_push(d, w->trace.p + at, n);
        at += n;
    }
    if (rc == TL_OK)
        rc = tl_decode_finish(d);
    if (rc == TL_OK)
        rc = tl_stf_flow_finish(o.flow);
    if (rc == TL_OK)
        rc = add_chunk(&o);
    if (rc == TL_OK)
        rc = tl_zstf_pool_drain(o.pool);
    if (rc == TL_OK) {
        assert_int_equal(tl_zstf_writer_finish(o.writer, (struct tl_bytes){0}, &o.file, head),
                         TL_OK);
        memcpy(o.file.p, head, sizeof head);
    }
    tl_decode_free(d);
    tl_crew_withdraw(crew, &work);
    tl_crew_free(crew);
    tl_zstf_pool_free(o.pool);
    tl_zstf_writer_free(o.writer);
    tl_stf_flow_free(o.flow);
    tl_buf_fini(&o.job.stf);
    *file = o.file;
    return rc;
}

static void files_are_the_same(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        const struct tl_sim_program_options shape = {.seed = round, .extra = 40};
        const struct tl_sim_core_options options = {.seed = round,
                                                    .irq_every = round % 2 ? 3000 : 0,
                                                    .overflow_every = round == 3 ? 30000 : 0,
                                                    .etm = {.minor = 2,
                                                            .trace_id = 0x10,
                                                            .return_stack = round < 2,
                                                            .branch_broadcast = round == 2,
                                                            .cycle_count = round == 1,
                                                            .threshold = 16,
                                                            .timestamps = round == 1,
                                                            .timestamp_every = 3000,
                                                            .context_id = round % 2,
                                                            .sync_every = 1024}};
        struct world w;
        struct tl_buf one, many;
        world_init(&w, &shape, &options, 400000, 60);
        assert_true(w.trace.n > 2 * TL_SPLIT_MIN);
        assert_int_equal(decode(&w, 1, UINT64_MAX, &one), TL_OK);
        for (unsigned threads = 2; threads <= 4; threads++) {
            assert_int_equal(decode(&w, threads, UINT64_MAX, &many), TL_OK);
            assert_int_equal(many.n, one.n);
            assert_memory_equal(many.p, one.p, one.n);
            tl_buf_fini(&many);
            if (threads != 2 + round % 3)
                continue;
            /* No space from some point on, or none at all. */
            assert_int_equal(decode(&w, threads, one.n / 2, &many), TL_NOSPACE);
            tl_buf_fini(&many);
            assert_int_equal(decode(&w, threads, 0, &many), TL_NOSPACE);
            tl_buf_fini(&many);
        }
        tl_buf_fini(&one);
        world_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_come_in_order),
        cmocka_unit_test(what_cannot_be_written_ends),
        cmocka_unit_test(files_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
