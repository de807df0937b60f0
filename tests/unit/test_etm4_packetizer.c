/* SPDX-License-Identifier: MIT */
#include "etm4/packetizer.h"
#include "sim/etm4_encoder_packets.h"
#include "unit/etm4_collect.h"
#include "unit/framed.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct tl_etm4_config etm4_config = {.version = 0x44,
                                                  .v8 = true,
                                                  .aarch64 = true,
                                                  .vmid_bytes = 1,
                                                  .context_bytes = 4,
                                                  .address_bits = 64,
                                                  .cycle_bits = 20,
                                                  .commit_opt1 = true};

/* Packetize `bytes` in chunks of `min` to `most` bytes. */
static void split(struct packets *out, const struct tl_etm4_config *config, const uint8_t *p,
                  size_t n, struct tl_sim_rng *rng, uint32_t min, uint32_t most)
{
    struct tl_etm4_packetizer *packetizer = malloc(sizeof *packetizer);
    out->n = 0;
    tl_etm4_packetizer_init(packetizer, config, collect, out);
    for (size_t i = 0; i < n;) {
        size_t size = tl_sim_between(rng, min, most);
        if (size > n - i)
            size = n - i;
        const struct tl_run run = {p + i, size, i, NULL};
        assert_int_equal(tl_etm4_packetizer_push(packetizer, &run), 0);
        i += size;
    }
    assert_int_equal(tl_etm4_packetizer_finish(packetizer), 0);
    free(packetizer);
}

static void expect(const struct packets *ours, const struct tl_etm4_packet *expected, size_t n)
{
    for (size_t i = 0; i < n && i < ours->n; i++)
        if (memcmp(&ours->p[i], &expected[i], sizeof expected[i]) != 0)
            fail_msg("packet %zu of %zu at %llu: type %u header %02x value %llx; expected type "
                     "%u header %02x value %llx",
                     i, n, (unsigned long long)ours->p[i].offset, ours->p[i].type,
                     ours->p[i].header, (unsigned long long)ours->p[i].value, expected[i].type,
                     expected[i].header, (unsigned long long)expected[i].value);
    assert_int_equal(ours->n, n);
}

/* Random packets of every type under random configurations, at random chunkings. */
static void test_round_trip(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    struct tl_sim_rng rng = {seed};
    struct packets ours = {0};

    for (unsigned round = 0; round < 150; round++) {
        struct tl_etm4_config config;
        struct tl_sim_packets s;

        tl_sim_packets_config(&config, &rng);
        tl_sim_packets_init(&s, &config, (enum tl_sim_mix)(round % TL_SIM_MIXES), round & 1,
                            tl_sim_rand(&rng));
        assert_int_equal(tl_sim_packets_async(&s), 0);
        assert_int_equal(tl_sim_packets_add(&s, 2000), 0);
        split(&ours, &config, s.bytes.p, s.bytes.n, &rng, 1000000, 1000000);
        expect(&ours, s.expected, s.n);
        split(&ours, &config, s.bytes.p, s.bytes.n, &rng, 1, 20);
        expect(&ours, s.expected, s.n);
        split(&ours, &config, s.bytes.p, s.bytes.n, &rng, 1, 1);
        expect(&ours, s.expected, s.n);
        tl_sim_packets_fini(&s);
    }
    free(ours.p);
}

/* Arbitrary bytes give the same packets in any chunks, without reading past the end. */
static void test_noise(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {21};
    struct packets whole = {0}, pieces = {0};

    for (unsigned round = 0; round < 200; round++) {
        struct tl_etm4_config config;
        uint8_t *noise = malloc(3000);

        tl_sim_packets_config(&config, &rng);
        memset(noise, 0, 11);
        noise[11] = 0x80;
        for (unsigned i = 12; i < 3000; i++)
            noise[i] = tl_sim_percent(&rng, 20) ? 0 : (uint8_t)tl_sim_rand(&rng);
        split(&whole, &config, noise, 3000, &rng, 3000, 3000);
        split(&pieces, &config, noise, 3000, &rng, 1, 9);
        expect(&pieces, whole.p, whole.n);
        free(noise);
    }
    free(whole.p);
    free(pieces.p);
}

