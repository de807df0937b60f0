/* SPDX-License-Identifier: MIT */
/*
 * E-Trace of random programs, by an encoder with every combination of options, is decoded to
 * exactly what was executed, for any chunking; damaged, it is decoded to the end.
 */
#include "decode/decode.h"
#include "sim/tpiu_encoder.h"
#include "steps.h"
#include "unit/etrace_world.h"
#include "unit/nexus_bytes.h"

#include <stdlib.h>

enum { ROUNDS = 200, EVENTS = 6000 };

/* ---- what was executed ------------------------------------------------------------------ */

static void expected_text(const struct etrace_world *w, struct tl_buf *out)
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
    struct steps steps;
};

static int see(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
               size_t n)
{
    (void)stream;
    struct seen *const s = context;
    steps_demand(&s->steps, items, n);
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

static void decode(const struct etrace_world *w, const struct tl_buf *bytes, bool paths,
                   size_t chunk, struct seen *seen)
{
    const struct tl_decode_sink sink = {.context = seen, .items = see, .loss = see_loss};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    assert_int_equal(tl_decode_new(&d, &w->setup, w->image, &sink, &fail), TL_OK);
    if (paths)
        tl_decode_allow_paths(d);
    for (size_t i = 0; i < bytes->n; i += chunk)
        assert_int_equal(
            tl_decode_push(d, bytes->p + i, bytes->n - i < chunk ? bytes->n - i : chunk), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

/* Fail with the first line that differs. */
static void compare_text(const struct etrace_world *w, unsigned round,
                         const struct tl_buf *expected, const struct tl_buf *seen)
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
        struct etrace_world w;
        struct tl_buf expected = {0};
        struct seen seen = {.faults = 0}, parts = {.faults = 0};
        etrace_world_init(&w, round, EVENTS);
        expected_text(&w, &expected);
        decode(&w, &w.trace.bytes, round % 2, w.trace.bytes.n, &seen);
        compare_text(&w, round, &expected, &seen.text);
        assert_int_equal(seen.faults, 0);
        decode(&w, &w.trace.bytes, round % 2, 1 + round % 40, &parts);
        compare_text(&w, round, &expected, &parts.text);
        tl_buf_fini(&expected);
        tl_buf_fini(&seen.text);
        tl_buf_fini(&parts.text);
        etrace_world_fini(&w);
    }
}

/* Places met more than once without a branch in between: in passing, behind inferred returns, and
 * again by a return that was predicted wrong, whose packet counts the returns from the one in front
 * of it on; behind returns that an encoder which only counts calls cannot report as wrong; and once
 * more at the end of the trace. */
static void met_twice(void **state)
{
    enum { MANY = 20000 };
    static const unsigned rounds[] = {155, 3797, 9816};
    (void)state;
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        struct etrace_world w;
        struct tl_buf expected = {0};
        struct seen seen = {.faults = 0};
        etrace_world_init(&w, rounds[i], MANY);
        expected_text(&w, &expected);
        decode(&w, &w.trace.bytes, false, w.trace.bytes.n, &seen);
        compare_text(&w, rounds[i], &expected, &seen.text);
        assert_int_equal(seen.faults, 0);
        tl_buf_fini(&expected);
        tl_buf_fini(&seen.text);
        etrace_world_fini(&w);
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
        struct etrace_world w;
        struct seen whole = {.faults = 0}, parts = {.faults = 0};
        etrace_world_init(&w, round, EVENTS);
        struct tl_buf *const b = &w.trace.bytes;
        for (unsigned i = 0; i < 1 + round % 5; i++) {
            /* Records have no mark by which their begin could be found again: whole ones are lost.
             */
            const bool records = w.encoder.envelope.wrapping == TL_ETRACE_RECORDS;
            const size_t any = 64 + tl_sim_below(&rng, (uint32_t)b->n / 2);
            const size_t at = records ? any / 40 * 40 : any;
            const size_t n = records ? 40 : 1 + tl_sim_below(&rng, 12);
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
        etrace_world_fini(&w);
    }
    assert_true(checked > 20 && differ <= 2);
}

static unsigned count_lines(const struct tl_buf *text)
{
    unsigned n = 0;
    for (size_t i = 0; i < text->n; i++)
        n += text->p[i] == '\n';
    return n;
}

/* Support packets that the encoder did not send are not believed: each costs at most what is up to
 * the next synchronisation packets, and is reported where it matters. */
static void bogus_support(void **state)
{
    (void)state;
    unsigned rounds = 0, lost = 0, bogus = 0, faults = 0;
    for (unsigned round = 0; round < 150; round++) {
        struct etrace_world w;
        struct seen seen = {.faults = 0};
        struct tl_buf expected = {0};
        etrace_world_init_bogus(&w, round, EVENTS, 300);
        expected_text(&w, &expected);
        if (w.encoder.params.unit == TL_ETRACE_REFERENCE && w.encoder.resync &&
            !(w.encoder.off_each)) {
            decode(&w, &w.trace.bytes, round % 2, w.trace.bytes.n, &seen);
            const unsigned want = count_lines(&expected), got = count_lines(&seen.text);
            const unsigned most = w.trace.n_bogus * (2 * w.encoder.resync + 200);
            if (got + most < want || got > want + most)
                fail_msg("round %u: %u of %u lines", round, got, want);
            rounds++;
            lost += want > got ? want - got : 0;
            bogus += w.trace.n_bogus;
            faults += (unsigned)seen.faults;
        }
        tl_buf_fini(&expected);
        tl_buf_fini(&seen.text);
        etrace_world_fini(&w);
    }
    print_message("%u support packets in %u traces: %u instructions lost, %u faults\n", bogus,
                  rounds, lost, faults);
    assert_true(rounds > 15 && bogus > 30 && faults > bogus / 2);
    assert_true(lost < 200 * bogus);
}

/* Where another program is mapped, packets up to the next synchronisation packet are a fault. */
static void another_program(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        struct etrace_world w, other;
        struct seen seen = {.faults = 0};
        etrace_world_init(&w, round, EVENTS);
        etrace_world_init(&other, round + 100, 100);
        tl_image_free(w.image);
        assert_int_equal(tl_image_new(&w.image), TL_OK);
        assert_int_equal(tl_image_add_bytes(w.image, w.program.base,
                                            (struct tl_bytes){other.run.code.p, other.run.code.n},
                                            TL_SPACE_ANY, NULL, NULL),
                         TL_OK);
        assert_int_equal(tl_image_freeze(w.image), TL_OK);
        decode(&w, &w.trace.bytes, false, w.trace.bytes.n, &seen);
        assert_true(seen.faults > 0);
        tl_buf_fini(&seen.text);
        etrace_world_fini(&other);
        etrace_world_fini(&w);
    }
}

