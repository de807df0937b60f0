/* SPDX-License-Identifier: MIT */
/* Nexus messages: bytes to fields, losses, and what SiFive's dialect has of its own. */
#include "riscv/nexus_message.h"
#include "sim/tpiu_encoder.h"
#include "unit/nexus_bytes.h"

/* 0x1000: beqz a0, 0x100c; nop; ret; 0x100c: jr a1; 0x1010: nop; j 0x1000 */
static const uint8_t code[] = {0x63, 0x06, 0x05, 0x00, 0x13, 0x00, 0x00, 0x00,
                               0x67, 0x80, 0x00, 0x00, 0x67, 0x80, 0x05, 0x00,
                               0x13, 0x00, 0x00, 0x00, 0x6f, 0xf0, 0xdf, 0xfe};

static void check(const char *ini, bool packets, const uint8_t *p, size_t n, const char *text,
                  const char *losses)
{
    struct trace t = {.n = n};
    assert_true(n <= sizeof t.p);
    memcpy(t.p, p, n);
    check_with(ini, (struct tl_bytes){code, sizeof code}, 0x1000, packets, &t, text, losses);
}

#define NTRACE "[trace]\nformat=ntrace\n"
#define SIFIVE "[trace]\nformat=nexus-sifive\n"

/* ---- bytes ----------------------------------------------------------------------------------- */

static void fields(void **state)
{
    (void)state;
    /* B-TYPE and a zero I-CNT share a byte; U-ADDR ends in 0xff; idle bytes. */
    static const uint8_t bytes[] = {4 << 2, 1, 0xff, 0xff, 0xff, 3 << 2, 0x0f};
    check(NTRACE, true, bytes, sizeof bytes,
          "0 0 IndirectBranch B-TYPE=0x0 I-CNT=0x0 U-ADDR=0x7e\n5 0 DirectBranch I-CNT=0x3\n"
          "0 0 NOT_SYNC bytes=5\n",
          "0+5 not synchronised\n");
}

static void sources(void **state)
{
    (void)state;
    struct trace t = {0};
    message(&t, 5, F(9, 6), F(5, 3), F(5, 4), V(0), V(0x800));
    message(&t, 5, F(9, 6), F(2, 3), F(5, 4), V(0), V(0x808));
    message(&t, 4, F(33, 6), F(5, 3), F(4, 6), V(4));
    check("[trace]\nformat=ntrace,src_bits=3\n", true, t.p, t.n,
          "0 5 ProgTraceSync SYNC=0x5 I-CNT=0x0 F-ADDR=0x1000\n"
          "5 2 ProgTraceSync SYNC=0x5 I-CNT=0x0 F-ADDR=0x1010\n"
          "10 5 ProgTraceCorrelation EVCODE=0x4 CDF=0x0 I-CNT=0x4\n",
          "");
    check(
        "[trace]\nformat=ntrace,src_bits=3\n[source nt.2]\ncore=rv64\n", false, t.p, t.n,
        "O\nM -.rv64\n",
        "0+8 1 trace source is not in the configuration; --config needs a section [source nt.5]\n");
}

/* Losses name the damaged bytes; a message with SYNC ends them. */
static void damage(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1010);
    t.p[t.n++] = 3 << 2;
    t.p[t.n++] = 2; /* reserved */
    t.p[t.n++] = 3;
    message(&t, 2, F(3, 6), V(4));
    sync_at(&t, 0, 0x1000);
    memset(t.p + t.n, 0, 100);
    check(NTRACE, false, t.p, t.n + 4, "O\nM -.rv64\nG bad-packet\nO\nM -.rv64\n",
          "4+5 bad message\n");
    check(NTRACE, false, t.p, t.n + 100, "O\nM -.rv64\nG bad-packet\nO\nM -.rv64\nG bad-packet\n",
          "4+5 bad message\n13+100 message without an end\n");
}

/* Behind a message that was cut off, another one began: no message has a field behind its time. */
static void fields_too_many(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1010);
    message(&t, 4, F(3, 6), V(4), V(1), V(5)); /* short, and long */
    sync_at(&t, 0, 0x1010);
    message(&t, 7, F(4, 6), F(0, 2), V(20), V(2), V(1), V(0x10000000), V(5));
    check(NTRACE, false, t.p, t.n, "O\nM -.rv64\nG bad-packet\nO\nM -.rv64\nG bad-packet\n",
          "4+4 bad message\n12+11 bad message\n");
}

