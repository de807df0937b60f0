/* SPDX-License-Identifier: MIT */
/*
 * The memory of questions. Each has a thread of its own while it is answered, so what SQLite
 * allocates on a thread is its question's; temporary files, and what functions and tables collect,
 * are counted beside that. Up to TL_SQL_FEW bytes a question needs nobody's leave; for more it
 * takes a seat among the large ones, of which the lake has a bounded number. Thread-safe: a thread
 * sees its own.
 */
#ifndef TL_SQL_MEMORY_H
#define TL_SQL_MEMORY_H

#include "lake/seats.h"

#include <stddef.h>
#include <stdint.h>

#define TL_SQL_FEW (16 << 20)

struct tl_sql_memory {
    struct tl_seats *seats;
    /* May the question go on waiting for one? */
    bool (*goes_on)(void *context);
    void *context;
    /* Private but for the result: */
    int64_t begun;     /* what SQLite had allocated on this thread */
    int64_t collected; /* beside what it has */
    bool seated;
    bool full;    /* it needed more than TL_SQL_MEMORY */
    bool refused; /* no seat became free while it could wait */
};

/* What happens on this thread from here on is counted for a question. */
void tl_sql_memory_begin(struct tl_sql_memory *memory);
/* Nothing of it is in use any more. */
void tl_sql_memory_end(struct tl_sql_memory *memory);

/* May what is in use, and `more` bytes, be? It may wait for a seat. False: the question is to end,
 * as `full` or `refused` says. */
TL_MUST_USE bool tl_sql_memory_fits(struct tl_sql_memory *memory, int64_t more);
/* Count bytes of the thread's question that SQLite did not allocate; they are given back by
 * tl_sql_memory_gives(). False: they do not fit, and are not counted. */
TL_MUST_USE bool tl_sql_memory_takes(size_t bytes);
void tl_sql_memory_gives(size_t bytes);

/* Bytes that SQLite allocated on this thread, less those that were freed on it. */
int64_t tl_sql_memory_used(void);

#endif
