/* SPDX-License-Identifier: MIT */
/* The text of a live stream, received in calls that break from servers that divide it differently,
 * equals the text of a single call: nothing is repeated or missing. */
#include "out/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { INSNS = 400 };

/* Instruction i has lengths[i] bytes of text, from starts[i] on. */
static size_t starts[INSNS + 1];
static uint8_t text[INSNS * 8], got[INSNS * 8];
static size_t n_got;
static unsigned seed;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void make_text(void)
{
    for (size_t i = 0; i < INSNS; i++)
        starts[i + 1] = starts[i] + 1 + draw(8);
    for (size_t i = 0; i < starts[INSNS]; i++)
        text[i] = (uint8_t)draw(256);
    n_got = 0;
}

/* A call: parts of several instructions, in pieces of several bytes, only some of which arrive. */
static void call(struct tl_parts *parts, unsigned pieces)
{
    size_t begin = (size_t)parts->part;
    tl_parts_again(parts);
    while (begin < INSNS) {
        const size_t end =
            begin + 1 + draw(INSNS - (unsigned)begin < 60 ? INSNS - (unsigned)begin : 60);
        for (size_t at = starts[begin]; at < starts[end];) {
            if (pieces-- == 0)
                return;
            const size_t left = starts[end] - at, most = 1 + draw(100);
            const size_t n = left < most ? left : most;
            const struct tl_bytes fresh =
                tl_parts_take(parts, begin, (struct tl_bytes){text + at, n});
            assert_true(n_got + fresh.n <= sizeof got);
            memcpy(got + n_got, fresh.p, fresh.n);
            n_got += fresh.n;
            at += n;
        }
        begin = end;
    }
}

static void calls_that_break(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 500; round++) {
        struct tl_parts parts = {0};
        seed = round;
        make_text();
        for (unsigned breaks = draw(12); breaks > 0; breaks--)
            call(&parts, draw(20));
        call(&parts, UINT32_MAX);
        assert_int_equal(n_got, starts[INSNS]);
        assert_memory_equal(got, text, n_got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_that_break)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
