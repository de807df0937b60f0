/* SPDX-License-Identifier: MIT */
/*
 * Every packet type, every header byte that any configuration allows, and every configuration bit
 * that decides about packets: the encoder makes them all, and the packetizer finds them again, cut
 * at every place and in chunks of every size.
 */
#include "etm4/headers.h"
#include "etm4/packetizer.h"
#include "sim/etm4_encoder_packets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct packets {
    struct tl_etm4_packet *p;
    size_t n, cap;
};

static int collect(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct packets *all = context;
    assert_int_equal(tl_grow(&all->p, &all->cap, all->n + n, sizeof *all->p), 0);
    memcpy(all->p + all->n, packets, n * sizeof *packets);
    all->n += n;
    return 0;
}

/* In chunks of `chunk` bytes, the first one of `first`. */
static void check(const struct tl_sim_packets *s, size_t first, size_t chunk)
{
    struct tl_etm4_packetizer *packetizer = malloc(sizeof *packetizer);
    struct packets ours = {0};
    size_t n = first;
    tl_etm4_packetizer_init(packetizer, &s->config, false, collect, &ours);
    for (size_t at = 0; at < s->bytes.n; at += n, n = chunk) {
        n = n < s->bytes.n - at ? n : s->bytes.n - at;
        const struct tl_run run = {s->bytes.p + at, n, at, TL_RUN_LINEAR};
        assert_int_equal(tl_etm4_packetizer_push(packetizer, &run), 0);
    }
    assert_int_equal(tl_etm4_packetizer_finish(packetizer), 0);
    for (size_t i = 0; i < s->n && i < ours.n; i++)
        if (memcmp(&ours.p[i], &s->expected[i], sizeof ours.p[i]) != 0)
            fail_msg("packet %zu, first %zu, chunk %zu: type %u header %02x, expected %u %02x", i,
                     first, chunk, ours.p[i].type, ours.p[i].header, s->expected[i].type,
                     s->expected[i].header);
    assert_int_equal(ours.n, s->n);
    free(ours.p);
    free(packetizer);
}

/* A configuration for each bit, then random ones. */
static void configure(struct tl_etm4_config *c, unsigned round, struct tl_sim_rng *rng)
{
    tl_sim_packets_config(c, rng);
    switch (round) {
    case 0 ... 6: /* ETMv4.0 to 4.6, conditional and data trace on */
        c->ete = false;
        c->version = (uint8_t)(0x40 + round);
        c->conditional = c->data_trace = true;
        break;
    case 7 ... 10: /* ETE 1.0 to 1.3 */
        c->ete = true;
        c->version = (uint8_t)(0x50 + round - 7);
        c->m_profile = c->conditional = c->data_trace = false;
        c->aarch64 = true;
        break;
    case 11:
    case 12:
        c->commit_opt1 = round == 11;
        break;
    case 13:
    case 14:
        c->q_elements = round == 13;
        break;
    case 15 ... 18:
        c->vmid_bytes = (uint8_t[]){0, 1, 2, 4}[round - 15];
        break;
    case 19:
    case 20:
        c->context_bytes = round == 19 ? 0 : 4;
        break;
    case 21:
        c->ete = false;
        c->version = 0x45;
        c->m_profile = true;
        c->aarch64 = false;
        break;
    default:
        break;
    }
}

static void test_every_packet_at_every_chunking(void **state)
{
    enum { ROUNDS = 60, PACKETS = 220 };
    struct tl_sim_rng rng = {2024};
    unsigned types[TL_ETM4_TYPES] = {0};
    bool seen[256] = {0}, legal[256] = {0};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct tl_etm4_config config;
        struct tl_sim_packets s;
        uint8_t class_of[256];
        configure(&config, round, &rng);
        tl_etm4_classify(class_of, &config);
        tl_sim_packets_init(&s, &config, TL_SIM_MIX_ALL, round % 2, tl_sim_rand(&rng));
        assert_int_equal(tl_sim_packets_async(&s), 0);
        assert_int_equal(tl_sim_packets_add(&s, PACKETS), 0);
        for (size_t i = 0; i < s.n; i++) {
            types[s.expected[i].type]++;
            if (s.expected[i].type != TL_ETM4_BAD)
                seen[s.expected[i].header] = true;
        }
        for (unsigned h = 1; h < 256; h++)
            legal[h] |= class_of[h] != TL_CLASS_RESERVED && class_of[h] != TL_CLASS_RESERVED_CFG;
        for (size_t chunk = 1; chunk <= 64; chunk++)
            check(&s, chunk, chunk);
        for (size_t first = 1; first < s.bytes.n; first++)
            check(&s, first, s.bytes.n);
        /* What is left to cover with more packets, at one chunking. */
        assert_int_equal(tl_sim_packets_add(&s, 3000), 0);
        for (size_t i = 0; i < s.n; i++)
            if (s.expected[i].type != TL_ETM4_BAD)
                seen[s.expected[i].header] = true;
        check(&s, 7, 4099);
        tl_sim_packets_fini(&s);
    }
    for (unsigned type = 0; type < TL_ETM4_TYPES; type++)
        if (type != TL_ETM4_NOT_SYNC && type != TL_ETM4_INCOMPLETE && !types[type])
            fail_msg("no packet of type %u was made", type);
    for (unsigned h = 1; h < 256; h++)
        if (legal[h] && !seen[h])
            fail_msg("no packet with header %02x was made", h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_packet_at_every_chunking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
