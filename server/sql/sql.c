/* SPDX-License-Identifier: MIT */
/*
 * Each question has a database of its own, in memory and empty but for the lake's tables. Anybody
 * may ask anything, so what it may do is a list (an authorizer), and what it may cost is bounded:
 * in time and memory by a function that SQLite calls as it works, where a question also waits if
 * others have the memory that it needs; in rows by the loop that reads them.
 */
#include "lake_sql.h"

#include "base/cancel.h"
#include "base/now.h"
#include "lake/lakeint.h"
#include "sql/batch.h"
#include "sql/functions.h"
#include "sql/insn_groups.h"
#include "sql/memory.h"
#include "sql/table.h"
#include "sql/tempfile.h"

#include <ctype.h>
#include <string.h>

/* Of SQLite's machine between two looks at the limits: a function of a long text takes
 * milliseconds. */
#define STEPS 100

struct question {
    struct tl_asking asking; /* first */
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t until_ns;
    int64_t looked_ns; /* when, by a clock that is fast to read, and coarse */
    struct tl_sql_memory memory;
    enum { WITHIN, TOO_LONG, TOO_LARGE, UNWANTED } limit;
};

/* ---- what it may do -------------------------------------------------------------------------- */

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    (void)context;
    (void)first;
    (void)database;
    (void)trigger;
    if (action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE)
        return SQLITE_OK;
    return action == SQLITE_FUNCTION && tl_sql_function_is_allowed(second) ? SQLITE_OK
                                                                           : SQLITE_DENY;
}