static int add_up(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                  size_t n)
{
    (void)stream;
    for (size_t i = 0; i < n; i++)
        *(uint64_t *)context += items[i].kind == TL_ITEM_BLOCK ? items[i].n : 0;
    return TL_OK;
}

/* A number of branches has 32 bits. */
static void large_count(void **state)
{
    (void)state;
    /* nop; bnez a0, to the nop; nop; nop */
    static const uint8_t program[] = {0x01, 0x00, 0x7d, 0xfd, 0x01, 0x00, 0x01, 0x00};
    /* a map of 31, 2^24 + 32 predicted right, then the last nop */
    static const uint8_t trace[] = {0x02, 0x1f, 0x10, 0x05, 0x73, 0x00, 0x00,
                                    0x00, 0x20, 0x01, 0x01, 0x04, 0x80, 0x00,
                                    0x00, 0x04, 0x01, 0x0e, 0x02, 0x4f, 0x10};
    static const char ini[] =
        "[trace]\nformat=etrace-encap\n[source et.0]\ncore=rv64\niaddress_width_p=64\n"
        "ecause_width_p=5\nbpred_size_p=4\n";
    uint64_t insns = 0;
    const struct tl_decode_sink sink = {.context = &insns, .items = add_up};
    struct etrace_world w;
    struct tl_decode *d;
    struct tl_fail fail = {0};
    tl_setup_init(&w.setup);
    assert_int_equal(tl_setup_parse(&w.setup, ini, sizeof ini - 1, &fail), TL_OK);
    assert_int_equal(tl_image_new(&w.image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w.image, 0x80000000,
                                        (struct tl_bytes){program, sizeof program}, TL_SPACE_ANY,
                                        NULL, &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w.image), TL_OK);
    assert_int_equal(tl_decode_new(&d, &w.setup, w.image, &sink, &fail), TL_OK);
    assert_int_equal(tl_decode_push(d, trace, sizeof trace), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    assert_int_equal(insns, 33554624);
    tl_decode_free(d);
    tl_image_free(w.image);
    tl_setup_fini(&w.setup);
}

/* In CoreSight frames, among bytes of another source: the trace ID is the source, and envelopes
 * have their own widths. Offsets are those of the capture. */
static void in_frames(void **state)
{
    (void)state;
    /* nop; jr a0; nop; nop */
    static const uint8_t program[] = {0x01, 0x00, 0x02, 0x85, 0x01, 0x00, 0x01, 0x00};
    /* start with a timestamp, the jump to the nop behind it, null packets, the end */
    static const uint8_t packets[] = {0x85, 0x2a, 0x73, 0x00, 0x00, 0x00, 0x20,
                                      0x01, 0x0a, 0x00, 0x80, 0x01, 0x4f};
    static const uint8_t idle[] = {0xff, 0xff};
    struct tl_tpiu_encoder e;
    struct trace t = {0};
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 3);
    for (size_t i = 0; i < sizeof packets; i++) {
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x10, packets + i, 1), TL_OK);
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x20, idle, i % 3), TL_OK);
    }
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    memcpy(t.p, e.out.p, e.out.n);
    t.n = e.out.n;
    check_with("[trace]\nformat=tpiu\n[source cs.10]\nprotocol=e-trace\ncore=rv64\n"
               "iaddress_width_p=64\necause_width_p=5\nts_bytes=1\n"
               "[source cs.20]\nprotocol=n-trace\n",
               (struct tl_bytes){program, sizeof program}, 0x80000000, false, &t,
               "M m.rv64\nI 0000000080000000 0001\nT 42\nI 0000000080000002 8502\n"
               "I 0000000080000004 0001\nG off\n",
               "");
    tl_buf_fini(&e.out);
}

