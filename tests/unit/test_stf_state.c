/* SPDX-License-Identifier: MIT */
/*
 * A decode of pushed STF that is saved and loaded between any two pushes gives the same result as
 * an undisturbed one: for traces of other producers and our own, of transactions, of several
 * shards, plain and in chunks, intact and damaged. Bytes that are not a valid state are refused or
 * do no harm.
 */
#include "made_stf.h"
#include "stf/flow/flow_reader.h"
#include "stf/flow/flow_writer.h"
#include "unit/hand_on.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

enum { INSNS = 1500 };

static void add_all(struct tl_buf *to, const struct tl_buf *from)
{
    assert_int_equal(tl_buf_add(to, from->p, from->n), TL_OK);
}

static void others(struct tl_buf *out, uint64_t seed)
{
    struct maker m = {.seed = seed};
    begin_trace(&m, seed % 3 ? 0 : 256, seed % 2);
    put_trace(&m, INSNS);
    add_all(out, &m.out);
    tl_buf_fini(&m.out);
}

/* Writes such a trace with the flow writer, in two shards. */
struct ours {
    struct tl_stf_flow *flow;
    struct tl_buf *out;
    uint64_t stop;
};

static int write_ours(void *context, const struct tl_item *items, size_t n)
{
    struct ours *const o = context;
    for (size_t i = 0; i < n; i++) {
        struct tl_block block =
            items[i].kind == TL_ITEM_BLOCK ? *items[i].block : (struct tl_block){0};
        struct tl_item item = items[i];
        struct tl_stf_flow_at at = {0};
        uint8_t stf[TL_STF_CLOSE_MAX];
        if (item.kind == TL_ITEM_BLOCK) { /* only its first instruction, without the groups */
            if (block.isa == TL_ISA_NONE)
                continue;
            struct tl_insn insn;
            tl_block_insn(&block, 0, &insn);
            block.whole = false;
            block.n = item.n = 1;
            block.size = block.last_size = insn.size;
            block.coded = stf;
            block.coded_size = block.last_coded =
                tl_stf_close_insn(stf, block.pc, block.code, insn.size, insn.encoding);
            item.block = &block;
        }
        while (tl_stf_flow_items(o->flow, &item, 1, o->stop, &at) == TL_AGAIN) {
            const struct tl_bytes bytes = tl_stf_flow_bytes(o->flow);
            assert_int_equal(tl_buf_add(o->out, bytes.p, bytes.n), TL_OK);
            tl_stf_flow_take(o->flow);
            tl_stf_flow_restart(o->flow);
        }
    }
    return TL_OK;
}

static void ours(struct tl_buf *out, uint64_t seed)
{
    struct tl_buf plain = {0};
    struct tl_stf_file *file;
    const struct tl_stf_flow_options options = {.isa = TL_ISA_RV64, .comments = true};
    struct ours o = {.out = out, .stop = 400};
    others(&plain, seed);
    assert_int_equal(tl_stf_file_bytes(&file, bytes_of(&plain), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_flow_new(&o.flow, &options, NULL), TL_OK);
    assert_int_equal(tl_stf_flow_read(&source, write_ours, &o, NULL), TL_OK);
    assert_int_equal(tl_stf_flow_finish(o.flow), TL_OK);
    const struct tl_bytes bytes = tl_stf_flow_bytes(o.flow);
    assert_int_equal(tl_buf_add(out, bytes.p, bytes.n), TL_OK);
    tl_stf_flow_free(o.flow);
    tl_stf_file_close(file);
    tl_buf_fini(&plain);
}

static void transactions(struct tl_buf *out, uint64_t seed)
{
    struct maker m = {.seed = seed};
    const struct tl_stf_record head[] = {
        {.type = TL_STF_IDENTIFIER, .magic = {'S', 'T', 'F'}},
        {.type = TL_STF_VERSION, .version = {1, 4}},
        {.type = TL_STF_PROTOCOL_ID, .protocol = 1},
        {.type = TL_STF_END_HEADER},
    };
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        put(&m, &head[i]);
    for (unsigned i = 0; i < INSNS; i++) {
        uint8_t data[9] = {5, (uint8_t)i};
        put(&m, &(struct tl_stf_record){.type = TL_STF_TRANSACTION,
                                        .transaction = {.clock = (uint8_t)(i % 7 == 6),
                                                        .delta = (uint16_t)(roll(&m) % 90),
                                                        .data = {data, sizeof data}}});
    }
    add_all(out, &m.out);
    tl_buf_fini(&m.out);
}

/* Wrap `b` in chunks of .zstf or frames of zstd. The index is not written yet. */
static void wrap(struct tl_buf *b, bool zstf, struct tl_sim_rng *rng)
{
    struct tl_buf out = {0};
    uint8_t head[TL_ZSTF_HEAD];
    tl_zstf_head(head, 100, 0);
    if (zstf)
        assert_int_equal(tl_buf_add(&out, head, sizeof head), TL_OK);
    for (size_t at = 0, n; at < b->n; at += n) {
        n = 1 + tl_sim_below(rng, 60000);
        n = n < b->n - at ? n : b->n - at;
        assert_int_equal(tl_buf_reserve(&out, ZSTD_compressBound(n)), TL_OK);
        out.n += ZSTD_compress(out.p + out.n, out.cap - out.n, b->p + at, n, 1);
    }
    tl_buf_fini(b);
    *b = out;
}

/* Compress `b` as a single stream. */
static void wrap_all(struct tl_buf *b, bool xz)
{
    struct tl_buf out = {0};
    assert_int_equal(tl_buf_reserve(&out, b->n + 4096), TL_OK);
    if (xz) {
        assert_int_equal(
            lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, b->p, b->n, out.p, &out.n, out.cap),
            LZMA_OK);
    } else {
        z_stream z = {0};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        z.next_in = b->p;
        z.avail_in = (uInt)b->n;
        z.next_out = out.p;
        z.avail_out = (uInt)out.cap;
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        out.n = z.total_out;
        deflateEnd(&z);
    }
    tl_buf_fini(b);
    *b = out;
}

