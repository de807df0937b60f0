/* SPDX-License-Identifier: MIT */
/*
 * Traces of software, as bytes: random packets of ITM, STM and of an Open SoC Debug system's STM.
 */
#ifndef TL_TESTS_SOFT_BYTES_H
#define TL_TESTS_SOFT_BYTES_H

#include "base/buf.h"
#include "sim/osd_encoder.h"
#include "sim/program_rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* ITM: synchronisation, then writes to stimulus ports. */
static inline void make_itm(struct tl_buf *out, struct tl_sim_rng *rng, unsigned packets)
{
    static const uint8_t sync[] = {0, 0, 0, 0, 0, 0x80};
    assert_int_equal(tl_buf_add(out, sync, sizeof sync), TL_OK);
    while (packets-- > 0) {
        const unsigned size = 1u << tl_sim_below(rng, 3);
        uint8_t packet[5] = {(uint8_t)(tl_sim_below(rng, 32) << 3 | (size == 4 ? 3 : size))};
        for (unsigned i = 1; i <= size; i++)
            packet[i] = (uint8_t)(1 + tl_sim_below(rng, 255));
        assert_int_equal(tl_buf_add(out, packet, 1 + size), TL_OK);
    }
}

/* STM: synchronisation, version, master and channel, then 32-bit writes. */
static inline void make_stm(struct tl_buf *out, struct tl_sim_rng *rng, unsigned packets)
{
    char nibbles[4096];
    int n = sprintf(nibbles,
                    "fffffffffffffffffffff0f003110"
                    "3%02x",
                    tl_sim_below(rng, 256));
    while (packets-- > 0 && n < 4000)
        n += sprintf(nibbles + n, "6%08x", (unsigned)tl_sim_rand(rng));
    n += n & 1 ? sprintf(nibbles + n, "0") : 0;
    for (int i = 0; i < n; i += 2) {
        const char low[] = {nibbles[i], 0}, high[] = {nibbles[i + 1], 0};
        const uint8_t byte = (uint8_t)(strtoul(low, NULL, 16) | strtoul(high, NULL, 16) << 4);
        assert_int_equal(tl_buf_add(out, &byte, 1), TL_OK);
    }
}

/* DI: a system with one STM, enumerated, then its events. */
static inline void make_di(struct tl_buf *out, struct tl_sim_rng *rng, unsigned events)
{
    static const struct tl_sim_osd_module modules[] = {{0, TL_SIM_OSD_SCM, 0},
                                                       {1, TL_SIM_OSD_STM, 32}};
    struct tl_sim_osd e;
    tl_sim_osd_init(&e);
    assert_int_equal(tl_sim_osd_enumerate(&e, modules, 2), TL_OK);
    for (uint32_t time = 1; events-- > 0; time += tl_sim_below(rng, 100))
        assert_int_equal(tl_sim_osd_stm(&e, 1, 32, time, 0, tl_sim_below(rng, 256)), TL_OK);
    assert_int_equal(tl_buf_add(out, e.out.p, e.out.n), TL_OK);
    tl_sim_osd_fini(&e);
}

#endif
