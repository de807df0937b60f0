/* SPDX-License-Identifier: MIT */
/*
 * The statistics in a shard's index compared with a walk through the shard: for STF from other
 * producers, with records of all kinds and any instruction set, and for random items of every
 * protocol, whose blocks do not contain their instructions.
 */
#include "made_stf.h"

#include "builder/build.h"
#include "builder/insn_stats.h"
#include "decode/ops.h"
#include "made_items.h"
#include "random.h"
#include "sim/program_core.h"
#include "sim/small_elf.h"
#include "stf/flow/flow_writer.h"

enum { INSNS = 4000, SYMBOLS = 64, CODE = 0x1000 };

struct shards {
    struct tl_build *build;
    const struct tl_image *image;
    enum tl_protocol protocol;
    uint64_t insns, n;
    bool exact; /* STF records for every branch whether it was taken, except one without a target */
    bool any_taken, any_call, any_event, any_microop, any_write, any_unknown;
};

static void note(struct shards *s, const struct tl_shard_stats *t)
{
    s->any_taken |= t->taken > 0;
    for (size_t i = 0; i < t->n_functions; i++)
        s->any_call |= t->functions[i].calls > 0;
    s->any_event |= t->records[tl_stats_record(TL_STF_EVENT)] > 0;
    s->any_microop |= t->records[tl_stats_record(TL_STF_INST_MICROOP)] > 0;
    s->any_write |= t->writes > 0 && t->reads > 0;
    s->any_unknown |= t->mix[TL_MIX_UNKNOWN] > 0;
    s->insns += t->insns;
    s->n++;
}

static void assert_same(const struct tl_shard_stats *reported, const struct tl_shard_stats *walked)
{
    struct tl_buf a = {0}, b = {0};
    assert_int_equal(tl_shard_stats_encode(reported, &a), TL_OK);
    assert_int_equal(tl_shard_stats_encode(walked, &b), TL_OK);
    for (size_t i = 0; i < TL_MIX_KINDS; i++)
        assert_int_equal(reported->mix[i], walked->mix[i]);
    for (size_t i = 0; i < TL_STATS_RECORDS; i++)
        assert_int_equal(reported->records[i], walked->records[i]);
    assert_int_equal(reported->taken, walked->taken);
    assert_int_equal(reported->n_functions, walked->n_functions);
    for (size_t i = 0; i < reported->n_functions; i++) {
        assert_int_equal(reported->functions[i].function, walked->functions[i].function);
        assert_int_equal(reported->functions[i].insns, walked->functions[i].insns);
        assert_int_equal(reported->functions[i].calls, walked->functions[i].calls);
    }
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    tl_buf_fini(&a);
    tl_buf_fini(&b);
}

/* Check the statistics as read from the index's bytes. */
static void assert_read_back(const struct tl_shard_stats *stats)
{
    struct tl_buf bytes = {0};
    struct tl_shard_stats back;
    assert_int_equal(tl_shard_stats_encode(stats, &bytes), TL_OK);
    struct tl_varint_reader in = {.p = bytes.p, .end = bytes.p + bytes.n};
    assert_int_equal(tl_shard_stats_read(&back, &in), TL_OK);
    assert_true(in.p == in.end && back.counted && back.insns == stats->insns);
    assert_same(stats, &back);
    tl_shard_stats_fini(&back);
    tl_buf_fini(&bytes);
}

static void assert_walked(const struct shards *s, struct tl_view *view)
{
    const struct tl_walk_range all = {.to = UINT64_MAX, .tail = true, .protocol = s->protocol};
    struct tl_insn_stats *insn_stats;
    struct tl_shard_stats walked;
    struct tl_fail fail = {0};
    assert_int_equal(tl_insn_stats_new(&insn_stats, s->image, s->protocol), TL_OK);
    if (tl_insn_stats_view(insn_stats, view, &all, &fail) < 0)
        fail_msg("%s", fail.text);
    tl_insn_stats_report(insn_stats, &walked);
    if (!s->exact)
        walked.taken = view->index.stats.taken;
    assert_same(&view->index.stats, &walked);
    tl_shard_stats_fini(&walked);
    tl_insn_stats_free(insn_stats);
}

static int on_seal(void *context, struct tl_view *view)
{
    struct shards *const s = context;
    const struct tl_shard_stats *const reported = &view->index.stats;
    assert_true(reported->reported && reported->counted);
    assert_int_equal(reported->insns, view->index.row.n);
    assert_read_back(reported);
    note(s, reported);
    assert_walked(s, view);
    const bool headed = s->protocol == TL_PROTO_STF && view->index.n_frames > 0;
    assert_int_equal(tl_view_head(view).n > 0, headed);
    assert_walked(s, view); /* the second one finds the header */
    tl_view_put(view);
    return TL_OK;
}