static void make(unsigned round, struct tl_sim_rng *rng, struct tl_buf *out)
{
    static void (*const traces[])(struct tl_buf *, uint64_t) = {others, ours, others, transactions};
    traces[round % 4](out, round * UINT64_C(77) + 1);
    if (round % 8 == 2) { /* another header inside the stream */
        struct tl_buf more = {0};
        others(&more, round * UINT64_C(77) + 1);
        add_all(out, &more);
        tl_buf_fini(&more);
    }
    if (round % 5 == 4)
        out->p[out->n / 3 * 2] = 0xee;
    if (round % 7 > 4)
        wrap_all(out, round % 7 == 6);
    else if (round % 3 > 0)
        wrap(out, round % 3 == 1, rng);
    if (round % 15 == 7)
        out->n -= out->n / 5;
}

static void traces(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {6};
    unsigned times = 0;
    for (unsigned round = 0; round < 60; round++) {
        struct tl_setup setup;
        struct tl_buf trace = {0};
        make(round, &rng, &trace);
        tl_setup_init(&setup);
        assert_int_equal(tl_setup_format(&setup, "stf", NULL), TL_OK);
        struct run run = {.setup = &setup, .in = {trace.p, trace.n}};
        times += compare(&run, round % 2 ? 100 : 5000, &rng);
        tl_setup_fini(&setup);
        tl_buf_fini(&trace);
    }
    assert_true(times > 60 * 50);
}

static void no_state(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {13};
    unsigned went_on = 0;
    for (unsigned round = 0; round < 24; round++) {
        struct tl_setup setup;
        struct tl_buf trace = {0}, saved = {0};
        struct log log = {0};
        make(round, &rng, &trace);
        tl_setup_init(&setup);
        assert_int_equal(tl_setup_format(&setup, "stf", NULL), TL_OK);
        struct run run = {.setup = &setup, .in = {trace.p, trace.n}};
        struct tl_decode *d = begin(&run, &log);
        size_t n = 0;
        int r = TL_AGAIN;
        for (size_t more; r == TL_AGAIN && n < trace.n; n += more) {
            more = n == 0 ? trace.n / 2 : 1;
            push_piece(d, &run, n, more);
            tl_buf_reset(&saved);
            r = tl_decode_save(d, &saved);
        }
        tl_decode_free(d);
        for (unsigned k = 0; r == TL_OK && k < 200; k++) {
            const size_t at = tl_sim_below(&rng, (uint32_t)saved.n);
            const uint8_t was = saved.p[at];
            const size_t cut = k % 3 ? saved.n : at;
            saved.p[at] ^= (uint8_t)(1 + tl_sim_below(&rng, 255));
            d = begin(&run, &log);
            if (tl_decode_load(d, (struct tl_bytes){saved.p, cut}) == TL_OK) {
                assert_int_equal(cut, saved.n);
                assert_int_equal(tl_decode_push(d, trace.p + n, trace.n - n), TL_OK);
                assert_int_equal(tl_decode_finish(d), TL_OK);
                went_on++;
            }
            tl_decode_free(d);
            saved.p[at] = was;
        }
        log_fini(&log);
        tl_buf_fini(&saved);
        tl_buf_fini(&trace);
        tl_setup_fini(&setup);
    }
    assert_true(went_on > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces),
        cmocka_unit_test(no_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
