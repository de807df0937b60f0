/* SPDX-License-Identifier: MIT */
/*
 * SQLite counts memory for the whole program only, so that a large question would end small ones
 * beside it. Its allocator is wrapped before main() begins: nobody may have used SQLite before.
 */
#include "sql/memory.h"

#include <sqlite3.h>

static sqlite3_mem_methods plain;
static _Thread_local int64_t used;

int64_t tl_sql_memory_used(void)
{
    return used;
}

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

__attribute__((constructor)) static void count_memory(void)
{
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain) != SQLITE_OK)
        return;
    sqlite3_mem_methods counted = plain;
    counted.xMalloc = counted_malloc;
    counted.xFree = counted_free;
    counted.xRealloc = counted_realloc;
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &counted);
}
