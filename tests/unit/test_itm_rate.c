/* SPDX-License-Identifier: MIT */
/* What is no ITM trace, or was received at a wrong rate, is said; what is right is not doubted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/program_rng.h"
#include "stream_harness.h"
#include "unit/seed.h"

static int ignore_items(void *context, const struct tl_item *items, size_t n)
{
    (void)context;
    (void)items;
    (void)n;
    return TL_OK;
}

static int keep_reason(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)offset;
    (void)bytes;
    const char **const kept = context;
    if (strcmp(reason, TL_LOSS_CUT_OFF) != 0 &&
        (!*kept || !strstr(*kept, "baud rate") || strstr(reason, "TPIU")))
        *kept = reason;
    return TL_OK;
}

/* The reason for the losses: frames, or a wrong rate, or else the last one; NULL: there are none.
 */
static const char *reason_of(const uint8_t *bytes, size_t n)
{
    static const struct tl_source source = {.id = 1, .protocol = TL_PROTO_ITM};
    const char *reason = NULL;
    const struct tl_stream_sink sink = {
        .context = &reason, .items = ignore_items, .loss = keep_reason};
    struct tl_stream_decoder *d;
    assert_int_equal(tl_itm_ops.create(&d, &source, NULL, &sink, NULL), TL_OK);
    assert_int_equal(tl_itm_ops.push(d, &(struct tl_run){bytes, n, 0, NULL}), TL_OK);
    assert_int_equal(tl_itm_ops.finish(d, TL_LOSS_CUT_OFF), TL_OK);
    tl_itm_ops.destroy(d);
    return reason;
}

static void framing_and_noise_are_said(void **state)
{
    static uint8_t bytes[4096];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
    assert_non_null(strstr(reason_of(bytes, sizeof bytes), "baud rate"));
    for (size_t i = 0; i + 20 <= sizeof bytes; i += 20)
        memcpy(bytes + i, (const uint8_t[]){0xff, 0xff, 0xff, 0x7f}, 4);
    assert_non_null(strstr(reason_of(bytes, sizeof bytes), "TPIU"));
    /* A few bad bytes are neither. */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i == 1000 ? 0x04 : i % 2 ? 0x41 : 0x01;
    bytes[1001] = 0x01;
    assert_non_null(strstr(reason_of(bytes, sizeof bytes), "reserved"));
}

/* The level of the line at bit `at` of bytes that are sent one after the other. */
static unsigned level_at(const uint8_t *sent, size_t at)
{
    enum { BITS = 10 };
    const size_t bit = at % BITS;
    return bit == 0 ? 0 : bit == BITS - 1 ? 1 : sent[at / BITS] >> (bit - 1) & 1;
}

/* How long a bit lasts for a receiver, in bits of the sender. */
struct rate {
    unsigned bits, per;
};

/* What a receiver makes of it. */
static size_t receive(const uint8_t *sent, size_t n, struct rate rate, uint8_t *out, size_t room)
{
    const size_t end = 10 * n, bits = rate.bits, per = rate.per;
    size_t got = 0;
    for (size_t at = 0; got < room; got++) {
        while (at < end && level_at(sent, at))
            at++;
        if (at * per + 10 * bits >= end * per)
            break;
        out[got] = 0;
        for (unsigned i = 0; i < 8; i++)
            out[got] |=
                (uint8_t)(level_at(sent, (2 * per * at + (3 + 2 * i) * bits) / (2 * per)) << i);
        at += (19 * bits + 2 * per - 1) / (2 * per);
        while (at < end && !level_at(sent, at - 1) && !level_at(sent, at)) /* no stop bit */
            at++;
    }
    return got;
}

static void assert_wrong_rate_is_said(const uint8_t *sent, size_t n, struct rate rate)
{
    static uint8_t got[40000];
    const char *const reason = reason_of(got, receive(sent, n, rate, got, sizeof got));
    if (!reason || !strstr(reason, "baud rate"))
        fail_msg("rate %u/%u: %s", rate.bits, rate.per, reason ? reason : "nothing said");
}

