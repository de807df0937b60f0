/* SPDX-License-Identifier: MIT */
/*
 * A lake that was closed during a capture continues from a checkpoint: it reads raw bytes only from
 * there on, and not many, whatever streams there are; the stored result equals, byte for byte, that
 * of decoding from the first byte. A checkpoint that is damaged or belongs to another trace only
 * costs time.
 */
#include "base/crc32c.h"
#include "lake_analysis.h"
#include "made_stf.h"
#include "sim/osd_encoder.h"
#include "sim/program_rng.h"
#include "sim_capture.h"
#include "unit/patience.h"

#include <zstd.h>

enum {
    SHARD = 3000,
    INSNS = 150000,
    CORES = 2,
    PIECE = 2000,
    CHECKPOINT = 4096,
    AGAIN = CHECKPOINT + 2 * PIECE, /* maximum number of raw bytes read again */
    CHUNK = 50                      /* instructions in a chunk of a .zstf */
};

struct objects {
    struct tl_buf keys; /* NUL-terminated, concatenated */
    size_t n;
};

static int add_key(void *context, const char *key, uint64_t size)
{
    struct objects *o = context;
    o->n++;
    return tl_buf_add(&o->keys, key, strlen(key) + 1);
}

static void list(struct tl_backend *backend, const char *prefix, struct objects *out)
{
    *out = (struct objects){{0}};
    assert_int_equal(backend->ops->list(backend, prefix, add_key, out, NULL), TL_OK);
}

/* Append the names (below the generation) and contents of all shards. */
static void shards_of(struct tl_backend *backend, struct tl_buf *out)
{
    struct objects o;
    list(backend, "t/t", &o);
    for (const char *key = (char *)o.keys.p; o.n > 0; o.n--, key += strlen(key) + 1) {
        const char *name = strchr(key + 4, '/');
        /* Counts and calls of a resumed shard are computed on request. */
        if (strstr(key, ".count") || strstr(key, ".calls"))
            continue;
        assert_non_null(name);
        assert_int_equal(tl_buf_add(out, name, strlen(name)), TL_OK);
        assert_int_equal(tl_backend_get_all(backend, key, out, NULL), TL_OK);
    }
    tl_buf_fini(&o.keys);
}

static struct tl_lake *open_lake(struct tl_backend *backend, uint64_t checkpoint_bytes)
{
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = SHARD,
                                            .decode_threads = 1,
                                            .min_free_bytes = 1,
                                            .checkpoint_bytes = checkpoint_bytes};
    if (tl_lake_open_on(&lake, backend, &options, &fail) < 0)
        fail_msg("%s", fail.text);
    return lake;
}

/* Push up to `end`, and wait until these bytes are decoded. */
static void push_piece(struct tl_lake *lake, const struct capture *c, uint64_t end)
{
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char trace[64];
    uint64_t at, durable;
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)c->setup.p, .resume = true};
    if (tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, &fail) < 0)
        fail_msg("%s", fail.text);
    if (at < end)
        assert_int_equal(tl_ingest_append(ingest, at,
                                          (struct tl_bytes){c->bytes.p + at, (size_t)(end - at)},
                                          &fail),
                         TL_OK);
    if (end == c->bytes.n)
        assert_int_equal(tl_ingest_finish(ingest, &durable, &fail), TL_OK);
    tl_ingest_close(ingest);
    int64_t since = 0;
    for (uint64_t decoded = 0; decoded < end;) {
        struct tl_trace_list list;
        assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
        assert_int_not_equal(list.rows[0].state, TL_TRACE_FAILED);
        decoded = list.rows[0].decoded_bytes;
        tl_trace_list_free(&list);
        keep_waiting(&since, "all bytes are decoded");
    }
}

