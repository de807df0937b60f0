/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "data.h"
#include "setup/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void formats_and_options(void **state)
{
    struct tl_setup s;
    struct tl_fail fail;
    tl_setup_init(&s);
    assert_int_equal(tl_setup_format(&s, "tpiu,sync=fsync,clock=1000", &fail), TL_OK);
    assert_int_equal(s.container, TL_CONTAINER_TPIU);
    assert_int_equal(s.sync, TL_SYNC_FSYNC);
    assert_int_equal(s.clock_hz, 1000);
    tl_setup_fini(&s);
    assert_int_equal(tl_setup_format(&s, "etm4,id=0x22", &fail), TL_OK);
    assert_int_equal(s.container, TL_CONTAINER_SINGLE);
    assert_string_equal(s.sources[0].name, "cs.22");
    assert_int_equal(s.sources[0].protocol, TL_PROTO_ETM4);
    tl_setup_fini(&s);
    assert_int_equal(tl_setup_format(&s, "vhs", &fail), TL_USAGE);
    assert_non_null(strstr(fail.text, "tpiu"));
    assert_int_equal(tl_setup_format(&s, "tpiu,sync=maybe", &fail), TL_USAGE);
    assert_int_equal(tl_setup_format(&s, "etm4,colour=red", &fail), TL_USAGE);
    tl_setup_fini(&s);
}

static const char config[] = "; a board\n"
                             "[trace]\n"
                             "format=tpiu\n"
                             "clock=50000000\n"
                             "[source cs.10]\n"
                             "protocol=etm4\n"
                             "type=ETM4.2\n"
                             "core=Cortex-A53\n"
                             "TRCCONFIGR=0x1\r\n"
                             "  TRCIDR0 = 671092641\n"
                             "[source cs.20]\n"
                             "protocol=stm\n"
                             "[image boot]\n"
                             "file=boot.bin\n"
                             "address=0x8000\n"
                             "offset=16\n"
                             "length=0x100\n"
                             "space=EL1N\n"
                             "[image elf]\n"
                             "file=/app.elf\n";

static void assert_config(const struct tl_setup *s)
{
    assert_int_equal(s->container, TL_CONTAINER_TPIU);
    assert_int_equal(s->clock_hz, 50000000);
    assert_int_equal(s->n_sources, 2);
    const struct tl_source *const etm = tl_setup_source(s, 0x10);
    assert_non_null(etm);
    assert_string_equal(etm->core, "Cortex-A53");
    assert_int_equal(tl_source_reg(etm, "TRCCONFIGR", 7), 1);
    assert_int_equal(tl_source_reg(etm, "TRCIDR0", 7), 671092641);
    assert_int_equal(tl_source_reg(etm, "TRCIDR8", 7), 7);
    assert_int_equal(tl_setup_source(s, 0x20)->protocol, TL_PROTO_STM);
    assert_null(tl_setup_source(s, 0x30));
    assert_int_equal(s->n_images, 2);
    assert_int_equal(s->images[0].address, 0x8000);
    assert_int_equal(s->images[0].offset, 16);
    assert_int_equal(s->images[0].length, 0x100);
    assert_true(s->images[1].length == UINT64_MAX);
    assert_string_equal(s->images[1].file, "/app.elf");
}

static void text_there_and_back(void **state)
{
    struct tl_setup s;
    struct tl_fail fail = {0};
    tl_setup_init(&s);
    assert_int_equal(tl_setup_parse(&s, config, strlen(config), &fail), TL_OK);
    assert_config(&s);
    struct tl_buf text = {0};
    assert_int_equal(tl_setup_write(&s, &text), TL_OK);
    struct tl_setup again;
    tl_setup_init(&again);
    assert_int_equal(tl_setup_parse(&again, (char *)text.p, text.n, &fail), TL_OK);
    assert_config(&again);
    struct tl_buf second = {0};
    assert_int_equal(tl_setup_write(&again, &second), TL_OK);
    assert_int_equal(text.n, second.n);
    assert_memory_equal(text.p, second.p, text.n);
    tl_buf_fini(&text);
    tl_buf_fini(&second);
    tl_setup_fini(&s);
    tl_setup_fini(&again);
}