static void wrong_rates_are_said(void **state)
{
    static const struct rate rates[] = {{1, 2}, {3, 2}, {2, 1}, {4, 1}};
    static uint8_t sent[8000];
    (void)state;
    uint32_t x = 1;
    for (size_t i = 0; i + 6 <= sizeof sent; i += 6) {
        x = x * 1664525 + 1013904223;
        sent[i] = 0x17; /* a sample of the PC, and a short local time */
        tl_put_le32(sent + i + 1, 0x08000000 + (x >> 16 & 0xfffe));
        sent[i + 5] = (uint8_t)(0x10 * (1 + (x >> 8) % 6));
    }
    assert_null(reason_of(sent, sizeof sent));
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        assert_wrong_rate_is_said(sent, sizeof sent, rates[i]);
}

/* Encode text that a program prints at `port`, `size` bytes a write; returns the bytes. */
static size_t print_text(struct tl_sim_rng *rng, unsigned port, unsigned size, uint8_t *out,
                         size_t room)
{
    static const char *const words[] = {
        "sensor ", "temperature=",     "ok\n",   "Error: ", "0x",
        "tick ",   "quick brown fox ", "value ", "[main] ", "(retry)\r\n"};
    static const uint8_t codes[] = {[1] = 1, [2] = 2, [4] = 3};
    char text[32] = "";
    size_t n = 0, at = 0;
    while (n + 1 + size <= room) {
        out[n++] = (uint8_t)(port << 3 | codes[size]);
        for (unsigned i = 0; i < size; i++) {
            while (!text[at]) {
                at = 0;
                snprintf(text, sizeof text, "%s%u ", words[tl_sim_below(rng, 10)],
                         tl_sim_below(rng, 5000));
            }
            out[n++] = (uint8_t)text[at++];
        }
    }
    return n;
}

/* Nothing but text, one byte behind the other: what comes of it can be all legal packets. */
static void wrong_rates_of_text_are_said(void **state)
{
    static const struct rate rates[] = {{1, 3}, {1, 2}, {2, 3}, {3, 4},
                                        {4, 3}, {3, 2}, {2, 1}, {3, 1}};
    static const unsigned sizes[] = {1, 2, 4};
    static uint8_t sent[8000];
    struct tl_sim_rng rng = {test_seed()};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const size_t n = print_text(&rng, 0, sizes[s], sent, sizeof sent);
        assert_null(reason_of(sent, n));
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
            assert_wrong_rate_is_said(sent, n, rates[i]);
    }
}

/* Text and values on any ports, in writes of any size, are no reason to doubt the rate. */
static void right_rates_are_not_doubted(void **state)
{
    static const unsigned sizes[] = {1, 2, 4};
    static uint8_t sent[8000];
    struct tl_sim_rng rng = {test_seed()};
    (void)state;
    for (int round = 0; round < 300; round++) {
        const unsigned ports = 1 + tl_sim_below(&rng, 32), kind = tl_sim_below(&rng, 3);
        const uint32_t most = 1u << (1 + tl_sim_below(&rng, 31));
        size_t n = 0;
        while (n + 200 <= sizeof sent) {
            const unsigned port = tl_sim_below(&rng, ports), size = sizes[tl_sim_below(&rng, 3)];
            if (kind == 0 || (kind == 1 && tl_sim_below(&rng, 2))) {
                n += print_text(&rng, port, size, sent + n, 1 + tl_sim_below(&rng, 150));
                continue;
            }
            sent[n++] = (uint8_t)(port << 3 | (size == 4 ? 3 : size));
            tl_put_le32(sent + n, tl_sim_below(&rng, most));
            n += size;
        }
        const char *const reason = reason_of(sent, n);
        if (reason)
            fail_msg("round %d: %u ports, kind %u, values below %" PRIu32 ": %s", round, ports,
                     kind, most, reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(framing_and_noise_are_said),
        cmocka_unit_test(wrong_rates_are_said),
        cmocka_unit_test(wrong_rates_of_text_are_said),
        cmocka_unit_test(right_rates_are_not_doubted),
    };
    return cmocka_run_group_tests_name("itm_rate", tests, NULL, NULL);
}
