/* SPDX-License-Identifier: MIT */
/* Rows of a long table through questions that end early: none is lost, none comes twice. */
#include "cli/trackrows.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define INSNS (UINT64_C(1) << 31)
#define ROWS  5000
#define OPEN  3

/* The table: positions do not decrease, and some have many rows. */
static uint64_t positions[ROWS];
/* Limits of an answer. */
static uint64_t most, reach;
static bool by_time; /* what ends an answer: rows are many, or the time is up */
static unsigned asked;
static uint64_t taken, opened;

static int give(int (*take)(void *context, const struct tracelake_table *table), void *context,
                const char *what, int64_t position, int64_t number, bool truncated)
{
    const bool nulls[1] = {false};
    const char *const texts[1] = {what};
    const struct tracelake_column columns[] = {
        {.name = "position", .kind = TRACELAKE_INTEGER, .integers = &position, .nulls = nulls},
        {.name = "what", .kind = TRACELAKE_TEXTS, .texts = texts, .nulls = nulls},
        {.name = "number", .kind = TRACELAKE_INTEGER, .integers = &number, .nulls = nulls}};
    const struct tracelake_table table = {3, *what != 0, columns, true, truncated};
    return take(context, &table);
}

/* Answers as the server does: open rows come in front. */
int tracelake_sql(struct tracelake *lake, const struct tracelake_question *question,
                  int (*take)(void *context, const struct tracelake_table *table), void *context,
                  struct tracelake_error *error)
{
    uint64_t from = 0, to = INSNS + 1, given = 0;
    const char *const bounds = strstr(question->text, "position >= ");
    (void)lake;
    (void)error;
    asked++;
    assert_non_null(bounds);
    assert_true(sscanf(bounds, "position >= %" SCNu64 " AND position < %" SCNu64, &from, &to) >= 1);
    for (int64_t i = 0; i < OPEN; i++)
        assert_int_equal(give(take, context, "open", (int64_t)from, i, false), 0);
    for (int64_t i = 0; i < ROWS; i++) {
        if (positions[i] < from || positions[i] >= to)
            continue;
        const bool slow = positions[i] - from > reach;
        if (given == most || slow)
            return by_time || slow ? TRACELAKE_LIMIT : give(take, context, "", 0, 0, true);
        assert_int_equal(give(take, context, "row", (int64_t)positions[i], i, false), 0);
        given++;
    }
    return give(take, context, "", 0, 0, false);
}

static int take_row(void *context, const struct tl_track_row *row)
{
    (void)context;
    uint64_t *const next = strcmp(tl_track_text(row, 1), "open") == 0 ? &opened : &taken;
    assert_int_equal(tl_track_integer(row, 2, NULL), *next);
    ++*next;
    return 0;
}

static int run(uint64_t rows, uint64_t far, bool time)
{
    struct tracelake_error error;
    const struct tl_track_rows wanted = {.table = "timeline",
                                         .columns = "position, what, number",
                                         .trace = "t",
                                         .stream = "s",
                                         .to = TRACELAKE_END,
                                         .insns = INSNS,
                                         .opening = "open",
                                         .take = take_row};
    most = rows;
    reach = far;
    by_time = time;
    asked = 0;
    taken = opened = 0;
    return tl_track_rows_each(NULL, &wanted, &error);
}

static void none_is_lost(void **state)
{
    (void)state;
    srand(1);
    for (unsigned i = 1; i < ROWS; i++)
        positions[i] = positions[i - 1] + (rand() % 3 ? 0 : (uint64_t)rand() % 1300000);
    assert_true(positions[ROWS - 1] < INSNS);
    for (unsigned time = 0; time < 2; time++)
        for (uint64_t rows = 60; rows < 2 * ROWS; rows = rows * 3 + 1) {
            assert_int_equal(run(rows, INSNS, time), 0);
            assert_int_equal(taken, ROWS);
            assert_int_equal(opened, OPEN);
        }
    assert_true(asked < 5);
}

/* Nothing happens for so long that a question's time is up without a row. */
static void smaller_parts(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROWS; i++)
        positions[i] = i < 10 ? i : INSNS - 5000 + i;
    assert_int_equal(run(ROWS, UINT64_C(1) << 24, true), 0);
    assert_int_equal(taken, ROWS);
    assert_int_equal(opened, OPEN);
    assert_int_equal(run(2, INSNS, true), TRACELAKE_OK);
}

/* An answer that never comes ends. */
static void gives_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROWS; i++)
        positions[i] = 1000;
    assert_int_equal(run(2, INSNS, true), TRACELAKE_LIMIT);
    assert_int_equal(run(2, INSNS, false), TRACELAKE_LIMIT);
    assert_true(asked < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_lost),
        cmocka_unit_test(smaller_parts),
        cmocka_unit_test(gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