/* A capture may begin and end in the middle of a message. */
static void cut_at_both_ends(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1010);
    sync_at(&t, 0, 0x1000);
    const size_t first = 1, last = t.n - 1;
    check(NTRACE, false, t.p + first, last - first, "G sync\n", "0+6 not synchronised\n");
    sync_at(&t, 0, 0x1000);
    check(NTRACE, false, t.p + first, t.n - 1 - first, "G sync\nO\nM -.rv64\nG sync\n",
          "0+3 not synchronised\n7+3 the capture ends within a packet\n");
}

/* What does not fit the program is reported, up to the next message with SYNC. */
static void misfit(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1010);
    message(&t, 2, F(3, 6), V(1)); /* half of the nop */
    message(&t, 2, F(3, 6), V(2));
    sync_at(&t, 0, 0x1000);
    check(NTRACE, false, t.p, t.n, "O\nM -.rv64\nG no-path\nG bad-packet\nO\n",
          "4+4 trace and program do not fit (another image, or encoder options that --config "
          "lacks)\n");
}

/* ---- SiFive ---------------------------------------------------------------------------------- */

/* Times by exclusive or, absolute ones of 40 bits. */
static void sifive_times(void **state)
{
    (void)state;
    struct trace t = {0};
    message(&t, 5, F(9, 6), F(5, 4), V(0), V(0x808), V(0xfffffffff0));
    message(&t, 3, F(2, 6), V(0xe), V(0xff));
    message(&t, 5, F(9, 6), F(2, 4), V(2), V(0x80a), V(0x10));
    check(SIFIVE, false, t.p, t.n,
          "O\nM -.rv64\nT 1099511627760\nM m.rv64\nC 0 -\nT 1099511627535\n"
          "I 0000000000001010 00000013\nT 1099511627792\n",
          "");
}

/* Branches told by their number, and jumps to the next instruction that branch messages omit. */
static void sifive_counts(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x100c);
    message(&t, 2, F(3, 6), V(8)); /* jr (to the next), nop, j, beqz taken */
    message(&t, 4, F(33, 6), F(4, 4), F(0, 2), V(0));
    check(SIFIVE, false, t.p, t.n,
          "O\nM -.rv64\nI 000000000000100c 00058067\nI 0000000000001010 00000013\n"
          "I 0000000000001014 fedff06f\nI 0000000000001000 00050663\nG off\n",
          "");
    t = (struct trace){0};
    sync_at(&t, 0, 0x1010);
    message(&t, 3, F(27, 6), F(8, 4), V(1)); /* nop, j, beqz not taken */
    message(&t, 5, F(28, 6), F(0, 2), V(10), V((0x1000 ^ 0x1010) >> 1), V(1));
    check(SIFIVE, false, t.p, t.n,
          "O\nM -.rv64\nI 0000000000001010 00000013\nI 0000000000001014 fedff06f\n"
          "I 0000000000001000 00050663\nI 0000000000001004 00000013\nI 0000000000001008 00008067\n",
          "");
}

/* Two SYNC messages in a row, as seen in silicon: the second has the outcome that the first lacks.
 */
static void outcome_owed(void **state)
{
    (void)state;
    struct trace t = {0};
    sync_at(&t, 0, 0x1010);
    message(&t, 3, F(27, 6), F(0, 4), V(4)); /* nop, j */
    message(&t, 6, F(29, 6), F(2, 4), F(0, 2), V(2), V(0x802), V(1));
    message(&t, 6, F(29, 6), F(2, 4), F(0, 2), V(2), V(0x802), V(2));
    message(&t, 5, F(33, 6), F(4, 4), F(1, 2), V(2), V(1));
    check(SIFIVE, false, t.p, t.n,
          "O\nM -.rv64\nI 0000000000001010 00000013\nI 0000000000001014 fedff06f\n"
          "I 0000000000001000 00050663\nI 0000000000001004 00000013\nG off\n",
          "");
}

static void sifive_events(void **state)
{
    (void)state;
    struct trace t = {0};
    message(&t, 3, F(7, 6), V(4 * 3 + 2), V(0xbeef));
    message(&t, 5, F(35, 6), F(9, 4), F(1, 2), V(0x800), V((0x1000 ^ 0x1234) >> 1));
    message(&t, 5, F(34, 6), F(11, 4), F(1, 2), V((0x1000 ^ 0x1010) >> 1), V(7));
    check(SIFIVE, false, t.p, t.n,
          "S itm 3 beef\nB 0000000000001000 0000000000001234\n"
          "X interrupt 7 0000000000001010\n",
          "");
}

