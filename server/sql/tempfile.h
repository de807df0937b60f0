/* SPDX-License-Identifier: MIT */
/*
 * What SQLite keeps in temporary files, sorted rows above all, in memory: in that of the thread's
 * question (memory.h), to which a file belongs.
 */
#ifndef TL_SQL_TEMPFILE_H
#define TL_SQL_TEMPFILE_H

/* Name of SQLite's file system for sqlite3_open_v2(): it has temporary files only, any other is an
 * error. NULL: no memory. Thread-safe. */
const char *tl_sql_tempfiles(void);

#endif
