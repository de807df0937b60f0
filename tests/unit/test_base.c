/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/args.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/numbers.h"
#include "base/prometheus.h"
#include "frame/run.h"
#include "unit/framed.h"

#include <errno.h>
#include <string.h>

static void crc_of_known_bytes(void **state)
{
    /* RFC 3720, B.4 */
    uint8_t zeros[32] = {0};
    uint8_t ones[32];
    uint8_t up[32];
    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++)
        up[i] = i;
    assert_int_equal(tl_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(tl_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(tl_crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(tl_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(tl_crc32c(tl_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

/* Bit by bit, from the polynomial. */
static uint32_t crc_by_bits(const uint8_t *p, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (; n > 0; n--) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

/* For any length, in two pieces, at any alignment. */
static void crc_of_many(void **state)
{
    static uint8_t bytes[6000];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
    for (size_t n = 0; n < sizeof bytes; n += 1 + n / 50) {
        const size_t begin = (random = random * 1664525 + 1013904223) >> 8 & 31,
                     end = begin + n < sizeof bytes ? begin + n : sizeof bytes,
                     middle = begin + (random >> 13) % (end - begin + 1);
        const uint32_t crc = tl_crc32c(0, bytes + begin, middle - begin);
        assert_int_equal(tl_crc32c(crc, bytes + middle, end - middle),
                         crc_by_bits(bytes + begin, end - begin));
        assert_int_equal(
            tl_crc32c_join(crc, tl_crc32c(0, bytes + middle, end - middle), end - middle),
            crc_by_bits(bytes + begin, end - begin));
    }
}

static void buffer_grows_and_drops(void **state)
{
    struct tl_buf b = {0};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(tl_buf_printf(&b, "%d,", i), TL_OK);
    assert_int_equal(b.n, 10 * 2 + 90 * 3 + 900 * 4);
    tl_buf_drop(&b, 2);
    assert_memory_equal(b.p, "1,2,3", 5);
    tl_buf_drop(&b, b.n);
    assert_int_equal(b.n, 0);
    assert_int_equal(tl_buf_reserve(&b, SIZE_MAX), TL_NOMEM);
    tl_buf_fini(&b);
}

static void failures_keep_the_first_cause(void **state)
{
    struct tl_fail fail;
    errno = ENOSPC;
    assert_int_equal(tl_fail_set(&fail, TL_IO, "%s", "no"), TL_IO);
    assert_int_equal(fail.sys_errno, ENOSPC);
    assert_true(fail.offset == TL_NO_OFFSET);
    assert_int_equal(tl_fail_at(NULL, TL_BAD, 3, "ignored"), TL_BAD);
    struct tl_buf b = {0};
    assert_int_equal(tl_buf_read_file(&b, "/nonexistent/file", 10, &fail), TL_IO);
    assert_non_null(strstr(fail.text, "/nonexistent/file"));
    assert_int_equal(tl_buf_read_file(&b, "/proc/self/status", 10, &fail), TL_LIMIT);
    assert_int_equal(tl_buf_read_file(&b, "/dev/zero", SIZE_MAX / 2, &fail), TL_LIMIT);
    assert_string_equal(fail.text, "/dev/zero: larger than 1048576 bytes");
    assert_int_equal(tl_buf_read_file(&b, "/dev/null", SIZE_MAX / 2, &fail), TL_OK);
    tl_buf_fini(&b);
}

static void offsets_inside_frames(void **state)
{
    uint8_t bytes[64] = {0};
    const struct tl_run linear = {bytes, 64, 100, NULL};
    assert_int_equal(tl_run_offset(&linear, 7), 107);
    /* Byte 13 of the frame at 0x20: bytes are at 0x2d, 0x2e, then 0x30 … 0x3e, 0x40. */
    const struct tl_run framed = framed_run(bytes, 64, 43);
    assert_int_equal(tl_run_offset(&framed, 0), 0x2d);
    assert_int_equal(tl_run_offset(&framed, 1), 0x2e);
    assert_int_equal(tl_run_offset(&framed, 2), 0x30);
    assert_int_equal(tl_run_offset(&framed, 16), 0x3e);
    assert_int_equal(tl_run_offset(&framed, 17), 0x40);
    for (size_t cut = 0; cut < 64; cut++) {
        const struct tl_run tail = tl_run_from(&framed, cut);
        assert_int_equal(tail.n, 64 - cut);
        for (size_t i = 0; i < tail.n; i++)
            assert_int_equal(tl_run_offset(&tail, i), tl_run_offset(&framed, cut + i));
    }
}

static void integers_in_stated_order(void **state)
{
    uint8_t b[8];
    tl_put_le64(b, 0x0102030405060708u);
    assert_int_equal(b[0], 8);
    assert_true(tl_le64(b) == 0x0102030405060708u);
    assert_int_equal(tl_le32(b), 0x05060708);
    assert_int_equal(tl_le16(b), 0x0708);
    tl_put_be16(b, 0x1234);
    assert_int_equal(b[0], 0x12);
    assert_int_equal(tl_be16(b), 0x1234);
}

static void numbers_are_exact(void **state)
{
    static const char *const bad[] = {"",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "0x",
                                      "0x0x1",
                                      "1e3",
                                      "ff",
                                      "1K",
                                      "0x-1",
                                      "0xg",
                                      "18446744073709551616"};
    uint64_t n = 5;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tl_number_parse(bad[i], &n), TL_USAGE);
    assert_int_equal(n, 5);
    assert_int_equal(tl_number_parse("18446744073709551615", &n), TL_OK);
    assert_true(n == UINT64_MAX);
    assert_int_equal(tl_number_parse("0XfFffFfffffffFFFF", &n), TL_OK);
    assert_true(n == UINT64_MAX);
    assert_int_equal(tl_number_parse("010", &n), TL_OK);
    assert_int_equal(n, 10);
    static const char *const no_address[] = {"", "0x", "+1", " 1", "x", "1g", "10000000000000000"};
    for (size_t i = 0; i < sizeof no_address / sizeof *no_address; i++)
        assert_int_equal(tl_pc_parse(no_address[i], strlen(no_address[i]), &n), TL_USAGE);
    assert_int_equal(tl_pc_parse("0000000000400210:5", 16, &n), TL_OK);
    assert_int_equal(n, 0x400210);
    assert_int_equal(tl_pc_parse("0xFF", 4, &n), TL_OK);
    assert_int_equal(n, 255);
}

static void arguments_by_a_table(void **state)
{
    bool flag = false;
    const char *text = NULL;
    uint64_t number = 1, size = 0;
    static struct tl_arg_list list;
    struct tl_arg_range range = {0}, bytes = {0};
    const struct tl_arg args[] = {
        {"flag", TL_ARG_FLAG, &flag},    {"text", TL_ARG_TEXT, &text},
        {"n", TL_ARG_U64, &number},      {"size", TL_ARG_SIZE, &size},
        {"list", TL_ARG_LIST, &list},    {"range", TL_ARG_RANGE, &range},
        {"bytes", TL_ARG_BYTES, &bytes}, {0},
    };
    static const struct {
        const char *name, *text;
        bool good;
    } sets[] = {{"flag", "maybe", false},  {"flag", "yes", true},
                {"text", "", true},        {"n", "0x20", true},
                {"n", "32K", false},       {"size", "3G", true},
                {"size", "2T", true},      {"size", "3P", false},
                {"size", "K", false},      {"size", "17179869184G", false},
                {"list", "a", true},       {"list", "b", true},
                {"range", "1K:2M", true},  {"bytes", "1K:2M", true},
                {"range", "1k:2k", false}, {"range", "7:K", false},
                {"range", "7K:", true},    {"range", "7", false},
                {"range", "9:8", false}};
    (void)state;
    assert_null(tl_arg_find(args, "fla", 3));
    assert_null(tl_arg_find(args, "flags", 5));
    assert_ptr_equal(tl_arg_find(args, "range=7:", 5), &args[5]);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        assert_int_equal(
            !tl_arg_set(tl_arg_find(args, sets[i].name, strlen(sets[i].name)), sets[i].text),
            sets[i].good);
    assert_true(flag && number == 32 && size == UINT64_C(2) << 40 && list.n == 2 && range.given);
    assert_string_equal(text, "");
    assert_string_equal(list.v[1], "b");
    assert_true(range.from == 7000 && range.to == UINT64_MAX);
    assert_true(bytes.from == 1 << 10 && bytes.to == 2 << 20);
}

static void times_have_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
        bool ns;
    } good[] = {{"0", 0, false},
                {"81200", 81200, false},
                {"0x10", 16, false},
                {"18446744073709551615", UINT64_MAX, false},
                {"0s", 0, true},
                {"7ns", 7, true},
                {"1.5ms", 1500000, true},
                {"59.7ms", 59700000, true},
                {"200us", 200000, true},
                {"200\xc2\xb5s", 200000, true},
                {"200\xce\xbcs", 200000, true},
                {"0.25s", 250000000, true},
                {"1.0000000019s", 1000000001, true}, /* rounded down */
                {"9007199.254740993s", UINT64_C(9007199254740993), true},
                {"18446744073.709551615s", UINT64_MAX, true}};
    static const char *const bad[] = {"",
                                      "s",
                                      "ms",
                                      ".5ms",
                                      "1.ms",
                                      "1,5ms",
                                      "1.5",
                                      "-1ms",
                                      "+1ms",
                                      "1 ms",
                                      "1ms ",
                                      "1m",
                                      "1h",
                                      "1MS",
                                      "1e3s",
                                      "1.5.5s",
                                      "ns1",
                                      "0x10s",
                                      "1µ",
                                      "1sms",
                                      "18446744073.709551616s",
                                      "18446744073709551616",
                                      "99999999999999999999s"};
    struct tl_time_arg time = {5, true};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tl_time_parse(bad[i], &time), TL_USAGE);
    assert_true(time.value == 5 && time.ns);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(tl_time_parse(good[i].text, &time), TL_OK);
        assert_true(time.value == good[i].value && time.ns == good[i].ns);
    }
}

static void ranges_of_time(void **state)
{
    static const struct {
        const char *text;
        uint64_t from, to;
        bool ns;
    } good[] = {{":", 0, UINT64_MAX, false},
                {"5:", 5, UINT64_MAX, false},
                {":7", 0, 7, false},
                {"5:5", 5, 5, false},
                {"5:+7", 5, 12, false},
                {":+7", 0, 7, false},
                {"1us:", 1000, UINT64_MAX, true},
                {":1us", 0, 1000, true},
                {"0:1us", 0, 1000, true},
                {"1us:+0", 1000, 1000, true},
                {"59.7ms:+200us", 59700000, 59900000, true},
                {"1.5ms:2ms", 1500000, 2000000, true},
                {"18446744073709551614:+1", UINT64_MAX - 1, UINT64_MAX, false}};
    static const char *const bad[] = {"",
                                      "5",
                                      "7:5",
                                      "2ms:1ms",
                                      "5:1ms",
                                      "1ms:5",
                                      "1ms:+5",
                                      "5:+1ms",
                                      "1ms:+",
                                      "1:2:3",
                                      "a:b",
                                      "1:-2",
                                      "1ms:2ms:",
                                      "+1:2",
                                      "1ms:1us",
                                      "0s:5",
                                      ":+x",
                                      "18446744073709551615:+1",
                                      "18446744073s:+1s"};
    struct tl_time_range range = {1, 2, true, true};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tl_time_range_parse(bad[i], &range), TL_USAGE);
    assert_true(range.from == 1 && range.to == 2);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(tl_time_range_parse(good[i].text, &range), TL_OK);
        assert_true(range.from == good[i].from && range.to == good[i].to &&
                    range.ns == good[i].ns && range.given);
    }
    assert_int_equal(tl_time_ends_parse(NULL, NULL, &range), TL_OK);
    assert_true(range.from == 0 && range.to == UINT64_MAX && !range.ns);
}

