/* SPDX-License-Identifier: MIT */
/*
 * The memory that SQLite has allocated for a thread: for its question, since each has a thread of
 * its own while it is answered. Thread-safe.
 */
#ifndef TL_SQL_MEMORY_H
#define TL_SQL_MEMORY_H

#include <stdint.h>

/* Bytes that SQLite allocated on this thread, less those that were freed on it. */
int64_t tl_sql_memory_used(void);

#endif
