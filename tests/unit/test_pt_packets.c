/* SPDX-License-Identifier: MIT */
/* Intel PT packets: encoded packets are parsed correctly; tapes give the parser's result, packet by
 * packet, at every vector level, for intact and damaged streams; both find PSBs. */
#include "pt/packet_text.h"
#include "pt/tape.h"
#include "sim/pt_encoder.h"
#include "unit/random.h"

#include <inttypes.h>

static const struct tl_pt_config plain;

static void text_of(char out[static TL_PT_TEXT_MAX], const struct tl_pt_packet *packet,
                    uint64_t offset)
{
    struct tl_pt_packet p = *packet;
    p.offset = offset;
    tl_pt_packet_text(out, &p, 0);
}

static void parse_what_was_encoded(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    bool seen[TL_PT_KINDS] = {0};
    for (unsigned i = 0; i < 20000; i++) {
        struct tl_sim_pt pt = {0};
        struct tl_pt_packet in, out = {0};
        char want[TL_PT_TEXT_MAX], got[TL_PT_TEXT_MAX];
        tl_sim_pt_random(&in, &rng);
        tl_sim_pt_packet(&pt, &in);
        const int size = tl_pt_parse(&plain, (struct tl_bytes){pt.out.p, pt.out.n}, &out);
        text_of(want, &in, 0);
        text_of(got, &out, 0);
        assert_string_equal(got, want);
        assert_int_equal(size, (int)pt.out.n);
        assert_int_equal(out.size, size);
        for (size_t n = 0; n < pt.out.n; n++) /* no proper prefix is a complete packet */
            assert_int_equal(tl_pt_parse(&plain, (struct tl_bytes){pt.out.p, n}, &out), TL_AGAIN);
        seen[in.kind] = true;
        tl_sim_pt_fini(&pt);
    }
    for (unsigned kind = 0; kind < TL_PT_INVALID; kind++)
        assert_true(seen[kind]);
}

static void erratum_skd007(void **state)
{
    (void)state;
    const struct tl_pt_config skd007 = {.errata.skd007 = true};
    const uint8_t bytes[] = {0x7f, 0x02, 0xf3, 0x04};
    const struct tl_bytes in = {bytes, sizeof bytes};
    static struct tl_pt_tape tape;
    struct tl_pt_packet p = {0};
    size_t at = 0;
    assert_int_equal(tl_pt_parse(&plain, in, &p), 2);
    assert_int_equal(p.kind, TL_PT_CYC);
    assert_int_equal(tl_pt_parse(&skd007, in, &p), 3);
    assert_int_equal(p.kind, TL_PT_OVF);
    tl_pt_tape_reset(&tape);
    assert_int_equal(tl_pt_tape_fill(&tape, &skd007, in, &at), TL_AGAIN);
    assert_int_equal(at, sizeof bytes);
    assert_int_equal(tape.kind[0], TL_PT_OVF);
}

/* ---- tapes ---------------------------------------------------------------------------------- */

/* The contents of a stream as text: T and N for outcomes, a line for anything else. */
struct account {
    struct tl_buf text;
};

static void say_outcomes(struct account *a, uint64_t bits, unsigned n)
{
    while (n-- > 0)
        assert_int_equal(tl_buf_add(&a->text, bits >> n & 1 ? "T" : "N", 1), TL_OK);
}

static void say(struct account *a, unsigned kind, uint64_t at, uint64_t value, bool suppressed)
{
    assert_int_equal(tl_buf_printf(&a->text, "\n%" PRIu64 " %s %" PRIx64 "%s\n", at,
                                   tl_pt_packet_name(kind), value, suppressed ? " no IP" : ""),
                     TL_OK);
}

static void say_packet(struct account *a, const struct tl_pt_packet *packet, uint64_t at)
{
    char line[TL_PT_TEXT_MAX];
    text_of(line, packet, at);
    assert_int_equal(tl_buf_printf(&a->text, "\n%s\n", line), TL_OK);
}

static bool has_address(unsigned kind)
{
    return kind == TL_PT_TIP || kind == TL_PT_TIP_PGE || kind == TL_PT_TIP_PGD || kind == TL_PT_FUP;
}