/* Push piece by piece, so that decoding takes many steps. */
static void push_up_to(struct tl_lake *lake, const struct capture *c, uint64_t from, uint64_t end)
{
    for (uint64_t at = from + PIECE; at < end; at += PIECE)
        push_piece(lake, c, at);
    push_piece(lake, c, end);
}

/* How each existing checkpoint is modified. */
enum harm { NONE, FLIP, CUT, FOREIGN, HARMS };

static size_t harm_all(struct tl_backend *backend, enum harm harm)
{
    struct objects o;
    list(backend, "c", &o);
    const size_t n = o.n;
    for (const char *key = (char *)o.keys.p; o.n > 0; o.n--, key += strlen(key) + 1) {
        struct tl_buf bytes = {0};
        assert_int_equal(tl_backend_get_all(backend, key, &bytes, NULL), TL_OK);
        if (harm == FLIP)
            bytes.p[bytes.n / 2] ^= 1;
        else if (harm == CUT)
            bytes.n -= bytes.n / 3;
        else if (harm == FOREIGN) { /* intact, but from another server version, setup or image */
            bytes.p[12 + 4 + 8 + 20] ^= 1;
            tl_put_le32(bytes.p + 8, tl_crc32c(0, bytes.p + 12, bytes.n - 12));
        }
        assert_int_equal(tl_backend_put(backend, key, (struct tl_bytes){bytes.p, bytes.n}, NULL),
                         TL_OK);
        tl_buf_fini(&bytes);
    }
    tl_buf_fini(&o.keys);
    return n;
}

/* Check that execution counts are the same whether they were counted while shards were built or
 * afterwards, including branches from one shard to the next. */
static void assert_counts(struct tl_backend *backend, struct tl_lake *lake)
{
    const struct tl_code_request all = {.of = {.trace = "t"}, .to = UINT64_MAX};
    struct tl_code built, walked;
    struct objects o;
    size_t removed = 0;
    assert_int_equal(tl_lake_code(lake, &all, &built, NULL), TL_OK);
    list(backend, "t/t", &o);
    for (const char *key = (char *)o.keys.p; o.n > 0; o.n--, key += strlen(key) + 1)
        if (strstr(key, ".count")) {
            assert_int_equal(backend->ops->remove(backend, key, NULL), TL_OK);
            removed++;
        }
    tl_buf_fini(&o.keys);
    assert_int_equal(tl_lake_code(lake, &all, &walked, NULL), TL_OK);
    assert_true(removed > 0 || built.n_runs == 0);
    assert_true(built.insns == walked.insns && built.n_runs == walked.n_runs &&
                built.n_branches == walked.n_branches);
    for (size_t i = 0; i < built.n_runs; i++)
        assert_memory_equal(&built.runs[i], &walked.runs[i], sizeof *built.runs);
    for (size_t i = 0; i < built.n_branches; i++)
        assert_memory_equal(&built.branches[i], &walked.branches[i], sizeof *built.branches);
    tl_code_fini(&built);
    tl_code_fini(&walked);
}

/* Check that the final contents equal those of decoding from the first byte. Closes the lake. */
static void assert_as_anew(struct tl_backend *backend, struct tl_lake *lake)
{
    struct tl_buf resumed = {0}, anew = {0};
    struct objects left;
    list(backend, "c", &left);
    assert_int_equal(left.n, 0); /* all were removed */
    tl_buf_fini(&left.keys);
    shards_of(backend, &resumed);
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_counts(backend, lake);
    tl_lake_close(lake);
    shards_of(backend, &anew);
    assert_int_equal(resumed.n, anew.n);
    assert_memory_equal(resumed.p, anew.p, anew.n);
    tl_buf_fini(&resumed);
    tl_buf_fini(&anew);
}