/* Data trace is listed, also between a support packet and what follows it, and changes no flow. */
static void data_packets(void **state)
{
    (void)state;
    static const uint8_t program[] = {0x01, 0x00, 0x02, 0x85, 0x01, 0x00, 0x01, 0x00};
    /* support with denable, data, start, data, the jump to the nop behind it, data, the end */
    static const uint8_t packets[] = {0x03, 0x3e, 0x40, 0x00, 0x03, 0x4b, 0x4a, 0xff, 0x06, 0xe6,
                                      0x00, 0x00, 0x00, 0x40, 0x00, 0x02, 0xff, 0x00, 0x02, 0x14,
                                      0x00, 0x02, 0x03, 0xff, 0x03, 0x9e, 0x40, 0x00};
    struct trace t = {.n = sizeof packets};
    static const char ini[] = "[trace]\nformat=etrace-encap,type_bits=1\n[source et.0]\n"
                              "core=rv64\niaddress_width_p=64\necause_width_p=5\n";
    memcpy(t.p, packets, sizeof packets);
    check_with(ini, (struct tl_bytes){program, sizeof program}, 0x80000000, true, &t,
               "0 0 FORMAT3_SUPPORT ienable=1 encoder_mode=0 qual_status=0 ioptions=0x0 denable=1 "
               "dloss=0 doptions=0x0\n"
               "4 0 DATA payload=25a5\n"
               "8 0 FORMAT3_SYNC branch=1 privilege=3 address=0x80000000\n"
               "15 0 DATA payload=7f\n"
               "18 0 FORMAT2_ADDRESS address=0x4 notify=0 updiscon=0 irreport=0\n"
               "21 0 DATA payload=81\n"
               "24 0 FORMAT3_SUPPORT ienable=0 encoder_mode=0 qual_status=1 ioptions=0x0 denable=1 "
               "dloss=0 doptions=0x0\n",
               "");
    check_with(ini, (struct tl_bytes){program, sizeof program}, 0x80000000, false, &t,
               "M m.rv64\nI 0000000080000000 0001\nI 0000000080000002 8502\n"
               "I 0000000080000004 0001\nG off\n",
               "");
}