/* Keys that are adjacent, far apart, or in the same slot of any table. */
static uint64_t some_key(uint32_t i)
{
    return i % 3 == 0 ? i : i % 3 == 1 ? (uint64_t)i << 44 : UINT64_MAX - i;
}

static void keys_have_numbers(void **state)
{
    enum { KEYS = 30000 };
    struct tl_numbers t = {0};
    (void)state;
    assert_true(tl_numbers_find(&t, 0) == TL_NO_NUMBER);
    tl_numbers_reset(&t);
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < KEYS; i++) {
            assert_true(tl_numbers_find(&t, some_key(i)) == TL_NO_NUMBER);
            assert_int_equal(tl_numbers_add(&t, some_key(i)), TL_OK);
            assert_int_equal(tl_numbers_find(&t, some_key(i)), i);
        }
        assert_int_equal(t.n, KEYS);
        for (uint32_t i = 0; i < KEYS; i++) {
            assert_int_equal(tl_numbers_find(&t, some_key(i)), i);
            assert_true(t.keys[i] == some_key(i));
        }
        assert_true(tl_numbers_find(&t, UINT64_C(1) << 63) == TL_NO_NUMBER);
        tl_numbers_reset(&t);
        assert_true(tl_numbers_find(&t, some_key(5)) == TL_NO_NUMBER);
    }
    tl_numbers_fini(&t);
}