/* An image with functions wherever the traces go, some of them adjacent. */
static struct tl_image *make_image(uint64_t address)
{
    static uint8_t code[CODE];
    static char names[SYMBOLS][8];
    struct tl_sim_elf_symbol symbols[SYMBOLS];
    struct tl_buf elf = {0};
    struct tl_image *image;
    struct tl_fail fail = {0};
    for (unsigned i = 0; i < SYMBOLS; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        symbols[i] = (struct tl_sim_elf_symbol){names[i], address + i * (CODE / SYMBOLS),
                                                CODE / SYMBOLS - (i % 3 ? 0 : 16)};
    }
    const struct tl_sim_elf spec = {.machine = EM_RISCV,
                                    .wide = true,
                                    .address = address,
                                    .code = {code, sizeof code},
                                    .symbols = symbols,
                                    .n_symbols = SYMBOLS};
    assert_int_equal(tl_sim_elf_make(&spec, &elf), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    if (tl_image_add_elf(image, bytes_of(&elf), 0, TL_SPACE_ANY, "f", &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_buf_fini(&elf);
    return image;
}

static void begin(struct shards *s, uint64_t shard, uint64_t chunk)
{
    const struct tl_build_options options = {.protocol = s->protocol,
                                             .shard_insns = shard,
                                             .chunk_markers = chunk,
                                             .image = s->image,
                                             .seal = on_seal,
                                             .context = s};
    assert_int_equal(tl_build_new(&s->build, &options), TL_OK);
}

static void end(struct shards *s)
{
    assert_int_equal(tl_build_finish(s->build), TL_OK);
    tl_build_free(s->build);
    s->build = NULL;
}

/* ---- STF ----------------------------------------------------------------------------------- */

static int to_build(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct shards *const s = context;
    return tl_build_items(s->build, items, n);
}

static void push_stf(struct shards *s, struct tl_bytes stf)
{
    const struct tl_decode_sink sink = {.context = s, .items = to_build};
    struct tl_decode *d;
    struct tl_setup setup;
    struct tl_fail fail = {0};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "stf", &fail), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, s->image, &sink, &fail), TL_OK);
    for (size_t at = 0; at < stf.n;) {
        const size_t left = stf.n - at, n = 1 + next() % 5000;
        assert_int_equal(tl_decode_push(d, stf.p + at, n < left ? n : left), TL_OK);
        at += n < left ? n : left;
    }
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
}

/* Write a trace's header. `generator` NULL: as in our own flow traces. */
static void put_head(struct maker *m, uint16_t isa, uint16_t iem, const char *generator)
{
    const struct tl_stf_header_spec spec = {.isa = isa,
                                            .iem = iem,
                                            .pc = 0x1000,
                                            .vlen = next() & 1 ? 256 : 0,
                                            .features = next() & 1 ? TL_STF_FEATURE_EVENT64 : 0,
                                            .generator = generator};
    assert_int_equal(tl_stf_header_write(&spec, &m->out, &m->layout), TL_OK);
}

static void stf_of_others(void **state)
{
    static const uint16_t isas[] = {TL_STF_ISA_RISCV, TL_STF_ISA_RISCV, TL_STF_ISA_ARM,
                                    TL_STF_ISA_X86};
    struct tl_image *const image = make_image(0x1000);
    struct shards s = {.image = image, .protocol = TL_PROTO_STF, .exact = true};
    for (unsigned round = 0; round < 24; round++) {
        struct maker m = {.seed = (uint64_t)next() << 32 | next()};
        put_head(&m, isas[round % 4], next() & 1 ? TL_STF_IEM_64 : TL_STF_IEM_32, "simulator 1.0");
        put_trace(&m, INSNS);
        begin(&s, round % 3 ? 100 + next() % 3000 : UINT64_MAX, 10 + next() % 1500);
        s.insns = 0;
        push_stf(&s, bytes_of(&m.out));
        end(&s);
        assert_int_equal(s.insns, INSNS);
        tl_buf_fini(&m.out);
    }
    assert_true(s.n > 24 && s.any_taken && s.any_call && s.any_event && s.any_microop);
    assert_true(s.any_write && s.any_unknown);
    tl_image_free(image);
}