static void test_out_of_sync(void **state)
{
    (void)state;
    /* 3 zeros too many, inside noise; A-Sync; an exact match; a truncated packet */
    static const uint8_t bytes[] = {0x95, 0x00, 0x80, 0x55, 0, 0, 0,    0,    0,    0,    0,   0,
                                    0,    0,    0,    0,    0, 0, 0x80, 0x04, 0x9a, 0x11, 0x22};
    struct tl_sim_rng rng = {1};
    struct packets ours = {0};

    for (uint32_t chunk = 1; chunk <= sizeof bytes; chunk++) {
        split(&ours, &etm4_config, bytes, sizeof bytes, &rng, chunk, chunk);
        assert_int_equal(ours.n, 4);
        assert_int_equal(ours.p[0].type, TL_ETM4_NOT_SYNC);
        assert_int_equal(ours.p[0].value, 7);
        assert_int_equal(ours.p[0].offset, 0);
        assert_int_equal(ours.p[1].type, TL_ETM4_ASYNC);
        assert_int_equal(ours.p[1].offset, 7);
        assert_int_equal(ours.p[2].type, TL_ETM4_TRACE_ON);
        assert_int_equal(ours.p[3].type, TL_ETM4_INCOMPLETE);
        assert_int_equal(ours.p[3].offset, 20);
    }
    split(&ours, &etm4_config, bytes, 10, &rng, 3, 3);
    assert_int_equal(ours.n, 1);
    assert_int_equal(ours.p[0].type, TL_ETM4_NOT_SYNC);
    assert_int_equal(ours.p[0].value, 10);
    free(ours.p);
}

/* The first A-Sync is found after any number of zeros, in any chunks; chunks of up to 9 bytes are
 * searched byte by byte. */
static void test_first_sync(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {test_seed()};
    struct packets whole = {0}, pieces = {0};
    unsigned found = 0;

    for (unsigned round = 0; round < 2000; round++) {
        uint8_t noise[400];
        const size_t n = tl_sim_between(&rng, 1, sizeof noise);
        for (size_t i = 0; i < n;) {
            for (uint32_t zeros = tl_sim_between(&rng, 0, 12); zeros > 0 && i < n; zeros--)
                noise[i++] = 0;
            for (uint32_t more = tl_sim_between(&rng, 1, 30); more > 0 && i < n; more--)
                noise[i++] = tl_sim_percent(&rng, 20) ? 0x80 : (uint8_t)tl_sim_rand(&rng);
        }
        split(&whole, &etm4_config, noise, n, &rng, 400, 400);
        split(&pieces, &etm4_config, noise, n, &rng, 1, 9);
        expect(&pieces, whole.p, whole.n);
        found += whole.n > 1;
    }
    assert_true(found > 100 && found < 1900);
    free(whole.p);
    free(pieces.p);
}

/* Offsets account for the frames that contained the bytes. */
static void test_frame_offsets(void **state)
{
    (void)state;
    uint8_t bytes[60] = {[11] = 0x80};
    struct packets ours = {0};
    struct tl_etm4_packetizer *p = malloc(sizeof *p);
    memset(bytes + 12, 0x04, 48);
    tl_etm4_packetizer_init(p, &etm4_config, collect, &ours);
    const struct tl_run first = framed_run(bytes, 20, 3); /* bytes 3..14 of a frame, then 0..7 */
    assert_int_equal(tl_etm4_packetizer_push(p, &first), 0);
    const struct tl_run second = framed_run(bytes + 20, 40, 23); /* continues in the same frame */
    assert_int_equal(tl_etm4_packetizer_push(p, &second), 0);
    assert_int_equal(ours.n, 49);
    for (size_t i = 0; i < ours.n; i++) {
        const size_t place = 3 + (i == 0 ? 0 : i + 11);
        assert_int_equal(ours.p[i].offset, framed_offset(place));
    }
    free(p);
    free(ours.p);
}

static void test_sink_fails(void **state)
{
    (void)state;
    uint8_t bytes[5000] = {[11] = 0x80};
    struct packets ours = {.stop_at = 600};
    struct tl_etm4_packetizer *p = malloc(sizeof *p);
    const struct tl_run run = {bytes, sizeof bytes, 0, NULL};

    memset(bytes + 12, 0x04, sizeof bytes - 12);
    tl_etm4_packetizer_init(p, &etm4_config, collect, &ours);
    assert_int_equal(tl_etm4_packetizer_push(p, &run), TL_CANCELLED);
    assert_int_equal(ours.n, 768);
    free(p);
    free(ours.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_noise),
        cmocka_unit_test(test_out_of_sync),   cmocka_unit_test(test_first_sync),
        cmocka_unit_test(test_frame_offsets), cmocka_unit_test(test_sink_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
