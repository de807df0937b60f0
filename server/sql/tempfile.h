/* SPDX-License-Identifier: MIT */
/*
 * Temporary files of SQLite, which has sorted rows in them above all, as memory. It counts as
 * memory of the question that the thread works on (memory.h).
 */
#ifndef TL_SQL_TEMPFILE_H
#define TL_SQL_TEMPFILE_H

/* Name of SQLite's file system for sqlite3_open_v2(): it has temporary files only, any other is an
 * error. NULL: no memory. Thread-safe. */
const char *tl_sql_tempfiles(void);

#endif
