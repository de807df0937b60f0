/* SPDX-License-Identifier: MIT */
/*
 * What SQLite keeps in temporary files, sorted rows above all, in memory and within a bound. A file
 * belongs to the thread that asks a question.
 */
#ifndef TL_SQL_TEMPFILE_H
#define TL_SQL_TEMPFILE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Name of SQLite's file system for sqlite3_open_v2(): it has temporary files only, any other is an
 * error. NULL: no memory. Thread-safe. */
const char *tl_sql_tempfiles(void);

/* Of the calling thread's files. */
struct tl_sql_temp {
    size_t bytes, most; /* in use, and the bound */
    bool full;          /* the bound was reached: what SQLite did has failed */
};
/* The calling thread's files are counted in `temp` from here on, until it is NULL. All of them must
 * be closed before that. */
void tl_sql_temp_use(struct tl_sql_temp *temp);

#endif