/* ---- elsewhere ------------------------------------------------------------------------------- */

/* In CoreSight frames the trace ID is the source. */
static void in_frames(void **state)
{
    (void)state;
    struct trace t = {0};
    struct tl_tpiu_encoder e;
    sync_at(&t, 0, 0x1010);
    message(&t, 5, F(33, 6), F(4, 4), F(1, 2), V(4), V(1));
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 3);
    assert_int_equal(tl_tpiu_encoder_add(&e, 0x10, t.p, t.n), TL_OK);
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    check("[trace]\nformat=tpiu\n[source cs.10]\nprotocol=n-trace\ncore=rv64\n", false, e.out.p,
          e.out.n, "O\nM -.rv64\nI 0000000000001010 00000013\nI 0000000000001014 fedff06f\nG off\n",
          "");
    tl_buf_fini(&e.out);
}

/* Bytes that the store has lost: the stream begins anew behind them. */
static void lost_bytes(void **state)
{
    (void)state;
    struct said said = {0};
    struct trace t = {0};
    struct tl_setup setup;
    struct tl_decode *d;
    struct tl_fail fail = {.text = ""};
    const struct tl_decode_sink sink = {.context = &said, .items = hear, .loss = lose};
    sync_at(&t, 0, 0x1010);
    message(&t, 2, F(3, 6), V(100));
    const size_t n = t.n;
    sync_at(&t, 0, 0x1000);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "ntrace", &fail), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, NULL, &sink, &fail), TL_OK);
    assert_int_equal(tl_decode_push(d, t.p, n - 1), TL_OK);
    assert_int_equal(tl_decode_skip(d, 1), TL_OK);
    assert_int_equal(tl_decode_push(d, t.p + n, t.n - n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    assert_int_equal(tl_buf_add(&said.text, "", 1) | tl_buf_add(&said.losses, "", 1), TL_OK);
    assert_string_equal((char *)said.text.p, "O\nM -.rv64\nB - 0000000000001010\nG sync\n"
                                             "G transport\nO\nM -.rv64\nB - 0000000000001000\n");
    assert_string_equal(
        (char *)said.losses.p,
        "6+1 raw bytes are damaged or missing\n4+2 the end of a packet is missing\n");
    tl_buf_fini(&said.text);
    tl_buf_fini(&said.losses);
}

/* Images of a source; the same setup again from its text. */
static void images_of_sources(void **state)
{
    (void)state;
    static const char ini[] =
        "[trace]\nformat=ntrace,src_bits=4\n[image a]\nsource=nt.3\nfile=a.elf\ncontext=9\n";
    struct tl_fail fail = {.text = ""};
    struct tl_setup setup, again;
    struct tl_buf text = {0};
    tl_setup_init(&setup);
    tl_setup_init(&again);
    assert_int_equal(tl_setup_parse(&setup, ini, strlen(ini), &fail), TL_OK);
    assert_int_equal(tl_setup_write(&setup, &text), TL_OK);
    assert_int_equal(tl_setup_parse(&again, (const char *)text.p, text.n, &fail), TL_OK);
    assert_int_equal(again.src_bits, 4);
    assert_int_equal(tl_setup_source_vmid(&again, 3), tl_source_vmid(3));
    assert_int_equal(tl_setup_source_vmid(&again, 2), 0);
    assert_string_equal(tl_setup_context_name(&again, true, tl_source_vmid(3)), "nt.3");
    assert_int_equal(again.images[0].context.context_id, 9);
    tl_setup_fini(&setup);
    tl_setup_fini(&again);
    tl_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),
        cmocka_unit_test(sources),
        cmocka_unit_test(damage),
        cmocka_unit_test(fields_too_many),
        cmocka_unit_test(cut_at_both_ends),
        cmocka_unit_test(misfit),
        cmocka_unit_test(sifive_times),
        cmocka_unit_test(sifive_counts),
        cmocka_unit_test(outcome_owed),
        cmocka_unit_test(sifive_events),
        cmocka_unit_test(in_frames),
        cmocka_unit_test(lost_bytes),
        cmocka_unit_test(images_of_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
