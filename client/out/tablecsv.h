/* SPDX-License-Identifier: MIT */
/* Rows of a table as text, and as CSV. */
#ifndef TL_OUT_TABLECSV_H
#define TL_OUT_TABLECSV_H

#include "base/buf.h"
#include "tracelake.h"

#define TL_CELL 64 /* bytes of a number's text */

/* The text of a cell: in the table, or in `number`; "": it has no value. */
const char *tl_table_text(const struct tracelake_column *column, size_t row,
                          char number[static TL_CELL]);
/* Append a line: the columns' names, a row. TL_NOMEM. */
TL_MUST_USE int tl_table_csv_head(struct tl_buf *out, const struct tracelake_table *table);
TL_MUST_USE int tl_table_csv_row(struct tl_buf *out, const struct tracelake_table *table,
                                 size_t row);

#endif