static void metrics_have_types_and_labels(void **state)
{
    static const char text[] = "# HELP tracelake_total_of Of it.\n# TYPE tracelake_total_of gauge\n"
                               "tracelake_total_of 18446744073709551615\n"
                               "# HELP tracelake_calls_total Calls.\n"
                               "# TYPE tracelake_calls_total counter\n"
                               "tracelake_calls_total{code=\"7\"} 12\n";
    const struct tl_metric one = {"total_of", "Of it.", UINT64_MAX};
    struct tl_buf out = {0};
    (void)state;
    assert_int_equal(tl_metrics_add(&out, &one, 1), TL_OK);
    assert_int_equal(tl_metric_begin(&out, "calls_total", "Calls."), TL_OK);
    assert_int_equal(tl_metric_sample(&out, "calls_total", 12, "code=\"%d\"", 7), TL_OK);
    assert_int_equal(out.n, sizeof text - 1);
    assert_memory_equal(out.p, text, out.n);
    tl_buf_fini(&out);
}

static void histograms_are_cumulative(void **state)
{
    struct tl_histogram h = {0};
    struct tl_buf out = {0};
    (void)state;
    tl_histogram_add(&h, 500000); /* a bound belongs to its bucket */
    tl_histogram_add(&h, 500001);
    tl_histogram_add(&h, 31000000000); /* above all bounds */
    assert_int_equal(tl_histogram_begin(&out, "x_seconds", "X."), TL_OK);
    assert_int_equal(tl_histogram_series(&out, "x_seconds", &h, "of", "a"), TL_OK);
    assert_int_equal(tl_histogram_series(&out, "x_seconds", &h, NULL, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    const char *const text = (const char *)out.p;
    assert_non_null(strstr(text, "# TYPE tracelake_x_seconds histogram\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_bucket{of=\"a\",le=\"0.0005\"} 1\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_bucket{of=\"a\",le=\"0.001\"} 2\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_bucket{of=\"a\",le=\"30\"} 2\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_bucket{of=\"a\",le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_sum{of=\"a\"} 31.001000001\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_count{of=\"a\"} 3\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_bucket{le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(text, "tracelake_x_seconds_count 3\n"));
    tl_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histograms_are_cumulative),
        cmocka_unit_test(metrics_have_types_and_labels),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(keys_have_numbers),
        cmocka_unit_test(arguments_by_a_table),
        cmocka_unit_test(times_have_units),
        cmocka_unit_test(ranges_of_time),
        cmocka_unit_test(crc_of_known_bytes),
        cmocka_unit_test(crc_of_many),
        cmocka_unit_test(buffer_grows_and_drops),
        cmocka_unit_test(failures_keep_the_first_cause),
        cmocka_unit_test(offsets_inside_frames),
        cmocka_unit_test(integers_in_stated_order),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
