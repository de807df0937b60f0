/* SPDX-License-Identifier: MIT */
/*
 * STF of code that is known in parts: simulated cores are decoded with images that lack some of
 * their program. What is written must be something that a core can have executed, by the rules of
 * `tracelake check`, and be read back as the same flow.
 */
#include "decode/decode.h"
#include "stf/close.h"
#include "stf/flow/flow_reader.h"
#include "stf/flow/flow_writer.h"
#include "stf/tools/check.h"
#include "unit/etrace_world.h"
#include "unit/nexus_world.h"
#include "unit/sim_streams.h"
#include "unit/test_stf_util.h"

enum { ROUNDS = 30 };

/* One stream on its way to STF. */
struct written {
    struct tl_stf_flow *flow;
    struct tl_buf text, stf;
    bool shards;
    uint64_t stop, markers;
};

static void take(struct written *w)
{
    const struct tl_bytes bytes = tl_stf_flow_bytes(w->flow);
    assert_int_equal(tl_buf_add(&w->stf, bytes.p, bytes.n), TL_OK);
    tl_stf_flow_take(w->flow);
}

/* A chunk ends after every 97 instructions, a shard after some of them. */
static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct written *const w = context;
    struct tl_stf_flow_at at = {0};
    int rc;
    (void)stream;
    assert_int_equal(tl_item_text(&w->text, items, n), TL_OK);
    while ((rc = tl_stf_flow_items(w->flow, items, n, w->stop, &at)) == TL_AGAIN) {
        take(w);
        if (w->shards && w->stop % 7 == 0) {
            w->markers += w->stop;
            w->stop = 0;
            tl_stf_flow_restart(w->flow);
        }
        w->stop += 97;
    }
    return rc;
}

static int on_text(void *context, const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

static int on_finding(void *context, const struct tl_stf_finding *finding)
{
    (void)context;
    if (finding->severity != TL_STF_NOTE)
        fail_msg("offset %llu: %s: %s", (unsigned long long)finding->offset, finding->rule,
                 finding->text);
    return TL_OK;
}

/* Checks each shard by itself; returns the number of their instructions. */
static uint64_t check(const struct tl_buf *stf)
{
    struct tl_stf_checker *checker = NULL;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    uint64_t insns = 0;
    int rc;
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes_of(stf));
    tl_stf_reader_finish(reader);
    do {
        rc = tl_stf_reader_next(reader, &record, NULL);
        if (checker && (rc != TL_OK || record.type == TL_STF_IDENTIFIER)) {
            assert_int_equal(tl_stf_checker_finish(checker), TL_OK);
            insns += tl_stf_checker_insns(checker);
            tl_stf_checker_free(checker);
            checker = NULL;
        }
        if (rc == TL_OK && record.type == TL_STF_IDENTIFIER)
            assert_int_equal(tl_stf_checker_new(&checker, on_finding, NULL), TL_OK);
        if (rc == TL_OK)
            assert_int_equal(tl_stf_checker_add(checker, &record), TL_OK);
    } while (rc == TL_OK);
    assert_int_equal(rc, TL_EOF);
    tl_stf_reader_free(reader);
    return insns;
}

/* The lines of `text` of these kinds. */
static void only(const struct tl_buf *text, const char *kinds, struct tl_buf *out)
{
    tl_buf_reset(out);
    for (size_t i = 0, end; i < text->n; i = end) {
        const uint8_t *const line_end = memchr(text->p + i, '\n', text->n - i);
        end = (size_t)(line_end - text->p) + 1;
        if (strchr(kinds, text->p[i]))
            assert_int_equal(tl_buf_add(out, text->p + i, end - i), TL_OK);
    }
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
}

static void assert_same_flow(const struct tl_buf *want, const struct tl_buf *got)
{
    static const char *const kinds[] = {"INBXGO", "R", "T", "V"};
    struct tl_buf a = {0}, b = {0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        only(want, kinds[k], &a);
        only(got, kinds[k], &b);
        size_t i = 0, line = 0;
        for (; i < a.n && i < b.n && a.p[i] == b.p[i]; i++)
            line = a.p[i] == '\n' ? i + 1 : line;
        if (i < a.n || i < b.n)
            fail_msg("%s: wanted\n%.300s\ngot\n%.300s", kinds[k], (const char *)a.p + line,
                     (const char *)b.p + line);
    }
    tl_buf_fini(&a);
    tl_buf_fini(&b);
}