static void say_parsed(struct account *a, const struct tl_pt_packet *p, struct tl_pt_last_ip *last)
{
    switch (p->kind) {
    case TL_PT_PAD:
        break;
    case TL_PT_TNT_8:
        say_outcomes(a, p->tnt.bits, p->tnt.n);
        break;
    case TL_PT_TNT_64:
        say(a, p->kind, p->offset, p->tnt.bits | UINT64_C(1) << p->tnt.n, false);
        break;
    case TL_PT_TIP:
    case TL_PT_TIP_PGE:
    case TL_PT_TIP_PGD:
    case TL_PT_FUP:
        tl_pt_last_ip_update(last, p);
        say(a, p->kind, p->offset, last->ip, last->suppressed);
        break;
    case TL_PT_TSC:
        say(a, p->kind, p->offset, p->tsc, false);
        break;
    case TL_PT_MTC:
        say(a, p->kind, p->offset, p->mtc, false);
        break;
    case TL_PT_CYC:
        say(a, p->kind, p->offset, p->cyc, false);
        break;
    case TL_PT_CBR:
        say(a, p->kind, p->offset, p->cbr, false);
        break;
    case TL_PT_PSB:
    case TL_PT_OVF:
        *last = (struct tl_pt_last_ip){0};
        say(a, p->kind, p->offset, 0, false);
        break;
    case TL_PT_PSBEND:
    case TL_PT_STOP:
        say(a, p->kind, p->offset, 0, false);
        break;
    default:
        say_packet(a, p, p->offset);
        break;
    }
}

static void say_end(struct account *a, int rc, size_t at)
{
    assert_int_equal(tl_buf_printf(&a->text, "\n%zu end %d\n", at, rc), TL_OK);
}

/* With the parser; after a bad packet it continues at the next byte. */
static void by_parser(struct account *a, struct tl_bytes in)
{
    struct tl_pt_last_ip last = {0};
    for (size_t at = 0; at < in.n;) {
        struct tl_pt_packet p = {.offset = at};
        const int size = tl_pt_parse(&plain, (struct tl_bytes){in.p + at, in.n - at}, &p);
        if (size < 0) {
            say_end(a, size, at);
            last = (struct tl_pt_last_ip){0};
            if (size == TL_AGAIN)
                break;
            at++;
            continue;
        }
        say_parsed(a, &p, &last);
        at += (size_t)size;
    }
}

static void say_tape(struct account *a, const struct tl_pt_tape *tape, struct tl_bytes in)
{
    assert_true(tape->n <= TL_PT_TAPE_ENTRIES + 1);
    for (size_t i = 0; i < tape->n; i++) {
        const unsigned kind = tape->kind[i] & ~TL_PT_TAPE_SUPPRESSED;
        const unsigned n = 63 - (unsigned)__builtin_clzll(tape->tnt[i]);
        assert_true(n <= TL_PT_TAPE_OUTCOMES);
        const size_t at = tl_pt_tape_at(tape, i), from = tl_pt_tape_from(tape, &plain, in, i);
        assert_true(from <= at);
        /* It begins after the previous entry; a PAD ending an entry may belong to outcomes only. */
        assert_true(i == 0 || from > tl_pt_tape_at(tape, i - 1) ||
                    (tape->kind[i - 1] == TL_PT_PAD && from == tl_pt_tape_at(tape, i - 1)));
        say_outcomes(a, tape->tnt[i], n);
        switch (kind) {
        case TL_PT_PAD:
            break;
        case TL_PT_TNT_8:
            say_outcomes(a, tape->value[i], 63 - (unsigned)__builtin_clzll(tape->value[i]));
            break;
        case TL_PT_TNT_64:
        case TL_PT_TIP:
        case TL_PT_TIP_PGE:
        case TL_PT_TIP_PGD:
        case TL_PT_FUP:
        case TL_PT_TSC:
        case TL_PT_MTC:
        case TL_PT_CYC:
        case TL_PT_CBR:
        case TL_PT_PSB:
        case TL_PT_PSBEND:
        case TL_PT_OVF:
        case TL_PT_STOP:
            say(a, kind, at, tape->value[i],
                has_address(kind) && tape->kind[i] & TL_PT_TAPE_SUPPRESSED);
            break;
        default:
            assert_true(tape->value[i] < tape->n_others);
            assert_int_equal(tape->other[tape->value[i]].offset, at);
            say_packet(a, &tape->other[tape->value[i]], at);
            break;
        }
    }
}

