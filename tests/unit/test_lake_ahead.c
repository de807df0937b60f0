/* SPDX-License-Identifier: MIT */
/* The next shard of a range is built by the crew, or not at all; nothing is built without a
 * reader. */
#include "base/cancel.h"
#include "range/ahead.h"

#include "base/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <semaphore.h>

/* A builder that waits for `go`, or until its result is no longer wanted. */
struct maker {
    sem_t begun, go;
    bool waits_to_be_cancelled;
    int result;
    size_t to;
    unsigned times;
};

static int make(void *context, struct tl_view *view, size_t from, size_t to, bool packed,
                struct tl_view **out, struct tl_fail *fail)
{
    struct maker *const m = context;
    assert_int_equal(from, 0);
    assert_false(packed);
    m->to = to;
    m->times++;
    sem_post(&m->begun);
    while (m->waits_to_be_cancelled && tl_cancel_check() >= 0)
        ;
    if (m->waits_to_be_cancelled)
        return TL_CANCELLED;
    sem_wait(&m->go);
    *out = m->result < 0 ? NULL : tl_view_new();
    return m->result < 0 ? tl_fail_set(fail, (enum tl_err)m->result, "no") : TL_OK;
}

static struct tl_view *virtual_view(struct maker *m)
{
    struct tl_view *const view = tl_view_new();
    assert_non_null(view);
    sem_init(&m->begun, 0, 0);
    sem_init(&m->go, 0, 0);
    tl_view_make_virtual(view, make, m);
    return view;
}

static struct tl_crew *crew_of(unsigned processors)
{
    struct tl_crew *crew;
    assert_int_equal(tl_crew_new(&crew, processors), TL_OK);
    return crew;
}

static void made_by_the_crew(void **state)
{
    (void)state;
    struct maker m = {0}, other = {0};
    struct tl_view *const view = virtual_view(&m), *const another = virtual_view(&other);
    struct tl_crew *const crew = crew_of(2);
    struct tl_ahead *const ahead = tl_ahead_new(crew);
    assert_non_null(ahead);
    assert_null(tl_ahead_take(ahead, view));
    tl_ahead_want(ahead, view, 7);
    assert_null(tl_ahead_take(ahead, another));
    sem_wait(&m.begun);
    sem_post(&m.go);
    struct tl_view *const made = tl_ahead_take(ahead, view);
    assert_non_null(made);
    assert_int_equal(m.to, 7);
    assert_null(tl_ahead_take(ahead, view)); /* only once */
    tl_view_put(made);
    /* Built, but not used. */
    tl_ahead_want(ahead, view, 8);
    sem_post(&m.go);
    sem_wait(&m.begun);
    tl_ahead_free(ahead);
    assert_int_equal(m.times, 2);
    tl_crew_free(crew);
    tl_view_put(view);
    tl_view_put(another);
}

static void what_failed_is_not_there(void **state)
{
    (void)state;
    struct maker m = {.result = TL_IO};
    struct tl_view *const view = virtual_view(&m);
    struct tl_crew *const crew = crew_of(2);
    struct tl_ahead *const ahead = tl_ahead_new(crew);
    tl_ahead_want(ahead, view, 1);
    sem_wait(&m.begun);
    sem_post(&m.go);
    assert_null(tl_ahead_take(ahead, view));
    tl_ahead_free(ahead);
    tl_crew_free(crew);
    tl_view_put(view);
}

/* If the crew is busy, the reader does not wait for it. */
static void nobody_waits_for_the_crew_to_begin(void **state)
{
    (void)state;
    struct maker m = {0};
    struct tl_view *const view = virtual_view(&m);
    struct tl_crew *const crew = crew_of(2);
    struct tl_ahead *const ahead = tl_ahead_new(crew);
    tl_crew_enter(crew);
    tl_crew_enter(crew);
    tl_ahead_want(ahead, view, 1);
    assert_null(tl_ahead_take(ahead, view));
    tl_crew_exit(crew);
    tl_crew_exit(crew);
    tl_ahead_free(ahead);
    assert_int_equal(m.times, 0);
    tl_crew_free(crew);
    tl_view_put(view);
}

static void a_range_that_ends_gives_up(void **state)
{
    (void)state;
    struct maker m = {.waits_to_be_cancelled = true};
    struct tl_view *const view = virtual_view(&m);
    struct tl_crew *const crew = crew_of(2);
    struct tl_ahead *const ahead = tl_ahead_new(crew);
    tl_ahead_want(ahead, view, 1);
    sem_wait(&m.begun);
    tl_ahead_free(ahead);
    tl_crew_free(crew);
    tl_view_put(view);
}

static void without_a_crew_nothing_is_made(void **state)
{
    (void)state;
    struct tl_crew *const crew = crew_of(1);
    assert_null(tl_ahead_new(NULL));
    assert_null(tl_ahead_new(crew));
    tl_ahead_free(NULL);
    tl_crew_free(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_by_the_crew),
        cmocka_unit_test(what_failed_is_not_there),
        cmocka_unit_test(nobody_waits_for_the_crew_to_begin),
        cmocka_unit_test(a_range_that_ends_gives_up),
        cmocka_unit_test(without_a_crew_nothing_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
