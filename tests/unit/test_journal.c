/* SPDX-License-Identifier: MIT */
/* Lines of the journal: times, levels, escapes, length, and limits on their number. */
#include "base/journal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static int ends[2];
static char got[8192];

static int begin(void **state)
{
    unsetenv("JOURNAL_STREAM");
    return pipe2(ends, O_NONBLOCK);
}

static int end(void **state)
{
    tl_journal_open(-1, TL_JOURNAL_TEXT, TL_JOURNAL_INFO);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* What was written since the last call, "" if nothing. */
static const char *lines(void)
{
    const ssize_t n = read(ends[0], got, sizeof got - 1);
    got[n > 0 ? n : 0] = 0;
    return got;
}

static void one(enum tl_journal_level level, const char *rig)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, level, "push ended");
    tl_journal_text(&line, "rig", rig);
    tl_journal_text(&line, "trace", "");
    tl_journal_number(&line, "bytes", UINT64_MAX);
    tl_journal_seconds(&line, "took", 1500000000);
    tl_journal_end(&line);
}

static void text_has_time_level_and_values(void **state)
{
    int year, ms;
    tl_journal_open(ends[1], TL_JOURNAL_TEXT, TL_JOURNAL_INFO);
    one(TL_JOURNAL_INFO, "bench3");
    const char *const line = lines();
    assert_int_equal(sscanf(line, "%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%3dZ", &year, &ms), 2);
    assert_true(year >= 2024);
    assert_string_equal(line + 24, " info push ended: rig=bench3 bytes=18446744073709551615 "
                                   "took=1.500\n");
    one(TL_JOURNAL_DEBUG, "bench3");
    assert_string_equal(lines(), "");
    tl_journal_say(TL_JOURNAL_WARNING, "disk full");
    assert_string_equal(lines() + 24, " warning disk full\n");
}

static void values_cannot_break_a_line(void **state)
{
    tl_journal_open(ends[1], TL_JOURNAL_TEXT, TL_JOURNAL_INFO);
    one(TL_JOURNAL_INFO, "a b\n\"\\\x1b\xc2\x9b\xff\xc3\xa9");
    assert_non_null(
        strstr(lines(), " rig=\"a b\\u000a\\\"\\\\\\u001b\\u009b\\ufffd\xc3\xa9\" bytes="));
    tl_journal_open(ends[1], TL_JOURNAL_JSON, TL_JOURNAL_INFO);
    one(TL_JOURNAL_INFO, "a b\n\"\xff");
    const char *const line = lines();
    assert_memory_equal(line, "{\"time\":\"", 9);
    assert_string_equal(line + 33, "\",\"level\":\"info\",\"event\":\"push ended\","
                                   "\"rig\":\"a b\\u000a\\\"\\ufffd\","
                                   "\"bytes\":18446744073709551615,\"took\":1.500}\n");
}

static void long_values_are_cut_and_the_line_stays_whole(void **state)
{
    static const enum tl_journal_format formats[] = {TL_JOURNAL_TEXT, TL_JOURNAL_JSON};
    char much[3000];
    for (size_t f = 0; f < 2; f++)
        for (size_t n = 1380; n < sizeof much - 1; n += n < 1530 ? 1 : 700) {
            memset(much, f ? '"' : ' ', n);
            much[n] = 0;
            tl_journal_open(ends[1], formats[f], TL_JOURNAL_INFO);
            one(TL_JOURNAL_INFO, much);
            const char *const line = lines();
            const size_t length = strlen(line);
            assert_true(length > 700 && length <= 1536);
            assert_true(strchr(line, '\n') == line + length - 1);
            if (f)
                assert_true(line[length - 2] == '}');
            if (n > 1520)
                assert_non_null(strstr(line, "…\""));
        }
}

static void systemd_gets_priorities_and_no_time(void **state)
{
    struct stat st;
    char stream[64];
    assert_int_equal(fstat(ends[1], &st), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    tl_journal_open(ends[1], TL_JOURNAL_TEXT, TL_JOURNAL_INFO);
    tl_journal_why(TL_JOURNAL_ERROR, "not reloaded", "no such file");
    assert_string_equal(lines(), "<3>not reloaded: why=\"no such file\"\n");
    unsetenv("JOURNAL_STREAM");
}

static void silent_until_opened(void **state)
{
    tl_journal_open(-1, TL_JOURNAL_TEXT, TL_JOURNAL_INFO);
    one(TL_JOURNAL_ERROR, "bench3");
    assert_string_equal(lines(), "");
}

static void what_others_cause_is_limited(void **state)
{
    struct tl_journal_limit limit = {0};
    unsigned left_out = 0, written = 0;
    for (int i = 0; i < 3 * TL_JOURNAL_BURST; i++)
        written += tl_journal_may(&limit, &left_out);
    /* A new period may have begun in between. */
    assert_true(written == TL_JOURNAL_BURST || written == 2 * TL_JOURNAL_BURST);
    limit.since = 1; /* another period */
    assert_true(tl_journal_may(&limit, &left_out));
    assert_true(left_out > 0);
    assert_true(tl_journal_may(&limit, &left_out));
    assert_int_equal(left_out, 0);
}

static void names_are_known(void **state)
{
    enum tl_journal_format format;
    enum tl_journal_level level;
    assert_int_equal(tl_journal_format_parse("json", &format), TL_OK);
    assert_int_equal(format, TL_JOURNAL_JSON);
    assert_int_equal(tl_journal_format_parse("xml", &format), TL_USAGE);
    assert_int_equal(tl_journal_level_parse("warning", &level), TL_OK);
    assert_int_equal(level, TL_JOURNAL_WARNING);
    assert_int_equal(tl_journal_level_parse("loud", &level), TL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_has_time_level_and_values, begin, end),
        cmocka_unit_test_setup_teardown(values_cannot_break_a_line, begin, end),
        cmocka_unit_test_setup_teardown(long_values_are_cut_and_the_line_stays_whole, begin, end),
        cmocka_unit_test_setup_teardown(systemd_gets_priorities_and_no_time, begin, end),
        cmocka_unit_test_setup_teardown(silent_until_opened, begin, end),
        cmocka_unit_test_setup_teardown(what_others_cause_is_limited, begin, end),
        cmocka_unit_test(names_are_known),
    };
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
