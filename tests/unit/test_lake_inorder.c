/* SPDX-License-Identifier: MIT */
/* Pieces come in order whoever makes them; those of a failed helper are made again; what is not
 * taken is freed. */
#include "base/crew.h"
#include "query/inorder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#define PIECES 100

struct maker {
    pthread_t owner;
    atomic_uint made, dropped, fails_of_others;
    size_t bad; /* piece that cannot be made */
};

static struct maker maker;

static int make(void *context, size_t i, void **out, struct tl_fail *fail)
{
    struct maker *const m = context;
    const bool own = pthread_equal(pthread_self(), m->owner);
    if (!own && i % 7 == 0) {
        m->fails_of_others++;
        return tl_fail_set(fail, TL_IO, "not told");
    }
    if (i == m->bad)
        return tl_fail_set(fail, TL_BAD, "piece %zu", i);
    size_t *const piece = malloc(sizeof *piece);
    assert_non_null(piece);
    *piece = i;
    *out = piece;
    m->made++;
    return TL_OK;
}

static void drop(void *piece)
{
    maker.dropped += piece != NULL;
    free(piece);
}

static void begin(size_t bad)
{
    maker = (struct maker){.owner = pthread_self(), .bad = bad};
}

static void take_all(struct tl_lake *lake)
{
    struct tl_fail fail;
    void *piece;
    begin(PIECES);
    struct tl_inorder *const order = tl_inorder_new(lake, PIECES, make, drop, &maker);
    for (size_t i = 0; i < PIECES; i++) {
        assert_int_equal(tl_inorder_take(order, &piece, &fail), TL_OK);
        assert_int_equal(*(size_t *)piece, i);
        drop(piece);
    }
    assert_int_equal(tl_inorder_take(order, &piece, &fail), TL_EOF);
    assert_null(piece);
    tl_inorder_free(order);
    assert_int_equal(maker.made, PIECES);
    assert_int_equal(maker.dropped, PIECES);
}

static void in_order(void **state)
{
    (void)state;
    struct tl_lake *const lake = calloc(1, sizeof *lake);
    assert_non_null(lake);
    take_all(lake); /* without a crew */
    for (unsigned processors = 1; processors < 12; processors += 5) {
        assert_int_equal(tl_crew_new(&lake->crew, processors), TL_OK);
        for (int i = 0; i < 20; i++)
            take_all(lake);
        tl_crew_free(lake->crew);
    }
    free(lake);
}

/* An error is that of the piece, and told once its turn has come. */
static void ends_early(void **state)
{
    (void)state;
    struct tl_lake *const lake = calloc(1, sizeof *lake);
    struct tl_fail fail;
    void *piece;
    assert_non_null(lake);
    assert_int_equal(tl_crew_new(&lake->crew, 4), TL_OK);
    begin(5);
    struct tl_inorder *order = tl_inorder_new(lake, PIECES, make, drop, &maker);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(tl_inorder_take(order, &piece, &fail), TL_OK);
        drop(piece);
    }
    assert_int_equal(tl_inorder_take(order, &piece, &fail), TL_BAD);
    assert_string_equal(fail.text, "piece 5");
    assert_null(piece);
    tl_inorder_free(order);
    assert_int_equal(maker.made, maker.dropped);
    assert_true(maker.made < 5 + 8);
    begin(PIECES);
    order = tl_inorder_new(lake, PIECES, make, drop, &maker);
    tl_inorder_free(order);
    tl_inorder_free(NULL);
    assert_int_equal(maker.made, maker.dropped);
    tl_crew_free(lake->crew);
    free(lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(ends_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