static void set_limits(sqlite3 *db)
{
    static const int limits[][2] = {{SQLITE_LIMIT_LENGTH, 1000000},
                                    {SQLITE_LIMIT_SQL_LENGTH, TL_SQL_BYTES},
                                    {SQLITE_LIMIT_COLUMN, 100},
                                    {SQLITE_LIMIT_EXPR_DEPTH, 100},
                                    {SQLITE_LIMIT_COMPOUND_SELECT, 20},
                                    {SQLITE_LIMIT_VDBE_OP, 25000},
                                    {SQLITE_LIMIT_FUNCTION_ARG, 16},
                                    {SQLITE_LIMIT_ATTACHED, 0},
                                    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
                                    {SQLITE_LIMIT_VARIABLE_NUMBER, 100},
                                    {SQLITE_LIMIT_WORKER_THREADS, 0}};
    static const int options[][2] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                     {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                     {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
                                     {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
                                     {SQLITE_DBCONFIG_DQS_DML, 0},
                                     {SQLITE_DBCONFIG_DQS_DDL, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(db, limits[i][0], limits[i][1]);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        sqlite3_db_config(db, options[i][0], options[i][1], (int *)NULL);
}

/* Is it still wanted, and has time left? */
static bool goes_on(void *context)
{
    struct question *const q = context;
    if (tl_monotonic_ns() > q->until_ns)
        q->limit = TOO_LONG;
    else if (tl_cancel_check() < 0)
        q->limit = UNWANTED;
    return q->limit == WITHIN;
}

static int look_at_limits(struct question *q)
{
    if (goes_on(q) && !tl_sql_memory_fits(&q->memory, 0) && q->limit == WITHIN)
        q->limit = TOO_LARGE;
    q->asking.stopped = q->limit != WITHIN;
    return q->asking.stopped;
}

/* Called very often. */
static int look_at_times(void *context)
{
    struct question *const q = context;
    const int64_t now = tl_read_clock_ns(CLOCK_MONOTONIC_COARSE);
    if (now == q->looked_ns)
        return q->asking.stopped;
    q->looked_ns = now;
    return look_at_limits(q);
}

static int check(struct tl_asking *asking)
{
    struct question *const q = (struct question *)asking;
    return !look_at_limits(q) ? TL_OK : q->limit == UNWANTED ? TL_CANCELLED : TL_LIMIT;
}

/* A table is connected when it is first used, which the authorizer would refuse. */
static int connect_tables(sqlite3 *db)
{
    for (size_t i = 0; i < TL_TABLES; i++) {
        sqlite3_stmt *s = NULL;
        char sql[64] = "SELECT 1 FROM ";
        const int r = sqlite3_prepare_v2(db, strcat(sql, tl_tables[i]->name), -1, &s, NULL);
        sqlite3_finalize(s);
        if (r != SQLITE_OK)
            return TL_NOMEM;
    }
    return TL_OK;
}

static int open_database(struct question *q)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    const char *const temporary = tl_sql_tempfiles();
    if (!temporary || sqlite3_open_v2(":memory:", &q->db, flags, temporary) != SQLITE_OK)
        return TL_NOMEM;
    int r = tl_tables_add(q->db, &q->asking);
    if (r >= 0)
        r = tl_sql_functions_add(q->db, &q->asking);
    if (r >= 0)
        r = connect_tables(q->db);
    set_limits(q->db);
    sqlite3_set_authorizer(q->db, authorize, NULL);
    sqlite3_progress_handler(q->db, STEPS, look_at_times, q);
    return r;
}

/* ---- the statement --------------------------------------------------------------------------- */

/* Is there anything behind the statement but blanks, semicolons and comments? */
static bool has_more(struct question *q, const char *rest)
{
    while (isspace((unsigned char)*rest) || *rest == ';')
        rest++;
    sqlite3_stmt *s = NULL;
    const int r = *rest ? sqlite3_prepare_v2(q->db, rest, -1, &s, NULL) : SQLITE_OK;
    const bool more = r != SQLITE_OK || s;
    sqlite3_finalize(s);
    return more;
}

/* What SQLite's listing tells of a statement's program. */
struct program {
    bool reads_positions; /* of rows */
    bool unites;          /* rows of several reads of a table, by their numbers: OR */
};

static void read_operation(sqlite3_stmt *s, struct program *p, bool *any)
{
    const char *const operation = (const char *)sqlite3_column_text(s, 1);
    if (!operation)
        return;
    *any |= strcmp(operation, "VFilter") == 0;
    p->unites |= strcmp(operation, "RowSetTest") == 0;
    p->reads_positions |=
        strcmp(operation, "VColumn") == 0 && sqlite3_column_int(s, 3) == TL_COLUMN_INSN_POSITION;
}

static struct program read_program(struct question *q, const char *text)
{
    struct program p = {0};
    sqlite3_stmt *s = NULL;
    char *const listing = sqlite3_mprintf("EXPLAIN %s", text);
    bool any = false;
    if (listing && sqlite3_prepare_v2(q->db, listing, -1, &s, NULL) == SQLITE_OK)
        while (sqlite3_step(s) == SQLITE_ROW)
            read_operation(s, &p, &any);
    sqlite3_finalize(s);
    sqlite3_free(listing);
    return any ? p : (struct program){true, true};
}

/* Prepare the first statement of a text: SQLite's result code. */
static int compile(struct question *q, const char *text, size_t n, const char **rest)
{
    q->asking.bounds_only = true;
    int r = sqlite3_prepare_v2(q->db, text, (int)n, &q->statement, rest);
    if (r != SQLITE_OK || !q->statement || sqlite3_stmt_isexplain(q->statement))
        return r;
    const struct program program = read_program(q, text);
    q->asking.bounds_only = !q->asking.counts_on_it || !program.reads_positions;
    q->asking.reads_once = program.unites;
    if (q->asking.bounds_only && !q->asking.reads_once)
        return r;
    sqlite3_finalize(q->statement);
    return sqlite3_prepare_v2(q->db, text, (int)n, &q->statement, rest);
}

static int prepare(struct question *q, const char *text, struct tl_fail *fail)
{
    const char *rest = "";
    const size_t n = strlen(text);
    if (n > TL_SQL_BYTES)
        return tl_fail_set(fail, TL_USAGE, "a question has at most %u bytes", TL_SQL_BYTES);
    if (compile(q, text, n, &rest) != SQLITE_OK)
        return q->limit != WITHIN ? TL_LIMIT
               : sqlite3_errcode(q->db) == SQLITE_AUTH
                   ? tl_fail_set(fail, TL_USAGE,
                                 "only SELECT can be asked, with functions of docs/sql.md: %.300s",
                                 sqlite3_errmsg(q->db))
                   : tl_fail_set(fail, TL_USAGE, "%.400s", sqlite3_errmsg(q->db));
    if (!q->statement)
        return tl_fail_set(fail, TL_USAGE, "there is no question: give a SELECT");
    if (sqlite3_stmt_isexplain(q->statement) || !sqlite3_stmt_readonly(q->statement))
        return tl_fail_set(fail, TL_USAGE, "only SELECT can be asked");
    return has_more(q, rest) ? tl_fail_set(fail, TL_USAGE, "one SELECT at a time") : TL_OK;
}

/* Is the trace there whose tables are asked? Also for a question that reads none. */
static int check_trace(struct question *q)
{
    const char *const name = q->asking.request->trace;
    struct tl_cursor cursor = {.asking = &q->asking, .bounds.trace = (char *)(uintptr_t)name};
    struct tl_trace_list list = {0};
    const int r = name && *name ? tl_cursor_trace(&cursor, &list) : TL_OK;
    tl_trace_list_free(&list);
    return r;
}

/* Why a step failed. */
static int say_failed(struct question *q, uint64_t rows, struct tl_fail *fail)
{
    const int error = q->asking.error;
    if (q->limit != UNWANTED && q->memory.refused)
        return tl_fail_set(fail, TL_LIMIT,
                           "other questions use all memory for sorting and grouping: ask again "
                           "later, bound position or time, or serve with more --sql-memory");
    switch (q->memory.full ? TOO_LARGE : q->limit) {
    case TOO_LONG:
        return tl_fail_set(fail, TL_LIMIT,
                           "it takes too long, and ended after %llu rows: bound position or time, "
                           "or name a stream",
                           (unsigned long long)rows);
    case TOO_LARGE:
        return tl_fail_set(fail, TL_LIMIT,
                           "it needs more than %u MiB for sorting and grouping: bound position or "
                           "time, or use LIMIT",
                           TL_SQL_MEMORY >> 20);
    case UNWANTED:
        return TL_CANCELLED;
    case WITHIN:
        break;
    }
    if (error == TL_NOMEM || sqlite3_errcode(q->db) == SQLITE_NOMEM)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    if (error < 0)
        return fail->text[0] ? error : tl_fail_set(fail, error, "%s", tl_err_name(error));
    return tl_fail_set(fail, TL_USAGE, "%.400s", sqlite3_errmsg(q->db));
}

static int read_rows(struct question *q, uint64_t most, struct tl_sql_gather *g, tl_sql_sink *sink,
                     void *context, struct tl_fail *fail)
{
    uint64_t rows = 0;
    int r = TL_OK, step = SQLITE_DONE;
    while (r >= 0 && (step = sqlite3_step(q->statement)) == SQLITE_ROW && rows < most) {
        r = tl_sql_gather_row(g, q->statement);
        rows++;
        if (r >= 0 && tl_sql_gather_is_full(g))
            r = tl_sql_gather_send(g, false, false, sink, context);
    }
    if (r < 0)
        return r;
    if (q->asking.error < 0 || (step != SQLITE_DONE && step != SQLITE_ROW))
        return say_failed(q, rows, fail);
    return tl_sql_gather_send(g, true, step == SQLITE_ROW, sink, context);
}

int tl_lake_sql(struct tl_lake *lake, const struct tl_sql_request *request, tl_sql_sink *sink,
                void *context, struct tl_fail *fail)
{
    const uint32_t seconds = request->seconds > 0 && request->seconds < TL_SQL_SECONDS
                                 ? request->seconds
                                 : TL_SQL_SECONDS;
    const uint64_t rows = request->rows == 0            ? TL_SQL_ROWS
                          : request->rows > TL_SQL_MOST ? TL_SQL_MOST
                                                        : request->rows;
    struct question q = {.asking = {.lake = lake, .request = request, .fail = fail, .check = check},
                         .until_ns = tl_monotonic_ns() + seconds * TL_NS_PER_S};
    struct tl_sql_gather gather = {0};
    fail->text[0] = 0;
    q.memory = (struct tl_sql_memory){.seats = &lake->sql_seats, .goes_on = goes_on, .context = &q};
    tl_sql_memory_begin(&q.memory);
    int r = check_trace(&q);
    if (r >= 0)
        r = open_database(&q);
    if (r >= 0)
        r = prepare(&q, request->text, fail);
    if (r >= 0)
        r = tl_sql_gather_init(&gather, q.statement);
    if (r >= 0)
        r = read_rows(&q, rows, &gather, sink, context, fail);
    sqlite3_finalize(q.statement);
    sqlite3_close(q.db);
    tl_asking_fini(&q.asking);
    tl_sql_memory_end(&q.memory);
    tl_sql_gather_fini(&gather);
    return r == TL_NOMEM && !fail->text[0] ? tl_fail_set(fail, r, "no memory") : r;
}