static uint64_t write_and_check(const struct tl_setup *setup, const struct tl_image *image,
                                struct tl_bytes trace, unsigned round)
{
    struct written w = {.stop = 97, .shards = round % 2};
    const struct tl_stf_flow_options options = {
        .isa = tl_source_isa(setup->sources->protocol, setup->sources), .comments = true};
    const struct tl_decode_sink sink = {.context = &w, .items = on_items};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    struct tl_stf_file *file;
    struct tl_buf text = {0};
    assert_int_equal(tl_stf_flow_new(&w.flow, &options, NULL), TL_OK);
    assert_int_equal(tl_decode_new(&d, setup, image, &sink, &fail), TL_OK);
    if (round % 4 < 2)
        tl_decode_set_code(d, tl_stf_block_code);
    if (round % 3 > 0)
        tl_decode_allow_paths(d);
    assert_int_equal(tl_decode_push(d, trace.p, trace.n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    assert_int_equal(tl_stf_flow_finish(w.flow), TL_OK);
    w.markers += tl_stf_flow_markers(w.flow);
    take(&w);
    assert_int_equal(check(&w.stf), w.markers);
    assert_int_equal(tl_stf_file_bytes(&file, bytes_of(&w.stf), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_flow_read(&source, on_text, &text, NULL), TL_OK);
    assert_same_flow(&w.text, &text);
    tl_stf_file_close(file);
    tl_stf_flow_free(w.flow);
    tl_buf_fini(&w.text);
    tl_buf_fini(&w.stf);
    tl_buf_fini(&text);
    return w.markers;
}

/* The program without some of its pieces. */
static void add_pieces(struct tl_image *image, uint64_t base, struct tl_bytes code, unsigned round,
                       struct tl_sim_rng *rng)
{
    const size_t piece = (size_t)16 << round % 7;
    for (size_t at = 0; at < code.n; at += piece) {
        const size_t n = code.n - at < piece ? code.n - at : piece;
        if (tl_sim_below(rng, 4) > 0)
            assert_int_equal(tl_image_add_bytes(image, base + at, (struct tl_bytes){code.p + at, n},
                                                TL_SPACE_ANY, NULL, NULL),
                             TL_OK);
    }
}

static struct tl_image *partial(uint64_t base, const struct tl_buf *code, unsigned round,
                                struct tl_sim_rng *rng)
{
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    add_pieces(image, base, bytes_of(code), round, rng);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    return image;
}

static void n_trace(void **state)
{
    struct tl_sim_rng rng = {7};
    uint64_t insns = 0;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct nexus_world w;
        nexus_world_init(&w, round, 3000, &rng);
        struct tl_image *const image =
            partial(nexus_base(round, w.options.xlen), &w.run.code, round, &rng);
        insns += write_and_check(&w.setup, image, bytes_of(&w.trace), round);
        tl_image_free(image);
        nexus_world_fini(&w);
    }
    assert_true(insns > 10000);
}

static void e_trace(void **state)
{
    struct tl_sim_rng rng = {8};
    uint64_t insns = 0;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct etrace_world w;
        etrace_world_init(&w, round, 3000);
        struct tl_image *const image = partial(w.program.base, &w.run.code, round, &rng);
        insns += write_and_check(&w.setup, image, bytes_of(&w.trace.bytes), round);
        tl_image_free(image);
        etrace_world_fini(&w);
    }
    assert_true(insns > 10000);
}

static void etm(void **state)
{
    struct tl_sim_rng rng = {9};
    uint64_t insns = 0;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        struct tl_image *image;
        const struct tl_sim_program_options shape = {.seed = round, .extra = 40};
        const struct tl_sim_core_options options = random_options(&rng);
        world_init(&w, &shape, &options, 20000, 4);
        assert_int_equal(tl_image_new(&image), TL_OK);
        for (unsigned i = 0; i < 2; i++)
            add_pieces(image, w.program.sections[i].base, bytes_of(&w.code[i]), round + 2, &rng);
        assert_int_equal(tl_image_freeze(image), TL_OK);
        insns += write_and_check(&w.setup, image, bytes_of(&w.trace), round);
        tl_image_free(image);
        world_fini(&w);
    }
    assert_true(insns > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n_trace),
        cmocka_unit_test(e_trace),
        cmocka_unit_test(etm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
