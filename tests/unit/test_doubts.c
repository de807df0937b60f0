/* SPDX-License-Identifier: MIT */
/*
 * An ELF file that is not what ran is said to be that, in all formats; the right one never is,
 * whatever share of the trace is damaged.
 */
#include "decode/decode.h"
#include "image/elfs.h"
#include "sim/small_elf.h"
#include "unit/hurt_flow.h"
#include "unit/seed.h"

enum { ROUNDS = 6, PATHS_LEAST = 200 };

struct heard {
    unsigned doubts, no_paths, steps;
    char reason[200];
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct heard *const h = context;
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        h->no_paths += items[i].kind == TL_ITEM_GAP && items[i].sub == TL_GAP_NO_PATH;
        h->steps += items[i].kind == TL_ITEM_PATH ? items[i].n : items[i].kind == TL_ITEM_BLOCK;
    }
    return TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct heard *const h = context;
    if (!strstr(loss->reason, "is not the program that ran"))
        return TL_OK;
    assert_true(loss->fault && loss->stream);
    h->doubts++;
    snprintf(h->reason, sizeof h->reason, "%s", loss->reason);
    return TL_OK;
}

/* As ELF files of this name: their machine does not matter here. */
static struct tl_image *elf_image(const struct hurt *h, const char *name)
{
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (unsigned i = 0; i < h->n_code; i++) {
        const enum tl_isa isa = tl_source_isa(TL_PROTO_NONE, h->setup.sources);
        const struct tl_sim_elf elf = {.machine = isa == TL_ISA_RV32   ? EM_RISCV
                                                  : isa == TL_ISA_RV64 ? EM_RISCV
                                                                       : EM_AARCH64,
                                       .wide = isa != TL_ISA_RV32,
                                       .address = h->code[i].base,
                                       .code = hurt_bytes(&h->code[i].bytes)};
        struct tl_buf file = {0};
        assert_int_equal(tl_sim_elf_make(&elf, &file), TL_OK);
        assert_int_equal(tl_image_add_elf(image, hurt_bytes(&file), 0, TL_SPACE_ANY, name, NULL),
                         TL_OK);
        tl_buf_fini(&file);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    return image;
}

static struct heard decode(const struct hurt *h, const struct tl_image *image, size_t piece)
{
    struct heard heard = {0};
    const struct tl_decode_sink sink = {.context = &heard, .items = on_items, .loss = on_loss};
    struct tl_decode *d;
    assert_int_equal(tl_decode_new(&d, &h->setup, image, &sink, NULL), TL_OK);
    tl_decode_allow_paths(d);
    for (size_t at = 0; at < h->trace.n; at += piece)
        assert_int_equal(
            tl_decode_push(d, h->trace.p + at, h->trace.n - at < piece ? h->trace.n - at : piece),
            TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    return heard;
}

typedef void hurt_make(struct hurt *h, struct tl_sim_rng *rng);

static void make_hurt(hurt_make *make, uint64_t seed, struct hurt *h)
{
    struct tl_sim_rng rng = {seed};
    *h = (struct hurt){0};
    make(h, &rng);
}

/* Random bytes in `percent` of the trace. */
static void hurt_bytes_of(struct hurt *h, unsigned percent, struct tl_sim_rng *rng)
{
    for (size_t i = 0; i < h->trace.n; i++)
        if (tl_sim_below(rng, 100) < percent)
            h->trace.p[i] = (uint8_t)tl_sim_below(rng, 256);
}

static void right_program(hurt_make *make, uint64_t seed)
{
    static const unsigned percents[] = {0, 1, 2, 4};
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        struct hurt h;
        struct tl_sim_rng rng = {seed + i};
        make_hurt(make, seed, &h);
        hurt_bytes_of(&h, percents[i], &rng);
        struct tl_image *const image = elf_image(&h, "/there/right.elf");
        const struct heard heard = decode(&h, image, SIZE_MAX);
        if (heard.doubts)
            fail_msg("%s, %u %%, seed %llx: %s (%u of %u)", h.format, percents[i],
                     (unsigned long long)seed, heard.reason, heard.no_paths, heard.steps);
        if (i == 0)
            assert_int_equal(heard.no_paths, 0);
        print_message("%s %u%%: %u/%u\n", h.format, percents[i], heard.no_paths, heard.steps);
        tl_image_free(image);
        hurt_fini(&h);
    }
}

/* The code of another program at the same place. */
static unsigned wrong_program(hurt_make *make, uint64_t seed)
{
    struct hurt h, other;
    make_hurt(make, seed, &h);
    make_hurt(make, seed + 1000, &other);
    for (unsigned i = 0; i < other.n_code && i < h.n_code; i++)
        other.code[i].base = h.code[i].base;
    struct tl_image *const image = elf_image(&other, "/there/wrong.elf");
    const struct heard heard = decode(&h, image, SIZE_MAX);
    const struct heard again = decode(&h, image, 777);
    print_message("%s wrong: %u/%u %s\n", h.format, heard.no_paths, heard.steps, heard.reason);
    assert_int_equal(heard.doubts, again.doubts);
    if (heard.doubts)
        assert_memory_equal(heard.reason, "wrong.elf is not ", strlen("wrong.elf is not "));
    if (heard.no_paths >= PATHS_LEAST && !heard.doubts)
        fail_msg("%s, seed %llx: not recognised, %u of %u", h.format, (unsigned long long)seed,
                 heard.no_paths, heard.steps);
    tl_image_free(image);
    hurt_fini(&h);
    hurt_fini(&other);
    return heard.doubts > 0;
}

static void rounds(hurt_make *make)
{
    const uint64_t seed = test_seed();
    const unsigned n = test_rounds(ROUNDS);
    unsigned recognised = 0;
    for (unsigned i = 0; i < n; i++) {
        right_program(make, seed + i);
        recognised += wrong_program(make, seed + i);
    }
    assert_true(recognised > 0);
}

static void etm(void **state)
{
    (void)state;
    rounds(hurt_etm);
}

static void etm3(void **state)
{
    (void)state;
    rounds(hurt_etm3);
}

static void frames(void **state)
{
    (void)state;
    rounds(hurt_frames);
}

static void pt(void **state)
{
    (void)state;
    rounds(hurt_pt);
}

static void nexus(void **state)
{
    (void)state;
    rounds(hurt_nexus);
}

static void etrace(void **state)
{
    (void)state;
    rounds(hurt_etrace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etm), cmocka_unit_test(etm3),  cmocka_unit_test(frames),
        cmocka_unit_test(pt),  cmocka_unit_test(nexus), cmocka_unit_test(etrace),
    };
    return cmocka_run_group_tests_name("doubts", tests, NULL, NULL);
}
