/* SPDX-License-Identifier: MIT */
/*
 * Every packet type, every header byte that any configuration allows, and every configuration bit
 * that affects packets: the encoder generates all of them, and the packetizer finds them again,
 * split anywhere and in chunks of every size.
 */
#include "decode/ops.h"
#include "etm4/headers.h"
#include "etm4/packetizer.h"
#include "sim/etm4_encoder_packets.h"
#include "steps.h"
#include "unit/etm4_collect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* Decode in chunks of `chunk` bytes, the first one of `first` bytes. */
static void check(const struct tl_sim_packets *s, size_t first, size_t chunk)
{
    struct tl_etm4_packetizer *packetizer = malloc(sizeof *packetizer);
    struct packets ours = {0};
    size_t n = first;
    tl_etm4_packetizer_init(packetizer, &s->config, collect, &ours);
    for (size_t at = 0; at < s->bytes.n; at += n, n = chunk) {
        n = n < s->bytes.n - at ? n : s->bytes.n - at;
        const struct tl_run run = {s->bytes.p + at, n, at, NULL};
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
        /* Cover the remaining headers with more packets, in one chunking. */
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

/* ---- packets that are listed but cannot be followed, and the reverse ------------------------- */

struct said {
    struct tl_buf packets, items;
    struct steps steps;
};

static int on_packet(void *context, const char *line)
{
    return tl_buf_printf(&((struct said *)context)->packets, "%s\n", line);
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(&((struct said *)context)->steps, items, n);
    return tl_item_text(&((struct said *)context)->items, items, n);
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    fail_msg("lost: %s", reason);
    return 0;
}

/* Decode. Returns false if the configuration is refused. */
static bool say(uint64_t configr, bool list, struct said *out)
{
    const bool markers = configr & 0x30000;
    const uint8_t bytes[] = {
        0,    0,    0,    0,
        0,    0,    0,    0,
        0,    0,    0,    0x80, /* A-Sync */
        0x01, 0x00, 0x04, 0x85,
        0x00, 0x08, 0x00, 0x00,
        0x00, 0,    0,    0, /* Trace Info, Trace On, address */
        0x31, 0x40, 0x44, markers ? 0x20 : 0x04,
        0x9a, 0x00, 0x10, 0x00,
        0x00, /* Context … address */
    };
    const struct tl_stream_sink sink = {
        .context = out, .items = on_items, .packet = list ? on_packet : NULL, .loss = on_loss};
    const struct tl_run run = {bytes, sizeof bytes, 0, NULL};
    struct tl_source source = {.protocol = TL_PROTO_ETM4};
    struct tl_stream_decoder *d;
    struct tl_fail fail = {0};
    *out = (struct said){0};
    assert_int_equal(tl_source_set_reg(&source, "TRCCONFIGR", configr), 0);
    assert_int_equal(tl_source_set_reg(&source, "TRCIDR0", 0x28000ef9), 0); /* supports all of it */
    if (tl_etm4_ops.create(&d, &source, NULL, &sink, &fail) < 0) {
        assert_non_null(strstr(fail.text, "data trace"));
        return false;
    }
    assert_int_equal(tl_etm4_ops.push(d, &run), 0);
    assert_int_equal(tl_etm4_ops.finish(d, TL_LOSS_CUT_OFF), 0);
    tl_etm4_ops.destroy(d);
    assert_int_equal(tl_buf_add(&out->packets, "", 1), 0);
    assert_int_equal(tl_buf_add(&out->items, "", 1), 0);
    return true;
}

static void test_conditional_and_data_trace(void **state)
{
    struct said said;
    /* conditional instructions can be followed: they only add information */
    assert_true(say(0x101, false, &said) == true);
    tl_buf_fini(&said.items);
    tl_buf_fini(&said.packets);
    /* loads and stores as P0 elements cannot be followed, but their packets are listed */
    assert_false(say(0x30007, false, &said));
    assert_true(say(0x30107, true, &said));
    assert_non_null(strstr((char *)said.packets.p, "I_COND_I_F2"));
    assert_non_null(strstr((char *)said.packets.p, "I_NUM_DS_MKR"));
    assert_non_null(strstr((char *)said.packets.p, "I_ADDR_L_32IS0"));
    assert_int_equal(said.items.n, 1);
    tl_buf_fini(&said.items);
    tl_buf_fini(&said.packets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_packet_at_every_chunking),
        cmocka_unit_test(test_conditional_and_data_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
