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

/* Add them to a connection. TL_NOMEM. */
TL_MUST_USE int tl_sql_functions_add(sqlite3 *db);

/* May a question use this function, of SQLite or of the above? */
bool tl_sql_function_is_allowed(const char *name);

#endif