/* A capture of datagrams of a core and a log, and of a module that has sent only one packet. */
static void di_capture(struct capture *c, uint64_t seed)
{
    struct tl_sim_osd e;
    struct tl_setup setup;
    struct tl_sim_rng rng = {seed};
    const struct tl_sim_osd_module modules[] = {{0, TL_SIM_OSD_SCM, 0},
                                                {1, TL_SIM_OSD_CTM, 32},
                                                {2, TL_SIM_OSD_STM, 32},
                                                {3, TL_SIM_OSD_UART, 0}};
    *c = (struct capture){0};
    tl_sim_osd_init(&e);
    e.keep_truth = false;
    assert_int_equal(tl_sim_osd_enumerate(&e, modules, 4), TL_OK);
    assert_int_equal(tl_sim_osd_uart(&e, 3, '!'), TL_OK);
    for (uint32_t time = 0; e.out.n < 200000; time += tl_sim_below(&rng, 100)) {
        const uint32_t what = tl_sim_below(&rng, 100);
        const struct tl_sim_osd_truth event = {.time = time,
                                               .pc = 4 * tl_sim_below(&rng, 9999),
                                               .npc = 4 * tl_sim_below(&rng, 9999),
                                               .call = what % 2,
                                               .ret = what % 2 == 0};
        assert_int_equal(what < 60   ? tl_sim_osd_ctm(&e, 1, 32, &event)
                         : what < 99 ? tl_sim_osd_stm(&e, 2, 32, time, 1, what)
                                     : tl_sim_osd_overflow(&e, 1, 7, TL_SIM_OSD_CTM),
                         TL_OK);
    }
    assert_int_equal(tl_buf_add(&c->bytes, e.out.p, e.out.n), TL_OK);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "di", NULL), TL_OK);
    decode_text(&setup, NULL, (struct tl_bytes){c->bytes.p, c->bytes.n}, &c->text);
    assert_int_equal(tl_setup_write(&setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
    tl_setup_fini(&setup);
    tl_sim_osd_fini(&e);
}

/* A .zstf in chunks, as a simulator pushes it. */
static void stf_capture(struct capture *c, const struct sim_options *options)
{
    struct maker m = {.seed = options->seed};
    struct tl_setup setup;
    uint8_t head[TL_ZSTF_HEAD];
    *c = (struct capture){0};
    tl_zstf_head(head, CHUNK, 0);
    assert_int_equal(tl_buf_add(&c->bytes, head, sizeof head), TL_OK);
    begin_trace(&m, 0, false);
    for (uint64_t done = 0; done < options->insns; done += CHUNK) {
        put_trace(&m, CHUNK);
        assert_int_equal(tl_buf_reserve(&c->bytes, ZSTD_compressBound(m.out.n)), TL_OK);
        c->bytes.n +=
            ZSTD_compress(c->bytes.p + c->bytes.n, c->bytes.cap - c->bytes.n, m.out.p, m.out.n, 1);
        tl_buf_reset(&m.out);
    }
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "stf", NULL), TL_OK);
    decode_text(&setup, NULL, (struct tl_bytes){c->bytes.p, c->bytes.n}, &c->text);
    assert_int_equal(tl_setup_write(&setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
    tl_setup_fini(&setup);
    tl_buf_fini(&m.out);
}

/*
 * Captures of cores and an ITM; without cores, of pushed STF; without instructions, of datagrams.
 */
static void make_capture(struct tl_lake *lake, const struct sim_options *options, struct capture *c)
{
    if (options->cores > 0)
        sim_capture(lake, options, c);
    else if (options->insns > 0)
        stf_capture(c, options);
    else
        di_capture(c, options->seed);
}

static void closed_and_opened(enum harm harm, const struct sim_options *options)
{
    struct tl_backend *backend;
    struct capture c;
    struct tl_buf before = {0}, text = {0};
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_lake *lake = open_lake(backend, CHECKPOINT);
    make_capture(lake, options, &c);
    const uint64_t end = c.bytes.n / 10 * 9;
    push_up_to(lake, &c, 0, end);
    assert_true(atomic_load(&lake->bytes_decoded) == end);
    assert_true(atomic_load(&lake->checkpoints) > 2);
    lake_text(lake, "t", &before);
    tl_lake_close(lake);
    assert_int_equal(harm_all(backend, harm), 1);
    lake = open_lake(backend, CHECKPOINT);
    push_piece(lake, &c, end);
    lake_text(lake, "t", &text); /* also reads growing shards */
    assert_texts_equal(&before, &text);
    tl_buf_reset(&text);
    const uint64_t again = atomic_load(&lake->bytes_decoded);
    assert_int_equal(atomic_load(&lake->resumes), harm == NONE);
    assert_true(harm == NONE ? again <= AGAIN : again == end);
    push_up_to(lake, &c, end, c.bytes.n);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    lake_text(lake, "t", &text);
    assert_texts_equal(&c.text, &text);
    assert_as_anew(backend, lake);
    tl_buf_fini(&before);
    tl_buf_fini(&text);
    capture_free(&c);
    tl_backend_free(backend);
}

static struct sim_options options_of(uint64_t seed)
{
    return (struct sim_options){
        .seed = seed, .insns = INSNS, .cores = CORES, .image = true, .events = true};
}

static void from_a_checkpoint(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        const struct sim_options options = options_of(seed);
        closed_and_opened(NONE, &options);
    }
}