static void bad_text_names_its_line(void **state)
{
    static const struct {
        const char *text;
        const char *expect;
    } cases[] = {
        {"[trace]\nformat=vhs\n", "line 2"},   {"[trace]\nformat=tpiu\n\nnonsense\n", "line 4"},
        {"[colour]\nred=1\n", "colour"},       {"[source cs.10]\nTRCIDR0=many\n", "line 2"},
        {"[image a]\naddress=0x1\n", "file="}, {"[image a]\nfile=x\nspace=outer\n", "line 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tl_setup s;
        struct tl_fail fail = {0};
        tl_setup_init(&s);
        assert_int_equal(tl_setup_parse(&s, cases[i].text, strlen(cases[i].text), &fail) < 0, 1);
        if (!strstr(fail.text, cases[i].expect))
            fail_msg("'%s' does not say '%s'", fail.text, cases[i].expect);
        tl_setup_fini(&s);
    }
}

static void long_lines(void **state)
{
    char text[2000];
    struct tl_setup s;
    struct tl_fail fail = {0};
    tl_setup_init(&s);
    int n = snprintf(text, sizeof text, "; %0500d\n[trace]\ndescription=%0400d\nformat=di\n", 1, 2);
    assert_int_equal(tl_setup_parse(&s, text, (size_t)n, &fail), TL_OK);
    assert_int_equal(s.container, TL_CONTAINER_DI);
    n = snprintf(text, sizeof text, "[trace]\n[image x]\nfile=%0500d\n", 1);
    assert_int_equal(tl_setup_parse(&s, text, (size_t)n, &fail), TL_BAD);
    assert_non_null(strstr(fail.text, "line 3"));
    tl_setup_fini(&s);
}

static void the_implied_source_takes_on_the_file(void **state)
{
    struct tl_setup s;
    struct tl_fail fail = {0};
    static const char text[] = "[source cs.02]\nTRCTRACEIDR=2\ncore=ARM-AA64\n";
    tl_setup_init(&s);
    assert_int_equal(tl_setup_format(&s, "ete", &fail), TL_OK);
    assert_int_equal(tl_setup_parse(&s, text, strlen(text), &fail), TL_OK);
    assert_int_equal(s.n_sources, 1);
    assert_string_equal(s.sources[0].name, "cs.02");
    assert_int_equal(s.sources[0].protocol, TL_PROTO_ETE);
    tl_setup_fini(&s);
}

static void real_snapshots(void **state)
{
    char dir[512];
    if (!test_data(dir, sizeof dir, "coresight/snapshots/juno_r1_1")) {
        print_message("skipped: no captures here\n");
        skip();
    }
    struct tl_snapshot snap;
    struct tl_fail fail = {0};
    assert_int_equal(tl_snapshot_read(&snap, dir, NULL, NULL, &fail), TL_OK);
    assert_int_equal(snap.n_buffers, 2);
    assert_string_equal(snap.buffers[0].name, "ETB_0");
    assert_int_equal(snap.buffers[0].setup.n_sources, 6);
    assert_int_equal(snap.buffers[0].setup.n_images, 1);
    const struct tl_source *const s = tl_setup_source(&snap.buffers[0].setup, 0x10);
    assert_string_equal(s->core, "Cortex-A53");
    assert_int_equal(tl_source_reg(s, "TRCIDR0", 0), 0x28000EA1);
    assert_int_equal(snap.buffers[1].setup.sources[0].protocol, TL_PROTO_STM);
    assert_int_equal(snap.buffers[1].setup.sources[0].id, 0x20);
    tl_snapshot_fini(&snap);
    assert_int_equal(tl_snapshot_read(&snap, "/nonexistent", NULL, NULL, &fail), TL_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_and_options),
        cmocka_unit_test(text_there_and_back),
        cmocka_unit_test(bad_text_names_its_line),
        cmocka_unit_test(long_lines),
        cmocka_unit_test(the_implied_source_takes_on_the_file),
        cmocka_unit_test(real_snapshots),
    };
    return cmocka_run_group_tests_name("setup", tests, NULL, NULL);
}
