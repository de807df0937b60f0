/* SPDX-License-Identifier: MIT */
/* Pieces come in order whoever makes them; those of a failed helper are made again; what is not
 * taken is freed. */
#include "base/cancel.h"
#include "base/crew.h"
#include "base/inorder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
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

static void take_all(struct tl_crew *crew)
{
    struct tl_fail fail;
    void *piece;
    begin(PIECES);
    struct tl_inorder *const order =
        tl_inorder_new(crew, PIECES, TL_INORDER_MOST, make, drop, &maker);
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
    struct tl_crew *crew;
    take_all(NULL); /* without a crew */
    for (unsigned processors = 1; processors < 12; processors += 5) {
        assert_int_equal(tl_crew_new(&crew, processors), TL_OK);
        for (int i = 0; i < 20; i++)
            take_all(crew);
        tl_crew_free(crew);
    }
}

/* An error is that of the piece, and told once its turn has come. */
static void ends_early(void **state)
{
    (void)state;
    struct tl_crew *crew;
    struct tl_fail fail;
    void *piece;
    assert_int_equal(tl_crew_new(&crew, 4), TL_OK);
    begin(5);
    struct tl_inorder *order = tl_inorder_new(crew, PIECES, TL_INORDER_MOST, make, drop, &maker);
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
    order = tl_inorder_new(crew, PIECES, TL_INORDER_MOST, make, drop, &maker);
    tl_inorder_free(order);
    tl_inorder_free(NULL);
    assert_int_equal(maker.made, maker.dropped);
    tl_crew_free(crew);
}

/* ---- one ahead ------------------------------------------------------------------------------- */

/* The crew's pieces wait for `go`, or until they are no longer wanted. */
struct held {
    pthread_t owner;
    sem_t begun, go;
    bool waits_to_be_cancelled;
    atomic_uint by_crew, cancelled;
};

static int hold(void *context, size_t i, void **out, struct tl_fail *fail)
{
    struct held *const h = context;
    (void)i;
    (void)fail;
    if (!pthread_equal(pthread_self(), h->owner)) {
        h->by_crew++;
        sem_post(&h->begun);
        while (h->waits_to_be_cancelled && tl_cancel_check() >= 0)
            ;
        if (h->waits_to_be_cancelled) {
            h->cancelled++;
            return TL_CANCELLED;
        }
        sem_wait(&h->go);
    }
    *out = malloc(1);
    return *out ? TL_OK : TL_NOMEM;
}

static void hold_init(struct held *h, bool waits_to_be_cancelled)
{
    *h = (struct held){.owner = pthread_self(), .waits_to_be_cancelled = waits_to_be_cancelled};
    sem_init(&h->begun, 0, 0);
    sem_init(&h->go, 0, 0);
}

/* While the caller has a piece only the next one is made, and the caller waits for it. */
static void no_more_are_made_than_wanted(void **state)
{
    struct held h;
    struct tl_crew *crew;
    struct tl_fail fail;
    void *piece;
    (void)state;
    hold_init(&h, false);
    assert_int_equal(tl_crew_new(&crew, 4), TL_OK);
    struct tl_inorder *const order = tl_inorder_new(crew, PIECES, 1, hold, free, &h);
    for (unsigned i = 1; i < 20; i++) {
        sem_wait(&h.begun);
        assert_int_equal(h.by_crew, i);
        sem_post(&h.go);
        assert_int_equal(tl_inorder_take(order, &piece, &fail), TL_OK);
        free(piece);
    }
    sem_wait(&h.begun);
    sem_post(&h.go);
    tl_inorder_free(order); /* one that nobody takes */
    assert_int_equal(h.by_crew, 20);
    tl_crew_free(crew);
}

/* If the crew is busy the caller does not wait for it. */
static void nobody_waits_for_the_crew_to_begin(void **state)
{
    struct held h;
    struct tl_crew *crew;
    struct tl_fail fail;
    void *piece;
    (void)state;
    hold_init(&h, false);
    assert_int_equal(tl_crew_new(&crew, 2), TL_OK);
    tl_crew_enter(crew);
    tl_crew_enter(crew);
    struct tl_inorder *const order = tl_inorder_new(crew, 2, 1, hold, free, &h);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tl_inorder_take(order, &piece, &fail), TL_OK);
        free(piece);
    }
    tl_crew_exit(crew);
    tl_crew_exit(crew);
    tl_inorder_free(order);
    assert_int_equal(h.by_crew, 0);
    tl_crew_free(crew);
}

static void what_is_no_longer_wanted_is_cancelled(void **state)
{
    struct held h;
    struct tl_crew *crew;
    (void)state;
    hold_init(&h, true);
    assert_int_equal(tl_crew_new(&crew, 2), TL_OK);
    struct tl_inorder *const order = tl_inorder_new(crew, 2, 1, hold, free, &h);
    sem_wait(&h.begun);
    tl_inorder_free(order);
    assert_int_equal(h.cancelled, 1);
    tl_crew_free(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(ends_early),
        cmocka_unit_test(no_more_are_made_than_wanted),
        cmocka_unit_test(nobody_waits_for_the_crew_to_begin),
        cmocka_unit_test(what_is_no_longer_wanted_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
