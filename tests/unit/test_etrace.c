/* SPDX-License-Identifier: MIT */
/*
 * E-Trace of random programs, by an encoder with every combination of options, is decoded to
 * exactly what was executed, for any chunking and from saved states; damaged, it is decoded to the
 * end.
 */
#include "sim/etrace_encoder.h"
#include "unit/hand_on.h"

#include <stdlib.h>

enum { ROUNDS = 200, EVENTS = 6000 };

struct world {
    struct tl_sim_riscv_options program;
    struct tl_sim_etrace_options encoder;
    struct tl_sim_riscv_run run;
    struct tl_sim_etrace trace;
    struct tl_setup setup;
    struct tl_image *image;
};

/* ---- worlds ----------------------------------------------------------------------------- */

static uint8_t one_of(struct tl_sim_rng *rng, unsigned percent, uint8_t min, uint8_t most)
{
    return tl_sim_percent(rng, percent) ? (uint8_t)tl_sim_between(rng, min, most) : 0;
}

static void choose_options(struct world *w, struct tl_sim_rng *rng)
{
    struct tl_etrace_params *const p = &w->encoder.params;
    const bool wide = w->program.xlen == 64;
    p->isa = wide ? TL_ISA_RV64 : TL_ISA_RV32;
    p->iaddress_width = wide ? (uint8_t)tl_sim_between(rng, 40, 64) : 32;
    p->iaddress_lsb = w->program.compressed ? 1 : (uint8_t)tl_sim_between(rng, 1, 2);
    p->privilege_width = (uint8_t)tl_sim_between(rng, 2, 3);
    p->ecause_width = (uint8_t)tl_sim_between(rng, 4, 6);
    p->context_width = one_of(rng, 40, 10, 20);
    p->time_width = one_of(rng, 20, 20, 40);
    p->bpred_size = one_of(rng, 50, 1, 8);
    p->cache_size = one_of(rng, 50, 1, 7);
    p->f0s_width = p->bpred_size && p->cache_size ? (uint8_t)tl_sim_between(rng, 1, 2) : 0;
    p->encoder_mode_width = (uint8_t)tl_sim_between(rng, 1, 3);
    p->ioptions_width = 5;
    const unsigned returns = tl_sim_below(rng, 3);
    p->return_stack_size = returns == 1 ? (uint8_t)tl_sim_between(rng, 1, 5) : 0;
    p->call_counter_size = returns == 2 ? (uint8_t)tl_sim_between(rng, 1, 5) : 0;
    p->irdepth_width =
        (uint8_t)(p->return_stack_size + (p->return_stack_size > 0) + p->call_counter_size);
    p->sijump = tl_sim_below(rng, 2);
    w->encoder.options = (returns ? TL_ETRACE_IMPLICIT_RETURN : 0) |
                         (p->bpred_size ? TL_ETRACE_PREDICTION : 0) |
                         (p->cache_size ? TL_ETRACE_TARGET_CACHE : 0) |
                         (tl_sim_below(rng, 4) ? 0 : TL_ETRACE_FULL_ADDRESS) |
                         (p->sijump ? TL_ETRACE_SEQUENTIAL : 0);
    w->program.one_handler = tl_sim_below(rng, 4) == 0;
    if (w->program.one_handler)
        w->encoder.options |= TL_ETRACE_IMPLICIT_EXCEPTION;
    w->program.true_returns = returns == 2;
}

static void choose_envelope(struct world *w, struct tl_sim_rng *rng)
{
    struct tl_etrace_envelope *const v = &w->encoder.envelope;
    v->wrapping = tl_sim_below(rng, 3) ? TL_ETRACE_ENCAP : TL_ETRACE_SMI;
    v->src_bits = one_of(rng, 50, 1, 12);
    if (v->wrapping == TL_ETRACE_ENCAP) {
        v->ts_bytes = one_of(rng, 50, 1, 4);
        v->type_bits = (uint8_t)tl_sim_below(rng, 3);
    }
    w->encoder.src = v->src_bits ? 1 : 0;
}

