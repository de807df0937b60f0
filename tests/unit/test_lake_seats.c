/* SPDX-License-Identifier: MIT */
/*
 * Seats go to those who wait, in their order; a question in SQL that needs much memory waits for
 * one, and small ones do not. Which thread is where is told by what the seats count.
 */
#include "lake_help.h"
#include "lake_sql.h"

#include <pthread.h>

/* ---- seats ----------------------------------------------------------------------------------- */

#define MANY 4

struct queue {
    struct tl_seats seats;
    size_t order[MANY]; /* who was seated; guarded by the seat itself, of which there is one */
    size_t n;
};

struct one {
    struct queue *queue;
    size_t number;
    atomic_bool gives_up, seated;
    pthread_t thread;
};

static bool goes_on(void *context)
{
    return !atomic_load(&((struct one *)context)->gives_up);
}

static void *sit_down(void *context)
{
    struct one *const one = context;
    struct queue *const q = one->queue;
    if (tl_seats_take(&q->seats, goes_on, one)) {
        q->order[q->n++] = one->number;
        atomic_store(&one->seated, true);
        tl_seats_leave(&q->seats);
    }
    return NULL;
}

static struct tl_seats_use use_of(struct tl_seats *seats)
{
    struct tl_seats_use use;
    tl_seats_use(seats, &use);
    return use;
}

static void wait_for_waiting(struct tl_seats *seats, unsigned n)
{
    for (int64_t since = 0; use_of(seats).waiting != n;)
        keep_waiting(&since, "others wait for a seat");
}

static void test_order(void **state)
{
    (void)state;
    struct queue q = {.n = 0};
    struct one all[MANY] = {{0}};
    tl_seats_init(&q.seats, 1);
    assert_true(tl_seats_take(&q.seats, goes_on, &all[0]));
    for (size_t i = 0; i < MANY; i++) {
        all[i].queue = &q;
        all[i].number = i;
        assert_int_equal(pthread_create(&all[i].thread, NULL, sit_down, &all[i]), 0);
        wait_for_waiting(&q.seats, (unsigned)i + 1);
    }
    atomic_store(&all[1].gives_up, true);
    wait_for_waiting(&q.seats, MANY - 1);
    assert_int_equal(use_of(&q.seats).refused, 1);
    assert_int_equal(use_of(&q.seats).taken, 1);
    tl_seats_leave(&q.seats);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    assert_int_equal(q.n, MANY - 1);
    assert_true(q.order[0] == 0 && q.order[1] == 2 && q.order[2] == 3);
    assert_false(atomic_load(&all[1].seated));
    assert_int_equal(use_of(&q.seats).taken, 0);
    tl_seats_fini(&q.seats);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Some 40 MiB are sorted, within moments. */
#define LARGE                                                                                      \
    "WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x LIMIT 400), "                  \
    "t(s) AS (SELECT printf('%1000d', 1)) "                                                        \
    "SELECT i, s || s || s || s || s || s || s || s || s || s AS l FROM (SELECT i, "               \
    "s || s || s || s || s || s || s || s || s || s AS s FROM x, t) ORDER BY i DESC"

struct asked {
    struct tl_lake *lake;
    const char *text;
    uint32_t seconds;
    uint64_t rows;
    int result;
    struct tl_fail fail;
    struct asked *beside; /* is asked at the first row, by a thread of its own */
    bool is_left;         /* … which goes on behind that */
    pthread_t thread;
};

static void ask(struct asked *a);

static void *ask_beside(void *context)
{
    ask(context);
    return NULL;
}

static int take_rows(void *context, const struct tl_sql_batch *batch)
{
    struct asked *const a = context;
    a->rows += batch->n_rows;
    if (a->beside && !a->beside->rows && !a->beside->thread) {
        assert_int_equal(use_of(&a->lake->sql_seats).taken, 1);
        assert_int_equal(pthread_create(&a->beside->thread, NULL, ask_beside, a->beside), 0);
        if (a->is_left)
            wait_for_waiting(&a->lake->sql_seats, 1);
        else
            assert_int_equal(pthread_join(a->beside->thread, NULL), 0);
    }
    return TL_OK;
}

static void ask(struct asked *a)
{
    const struct tl_sql_request request = {.text = a->text, .seconds = a->seconds};
    a->result = tl_lake_sql(a->lake, &request, take_rows, a, &a->fail);
}

static struct tl_lake *open_small(struct tl_backend **backend)
{
    struct tl_lake *lake;
    const struct tl_lake_options options = {.min_free_bytes = 1, .sql_memory = 1};
    assert_int_equal(tl_backend_memory(backend), TL_OK);
    assert_int_equal(tl_lake_open_on(&lake, *backend, &options, NULL), TL_OK);
    return lake;
}

static void test_questions_wait(void **state)
{
    (void)state;
    struct tl_backend *backend;
    struct tl_lake *const lake = open_small(&backend);
    struct asked second = {.lake = lake, .text = LARGE};
    struct asked first = {.lake = lake, .text = LARGE, .beside = &second, .is_left = true};
    ask(&first);
    assert_int_equal(first.result, TL_OK);
    assert_int_equal(pthread_join(second.thread, NULL), 0);
    assert_int_equal(second.result, TL_OK);
    assert_true(first.rows == 400 && second.rows == 400);
    const struct tl_seats_use use = use_of(&lake->sql_seats);
    assert_true(use.taken == 0 && use.waiting == 0 && use.refused == 0);
    close_memory_lake(backend, lake);
}

static void test_small_ones_do_not(void **state)
{
    (void)state;
    struct tl_backend *backend;
    struct tl_lake *const lake = open_small(&backend);
    struct asked second = {.lake = lake, .text = "SELECT count(*) FROM trace"};
    struct asked first = {.lake = lake, .text = LARGE, .beside = &second};
    ask(&first);
    assert_true(first.result == TL_OK && second.result == TL_OK);
    assert_true(first.rows == 400 && second.rows == 1);
    close_memory_lake(backend, lake);
}

/* If it has to wait too long it is refused, and says so; it has more time if the machine is so slow
 * that it did not come that far. */
static void test_refused(void **state)
{
    (void)state;
    struct tl_backend *backend;
    struct tl_lake *const lake = open_small(&backend);
    for (uint32_t seconds = 1; use_of(&lake->sql_seats).refused == 0; seconds *= 2) {
        assert_true(seconds < TL_SQL_SECONDS);
        struct asked second = {.lake = lake, .text = LARGE, .seconds = seconds};
        struct asked first = {.lake = lake, .text = LARGE, .beside = &second};
        ask(&first);
        assert_int_equal(second.result, TL_LIMIT);
        assert_int_equal(second.rows, 0);
        if (use_of(&lake->sql_seats).refused == 1)
            assert_non_null(strstr(second.fail.text, "--sql-memory"));
    }
    assert_int_equal(use_of(&lake->sql_seats).taken, 0);
    close_memory_lake(backend, lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order), cmocka_unit_test(test_questions_wait),
        cmocka_unit_test(test_small_ones_do_not), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
