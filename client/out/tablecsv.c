/* SPDX-License-Identifier: MIT */
/*
 * Makes text of cells of answers in columns. All commands that print such answers use it, so that a
 * value looks the same everywhere.
 */
#include "out/tablecsv.h"

#include "base/csv.h"

#include <inttypes.h>
#include <stdio.h>

const char *tl_table_text(const struct tracelake_column *column, size_t row,
                          char number[static TL_CELL])
{
    if (column->nulls[row])
        return "";
    if (column->kind == TRACELAKE_TEXTS)
        return column->texts[row];
    if (column->kind == TRACELAKE_REAL)
        snprintf(number, TL_CELL, "%.15g", column->reals[row]);
    else
        snprintf(number, TL_CELL, "%" PRId64, column->integers[row]);
    return number;
}

static char end_of(const struct tracelake_table *table, size_t column)
{
    return column + 1 < table->n_columns ? ',' : '\n';
}

int tl_table_csv_head(struct tl_buf *out, const struct tracelake_table *table)
{
    int r = TL_OK;
    for (size_t i = 0; i < table->n_columns && r >= 0; i++)
        r = tl_csv_field(out, table->columns[i].name, end_of(table, i));
    return r;
}

int tl_table_csv_row(struct tl_buf *out, const struct tracelake_table *table, size_t row)
{
    char number[TL_CELL];
    int r = TL_OK;
    for (size_t i = 0; i < table->n_columns && r >= 0; i++)
        r = tl_csv_field(out, tl_table_text(&table->columns[i], row, number), end_of(table, i));
    return r;
}
