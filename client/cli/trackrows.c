/* SPDX-License-Identifier: MIT */
/*
 * A question may end at its limits of rows and of seconds. The next one begins at the position of
 * the last row that came, and passes the rows there that have been taken. Where not a row comes
 * within the time, a smaller part is asked about.
 */
#include "cli/trackrows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST     10000000            /* rows of an answer */
#define PART     (UINT64_C(1) << 30) /* positions of a question, at first */
#define SMALLEST (UINT64_C(1) << 15)

struct asking {
    const struct tl_track_rows *rows;
    bool begun;        /* a row has come */
    bool answered;     /* … to an earlier question */
    uint64_t position; /* of the last row */
    uint64_t same;     /* rows taken there */
    uint64_t pass;     /* rows there that this answer repeats */
    uint64_t taken;    /* of this answer */
    bool truncated;
};

int64_t tl_track_integer(const struct tl_track_row *row, size_t column, bool *has)
{
    const struct tracelake_column *const c = &row->table->columns[column];
    const bool there = c->kind == TRACELAKE_INTEGER && !c->nulls[row->number];
    if (has)
        *has = there;
    return there ? c->integers[row->number] : 0;
}

const char *tl_track_text(const struct tl_track_row *row, size_t column)
{
    const struct tracelake_column *const c = &row->table->columns[column];
    return c->kind == TRACELAKE_TEXTS ? c->texts[row->number] : "";
}

static bool is_opening(const struct asking *a, const struct tl_track_row *row)
{
    return a->rows->opening && strcmp(tl_track_text(row, 1), a->rows->opening) == 0;
}

/* Is the row one that an earlier answer had? */
static bool is_repeated(struct asking *a, const struct tl_track_row *row)
{
    if (a->pass == 0 || (uint64_t)tl_track_integer(row, 0, NULL) != a->position)
        return false;
    a->pass--;
    return true;
}

static int take_row(struct asking *a, const struct tl_track_row *row)
{
    if (is_opening(a, row))
        return a->answered ? TRACELAKE_OK : a->rows->take(a->rows->context, row);
    if (is_repeated(a, row))
        return TRACELAKE_OK;
    const uint64_t position = (uint64_t)tl_track_integer(row, 0, NULL);
    a->same = position == a->position ? a->same + 1 : 1;
    a->position = position;
    a->taken++;
    return a->rows->take(a->rows->context, row);
}

static int take_table(void *context, const struct tracelake_table *table)
{
    struct asking *const a = context;
    struct tl_track_row row = {.table = table};
    int r = TRACELAKE_OK;
    for (; row.number < table->n_rows && r >= 0; row.number++)
        r = take_row(a, &row);
    a->begun |= table->n_rows > 0;
    a->truncated = table->truncated;
    return r;
}

/* Ask about [from, to). */
static int ask(struct tracelake *lake, struct asking *a, uint64_t from, uint64_t to,
               struct tracelake_error *error)
{
    const struct tl_track_rows *const rows = a->rows;
    char text[512], bound[64] = "";
    if (to != TRACELAKE_END)
        snprintf(bound, sizeof bound, " AND position < %" PRIu64, to);
    snprintf(text, sizeof text,
             "SELECT %s FROM %s WHERE stream = '%s' AND position >= %" PRIu64 "%s", rows->columns,
             rows->table, rows->stream, from, bound);
    const struct tracelake_question question = {.trace = rows->trace, .text = text, .rows = MOST};
    a->taken = 0;
    a->truncated = false;
    a->answered = a->begun;
    return tracelake_sql(lake, &question, take_table, a, error);
}

/* Where the next question begins: `whole`: the answer to the last one was. */
static void go_on(struct asking *a, bool whole, uint64_t to, uint64_t *from, uint64_t *part)
{
    if (a->taken == 0 && !whole) {
        *part /= 8;
        a->pass = *from == a->position ? a->same : 0;
        return;
    }
    *from = whole ? to : a->position;
    a->pass = whole ? 0 : a->same;
}

static int crowded(const struct asking *a, struct tracelake_error *error)
{
    *error = (struct tracelake_error){.code = TRACELAKE_LIMIT};
    snprintf(error->text, sizeof error->text,
             "%s: more than %u rows of %s at position %" PRIu64 " cannot be told apart",
             a->rows->stream, MOST, a->rows->table, a->position);
    return TRACELAKE_LIMIT;
}

int tl_track_rows_each(struct tracelake *lake, const struct tl_track_rows *rows,
                       struct tracelake_error *error)
{
    struct asking a = {.rows = rows, .position = TRACELAKE_END};
    uint64_t from = rows->from, part = PART;
    for (;;) {
        const uint64_t most = rows->to < rows->insns ? rows->to : rows->insns;
        const bool last = from >= most || most - from <= part;
        const uint64_t to = last ? rows->to : from + part;
        const int r = ask(lake, &a, from, to, error);
        const bool whole = r >= 0 && !a.truncated;
        if ((r < 0 && r != TRACELAKE_LIMIT) || (whole && last))
            return r;
        if (!whole && a.taken == 0 && part <= SMALLEST)
            return r < 0 ? r : crowded(&a, error);
        go_on(&a, whole, to, &from, &part);
    }
}