/* A jump through a table that is missing leads anywhere: it is told once what is to be given. */
static void no_table(void **state)
{
    (void)state;
    static const uint8_t program[] = {0x01, 0x00, 0x0e, 0xa0, 0x01, 0x00, 0x0e, 0xa0};
    /* support, start, an address, the end */
    static const uint8_t packets[] = {0x03, 0x3e, 0x00, 0x00, 0x06, 0xe6, 0x00, 0x00, 0x00,
                                      0x40, 0x00, 0x02, 0x14, 0x00, 0x03, 0x9e, 0x00, 0x00};
    struct trace t = {.n = sizeof packets};
    memcpy(t.p, packets, sizeof packets);
    check_with("[trace]\nformat=etrace-encap,type_bits=1\n[source et.0]\n"
               "core=rv64_zcmt\niaddress_width_p=64\necause_width_p=5\n",
               (struct tl_bytes){program, sizeof program}, 0x80000000, false, &t,
               "M m.rv64\nI 0000000080000000 0001\nI 0000000080000002 a00e\nG no-path\n"
               "G off\n",
               "11+0 CM.JT without its jump table: add jvt=ADDRESS to the source, and the table to "
               "the image\n");
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
    /* all 32 bits of a count */
    p.cache_size = 0;
    p.bpred_size = 4;
    reads_as(&p, 0, "\xfc\xff\xff\xff\x0b", 5,
             "FORMAT0_COUNT branch_count=4294967295 branch_fmt=2 address=0x0 notify=0 updiscon=0 "
             "irreport=0");
    /* handler addresses may be implicit */
    reads_as(&p, TL_ETRACE_IMPLICIT_EXCEPTION, "\x77\x91\x02", 3,
             "FORMAT3_TRAP branch=1 privilege=3 ecause=2 interrupt=0 thaddr=1 tval=0x14");
}

