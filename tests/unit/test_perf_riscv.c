/* SPDX-License-Identifier: MIT */
/* RISC-V trace in perf.data: by both forms of its metadata, in CoreSight frames and without. */
#include "sim/tpiu_encoder.h"
#include "unit/nexus_bytes.h"
#include "unit/perf_made.h"

#include <stdio.h>

/* nop; jr a0; nop; nop */
static const uint8_t program[] = {0x01, 0x00, 0x02, 0x85, 0x01, 0x00, 0x01, 0x00};

static void check_file(const char *ini, const uint64_t *words, size_t n, struct tl_bytes bytes,
                       const char *text)
{
    struct tl_buf file;
    struct trace t = {0};
    char whole[200];
    perf_make(&file, words, n, bytes);
    assert_true(file.n <= sizeof t.p);
    memcpy(t.p, file.p, file.n);
    t.n = file.n;
    snprintf(whole, sizeof whole, "[trace]\nformat=perf\n%s", ini);
    check_with(whole, (struct tl_bytes){program, sizeof program}, 0x80000000, false, &t, text, "");
    tl_buf_fini(&file);
}

/* TCODE and SRC. */
static void begin(struct trace *t, unsigned tcode, unsigned src_bits, unsigned src,
                  unsigned n_fixed, uint64_t fixed, uint64_t a, uint64_t b, uint64_t history)
{
    const uint64_t head = tcode | (uint64_t)src << 6 | fixed << (6 + src_bits);
    if (history)
        message(t, 4, F(head, 6 + src_bits + n_fixed), V(a), V(b), V(history));
    else
        message(t, 3, F(head, 6 + src_bits + n_fixed), V(a), V(b));
}

static void nexus(struct trace *t, unsigned src_bits, unsigned src)
{
    *t = (struct trace){0};
    begin(t, 9, src_bits, src, 4, 5, 0, 0x40000000, 0);
    begin(t, 28, src_bits, src, 2, 0, 2, 4 >> 1, 1);
    begin(t, 33, src_bits, src, 6, 4 | 1 << 4, 1, 1, 0);
}

static const char flow[] = "O\nM -.rv64\nI 0000000080000000 0001\nI 0000000080000002 8502\n"
                           "I 0000000080000004 0001\nG off\n";

/* {PMU << 32 | n, cpu, 5, format, context, inhibit_src, src_bits, src_id} */
static void with_parameters(void **state)
{
    (void)state;
    struct trace t;
    uint64_t words[] = {(uint64_t)PERF_PMU << 32 | 1, 0, 5, 1, 1, 0, 12, 3};
    nexus(&t, 12, 3);
    check_file("", words, 8, (struct tl_bytes){t.p, t.n}, flow);
    words[6] = words[7] = 0;
    nexus(&t, 0, 0);
    check_file("", words, 8, (struct tl_bytes){t.p, t.n}, flow);
    words[5] = 1;
    words[6] = 12;
    check_file("", words, 8, (struct tl_bytes){t.p, t.n}, flow);
}

static void in_frames(void **state)
{
    (void)state;
    for (uint64_t inhibited = 0; inhibited < 2; inhibited++) {
        struct trace t;
        struct tl_tpiu_encoder e;
        const uint64_t words[] = {(uint64_t)PERF_PMU << 32 | 1, 0, 5, 1, 0, inhibited, 12, 0x11};
        nexus(&t, inhibited ? 0 : 12, inhibited ? 0 : 3);
        tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 3);
        assert_int_equal(tl_tpiu_encoder_add(&e, 0x11, t.p, t.n), TL_OK);
        assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
        check_file("", words, 8, (struct tl_bytes){e.out.p, e.out.n}, flow);
        tl_buf_fini(&e.out);
    }
}

/* The smaller form says nothing: the configuration does, if it must. */
static void without_parameters(void **state)
{
    (void)state;
    struct trace t;
    const uint64_t words[] = {PERF_PMU};
    nexus(&t, 0, 0);
    check_file("", words, 1, (struct tl_bytes){t.p, t.n}, flow);
    nexus(&t, 3, 2);
    check_file("[source nt.2]\nprotocol=n-trace\ncore=rv64\ntrTeSrcBits=3\n", words, 1,
               (struct tl_bytes){t.p, t.n}, flow);
}

static void e_trace(void **state)
{
    (void)state;
    /* start, the jump to the nop behind it, the end */
    static const uint8_t packets[] = {0x05, 0x73, 0x00, 0x00, 0x00, 0x20, 0x01, 0x0a, 0x01, 0x4f};
    const uint64_t words[] = {(uint64_t)PERF_PMU << 32 | 1, 0, 5, 0, 0, 1, 0, 0};
    static const uint64_t small[] = {PERF_PMU};
    static const char text[] =
        "M m.rv64\nI 0000000080000000 0001\nI 0000000080000002 8502\nI 0000000080000004 0001\n"
        "G off\n";
    const char *const ini = "[source et.0]\nprotocol=e-trace\ncore=rv64\niaddress_width_p=64\n"
                            "ecause_width_p=5\n";
    check_file(ini, words, 8, (struct tl_bytes){packets, sizeof packets}, text);
    check_file(ini, small, 1, (struct tl_bytes){packets, sizeof packets}, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_parameters),
        cmocka_unit_test(in_frames),
        cmocka_unit_test(without_parameters),
        cmocka_unit_test(e_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
