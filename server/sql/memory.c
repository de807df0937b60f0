/* SPDX-License-Identifier: MIT */
/*
 * SQLite counts memory for the whole program only, so that a large question would end small ones
 * beside it. Its allocator is wrapped when the first lake is opened, and not before main() begins:
 * most commands do without SQLite, which takes longer to load than they take to start.
 */
#include "sql/memory.h"

#include "lake_sql.h"

#include <pthread.h>
#include <sqlite3.h>

static sqlite3_mem_methods plain;
static _Thread_local int64_t used;
static _Thread_local struct tl_sql_memory *question;

int64_t tl_sql_memory_used(void)
{
    return used;
}

/* ---- of a question --------------------------------------------------------------------------- */

void tl_sql_memory_begin(struct tl_sql_memory *m)
{
    m->begun = used;
    question = m;
}

void tl_sql_memory_end(struct tl_sql_memory *m)
{
    question = NULL;
    if (m->seated)
        tl_seats_leave(m->seats);
    m->seated = false;
}

bool tl_sql_memory_fits(struct tl_sql_memory *m, int64_t more)
{
    const int64_t bytes = used - m->begun + m->collected + more;
    if (bytes <= TL_SQL_FEW)
        return true;
    m->full = m->full || bytes > TL_SQL_MEMORY;
    if (m->full || m->refused)
        return false;
    if (!m->seated)
        m->seated = tl_seats_take(m->seats, m->goes_on, m->context);
    m->refused = !m->seated;
    return m->seated;
}

bool tl_sql_memory_takes(size_t bytes)
{
    if (!tl_sql_memory_fits(question, (int64_t)bytes))
        return false;
    question->collected += (int64_t)bytes;
    return true;
}

void tl_sql_memory_gives(size_t bytes)
{
    question->collected -= (int64_t)bytes;
}

/* ---- of SQLite ------------------------------------------------------------------------------- */

static void *counted_malloc(int n)
{
    void *const p = plain.xMalloc(n);
    used += p ? plain.xSize(p) : 0;
    return p;
}

static void counted_free(void *p)
{
    used -= p ? plain.xSize(p) : 0;
    plain.xFree(p);
}

static void *counted_realloc(void *p, int n)
{
    const int before = plain.xSize(p);
    void *const now = plain.xRealloc(p, n);
    used += now ? plain.xSize(now) - before : 0;
    return now;
}

static void wrap(void)
{
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain) != SQLITE_OK)
        return;
    sqlite3_mem_methods counted = plain;
    counted.xMalloc = counted_malloc;
    counted.xFree = counted_free;
    counted.xRealloc = counted_realloc;
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &counted);
}

void tl_lake_sql_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, wrap);
}
