/* SPDX-License-Identifier: MIT */
/*
 * A decode of Open SoC Debug datagrams that is saved and loaded between any two pushes gives the
 * same result as an undisturbed one: for modules that are declared, enumerated or neither, with and
 * without an image, with wrapping timestamps and arrival times, intact and damaged. Bytes that are
 * not a valid state are refused or do no harm.
 */
#include "sim/osd_encoder.h"
#include "sim/small_elf.h"
#include "unit/hand_on.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 48, MODULES = 6, BASE = 0x80000000 };

static const char declared[] = "[source di.0.1]\nprotocol=osd-ctm\nADDR_WIDTH=32\n"
                               "[source di.0.2]\nprotocol=osd-stm\nVALWIDTH=32\n";

/* An image with c.jr ra everywhere. */
static struct tl_image *made_image(void)
{
    static uint8_t code[4096];
    struct tl_image *image;
    for (size_t i = 0; i < sizeof code; i += 2)
        memcpy(code + i, "\x82\x80", 2);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_bytes(image, BASE, (struct tl_bytes){code, sizeof code},
                                        TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    return image;
}

static int say(struct tl_sim_osd *e, unsigned width, uint32_t time, struct tl_sim_rng *rng)
{
    const uint32_t what = tl_sim_below(rng, 20);
    const struct tl_sim_osd_truth event = {.time = time,
                                           .pc = BASE + tl_sim_below(rng, 5000),
                                           .npc = BASE + tl_sim_below(rng, 5000),
                                           .mode = (uint8_t)(tl_sim_below(rng, 9) == 0),
                                           .call = what % 2,
                                           .ret = what % 2 == 0};
    const uint16_t words[40] = {(uint16_t)tl_sim_below(rng, 2), 0x8001, 7};
    switch (what) {
    case 0:
        return tl_sim_osd_uart(e, 3, (uint8_t)tl_sim_below(rng, 256));
    case 1:
        return tl_sim_osd_overflow(e, 1, (uint16_t)(1 + tl_sim_below(rng, 50)), TL_SIM_OSD_CTM);
    case 2:
        return tl_sim_osd_overflow(e, 2, tl_sim_below(rng, 3) ? 9 : UINT16_MAX, TL_SIM_OSD_STM);
    case 3:
        return tl_sim_osd_read_reply(e, (uint16_t)tl_sim_below(rng, MODULES),
                                     (uint16_t)tl_sim_below(rng, 6));
    case 4:
        return tl_sim_osd_event(e, 4, words, 1);
    case 5: /* from an unknown module, of any length */
        return tl_sim_osd_event(e, (uint16_t)(5 + tl_sim_below(rng, 4)), words,
                                1 + tl_sim_below(rng, 40));
    case 6: /* a request */
        return tl_sim_osd_packet(e, (uint16_t)tl_sim_below(rng, MODULES), TL_SIM_OSD_HOST, 0, words,
                                 1);
    case 7:
    case 8:
    case 9:
    case 10:
        return tl_sim_osd_stm(e, 2, width, time, (uint16_t)tl_sim_below(rng, 9),
                              tl_sim_below(rng, 256));
    default:
        return tl_sim_osd_ctm(e, 1, width, &event);
    }
}

/* A capture; its modules are enumerated in some rounds only. */
static void play(struct tl_sim_osd *e, unsigned round, struct tl_sim_rng *rng)
{
    const uint8_t width = (uint8_t)(round % 4 == 0 ? 32 : 16u << round % 3);
    const struct tl_sim_osd_module modules[] = {
        {0, TL_SIM_OSD_SCM, 0},  {1, TL_SIM_OSD_CTM, width}, {2, TL_SIM_OSD_STM, width},
        {3, TL_SIM_OSD_UART, 0}, {4, TL_SIM_OSD_CDM, 0},     {5, TL_SIM_OSD_MAM, 0},
    };
    uint32_t time = tl_sim_below(rng, 1 << 30);
    tl_sim_osd_init(e);
    e->keep_truth = false;
    e->little_endian = round % 2;
    e->max_pkt_len = (uint16_t)(8 + tl_sim_below(rng, 12));
    if (round % 4 == 1)
        assert_int_equal(tl_sim_osd_enumerate(e, modules, MODULES), TL_OK);
    for (unsigned i = 0; i < 1500; i++) {
        assert_int_equal(say(e, width, time, rng), TL_OK);
        time += tl_sim_below(rng, 50) ? tl_sim_below(rng, 1000) : tl_sim_below(rng, UINT32_MAX);
    }
}

/* Change, remove or repeat words. */
static void hurt(struct tl_buf *b, struct tl_sim_rng *rng)
{
    for (unsigned k = 0; k < 12; k++) {
        const size_t at = tl_sim_below(rng, (uint32_t)b->n - 64);
        const size_t n = 1 + tl_sim_below(rng, 40);
        if (k % 3 == 0) {
            b->p[at] ^= (uint8_t)(1 + tl_sim_below(rng, 255));
        } else if (k % 3 == 1) {
            memmove(b->p + at, b->p + at + n, b->n - at - n);
            b->n -= n;
        } else {
            memcpy(b->p + at, b->p + at + n, n < b->n - at - n ? n : b->n - at - n);
        }
    }
}

struct played {
    struct tl_setup setup;
    struct tl_image *image;
    struct tl_sim_osd e;
    struct run run;
};

static void played_init(struct played *p, unsigned round, struct tl_sim_rng *rng)
{
    struct tl_fail fail = {0};
    tl_setup_init(&p->setup);
    assert_int_equal(tl_setup_format(&p->setup, "di", &fail), TL_OK);
    if (round % 4 == 0)
        assert_int_equal(tl_setup_parse(&p->setup, declared, sizeof declared - 1, &fail), TL_OK);
    p->setup.clock_hz = round % 3 ? 1000000 : 0;
    p->image = round % 8 < 4 ? made_image() : NULL;
    play(&p->e, round, rng);
    if (round % 5 > 2)
        hurt(&p->e.out, rng);
    p->run = (struct run){.setup = &p->setup,
                          .image = p->image,
                          .in = {p->e.out.p, p->e.out.n},
                          .ns = round % 6 < 4 ? 30000 : 0};
}

static void played_fini(struct played *p)
{
    tl_sim_osd_fini(&p->e);
    tl_image_free(p->image);
    tl_setup_fini(&p->setup);
}

static void datagrams(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {21};
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct played p;
        played_init(&p, round, &rng);
        assert_true(compare(&p.run, round % 3 ? 100 : 4000, &rng) > 5);
        played_fini(&p);
    }
}

