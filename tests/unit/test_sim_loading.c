/* SPDX-License-Identifier: MIT */
/* Processes that load and unload code at one address while they are traced: decoding with the
 * images from the simulation's records gives what they executed. */
#include "decode/decode.h"
#include "unit/sim_loading.h"

#include <stdio.h>

struct texts {
    struct tl_buf all;
    unsigned gaps;
};

static int take(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct texts *const t = context;
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        t->gaps += items[i].kind == TL_ITEM_GAP;
        if (items[i].kind == TL_ITEM_BLOCK)
            assert_int_equal(tl_item_text(&t->all, &items[i], 1), TL_OK);
    }
    return TL_OK;
}

static void decode(const struct world *w, const struct tl_image *image, struct texts *t)
{
    const struct tl_decode_sink sink = {.context = t, .items = take};
    struct tl_decode *d;
    *t = (struct texts){0};
    assert_int_equal(tl_decode_new(&d, &w->setup, image, &sink, NULL), TL_OK);
    assert_int_equal(tl_decode_push(d, w->trace.p, w->trace.n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
}

static void is_what_ran(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 16; round++) {
        const struct tl_sim_etm4_options etm = loading_etm(round);
        struct tl_sim_loading l;
        struct world w;
        struct texts t;
        loading_world(&w, &l, &etm, round, SIZE_MAX, 300);
        decode(&w, w.image, &t);
        print_message("round %u: %u changes, %zu images, %zu bytes\n", round, l.changes,
                      w.setup.n_images, w.trace.n);
        assert_true(l.changes > 20);
        assert_int_equal(t.gaps, 0);
        assert_int_equal(t.all.n, l.truth.n);
        assert_memory_equal(t.all.p, l.truth.p, t.all.n);
        tl_buf_fini(&t.all);
        tl_sim_loading_fini(&l);
        world_fini(&w);
    }
}

/* With only the plug-ins that are loaded at the end, the result would differ. */
static void times_matter(void **state)
{
    const struct tl_sim_etm4_options etm = loading_etm(0);
    struct tl_sim_loading l;
    struct world w;
    struct texts t;
    struct tl_image *image;
    (void)state;
    loading_world(&w, &l, &etm, 1, SIZE_MAX, 300);
    for (size_t i = 0; i < w.setup.n_images; i++)
        w.setup.images[i].span = (struct tl_image_span){0};
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&w.setup, image, loading_content, &l, NULL), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    decode(&w, image, &t);
    assert_true(t.gaps > 0 || t.all.n != l.truth.n || memcmp(t.all.p, l.truth.p, t.all.n) != 0);
    tl_buf_fini(&t.all);
    tl_image_free(image);
    tl_sim_loading_fini(&l);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_what_ran),
        cmocka_unit_test(times_matter),
    };
    return cmocka_run_group_tests_name("sim_loading", tests, NULL, NULL);
}