/* ESP32: the packets of version 1.x, which know no options. */
static void choose_old(struct world *w)
{
    struct tl_etrace_params *const p = &w->encoder.params;
    w->program.xlen = 32;
    w->program.base = 0x42000000;
    w->program.trap_per_mille = w->program.context_per_mille = 0;
    w->program.true_returns = w->program.one_handler = false;
    *p = (struct tl_etrace_params){.unit = TL_ETRACE_ESP32,
                                   .isa = TL_ISA_RV32,
                                   .iaddress_width = 32,
                                   .iaddress_lsb = 1,
                                   .privilege_width = 1,
                                   .ecause_width = 5};
    w->program.compressed = true;
    w->encoder.options = 0;
    w->encoder.precise = false;
    w->encoder.envelope = (struct tl_etrace_envelope){.wrapping = TL_ETRACE_INDEXED};
    w->encoder.src = 0;
}

static void set_up(struct world *w)
{
    const struct tl_etrace_params *const p = &w->encoder.params;
    const struct tl_etrace_envelope *const v = &w->encoder.envelope;
    const bool old = p->unit == TL_ETRACE_ESP32;
    struct tl_buf ini = {0};
    struct tl_fail fail = {0};
    assert_int_equal(tl_buf_printf(&ini, "[trace]\nformat=%s",
                                   old                              ? "etrace-esp32"
                                   : v->wrapping == TL_ETRACE_ENCAP ? "etrace-encap"
                                                                    : "etrace-smi"),
                     TL_OK);
    if (v->src_bits)
        assert_int_equal(tl_buf_printf(&ini, ",src_bits=%u", v->src_bits), TL_OK);
    if (v->ts_bytes)
        assert_int_equal(tl_buf_printf(&ini, ",ts_bytes=%u", v->ts_bytes), TL_OK);
    if (v->type_bits)
        assert_int_equal(tl_buf_printf(&ini, ",type_bits=%u", v->type_bits), TL_OK);
    assert_int_equal(
        tl_buf_printf(&ini,
                      "\n[source et.%x]\nprotocol=e-trace\ncore=rv%u\nunit=%s\n"
                      "iaddress_width_p=%u\niaddress_lsb_p=%u\nprivilege_width_p=%u\n"
                      "ecause_width_p=%u\nreturn_stack_size_p=%u\ncall_counter_size_p=%u\n"
                      "bpred_size_p=%u\ncache_size_p=%u\nf0s_width_p=%u\nsijump_p=%u\n"
                      "encoder_mode_width_p=%u\n",
                      w->encoder.src, w->program.xlen, old ? "esp32" : "reference",
                      p->iaddress_width, p->iaddress_lsb, p->privilege_width, p->ecause_width,
                      p->return_stack_size, p->call_counter_size, p->bpred_size, p->cache_size,
                      p->f0s_width, p->sijump, p->encoder_mode_width),
        TL_OK);
    if (p->context_width)
        assert_int_equal(tl_buf_printf(&ini, "context_width_p=%u\n", p->context_width), TL_OK);
    if (w->program.one_handler)
        assert_int_equal(tl_buf_printf(&ini, "mtvec=0x%llx\n", (unsigned long long)w->program.base),
                         TL_OK);
    if (p->time_width)
        assert_int_equal(tl_buf_printf(&ini, "time_width_p=%u\n", p->time_width), TL_OK);
    tl_setup_init(&w->setup);
    if (tl_setup_parse(&w->setup, (const char *)ini.p, ini.n, &fail) < 0)
        fail_msg("%s", fail.text);
    tl_buf_fini(&ini);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, w->program.base,
                                        (struct tl_bytes){w->run.code.p, w->run.code.n},
                                        TL_SPACE_ANY, NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
}

