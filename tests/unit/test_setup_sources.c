/* SPDX-License-Identifier: MIT */
/* What a setup tells of software trace: the forms of stimulus ports, whose time it has, and where the
 * connection that it came by was lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "setup/registers.h"
#include "setup/setup.h"
#include "setup/timestamps.h"

#include <stdio.h>
#include <string.h>

static void note_report(void *context, const char *text)
{
    assert_int_equal(tl_buf_printf(context, "%s\n", text), TL_OK);
}

static void ports(void **state)
{
    static const char text[] =
        "[trace]\nformat=tpiu\n[source cs.01]\nprotocol=itm\nport3=text\n"
        "PORT31=U32\nport255=float\n[source cs.10]\nprotocol=etm4\nport1=i8\n";
    struct tl_setup s, again;
    struct tl_fail fail;
    struct tl_buf out = {0}, reports = {0};
    tl_setup_init(&s);
    assert_int_equal(tl_setup_parse(&s, text, sizeof text - 1, &fail), TL_OK);
    assert_int_equal(tl_setup_write(&s, &out), TL_OK);
    tl_setup_init(&again);
    assert_int_equal(tl_setup_parse(&again, (const char *)out.p, out.n, &fail), TL_OK);
    const uint8_t *const forms = again.sources[0].ports;
    assert_int_equal(forms[3], TL_PORT_TEXT);
    assert_int_equal(forms[31], TL_PORT_U32);
    assert_int_equal(forms[255], TL_PORT_FLOAT);
    assert_int_equal(forms[0], TL_PORT_UNKNOWN);
    tl_setup_check_registers(&again, note_report, &reports);
    assert_int_equal(tl_buf_add(&reports, "", 1), TL_OK);
    assert_string_equal((char *)reports.p,
                        "[source cs.10]: port1 is ignored: only an ITM has ports\n");
    tl_setup_fini(&again);
    tl_setup_fini(&s);
    tl_buf_fini(&out);
    tl_buf_fini(&reports);
    static const char *const bad[] = {"port256=text", "port3=words", "port3=", "port3=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[80];
        snprintf(line, sizeof line, "[trace]\nformat=itm\n[source cs.01]\n%s\n", bad[i]);
        tl_setup_init(&s);
        assert_int_equal(tl_setup_parse(&s, line, strlen(line), &fail), TL_BAD);
        tl_setup_fini(&s);
    }
}

/* A counter of its own is the capture's time if nothing else has any. */
static void times_of_software_trace(void **state)
{
    static const struct {
        const char *itm, *other;
        bool timed;
    } cases[] = {
        {"", "", true},
        {"", "[source cs.10]\nprotocol=etm3\nETMCR=0x10001000\n", false},
        {"", "[source cs.10]\nprotocol=etm3\nETMCR=0x1000\n", true},
        {"", "[source cs.10]\nprotocol=etm3\n", false},
        {"", "[source cs.10]\nprotocol=etm4\nTRCCONFIGR=0x801\n", false},
        {"", "[source cs.10]\nprotocol=etm4\nTRCCONFIGR=1\n", true},
        {"ITMTCR=0x10003\n", "[source cs.10]\nprotocol=etm4\nTRCCONFIGR=0x801\n", false},
        {"ITMTCR=0x10c03\n", "[source cs.10]\nprotocol=etm4\nTRCCONFIGR=0x801\n", true},
        {"", "[source cs.02]\nprotocol=itm\n", true},
        {"", "[source cs.20]\nprotocol=stm\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        struct tl_setup s;
        tl_setup_init(&s);
        const int n =
            snprintf(text, sizeof text, "[trace]\nformat=tpiu\n[source cs.01]\nprotocol=itm\n%s%s",
                     cases[i].itm, cases[i].other);
        assert_int_equal(tl_setup_parse(&s, text, (size_t)n, NULL), TL_OK);
        assert_int_equal(tl_source_is_timed(&s, &s.sources[0]), cases[i].timed);
        tl_setup_fini(&s);
    }
}

/* Places where a connection was lost rise, and keep when that was. */
static void lost_connections(void **state)
{
    static const char text[] = "[trace]\nformat=itm\nlost=0x10\n[trace]\n"
                               "lost=4096 2026-11-30T13:05:01.123Z 1.204 s\n";
    static const char *const bad[] = {"0",
                                      "x",
                                      "",
                                      "10x",
                                      "5\nlost=5",
                                      "5\nlost=4",
                                      "5 0123456789012345678901234567890123456789012345678"};
    struct tl_setup s, again;
    struct tl_fail fail;
    struct tl_buf out = {0};
    char when[TL_LOSS_WHEN];
    (void)state;
    tl_setup_init(&s);
    assert_int_equal(tl_setup_parse(&s, text, sizeof text - 1, &fail), TL_OK);
    assert_int_equal(tl_setup_write(&s, &out), TL_OK);
    tl_setup_init(&again);
    assert_int_equal(tl_setup_parse(&again, (const char *)out.p, out.n, &fail), TL_OK);
    assert_int_equal(again.n_losses, 2);
    assert_int_equal(again.losses[0].offset, 16);
    assert_string_equal(again.losses[0].when, "-");
    assert_int_equal(again.losses[1].offset, 4096);
    tl_loss_when(when, 1796043901123000000, 1796043902327000000);
    assert_string_equal(again.losses[1].when, when);
    tl_loss_when(when, 0, 5);
    assert_string_equal(when, "-");
    tl_setup_fini(&again);
    tl_setup_fini(&s);
    tl_buf_fini(&out);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char lines[120];
        snprintf(lines, sizeof lines, "[trace]\nformat=itm\nlost=%s\n", bad[i]);
        tl_setup_init(&s);
        assert_int_equal(tl_setup_parse(&s, lines, strlen(lines), &fail), TL_BAD);
        tl_setup_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports),
        cmocka_unit_test(times_of_software_trace),
        cmocka_unit_test(lost_connections),
    };
    return cmocka_run_group_tests_name("setup_sources", tests, NULL, NULL);
}
