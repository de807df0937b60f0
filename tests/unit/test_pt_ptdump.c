/* SPDX-License-Identifier: MIT */
/* Output of ptdump and options of ptxed that the reference's own test set does not cover. */
#include "pt/ptdump.h"
#include "pt/ptxed.h"
#include "pt/tool_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

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
        cmocka_unit_test(last_ip_that_is_not_known), cmocka_unit_test(processor_that_is_not_known),
        cmocka_unit_test(psb_begun_by_a_bad_packet), cmocka_unit_test(listing_options),
        cmocka_unit_test(options_that_undo_others),  cmocka_unit_test(parts_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