/* Our own output is read back, for streams whose blocks branch to wherever the next one is. */
static void stf_of_ours(void **state)
{
    struct tl_image *const image = make_image(0x400000);
    struct shards s = {.image = image, .protocol = TL_PROTO_STF};
    for (unsigned round = 0; round < 24; round++) {
        const struct tl_stf_flow_options options = {.isa = TL_ISA_NONE};
        struct made m;
        struct tl_stf_flow *flow;
        struct tl_stf_flow_at at = {0};
        made_stream(&m, (uint64_t)next() << 32 | next(), 500 + next() % 2500, 2 + next() % 9);
        assert_int_equal(tl_stf_flow_new(&flow, &options, NULL), TL_OK);
        assert_int_equal(tl_stf_flow_items(flow, m.items, m.n, UINT64_MAX, &at), TL_OK);
        assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
        begin(&s, round % 3 ? 100 + next() % 3000 : UINT64_MAX, 10 + next() % 1500);
        push_stf(&s, tl_stf_flow_bytes(flow));
        end(&s);
        tl_stf_flow_free(flow);
        made_free(&m);
    }
    assert_true(s.n > 0 && s.any_taken);
    tl_image_free(image);
}

static int to_flow(void *context, const struct tl_item *items, size_t n)
{
    struct tl_stf_flow_at at = {0};
    return tl_stf_flow_items(context, items, n, UINT64_MAX, &at);
}

static int no_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

/* The same for a simulated core's trace, where every branch has a target. */
static void stf_of_a_core(void **state)
{
    const struct tl_sim_program_options options = {.seed = next(), .extra = next() % 90};
    const struct tl_sim_etm4_options etm = tl_sim_etm4_unlike(0, 2);
    const struct tl_sim_core_options core_options = {
        .seed = next(), .irq_every = 3000, .fault_every = 5000, .event_every = 700, .etm = etm};
    const struct tl_stf_flow_options flow_options = {.isa = TL_ISA_NONE};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_source source = {0};
    struct tl_stream_decoder *decoder;
    struct tl_stf_flow *flow;
    struct tl_image *image;
    struct tl_buf bytes = {0}, elf = {0};
    struct tl_fail fail = {0};
    assert_int_equal(tl_sim_program_init(&program, &options), TL_OK);
    assert_int_equal(tl_sim_core_new(&core, &program, &core_options, &bytes, NULL, NULL), TL_OK);
    assert_int_equal(tl_sim_core_step(core, 100000), TL_OK);
    assert_int_equal(tl_sim_core_flush(core), TL_OK);
    assert_int_equal(tl_sim_program_elf(&program, &elf), TL_OK);
    assert_int_equal(tl_sim_etm4_source(&etm, &source), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_elf(image, bytes_of(&elf), 0, TL_SPACE_ANY, "program", &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_stf_flow_new(&flow, &flow_options, NULL), TL_OK);
    const struct tl_stream_sink sink = {.context = flow, .items = to_flow, .loss = no_loss};
    const struct tl_run run = {bytes.p, bytes.n, 0, NULL};
    assert_int_equal(tl_etm4_ops.create(&decoder, &source, image, &sink, NULL), TL_OK);
    assert_int_equal(decoder->ops->push(decoder, &run), TL_OK);
    assert_int_equal(decoder->ops->finish(decoder, TL_LOSS_CUT_OFF), TL_OK);
    decoder->ops->destroy(decoder);
    assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
    struct shards s = {.image = image, .protocol = TL_PROTO_STF, .exact = true};
    begin(&s, 5000 + next() % 20000, 1000 + next() % 9000);
    push_stf(&s, tl_stf_flow_bytes(flow));
    end(&s);
    assert_true(s.n > 1 && s.any_taken && s.any_call);
    tl_stf_flow_free(flow);
    tl_image_free(image);
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
    tl_buf_fini(&bytes);
    tl_buf_fini(&elf);
}

/* ---- items --------------------------------------------------------------------------------- */

static void items_of_all_protocols(void **state)
{
    static const enum tl_protocol protocols[] = {
        TL_PROTO_STF,     TL_PROTO_OSD_CTM,  TL_PROTO_ITM,       TL_PROTO_STM,
        TL_PROTO_OSD_STM, TL_PROTO_OSD_UART, TL_PROTO_OSD_OTHER, TL_PROTO_STF_TRANSACTIONS};
    struct tl_image *const image = make_image(0x400000);
    for (unsigned round = 0; round < 64; round++) {
        struct made m;
        struct shards s = {.image = image, .protocol = protocols[round % 8]};
        made_stream(&m, (uint64_t)next() << 32 | next(), 500 + next() % 2500, 2 + next() % 9);
        begin(&s, round % 3 ? 100 + next() % 3000 : UINT64_MAX, 10 + next() % 1500);
        for (size_t at = 0; at < m.n;) {
            const size_t left = m.n - at, n = 1 + next() % 200;
            assert_int_equal(tl_build_items(s.build, m.items + at, n < left ? n : left), TL_OK);
            at += n < left ? n : left;
        }
        end(&s);
        assert_true(s.n > 0);
        made_free(&m);
    }
    tl_image_free(image);
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stf_of_others),
        cmocka_unit_test(stf_of_ours),
        cmocka_unit_test(stf_of_a_core),
        cmocka_unit_test(items_of_all_protocols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
