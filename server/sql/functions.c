/* SPDX-License-Identifier: MIT */
/*
 * What people ask of traces and SQLite cannot answer. Aggregates keep their values in memory, up to
 * a limit that is said; which functions of SQLite may be used is a list, since some read files or
 * make values of any size.
 */
#include "sql/functions.h"

#include "image/demangle.h"
#include "sql/memory.h"
#include "sql/table.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX (8u << 20) /* that percentile() keeps: 64 MiB */
#define BARS_MAX   4096       /* of a histogram */
#define COUNT(a)   (sizeof(a) / sizeof *(a))

static_assert(VALUES_MAX == 8388608 && BARS_MAX == 4096, "as the messages say");
static_assert(VALUES_MAX * sizeof(double) == 64u << 20, "as said above");

bool tl_sql_function_is_allowed(const char *name)
{
    static const char *const names[] = {
        "abs",          "acos",      "asin",        "atan",    "atan2",        "avg",
        "ceil",         "ceiling",   "coalesce",    "cos",     "count",        "cume_dist",
        "dense_rank",   "exp",       "first_value", "floor",   "format",       "glob",
        "group_concat", "hex",       "ifnull",      "iif",     "instr",        "lag",
        "last_value",   "lead",      "length",      "like",    "ln",           "log",
        "log10",        "log2",      "lower",       "ltrim",   "max",          "min",
        "mod",          "nth_value", "ntile",       "nullif",  "percent_rank", "pow",
        "power",        "printf",    "quote",       "rank",    "replace",      "round",
        "row_number",   "rtrim",     "sign",        "sin",     "sqrt",         "substr",
        "substring",    "sum",       "tan",         "total",   "trim",         "trunc",
        "typeof",       "unicode",   "upper",       "address", "percentile",   "histogram",
        "demangle",     "overlap"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (sqlite3_stricmp(name, names[i]) == 0)
            return true;
    return false;
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* address(x): "0xffffffff80000000", also of addresses beyond 2^63, which are negative numbers. */
static void tell_address(sqlite3_context *context, int n, sqlite3_value **values)
{
    char text[24];
    (void)n;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)sqlite3_value_int64(values[0]));
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static void tell_demangled(sqlite3_context *context, int n, sqlite3_value **values)
{
    const char *const name = (const char *)sqlite3_value_text(values[0]);
    char out[TL_DEMANGLED];
    (void)n;
    if (name)
        sqlite3_result_text(context, tl_demangle(name, out) ? out : name, -1, SQLITE_TRANSIENT);
}

/* overlap(a, b, c, d): how much of [a, b) is in [c, d). */
static void tell_overlap(sqlite3_context *context, int n, sqlite3_value **values)
{
    sqlite3_int64 v[4];
    for (int i = 0; i < n; i++) {
        if (sqlite3_value_type(values[i]) == SQLITE_NULL)
            return;
        v[i] = sqlite3_value_int64(values[i]);
    }
    const sqlite3_int64 begin = v[0] > v[2] ? v[0] : v[2], end = v[1] < v[3] ? v[1] : v[3];
    sqlite3_result_int64(context,
                         end > begin ? (sqlite3_int64)((uint64_t)end - (uint64_t)begin) : 0);
}

/* ---- aggregates ------------------------------------------------------------------------------ */

struct values {
    double *p;
    size_t n, cap;
    double argument; /* the second one: percent, or width */
    bool failed;
};

static void add_value(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct values *const s = sqlite3_aggregate_context(context, sizeof *s);
    (void)n;
    if (!s || s->failed || sqlite3_value_numeric_type(values[0]) == SQLITE_NULL)
        return;
    s->argument = sqlite3_value_double(values[1]);
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 256;
        const bool takes = cap <= VALUES_MAX && tl_sql_memory_takes((cap - s->cap) * sizeof *s->p);
        double *const p = takes ? realloc(s->p, cap * sizeof *p) : NULL;
        if (!p) {
            s->failed = true;
            sqlite3_result_error(context, "too many values: at most 8388608 in a group", -1);
            return;
        }
        s->p = p;
        s->cap = cap;
    }
    s->p[s->n++] = sqlite3_value_double(values[0]);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The values in order, if they are wanted. They are given back with free_values(). */
static struct values *take_values(sqlite3_context *context)
{
    const struct tl_asking *const asking = sqlite3_user_data(context);
    struct values *const s = sqlite3_aggregate_context(context, 0);
    if (s && asking->stopped)
        s->failed = true;
    if (s && !s->failed && s->n > 0)
        qsort(s->p, s->n, sizeof *s->p, compare);
    return s;
}

static void free_values(struct values *s)
{
    tl_sql_memory_gives(s->cap * sizeof *s->p);
    free(s->p);
}

/* percentile(x, p), 0 <= p <= 100: the smallest value that p % of the values do not exceed. */
static void tell_percentile(sqlite3_context *context)
{
    struct values *const s = take_values(context);
    if (!s)
        return;
    if (s->n > 0 && !s->failed && s->argument >= 0 && s->argument <= 100) {
        const double rank = ceil(s->argument / 100 * (double)s->n);
        const double value = s->p[rank < 1 ? 0 : (size_t)rank - 1];
        if (value == floor(value) && fabs(value) < 9e15)
            sqlite3_result_int64(context, (sqlite3_int64)value);
        else
            sqlite3_result_double(context, value);
    } else if (s->n > 0 && !s->failed) {
        sqlite3_result_error(context, "percentile(x, p): p is 0 to 100", -1);
    }
    free_values(s);
}

/* The bars of sorted values, as JSON: [[from, count], …], without empty ones. */
static char *write_bars(const struct values *s)
{
    sqlite3_str *const out = sqlite3_str_new(NULL);
    size_t bars = 0;
    sqlite3_str_appendall(out, "[");
    for (size_t i = 0, same; i < s->n; i += same) {
        const double bar = floor(s->p[i] / s->argument);
        for (same = 1; i + same < s->n && floor(s->p[i + same] / s->argument) == bar;)
            same++;
        if (++bars > BARS_MAX)
            break;
        sqlite3_str_appendf(out, "%s[%.15g,%llu]", bars > 1 ? "," : "", bar * s->argument,
                            (unsigned long long)same);
    }
    sqlite3_str_appendall(out, "]");
    char *const text = sqlite3_str_finish(out);
    if (bars <= BARS_MAX)
        return text;
    sqlite3_free(text);
    return NULL;
}

static void tell_histogram(sqlite3_context *context)
{
    struct values *const s = take_values(context);
    if (!s)
        return;
    if (s->n > 0 && !s->failed && s->argument > 0) {
        char *const text = write_bars(s);
        if (text)
            sqlite3_result_text(context, text, -1, sqlite3_free);
        else
            sqlite3_result_error(context, "histogram(x, width): more than 4096 bars", -1);
    } else if (s->n > 0 && !s->failed) {
        sqlite3_result_error(context, "histogram(x, width): width is more than 0", -1);
    }
    free_values(s);
}

int tl_sql_functions_add(sqlite3 *db, struct tl_asking *asking)
{
    static const struct {
        const char *name;
        int n;
        void (*scalar)(sqlite3_context *context, int n, sqlite3_value **values);
        void (*step)(sqlite3_context *context, int n, sqlite3_value **values);
        void (*final)(sqlite3_context *context);
    } all[] = {
        {"address", 1, tell_address, NULL, NULL},
        {"demangle", 1, tell_demangled, NULL, NULL},
        {"format", -1, tl_sql_tell_format, NULL, NULL},
        {"printf", -1, tl_sql_tell_format, NULL, NULL},
        {"instr", 2, tl_sql_tell_instr, NULL, NULL},
        {"replace", 3, tl_sql_tell_replaced, NULL, NULL},
        {"trim", 1, tl_sql_tell_trimmed, NULL, NULL},
        {"trim", 2, tl_sql_tell_trimmed, NULL, NULL},
        {"ltrim", 1, tl_sql_tell_trimmed_left, NULL, NULL},
        {"ltrim", 2, tl_sql_tell_trimmed_left, NULL, NULL},
        {"rtrim", 1, tl_sql_tell_trimmed_right, NULL, NULL},
        {"rtrim", 2, tl_sql_tell_trimmed_right, NULL, NULL},
        {"overlap", 4, tell_overlap, NULL, NULL},
        {"percentile", 2, NULL, add_value, tell_percentile},
        {"histogram", 2, NULL, add_value, tell_histogram},
    };
    for (size_t i = 0; i < COUNT(all); i++)
        if (sqlite3_create_function(db, all[i].name, all[i].n,
                                    SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, asking,
                                    all[i].scalar, all[i].step, all[i].final) != SQLITE_OK)
            return TL_NOMEM;
    return TL_OK;
}