static void by_tapes(struct account *a, struct tl_bytes in, enum tl_cpu level)
{
    static struct tl_pt_tape tape;
    tl_pt_tape_reset(&tape);
    for (size_t at = 0; at < in.n;) {
        const size_t before = at;
        const int rc = tl_pt_tape_fill_at(level, &tape, &plain, in, &at);
        say_tape(a, &tape, in);
        if (rc == TL_OK) {
            assert_true(at > before);
            continue;
        }
        if (rc == TL_AGAIN && at == in.n)
            break;
        say_end(a, rc, at);
        if (rc == TL_AGAIN)
            break;
        at++;
    }
}

static void compare(struct tl_bytes in)
{
    struct account want = {0};
    by_parser(&want, in);
    for (int level = 0; level < TL_CPU_LEVELS; level++) {
        struct account got = {0};
        if (!tl_cpu_has((enum tl_cpu)level))
            continue;
        by_tapes(&got, in, (enum tl_cpu)level);
        if (got.text.n != want.text.n ||
            (got.text.n && memcmp(got.text.p, want.text.p, got.text.n) != 0)) {
            size_t i = 0;
            while (i < got.text.n && i < want.text.n && got.text.p[i] == want.text.p[i])
                i++;
            const size_t from = i < 60 ? 0 : i - 60;
            fprintf(stderr, "%s differs:\n%.*s\n--- not\n%.*s\n", tl_cpu_name((enum tl_cpu)level),
                    (int)(got.text.n - from < 160 ? got.text.n - from : 160), got.text.p + from,
                    (int)(want.text.n - from < 160 ? want.text.n - from : 160), want.text.p + from);
            fail();
        }
        tl_buf_fini(&got.text);
    }
    tl_buf_fini(&want.text);
}

/* Packets of all kinds; `common`: percentage of them that are TNT_8, IPs or CYC. */
static void encode_mix(struct tl_sim_pt *pt, struct tl_sim_rng *rng, unsigned packets,
                       unsigned common)
{
    while (packets-- > 0) {
        struct tl_pt_packet p;
        do
            tl_sim_pt_random(&p, rng);
        while (tl_sim_percent(rng, common) && p.kind != TL_PT_TNT_8 && p.kind != TL_PT_CYC &&
               !has_address(p.kind));
        tl_sim_pt_packet(pt, &p);
        for (unsigned k = p.kind == TL_PT_TNT_8 ? tl_sim_below(rng, 40) : 0; k > 20; k--)
            tl_sim_pt_packet(pt, &p);
    }
}

static void tapes_of_any_packets(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    for (unsigned i = 0; i < 300; i++) {
        struct tl_sim_pt pt = {0};
        encode_mix(&pt, &rng, tl_sim_below(&rng, 1200), tl_sim_below(&rng, 101));
        compare((struct tl_bytes){pt.out.p, pt.out.n});
        for (unsigned k = 0; k < 6 && pt.out.n; k++) {
            pt.out.p[tl_sim_below(&rng, (uint32_t)pt.out.n)] = (uint8_t)next();
            compare((struct tl_bytes){pt.out.p, tl_sim_below(&rng, (uint32_t)pt.out.n)});
        }
        tl_sim_pt_fini(&pt);
    }
}

static void tapes_of_any_bytes(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    uint8_t bytes[2000];
    for (unsigned i = 0; i < 500; i++) {
        const unsigned even = tl_sim_below(&rng, 100);
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)(tl_sim_rand(&rng) & (tl_sim_percent(&rng, even) ? 0xfe : 0xff));
        compare((struct tl_bytes){bytes, sizeof bytes});
    }
}