static void world_init(struct world *w, unsigned round)
{
    struct tl_sim_rng rng = {1000 + round};
    *w = (struct world){.encoder.seed = round};
    w->program = (struct tl_sim_riscv_options){
        .seed = round,
        .xlen = tl_sim_below(&rng, 3) ? 64 : 32,
        .compressed = tl_sim_below(&rng, 4) > 0,
        .events = EVENTS,
        .trap_per_mille = tl_sim_below(&rng, 2) ? tl_sim_below(&rng, 30) : 0,
    };
    w->program.base =
        w->program.xlen == 64 && tl_sim_below(&rng, 2) ? 0xffffffc080000000 : 0x80000000;
    choose_options(w, &rng);
    if (w->encoder.params.context_width)
        w->program.context_per_mille = tl_sim_below(&rng, 20);
    choose_envelope(w, &rng);
    w->encoder.resync = tl_sim_below(&rng, 2) ? 20 + tl_sim_below(&rng, 400) : 0;
    w->encoder.notify = tl_sim_below(&rng, 3) ? 0 : 20 + tl_sim_below(&rng, 400);
    w->encoder.precise = tl_sim_below(&rng, 2);
    w->encoder.off_each = tl_sim_below(&rng, 2) ? 0 : 200 + tl_sim_below(&rng, 900);
    if (round % 10 == 9)
        choose_old(w);
    assert_int_equal(tl_sim_riscv_run(&w->run, &w->program), TL_OK);
    assert_int_equal(tl_sim_etrace_encode(&w->trace, &w->run, &w->encoder), TL_OK);
    set_up(w);
}

static void world_fini(struct world *w)
{
    tl_image_free(w->image);
    tl_setup_fini(&w->setup);
    tl_sim_etrace_fini(&w->trace);
    tl_sim_riscv_run_fini(&w->run);
}

/* ---- what was executed ------------------------------------------------------------------ */

static void expected_text(const struct world *w, struct tl_buf *out)
{
    for (uint32_t i = 0; i < w->run.n_events; i++) {
        const struct tl_sim_riscv_event *const e = &w->run.events[i];
        const struct tl_sim_riscv_insn *const insn = &w->run.insns[e->at];
        const unsigned long long pc = insn->pc;
        int rc = TL_OK;
        if (!w->trace.traced[i])
            continue;
        if (e->trap && w->trace.known[i])
            rc = tl_buf_printf(out, "X %s %u %016llx\n", e->interrupt ? "interrupt" : "exception",
                               e->cause, pc);
        else if (e->trap)
            rc = tl_buf_printf(out, "X %s %u -\n", e->interrupt ? "interrupt" : "exception",
                               e->cause);
        else
            rc = tl_buf_printf(out, "I %016llx %0*x\n%s", pc, 2 * insn->size,
                               insn->size == 2 ? insn->encoding & 0xffff : insn->encoding,
                               insn->kind == TL_SIM_RV_MRET ? "R\n" : "");
        assert_int_equal(rc, TL_OK);
    }
}

struct seen {
    struct tl_buf text;
    uint64_t faults;
};

static int see(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
               size_t n)
{
    (void)stream;
    struct seen *const s = context;
    for (size_t i = 0; i < n; i++) {
        const uint8_t kind = items[i].kind;
        const bool gap = kind == TL_ITEM_GAP && items[i].sub != TL_GAP_OFF;
        if (kind == TL_ITEM_BLOCK || kind == TL_ITEM_PATH || kind == TL_ITEM_EXCEPTION ||
            kind == TL_ITEM_ERET || gap)
            assert_int_equal(tl_item_text(&s->text, &items[i], 1), TL_OK);
    }
    return TL_OK;
}

static int see_loss(void *context, const struct tl_decode_loss *loss)
{
    struct seen *const s = context;
    s->faults += loss->fault;
    return TL_OK;
}

