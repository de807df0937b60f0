/* SPDX-License-Identifier: MIT */
/* Output and options of ptdump and ptxed, and errata of processors, that the reference's own test
 * set does not cover. */
#include "pt/ptdump.h"
#include "pt/ptxed.h"
#include "pt/tool_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PSB "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"

static void expect(const struct tl_pt_dump_options *options, const char *cpu, struct tl_bytes trace,
                   const char *want)
{
    struct tl_pt_config config = {0};
    struct tl_buf out = {0};
    if (cpu)
        assert_int_not_equal(tl_pt_config_cpu(&config, cpu), TL_BAD);
    assert_int_equal(tl_pt_dump(&out, options, &config, trace), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((const char *)out.p, want);
    tl_buf_fini(&out);
}

#define TRACE(text) ((struct tl_bytes){(const uint8_t *)(text), sizeof(text) - 1})

static void last_ip_that_is_not_known(void **state)
{
    (void)state;
    const struct tl_pt_dump_options options = {.last_ip = true, .no_offset = true};
    expect(&options, NULL, TRACE(PSB "\x01\x2d\x05\x10\x01"),
           "psb\n"
           "[10: error tracking last-ip: no ip]\n"
           "tip.pgd    0: ????????????????       ip   <unavailable>\n"
           "tip        1: ????????????1005       ip   0000000000001005\n"
           "tip.pgd    0: ????????????????       ip   <suppressed>\n");
}

static void processor_that_is_not_known(void **state)
{
    (void)state;
    const struct tl_pt_dump_options options = {.no_offset = true};
    expect(&options, "6/1", TRACE(PSB), "[0: failed to determine errata: unknown cpu]\npsb\n");
    expect(&options, "6/0x4e", TRACE(PSB), "psb\n");
}

/* A packet before a PSB consumes its first bytes, and the rest of the pattern is not a packet. */
static void psb_begun_by_a_bad_packet(void **state)
{
    (void)state;
    const struct tl_pt_dump_options options = {.no_pad = true};
    expect(&options, NULL, TRACE(PSB "\x19" PSB "\x02\x23\0\0\0\0\0\0"),
           "0000000000000000  psb\n"
           "0000000000000010  tsc        2820282028202\n"
           "0000000000000018  tnt.8      .....!\n"
           "[19: error decoding packet: unknown packet]\n"
           "0000000000000011  psb\n"
           "0000000000000021  psbend\n");
}

static void power_exit_with_several_reasons(void **state)
{
    (void)state;
    const struct tl_pt_dump_options options = {.no_offset = true};
    expect(&options, NULL,
           TRACE(PSB "\x02\xa2\x00\x05\0\0\0\x02\xa2\x00\x0c\0\0\0\x02\xa2\0\0\0\0\0"),
           "psb\n"
           "pwrx       int: c1, c1\n"
           "pwrx        st: c1, c1\n"
           "pwrx       bad: c1, c1\n");
}

/* The vector of a SIPI is hexadecimal, those of interrupts are decimal. */
static void event_trace(void **state)
{
    (void)state;
    const struct tl_pt_dump_options options = {.no_offset = true};
    expect(&options, NULL,
           TRACE(PSB "\x02\x13\x05\xce\x02\x13\x01\x80\x02\x13\x9f\x11\x02\x13\x0b\x11"
                     "\x02\x53\x1f\xa1\0\0\0\0\0\0\0\x02\x53\x02\xa1\0\0\0\0\0\0\0"),
           "psb\n"
           "cfe        5: ce                     type sipi\n"
           "cfe        1: 128                    type intr\n"
           "cfe        31, ip                    type unknown\n"
           "cfe        11                        type unknown\n"
           "evd        31: a1                    type unknown\n"
           "evd        2: a1                     type vmxr\n");
}

/* As in libipt 2.1.2 where it knows the processor. */
static void errata_of_processors(void **state)
{
    (void)state;
    static const char *const skl014[] = {"6/78",  "6/85",  "6/94",  "6/102", "6/106", "6/108",
                                         "6/125", "6/126", "6/140", "6/141", "6/142", "6/158",
                                         "6/165", "6/166", "6/167", "6/168"};
    static const char *const others[] = {
        "6/143", "6/151", "6/154", "6/170", "6/172", "6/173", "6/174", "6/181", "6/183", "6/186",
        "6/189", "6/191", "6/197", "6/198", "6/204", "6/207", "6/213", "18/1",  "18/3",  "19/1"};
    struct tl_pt_config config;
    for (size_t i = 0; i < sizeof skl014 / sizeof *skl014; i++) {
        assert_int_equal(tl_pt_config_cpu(&config, skl014[i]), TL_OK);
        assert_true(config.errata.skl014 && config.errata.skd022 && config.errata.bdm70);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(tl_pt_config_cpu(&config, others[i]), TL_OK);
        assert_true(!config.errata.skl014 && config.errata.skd022 && config.errata.bdm70);
        assert_true(config.errata.apl11 != config.errata.skz84);
    }
}

/* A processor that was given and is not known is told, whatever its numbers. */
static void unknown_processors(void **state)
{
    (void)state;
    struct tl_pt_config config = {0};
    assert_true(tl_pt_config_cpu_known(&config));
    assert_int_equal(tl_pt_config_cpu(&config, "0/0"), TL_UNSUPPORTED);
    assert_false(tl_pt_config_cpu_known(&config));
    assert_int_equal(tl_pt_config_cpu(&config, "6/1"), TL_UNSUPPORTED);
    assert_false(tl_pt_config_cpu_known(&config));
    assert_int_equal(tl_pt_config_cpu(&config, "6/78"), TL_OK);
    assert_true(tl_pt_config_cpu_known(&config));
}

/* Compare with the ptxed listing of a trace of `code` at address 0x1000. */
static void expect_listing(const char *code, size_t n, struct tl_bytes trace, const char *want)
{
    const struct tl_bytes bytes = {(const uint8_t *)code, n};
    const struct tl_pt_xed_options options = {.event_ip = true};
    const struct tl_pt_config config = {0};
    struct tl_fail fail = {0};
    struct tl_buf out = {0};
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_true(tl_image_add_bytes(image, 0x1000, bytes, TL_SPACE_ANY, "code", &fail) >= 0);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_pt_xed(&out, &options, &config, image, trace), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_string_equal((const char *)out.p, want);
    tl_buf_fini(&out);
    tl_image_free(image);
}

/* Decoded as 16-bit code: the immediate of this MOV has two bytes. */
static void code_in_an_unknown_mode(void **state)
{
    (void)state;
    expect_listing("\xb8\x01\x02\x90\xf4", 5,
                   TRACE(PSB "\x7d\0\x10\0\0\0\0\x02\x23\x3d\x04\x10\x01"),
                   "0000000000001000\n"
                   "0000000000001003\n"
                   "[disabled, at: 0000000000001004]\n");
}

/* The trace has the PIP of a far return, but not its TIP. */
static void end_of_trace_before_a_far_return_is_left(void **state)
{
    (void)state;
    expect_listing("\x90\xcb", 2,
                   TRACE(PSB "\x99\x01\x7d\0\x10\0\0\0\0\x02\x23\x02\x43\0\0\0\0\0\0"),
                   "0000000000001000\n"
                   "0000000000001001\n"
                   "[23, 1001: error: trace stream does not match query]\n");
}

/* An event that contradicts the state is an error at the last instruction; if the trace cannot be
 * read after an instruction, the error has the address of the next one. */
static void addresses_of_errors(void **state)
{
    (void)state;
    expect_listing("\x90\xff\xe0\x90", 4,
                   TRACE(PSB "\x99\x01\x7d\0\x10\0\0\0\0\x02\x23\x2d\x03\x10\x31\x03\x10"),
                   "0000000000001000\n"
                   "0000000000001001\n"
                   "[1e, 1001: error: unexpected packet context]\n");
    expect_listing("\x90\xff\xe0\x90", 4,
                   TRACE(PSB "\x99\x01\x7d\0\x10\0\0\0\0\x02\x23\x2d\x03\x10\xc9"),
                   "0000000000001000\n"
                   "0000000000001001\n"
                   "[1e, 1003: error: unknown opcode]\n");
}

#define PGE   "\x99\x01\x02\x23\x71\0\x10\0\0\0\0"
#define MWAIT "\x02\xc2\x07\0\0\0\0\0\0\0"
#define PWRE  "\x02\x22\x08\0"
#define FUP   "\x7d\x01\x10\0\0\0\0"

/* MWAIT and PWRE stand at the EXSTOP of the sleep, if there is one, wherever there is none. */
static void sleeps(void **state)
{
    (void)state;
    static const char said[] = "[mwait 7 0]\n[pwre c1.1 hw]\n";
    char want[256];
    snprintf(want, sizeof want, "%s[overflow]\n", said);
    expect_listing("\x90\x90", 2, TRACE(PSB "\x02\x23" MWAIT PWRE "\x02\xf3"), want);
    expect_listing("\x90\x90", 2, TRACE(PSB "\x02\x23" MWAIT "\x02\xf3" PWRE),
                   "[mwait 7 0]\n[overflow]\n[pwre c1.1 hw]\n");
    expect_listing("\x90\x90", 2, TRACE(PSB "\x02\x23" MWAIT PWRE), said);
    expect_listing("\x90\x90", 2,
                   TRACE(PSB "\x02\x23" MWAIT "\x02\x03\x09\0" PWRE "\x71\0\x10\0\0\0\0\x01"),
                   "[mwait 7 0]\n[cbr: 9]\n[pwre c1.1 hw]\n[enabled, ip: 0000000000001000]\n"
                   "0000000000001000\n0000000000001001\n"
                   "[2c, 1002: error: no memory mapped at this address]\n");
    /* What the lost FUP was to place is dropped, but a PWRE has no place. */
    expect_listing("\x90\x90", 2, TRACE(PSB "\x02\x23" MWAIT PWRE "\x02\xe2\x02\xf3"),
                   "[pwre c1.1 hw]\n[overflow]\n");
    expect_listing("\x90\x90", 2,
                   TRACE(PSB PGE MWAIT PWRE PWRE "\x02\xe2\x02\xf3" FUP "\x02\xf3" PWRE),
                   "[enabled, ip: 0000000000001000]\n"
                   "[pwre c1.1 hw]\n[pwre c1.1 hw]\n"
                   "[overflow, ip: 0000000000001001]\n[overflow]\n[pwre c1.1 hw]\n");
    expect_listing("\x90\x90", 2, TRACE(PSB PGE MWAIT PWRE "\x02\xe2" FUP "\x01"),
                   "[enabled, ip: 0000000000001000]\n"
                   "0000000000001000\n"
                   "[mwait 7 0, ip: 0000000000001001]\n"
                   "[exstop, ip: 0000000000001001]\n"
                   "[pwre c1.1 hw]\n"
                   "0000000000001001\n"
                   "[33, 1002: error: no memory mapped at this address]\n");
}

/* Many in a row: each is reported, and looking for the EXSTOP takes no time. */
static void sleeps_without_end(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct tl_buf trace = {0};
    const struct tl_pt_xed_options options = {0};
    const struct tl_pt_config config = {0};
    struct tl_buf out = {0};
    assert_int_equal(tl_buf_add(&trace, PSB "\x02\x23", 18), TL_OK);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(tl_buf_add(&trace, MWAIT, 10), TL_OK);
    assert_int_equal(tl_pt_xed(&out, &options, &config, NULL, (struct tl_bytes){trace.p, trace.n}),
                     TL_OK);
    assert_int_equal(out.n, N * strlen("[mwait 7 0]\n"));
    tl_buf_fini(&out);
    tl_buf_fini(&trace);
}

/* What a PTWRITE at an address says is known without the code there. */
static void ptwrite_without_code(void **state)
{
    (void)state;
    expect_listing("\x90", 1, TRACE(PSB PGE "\x02\x92\xcd\xab\0\0" FUP "\x01"),
                   "[enabled, ip: 0000000000001000]\n"
                   "0000000000001000\n"
                   "[ptwrite: abcd, ip: 0000000000001001]\n"
                   "[29, 1001: error: no memory mapped at this address]\n");
}

/* Parse all options. Returns TL_OK if all are valid. */
static int options_of_ptxed(struct tl_pt_xed_options *options, int argc, char **argv)
{
    struct tl_pt_config config = {0};
    struct tl_fail fail = {0};
    int rc = TL_OK;
    for (int i = 0; i < argc && rc >= 0;)
        rc = tl_pt_xed_option(options, &config, NULL, argc, argv, &i, &fail);
    return rc;
}

static void listing_options(void **state)
{
    (void)state;
    struct tl_pt_xed_options options = {0};
    char *all[] = {"-q", "-v", "--iscache-limit", "0x1000", "--raw-insn", "--no-inst"};
    char *bad[] = {"--iscache-limit", "much"};
    assert_int_equal(options_of_ptxed(&options, 6, all), TL_OK);
    assert_true(options.quiet && options.raw_insn && options.no_inst);
    assert_int_equal(options_of_ptxed(&options, 2, bad), TL_USAGE);
    assert_int_equal(options_of_ptxed(&options, 1, bad), TL_USAGE);
}

/* The last of several options that select the decoder wins, and so does the last --cpu. */
static void options_that_undo_others(void **state)
{
    (void)state;
    struct tl_pt_xed_options options = {0};
    struct tl_pt_config config = {0};
    struct tl_fail fail = {0};
    char *said[] = {"--insn-decoder",  "--block-decoder",
                    "--cpu",           "6/0x4e",
                    "--mtc-freq",      "16",
                    "--cpu",           "none",
                    "--insn-decoder",  "--elf",
                    "/dev/null:0x1000"};
    int i = 0;
    while (i < 2)
        assert_int_equal(tl_pt_xed_option(&options, &config, NULL, 11, said, &i, &fail), TL_OK);
    assert_false(options.by_insn);
    assert_int_equal(tl_pt_xed_option(&options, &config, NULL, 11, said, &i, &fail), TL_OK);
    assert_true(config.family == 6 && config.errata.skl014);
    while (i < 9)
        assert_int_equal(tl_pt_xed_option(&options, &config, NULL, 11, said, &i, &fail), TL_OK);
    assert_true(options.by_insn && config.family == 0 && !config.errata.skl014);
    assert_int_equal(config.mtc_freq, 16);
    assert_int_equal(tl_pt_xed_option(&options, &config, NULL, 11, said, &i, &fail), TL_BAD);
}

static void parts_of_files(void **state)
{
    (void)state;
    struct tl_pt_option_file file;
    uint64_t address;
    assert_true(tl_pt_option_file(&file, "a:b.bin:0x10-0x30:4096"));
    assert_true(tl_pt_option_address(&file, &address) && tl_pt_option_range(&file));
    assert_string_equal(file.name, "a:b.bin");
    assert_true(address == 4096 && file.offset == 16 && file.length == 32);
    assert_true(tl_pt_option_file(&file, "c:\\b.bin") && tl_pt_option_range(&file));
    assert_string_equal(file.name, "c:\\b.bin");
    assert_false(tl_pt_option_address(&file, &address));
    assert_true(tl_pt_option_file(&file, "b:7") && tl_pt_option_range(&file));
    assert_true(file.offset == 7 && file.length == UINT64_MAX);
    assert_true(tl_pt_option_file(&file, "b:9-9"));
    assert_false(tl_pt_option_range(&file));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_ip_that_is_not_known),
        cmocka_unit_test(processor_that_is_not_known),
        cmocka_unit_test(psb_begun_by_a_bad_packet),
        cmocka_unit_test(listing_options),
        cmocka_unit_test(options_that_undo_others),
        cmocka_unit_test(parts_of_files),
        cmocka_unit_test(power_exit_with_several_reasons),
        cmocka_unit_test(errata_of_processors),
        cmocka_unit_test(unknown_processors),
        cmocka_unit_test(code_in_an_unknown_mode),
        cmocka_unit_test(end_of_trace_before_a_far_return_is_left),
        cmocka_unit_test(addresses_of_errors),
        cmocka_unit_test(event_trace),
        cmocka_unit_test(sleeps),
        cmocka_unit_test(sleeps_without_end),
        cmocka_unit_test(ptwrite_without_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