/* Long loops: runs of outcomes between packets of other kinds, with tapes ending anywhere. */
static void tapes_of_loops(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    for (unsigned i = 0; i < 20; i++) {
        struct tl_sim_pt pt = {0};
        for (unsigned k = 0; k < 10; k++) {
            for (unsigned n = tl_sim_below(&rng, 800); n > 0; n--)
                tl_sim_pt_ip(&pt, TL_PT_TIP, tl_sim_rand(&rng) & 0xffff);
            for (unsigned n = tl_sim_below(&rng, 15000); n > 0; n--)
                tl_sim_pt_branch(&pt, tl_sim_below(&rng, 2));
            tl_sim_pt_flush(&pt);
        }
        compare((struct tl_bytes){pt.out.p, pt.out.n});
        tl_sim_pt_fini(&pt);
    }
}

static void tapes_of_programs(void **state)
{
    (void)state;
    for (unsigned timing = 0; timing < 2; timing++) {
        struct tl_sim_rng rng = {next()};
        struct tl_sim_pt pt = {.long_tnt = timing};
        tl_sim_pt_program(&pt, &rng, 100000, timing);
        compare((struct tl_bytes){pt.out.p, pt.out.n});
        tl_sim_pt_fini(&pt);
    }
}

/* More bytes than one tape can cover, with few entries. */
static void tapes_of_padding(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    static uint8_t bytes[3 * TL_PT_TAPE_REACH];
    for (unsigned i = 0; i < 20; i++)
        bytes[tl_sim_below(&rng, sizeof bytes)] = 0x59; /* MTC */
    compare((struct tl_bytes){bytes, sizeof bytes});
}

/* ---- IPs, PSB ------------------------------------------------------------------------------- */

static void addresses_come_back(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    struct tl_sim_pt pt = {0};
    struct tl_pt_last_ip last = {0};
    for (unsigned i = 0; i < 20000; i++) {
        const uint64_t ip = tl_sim_rand(&rng) >> tl_sim_below(&rng, 64);
        struct tl_pt_packet p = {0};
        tl_buf_reset(&pt.out);
        tl_sim_pt_ip(&pt, TL_PT_TIP, tl_sim_percent(&rng, 50) ? ip : pt.ip ^ (ip & 0xfffff));
        assert_int_equal(tl_pt_parse(&plain, (struct tl_bytes){pt.out.p, pt.out.n}, &p), pt.out.n);
        tl_pt_last_ip_update(&last, &p);
        assert_true(tl_pt_last_ip_known(&last));
        assert_int_equal(last.ip, pt.ip);
    }
    tl_sim_pt_fini(&pt);
}

static void psb_is_found(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {next()};
    for (unsigned i = 0; i < 200; i++) {
        struct tl_sim_pt pt = {0};
        const unsigned before = tl_sim_below(&rng, 100), between = tl_sim_below(&rng, 100);
        const uint8_t halves[] = {0x02, 0x82};
        for (unsigned k = 0; k < before; k++)
            assert_int_equal(tl_buf_add(&pt.out, &halves[k & 1], 1), TL_OK);
        /* A preceding 02 82 … would make the PSB begin earlier. */
        if (before >= 2)
            memset(pt.out.p, 0x55, before);
        tl_sim_pt_bare(&pt, TL_PT_PSB);
        for (unsigned k = 0; k < between; k++)
            tl_sim_pt_bare(&pt, TL_PT_PAD);
        const size_t second = pt.out.n;
        tl_sim_pt_bare(&pt, TL_PT_PSB);
        const struct tl_bytes all = {pt.out.p, pt.out.n};
        if (before != 1)
            assert_int_equal(tl_pt_find_psb(all), between ? before : second);
        assert_int_equal(tl_pt_find_psb_backward(all), second);
        assert_int_equal(tl_pt_find_psb((struct tl_bytes){all.p + before, 15}), 15);
        assert_int_equal(tl_pt_find_psb_backward((struct tl_bytes){all.p + before, 15}), 15);
        tl_sim_pt_fini(&pt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_what_was_encoded), cmocka_unit_test(erratum_skd007),
        cmocka_unit_test(tapes_of_any_packets),   cmocka_unit_test(tapes_of_any_bytes),
        cmocka_unit_test(tapes_of_loops),         cmocka_unit_test(tapes_of_programs),
        cmocka_unit_test(tapes_of_padding),       cmocka_unit_test(addresses_come_back),
        cmocka_unit_test(psb_is_found),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