/* A loss of input bytes does not end the decode. */
static void lost_bytes(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {4};
    struct played p;
    struct log all = {0}, parts = {0};
    struct tl_buf saved = {0};
    played_init(&p, 0, &rng);
    const size_t half = p.run.in.n / 2;
    struct tl_decode *a = begin(&p.run, &all), *b = begin(&p.run, &parts);
    struct tl_decode *const both[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        push_piece(both[i], &p.run, 0, half);
        assert_int_equal(tl_decode_skip(both[i], 777), TL_OK);
    }
    assert_int_equal(tl_decode_save(b, &saved), TL_OK);
    tl_decode_free(b);
    b = begin(&p.run, &parts);
    assert_int_equal(tl_decode_load(b, (struct tl_bytes){saved.p, saved.n}), TL_OK);
    struct tl_decode *const ends[] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        push_piece(ends[i], &p.run, half + 777, p.run.in.n - half - 777);
        assert_int_equal(tl_decode_finish(ends[i]), TL_OK);
        tl_decode_free(ends[i]);
    }
    assert_same(&all, &parts);
    log_fini(&all);
    log_fini(&parts);
    tl_buf_fini(&saved);
    played_fini(&p);
}

/* A truncated state is refused; a modified one is refused or gives some result. */
static void no_state(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {13};
    for (unsigned round = 0; round < 8; round++) {
        struct played p;
        struct log log = {0};
        struct tl_buf saved = {0};
        played_init(&p, round, &rng);
        const size_t n = p.run.in.n / 4 * 3 + tl_sim_below(&rng, 100);
        struct tl_decode *d = begin(&p.run, &log);
        push_piece(d, &p.run, 0, n);
        assert_int_equal(tl_decode_save(d, &saved), TL_OK);
        tl_decode_free(d);
        for (size_t cut = 0; cut < saved.n; cut += 1 + (saved.n - cut) / 40) {
            d = begin(&p.run, &log);
            assert_int_equal(tl_decode_load(d, (struct tl_bytes){saved.p, cut}), TL_BAD);
            tl_decode_free(d);
        }
        for (unsigned k = 0; k < 400; k++) {
            const size_t at = tl_sim_below(&rng, (uint32_t)saved.n);
            const uint8_t was = saved.p[at];
            saved.p[at] ^= (uint8_t)(1 + tl_sim_below(&rng, 255));
            d = begin(&p.run, &log);
            if (tl_decode_load(d, (struct tl_bytes){saved.p, saved.n}) == TL_OK) {
                assert_int_equal(tl_decode_push(d, p.run.in.p + n, p.run.in.n - n), TL_OK);
                assert_int_equal(tl_decode_finish(d), TL_OK);
            }
            tl_decode_free(d);
            saved.p[at] = was;
        }
        log_fini(&log);
        tl_buf_fini(&saved);
        played_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams),
        cmocka_unit_test(lost_bytes),
        cmocka_unit_test(no_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
