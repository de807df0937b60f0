/* SPDX-License-Identifier: MIT */
/*
 * Functions that SQLite does not have: address(x), percentile(x, p), histogram(x, width),
 * demangle(name), overlap(a, b, c, d).
 */
#ifndef TL_SQL_FUNCTIONS_H
#define TL_SQL_FUNCTIONS_H

#include "base/err.h"

#include <sqlite3.h>
#include <stdbool.h>

struct tl_asking;

/* Add them to a connection. `asking` is borrowed until it is closed. TL_NOMEM. */
TL_MUST_USE int tl_sql_functions_add(sqlite3 *db, struct tl_asking *asking);

/* format() and printf(), instr(), replace(): as SQLite's, but bounded in time; formats have widths
 * and precisions up to 1000, and %c no precision. */
void tl_sql_tell_format(sqlite3_context *context, int n, sqlite3_value **values);
void tl_sql_tell_instr(sqlite3_context *context, int n, sqlite3_value **values);
void tl_sql_tell_replaced(sqlite3_context *context, int n, sqlite3_value **values);
/* trim(), ltrim(), rtrim(): likewise, of a set of at most 1000 bytes. */
void tl_sql_tell_trimmed(sqlite3_context *context, int n, sqlite3_value **values);
void tl_sql_tell_trimmed_left(sqlite3_context *context, int n, sqlite3_value **values);
void tl_sql_tell_trimmed_right(sqlite3_context *context, int n, sqlite3_value **values);

/* May a question use this function, of SQLite or of the above? */
bool tl_sql_function_is_allowed(const char *name);

#endif