static void decode(const struct world *w, const struct tl_buf *bytes, bool paths, size_t chunk,
                   struct seen *seen)
{
    const struct tl_decode_sink sink = {.context = seen, .items = see, .loss = see_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    assert_int_equal(tl_decode_new(&d, &w->setup, w->image, &sink, &fail), TL_OK);
    if (paths)
        tl_decode_paths(d);
    for (size_t i = 0; i < bytes->n; i += chunk)
        assert_int_equal(
            tl_decode_push(d, bytes->p + i, bytes->n - i < chunk ? bytes->n - i : chunk), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

/* Fail with the first line that differs. */
static void compare_text(const struct world *w, unsigned round, const struct tl_buf *expected,
                         const struct tl_buf *seen)
{
    size_t at = 0, line = 0, start = 0;
    while (at < expected->n && at < seen->n && expected->p[at] == seen->p[at])
        if (expected->p[at++] == '\n') {
            line++;
            start = at;
        }
    if (at == expected->n && at == seen->n)
        return;
    const struct tl_etrace_params *const p = &w->encoder.params;
    fail_msg("round %u, line %zu: expected %.40s, got %.40s (options 0x%x, stack %u, counter %u, "
             "unit %u, resync %u, notify %u, off %u)",
             round, line, start < expected->n ? (const char *)expected->p + start : "(end)",
             start < seen->n ? (const char *)seen->p + start : "(end)", w->encoder.options,
             p->return_stack_size, p->call_counter_size, p->unit, w->encoder.resync,
             w->encoder.notify, w->encoder.off_each);
}

static void every_option(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct world w;
        struct tl_buf expected = {0};
        struct seen seen = {.faults = 0}, parts = {.faults = 0};
        world_init(&w, round);
        expected_text(&w, &expected);
        decode(&w, &w.trace.bytes, round % 2, w.trace.bytes.n, &seen);
        compare_text(&w, round, &expected, &seen.text);
        assert_int_equal(seen.faults, 0);
        decode(&w, &w.trace.bytes, round % 2, 1 + round % 40, &parts);
        compare_text(&w, round, &expected, &parts.text);
        tl_buf_fini(&expected);
        tl_buf_fini(&seen.text);
        tl_buf_fini(&parts.text);
        world_fini(&w);
    }
}

static void saved_states(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {5};
    for (unsigned round = 0; round < 30; round++) {
        struct world w;
        world_init(&w, round);
        struct run run = {.setup = &w.setup,
                          .image = round % 8 == 7 ? NULL : w.image,
                          .in = {w.trace.bytes.p, w.trace.bytes.n},
                          .paths = round % 2};
        assert_true(compare(&run, 200, &rng) > 0);
        world_fini(&w);
    }
}

static bool ends_alike(const struct tl_buf *a, const struct tl_buf *b)
{
    enum { TAIL = 2000 };
    return a->n >= TAIL && b->n >= TAIL && !memcmp(a->p + a->n - TAIL, b->p + b->n - TAIL, TAIL);
}

/* Bytes change or are missing in the first half: if synchronisation packets follow, the end is
 * decoded as if nothing had happened, except where the damage looks like a change of options. */
static void damage(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {6};
    unsigned checked = 0, differ = 0;
    for (unsigned round = 0; round < 100; round++) {
        struct world w;
        struct seen whole = {.faults = 0}, parts = {.faults = 0};
        world_init(&w, round);
        struct tl_buf *const b = &w.trace.bytes;
        for (unsigned i = 0; i < 1 + round % 5; i++) {
            const size_t at = 64 + tl_sim_below(&rng, (uint32_t)b->n / 2);
            const size_t n = 1 + tl_sim_below(&rng, 12);
            if (tl_sim_below(&rng, 2)) {
                b->p[at] ^= (uint8_t)(1u << tl_sim_below(&rng, 8));
            } else {
                memmove(b->p + at, b->p + at + n, b->n - at - n);
                b->n -= n;
            }
        }
        decode(&w, b, round % 2, b->n, &whole);
        decode(&w, b, round % 2, 1 + round % 40, &parts);
        compare_text(&w, round, &whole.text, &parts.text);
        assert_int_equal(whole.faults, parts.faults);
        struct tl_buf expected = {0};
        expected_text(&w, &expected);
        checked += w.encoder.resync && !w.encoder.off_each;
        differ += w.encoder.resync && !w.encoder.off_each && !ends_alike(&expected, &whole.text);
        tl_buf_fini(&expected);
        tl_buf_fini(&whole.text);
        tl_buf_fini(&parts.text);
        world_fini(&w);
    }
    assert_true(checked > 20 && differ <= 2);
}

/* ---- single packets --------------------------------------------------------------------- */

static void reads_as(const struct tl_etrace_params *p, unsigned options, const char *bytes,
                     size_t n, const char *expected)
{
    struct tl_etrace_packet k;
    char text[320];
    assert_int_equal(tl_etrace_parse(&k, p, options, (struct tl_bytes){(const uint8_t *)bytes, n}),
                     TL_OK);
    assert_string_equal(tl_etrace_packet_text(&k, p, text, sizeof text), expected);
}

/* Shortened payloads: what is missing repeats the last bit. */
static void payloads(void **state)
{
    (void)state;
    struct tl_etrace_params p;
    struct tl_fail fail;
    const struct tl_source source = {
        .core = "rv32", .n_regs = 1, .regs = {{.name = "cache_size_p", .value = 4}}};
    assert_int_equal(tl_etrace_params(&p, &source, &fail), TL_OK);
    /* one byte: difference -2, and the bits behind repeat its sign */
    reads_as(&p, 0, "\xfe", 1, "FORMAT2_ADDRESS address=0xfffffffe notify=0 updiscon=0 irreport=0");
    reads_as(&p, 0, "\x01", 1, "FORMAT1_BRANCH branches=0 branch_map=0x0");
    reads_as(&p, 0, "\x15\x03", 2,
             "FORMAT1_BRANCH branches=5 branch_map=0x6 address=0x0 notify=0 updiscon=0 irreport=0");
    /* full addresses; notify differs from the top bit of the address */
    reads_as(&p, TL_ETRACE_FULL_ADDRESS, "\x0a\x00\x00\x00\x02", 5,
             "FORMAT2_ADDRESS address=0x4 notify=1 updiscon=1 irreport=0");
    reads_as(&p, 0, "\x0c\x00", 2, "FORMAT0_CACHE_INDEX index=3 branches=0 irreport=0");
    reads_as(&p, 0, "\x73\x00\x00\x00\x20", 5,
             "FORMAT3_SYNC branch=1 privilege=3 address=0x80000000");
    /* handler addresses may be implicit */
    reads_as(&p, TL_ETRACE_IMPLICIT_EXCEPTION, "\x77\x91\x02", 3,
             "FORMAT3_TRAP branch=1 privilege=3 ecause=2 interrupt=0 thaddr=1 tval=0x14");
}

static int read_frame(struct tl_etrace_frame *f, const struct tl_etrace_envelope *e,
                      const char *bytes, size_t n)
{
    return tl_etrace_frame_read(f, e, (struct tl_bytes){(const uint8_t *)bytes, n});
}

static void envelopes(void **state)
{
    (void)state;
    struct tl_etrace_frame f;
    /* 10 bits of source, of which the odd 2 count; 2 of type; one byte of time */
    const struct tl_etrace_envelope encap = {.src_bits = 10, .ts_bytes = 1, .type_bits = 2};
    assert_int_equal(read_frame(&f, &encap, "\x82\x01\xaa\x8a\x0f", 5), 5);
    assert_int_equal(f.src, 0x201);
    assert_int_equal(f.time, 0xaa >> 2 | (0x8a & 3) << 6);
    assert_false(f.is_data);
    assert_int_equal(f.payload.n, 1);
    assert_int_equal(f.payload.p[0], 0xf8);
    assert_int_equal(read_frame(&f, &encap, "\x82\x01\xaa\x8a", 4), TL_AGAIN);
    assert_int_equal(read_frame(&f, &encap, "\x80", 1), 1); /* null, with flow and extend */
    assert_int_equal(f.payload.n, 0);
    const struct tl_etrace_envelope smi = {.wrapping = TL_ETRACE_SMI, .src_bits = 3};
    assert_int_equal(read_frame(&f, &smi, "\xc1\x34\x12\x05\x7f", 5), 5);
    assert_int_equal(f.src, 5);
    assert_int_equal(f.time, 0x1234);
    assert_int_equal(f.payload.p[0], 0x7f);
    const struct tl_etrace_envelope indexed = {.wrapping = TL_ETRACE_INDEXED};
    assert_int_equal(read_frame(&f, &indexed, "\x05\x10\x20\xab\xcd", 5), 5);
    assert_int_equal(f.index, 0x2010);
    assert_int_equal(f.payload.n, 2);
    assert_int_equal(read_frame(&f, &indexed, "\x25", 1), 1);
    assert_true(f.is_bad);
    const struct tl_etrace_envelope records = {.wrapping = TL_ETRACE_RECORDS};
    char record[40] = {0};
    record[39] = 2;    /* header */
    record[38] = 0x44; /* low byte of the time */
    record[30] = 0x73;
    record[29] = 0x11;
    assert_int_equal(read_frame(&f, &records, record, sizeof record), 40);
    assert_int_equal(f.time, 0x44);
    assert_int_equal(f.payload.n, 2);
    assert_int_equal(f.payload.p[0], 0x73);
    assert_int_equal(f.payload.p[1], 0x11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads),     cmocka_unit_test(envelopes), cmocka_unit_test(every_option),
        cmocka_unit_test(saved_states), cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
