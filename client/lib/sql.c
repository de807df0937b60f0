/* SPDX-License-Identifier: MIT */
/*
 * Questions in SQL. Columns come as bytes in one order for all machines, and become arrays of the
 * machine's own numbers, checked, since a program indexes them.
 */
#include "ask.h"
#include "base/bytes.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <stdlib.h>
#include <string.h>

struct taker {
    int (*take)(void *context, const struct tracelake_table *table);
    void *context;
    struct tracelake_error *error;
};

/* The arrays of a column, in one piece of memory. */
struct arrays {
    struct tracelake_column column;
    void *values;
    bool *nulls;
};

static int bad(const struct taker *t)
{
    return tl_client_fail(t->error, TRACELAKE_BAD, "a column of the answer is not whole");
}

static int take_numbers(struct arrays *a, const Tracelake__V1__TableColumn *in, size_t n)
{
    uint64_t *const values = a->values;
    for (size_t i = 0; i < n; i++)
        values[i] = tl_le64(in->values.data + 8 * i);
    if (a->column.kind == TRACELAKE_REAL)
        a->column.reals = a->values;
    else
        a->column.integers = a->values;
    return TRACELAKE_OK;
}

static int take_texts(struct arrays *a, const Tracelake__V1__TableColumn *in, size_t n)
{
    const char **const values = a->values;
    for (size_t i = 0; i < n; i++) {
        const uint32_t number = tl_le32(in->values.data + 4 * i);
        if (number >= in->n_texts && !a->nulls[i])
            return TRACELAKE_BAD;
        values[i] = a->nulls[i] ? "" : in->texts[number];
    }
    a->column.texts = values;
    return TRACELAKE_OK;
}

static int take_column(struct arrays *a, const Tracelake__V1__TableColumn *in, size_t n,
                       const struct taker *t)
{
    const bool text = in->kind == TRACELAKE__V1__TABLE_COLUMN__KIND__TEXT;
    const bool real = in->kind == TRACELAKE__V1__TABLE_COLUMN__KIND__REAL;
    if (in->values.len != n * (text ? 4 : 8) || (in->nulls.len && in->nulls.len != (n + 7) / 8))
        return bad(t);
    a->values = calloc(n + 1, 8);
    a->nulls = calloc(n + 1, sizeof *a->nulls);
    if (!a->values || !a->nulls)
        return tl_client_fail(t->error, TRACELAKE_NOMEM, "out of memory");
    a->column.name = in->name;
    a->column.kind = text ? TRACELAKE_TEXTS : real ? TRACELAKE_REAL : TRACELAKE_INTEGER;
    for (size_t i = 0; in->nulls.len && i < n; i++)
        a->nulls[i] = in->nulls.data[i / 8] >> (i % 8) & 1;
    a->column.nulls = a->nulls;
    const int r = text ? take_texts(a, in, n) : take_numbers(a, in, n);
    return r < 0 ? bad(t) : r;
}

static int hand_over(const struct taker *t, const struct arrays *arrays,
                     const Tracelake__V1__Table *in)
{
    struct tracelake_column *const columns = calloc(in->n_columns + 1, sizeof *columns);
    if (!columns)
        return tl_client_fail(t->error, TRACELAKE_NOMEM, "out of memory");
    for (size_t i = 0; i < in->n_columns; i++)
        columns[i] = arrays[i].column;
    const int r = t->take(t->context, &(struct tracelake_table){.n_columns = in->n_columns,
                                                                .n_rows = in->rows,
                                                                .columns = columns,
                                                                .last = in->last,
                                                                .truncated = in->truncated});
    free(columns);
    return r;
}

static int take(void *context, const void *message)
{
    const struct taker *const t = context;
    const Tracelake__V1__Table *const in = message;
    if (in->rows > UINT32_MAX)
        return bad(t);
    struct arrays *const arrays = calloc(in->n_columns + 1, sizeof *arrays);
    int r = arrays ? TRACELAKE_OK : tl_client_fail(t->error, TRACELAKE_NOMEM, "out of memory");
    for (size_t i = 0; i < in->n_columns && r >= 0; i++)
        r = take_column(&arrays[i], in->columns[i], in->rows, t);
    if (r >= 0)
        r = hand_over(t, arrays, in);
    for (size_t i = 0; arrays && i < in->n_columns; i++) {
        free(arrays[i].values);
        free(arrays[i].nulls);
    }
    free(arrays);
    return r;
}

int tracelake_sql(struct tracelake *lake, const struct tracelake_question *question,
                  int (*take_table)(void *context, const struct tracelake_table *table),
                  void *context, struct tracelake_error *error)
{
    Tracelake__V1__SqlRequest request = TRACELAKE__V1__SQL_REQUEST__INIT;
    struct taker taker = {take_table, context, error};
    request.trace = tl_ask_text(question->trace);
    request.text = tl_ask_text(question->text);
    request.rows = question->rows;
    request.seconds = question->seconds;
    return tl_ask_each(lake, "/tracelake.v1.Ranges/Sql", -1, &request.base,
                       &tracelake__v1__table__descriptor, take, &taker, error);
}