/* A stream that never fills a shard does not make decoding restart earlier, whether it is in the
 * checkpoint or began later; nor does such a core. */
static void with_a_quiet_stream(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 5; seed++) {
        struct sim_options options = options_of(seed);
        if (seed % 4 < 3)
            options.itm_from = seed % 2 ? 500 : INSNS / 100 * 89;
        if (seed % 4 > 1)
            options.rare = 7 + 10 * (unsigned)seed; /* less than a shard */
        closed_and_opened(NONE, &options);
    }
}

static void of_datagrams(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 3; seed++) {
        const struct sim_options options = {.seed = seed};
        closed_and_opened(NONE, &options);
    }
}

static void of_pushed_stf(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 3; seed++) {
        const struct sim_options options = {.seed = seed, .insns = 15000};
        closed_and_opened(NONE, &options);
    }
}

static void from_the_first_byte(void **state)
{
    (void)state;
    for (enum harm harm = FLIP; harm < HARMS; harm++) {
        struct sim_options options = options_of(7);
        options.itm_from = 500;
        closed_and_opened(harm, &options);
    }
}

/* The lake is closed and opened many times, at any position. */
static void again_and_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 7; seed++) {
        struct tl_backend *backend;
        struct capture c;
        struct tl_sim_rng rng = {seed};
        struct sim_options options = options_of(seed);
        if (seed > 4)
            options.cores = 0;
        if (seed > 4)
            options.insns = seed % 2 * 10000;
        options.itm_from = 500;
        options.rare = seed % 2 ? 0 : 31;
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        struct tl_lake *lake = open_lake(backend, CHECKPOINT);
        make_capture(lake, &options, &c);
        for (uint64_t at = 0; at < c.bytes.n;) {
            push_piece(lake, &c, at);
            assert_true(atomic_load(&lake->bytes_decoded) <= AGAIN);
            const uint64_t more = 1 + tl_sim_below(&rng, 6 * PIECE);
            const uint64_t end = more < c.bytes.n - at ? at + more : c.bytes.n;
            push_up_to(lake, &c, at, end);
            at = end;
            if (at < c.bytes.n) {
                tl_lake_close(lake);
                lake = open_lake(backend, CHECKPOINT);
            }
        }
        assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
        assert_as_anew(backend, lake);
        capture_free(&c);
        tl_backend_free(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_a_checkpoint),   cmocka_unit_test(with_a_quiet_stream),
        cmocka_unit_test(of_datagrams),        cmocka_unit_test(of_pushed_stf),
        cmocka_unit_test(from_the_first_byte), cmocka_unit_test(again_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