/* The support packet of E-Trace 2.1, and what it changes: its own examples, then all fields. */
static void sized_support(void **state)
{
    (void)state;
    struct tl_etrace_params p;
    struct tl_etrace_packet k;
    struct tl_fail fail;
    const struct tl_source source = {.core = "rv64", .type = "reference-2.1"};
    assert_int_equal(tl_etrace_params(&p, &source, &fail), TL_OK);
    reads_as(
        &p, 0, "\x1f", 1,
        "FORMAT3_SUPPORT ienable=1 encoder_mode=0 qual_status=0 ioptions=0x0 denable=0 dloss=0 "
        "doptions=0x0");
    assert_int_equal(
        tl_etrace_parse(&k, &p, 0, (struct tl_bytes){(const uint8_t *)"\x1f\x04\xc1\x00", 4}),
        TL_OK);
    unsigned options = tl_etrace_options(&p, k.ioptions);
    assert_int_equal(options & 0xfff,
                     TL_ETRACE_IMPLICIT_RETURN | TL_ETRACE_IRETS | TL_ETRACE_SIZED);
    assert_true(tl_etrace_take_sizes(&p, options));
    assert_int_equal(p.return_stack_size, 3);
    assert_int_equal(p.irdepth_width, 8);
    assert_int_equal(p.time_width | p.bpred_size | p.cache_size | p.call_counter_size, 0);
    reads_as(&p, options, "\xfe\xff\xff\xff\x57\x00", 6,
             "FORMAT2_ADDRESS address=0xfffffffe notify=0 updiscon=0 irreport=1 irets=5");
    /* all on: time 2, f0s 1, stack 4, counter 5, predictor 6, cache 7; then denable */
    const uint64_t all = 0x1f | UINT64_C(0xff) << 9 | UINT64_C(2) << 17 | UINT64_C(1) << 20 |
                         UINT64_C(4) << 22 | UINT64_C(5) << 25 | UINT64_C(6) << 29 |
                         UINT64_C(7) << 32 | UINT64_C(1) << 35;
    uint8_t bytes[8];
    tl_put_le64(bytes, all);
    assert_int_equal(tl_etrace_parse(&k, &p, options, (struct tl_bytes){bytes, 6}), TL_OK);
    assert_true(k.denable && !k.dloss);
    options = tl_etrace_options(&p, k.ioptions);
    assert_int_equal(options & 0xfff, 0x1ff);
    assert_true(tl_etrace_take_sizes(&p, options));
    assert_int_equal(p.time_width, 32);
    assert_int_equal(p.f0s_width, 1);
    assert_int_equal(p.return_stack_size, 4);
    assert_int_equal(p.call_counter_size, 5);
    assert_int_equal(p.bpred_size, 6);
    assert_int_equal(p.cache_size, 7);
    /* a field of 112 bits */
    assert_false(tl_etrace_take_sizes(&p, tl_etrace_options(&p, 7 << 8)));
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

/* Short payloads of formats 1 and 2 are read as two words: with the result of reading field by
 * field, as longer ones are, for a payload may have its last bit repeated. */
static void short_payloads(void **state)
{
    (void)state;
    enum { PAYLOADS = 200000, LONG = 32 };
    struct tl_sim_rng rng = {11};
    for (unsigned i = 0; i < PAYLOADS; i++) {
        const struct tl_etrace_params params = {.iaddress_width =
                                                    (uint8_t)(32 + tl_sim_below(&rng, 33)),
                                                .iaddress_lsb = (uint8_t)tl_sim_below(&rng, 3),
                                                .irdepth_width = (uint8_t)tl_sim_below(&rng, 12)};
        const unsigned options = tl_sim_below(&rng, 2) ? TL_ETRACE_FULL_ADDRESS : 0;
        const size_t n = 1 + tl_sim_below(&rng, 16);
        uint8_t bytes[LONG];
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)tl_sim_below(&rng, 256);
        bytes[0] = (uint8_t)((bytes[0] & 0xfc) | (1 + tl_sim_below(&rng, 2)));
        memset(bytes + n, bytes[n - 1] & 0x80 ? 0xff : 0, LONG - n);
        struct tl_etrace_packet one = {0}, other = {0};
        assert_int_equal(tl_etrace_parse(&one, &params, options, (struct tl_bytes){bytes, n}),
                         TL_OK);
        assert_int_equal(tl_etrace_parse(&other, &params, options, (struct tl_bytes){bytes, LONG}),
                         TL_OK);
        assert_memory_equal(&one, &other, sizeof one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads),        cmocka_unit_test(envelopes),
        cmocka_unit_test(every_option),    cmocka_unit_test(met_twice),
        cmocka_unit_test(another_program), cmocka_unit_test(damage),
        cmocka_unit_test(bogus_support),   cmocka_unit_test(sized_support),
        cmocka_unit_test(large_count),     cmocka_unit_test(in_frames),
        cmocka_unit_test(data_packets),    cmocka_unit_test(no_table),
        cmocka_unit_test(short_payloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
