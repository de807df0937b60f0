/* SPDX-License-Identifier: MIT */
/*
 * SQLite gives each value its own type, programs want one for a column: it is decided for each
 * batch, once all of its values are known. Equal texts are sent once.
 */
#include "sql/batch.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (2 * TL_SQL_BATCH) /* of the table of different texts */

int tl_sql_gather_init(struct tl_sql_gather *g, sqlite3_stmt *statement)
{
    const int n = sqlite3_column_count(statement);
    *g = (struct tl_sql_gather){.n = (size_t)n};
    g->cells = calloc(g->n + 1, sizeof *g->cells);
    g->columns = calloc(g->n + 1, sizeof *g->columns);
    if (!g->cells || !g->columns)
        return TL_NOMEM;
    for (int i = 0; i < n; i++)
        g->columns[i].name = sqlite3_column_name(statement, i);
    return TL_OK;
}

void tl_sql_gather_fini(struct tl_sql_gather *g)
{
    for (size_t i = 0; g->cells && i < g->n; i++) {
        tl_buf_fini(&g->cells[i].text);
        tl_buf_fini(&g->cells[i].out);
        tl_buf_fini(&g->cells[i].nulls);
        free(g->cells[i].texts);
    }
    free(g->cells);
    free(g->columns);
    *g = (struct tl_sql_gather){0};
}

static int keep_text(struct tl_sql_cells *c, size_t row, const char *text, size_t n)
{
    c->values[row] = c->text.n;
    const int r = tl_buf_add(&c->text, text, n);
    return r < 0 ? r : tl_buf_add(&c->text, "", 1);
}

/* A blob is told as "0x" and its digits. */
static int keep_blob(struct tl_sql_cells *c, size_t row, struct tl_bytes blob)
{
    c->values[row] = c->text.n;
    int r = tl_buf_add(&c->text, "0x", 2);
    for (size_t i = 0; i < blob.n && r >= 0; i++)
        r = tl_buf_printf(&c->text, "%02x", blob.p[i]);
    return r < 0 ? r : tl_buf_add(&c->text, "", 1);
}

static int keep_cell(struct tl_sql_cells *c, size_t row, sqlite3_stmt *s, int column)
{
    const int type = sqlite3_column_type(s, column);
    double real;
    c->types[row] = (uint8_t)type;
    c->any[type] = true;
    switch (type) {
    case SQLITE_INTEGER:
        c->values[row] = (uint64_t)sqlite3_column_int64(s, column);
        return TL_OK;
    case SQLITE_FLOAT:
        real = sqlite3_column_double(s, column);
        memcpy(&c->values[row], &real, sizeof real);
        return TL_OK;
    case SQLITE_TEXT:
        return keep_text(c, row, (const char *)sqlite3_column_text(s, column),
                         (size_t)sqlite3_column_bytes(s, column));
    case SQLITE_BLOB:
        return keep_blob(c, row,
                         (struct tl_bytes){sqlite3_column_blob(s, column),
                                           (size_t)sqlite3_column_bytes(s, column)});
    default:
        return TL_OK;
    }
}

int tl_sql_gather_row(struct tl_sql_gather *g, sqlite3_stmt *statement)
{
    int r = TL_OK;
    for (size_t i = 0; i < g->n && r >= 0; i++) {
        const size_t before = g->cells[i].text.n;
        r = keep_cell(&g->cells[i], g->rows, statement, (int)i);
        g->text += g->cells[i].text.n - before;
    }
    g->rows++;
    return r;
}

/* ---- one kind for a column ------------------------------------------------------------------- */

static double real_of(const struct tl_sql_cells *c, size_t row)
{
    double real;
    memcpy(&real, &c->values[row], sizeof real);
    return c->types[row] == SQLITE_INTEGER ? (double)(int64_t)c->values[row] : real;
}

static int add_numbers(struct tl_sql_cells *c, size_t rows, enum tl_sql_kind kind)
{
    int r = TL_OK;
    for (size_t i = 0; i < rows && r >= 0; i++) {
        uint8_t bytes[8] = {0};
        uint64_t value = c->values[i];
        if (kind == TL_SQL_REAL) {
            const double real = real_of(c, i);
            memcpy(&value, &real, sizeof real);
        }
        if (c->types[i] != SQLITE_NULL)
            tl_put_le64(bytes, value);
        r = tl_buf_add(&c->out, bytes, sizeof bytes);
    }
    return r;
}

/* Make texts of the numbers in a column that has texts. */
static int write_numbers(struct tl_sql_cells *c, size_t rows)
{
    char text[40];
    int r = TL_OK;
    for (size_t i = 0; i < rows && r >= 0; i++) {
        if (c->types[i] == SQLITE_INTEGER)
            snprintf(text, sizeof text, "%lld", (long long)c->values[i]);
        else if (c->types[i] == SQLITE_FLOAT)
            snprintf(text, sizeof text, "%.17g", real_of(c, i));
        if (c->types[i] == SQLITE_INTEGER || c->types[i] == SQLITE_FLOAT)
            r = keep_text(c, i, text, strlen(text));
    }
    return r;
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 16777619u;
    return hash;
}

/* The number of a text among those of the batch. */
static int number_of(struct tl_sql_cells *c, uint16_t slots[SLOTS], const char *text, uint32_t *out)
{
    uint32_t i = hash_of(text) % SLOTS;
    for (; slots[i]; i = (i + 1) % SLOTS)
        if (strcmp(c->texts[slots[i] - 1], text) == 0) {
            *out = slots[i] - 1u;
            return TL_OK;
        }
    const int r = tl_grow(&c->texts, &c->cap_texts, c->n_texts + 1, sizeof *c->texts);
    if (r < 0)
        return r;
    c->texts[c->n_texts++] = text;
    slots[i] = (uint16_t)c->n_texts;
    *out = slots[i] - 1u;
    return TL_OK;
}

static int add_texts(struct tl_sql_cells *c, size_t rows)
{
    uint16_t slots[SLOTS] = {0};
    int r = write_numbers(c, rows);
    for (size_t i = 0; i < rows && r >= 0; i++) {
        uint8_t bytes[4] = {0};
        uint32_t number = 0;
        if (c->types[i] != SQLITE_NULL)
            r = number_of(c, slots, (const char *)c->text.p + c->values[i], &number);
        tl_put_le32(bytes, number);
        if (r >= 0)
            r = tl_buf_add(&c->out, bytes, sizeof bytes);
    }
    return r;
}

static int add_nulls(struct tl_sql_cells *c, size_t rows)
{
    int r = TL_OK;
    for (size_t i = 0; i < rows && r >= 0; i += 8) {
        uint8_t bits = 0;
        for (size_t k = i; k < i + 8 && k < rows; k++)
            bits |= (uint8_t)((c->types[k] == SQLITE_NULL) << (k - i));
        r = tl_buf_add(&c->nulls, &bits, 1);
    }
    return r;
}

static int make_column(struct tl_sql_cells *c, size_t rows, struct tl_sql_column *out)
{
    const bool text = c->any[SQLITE_TEXT] || c->any[SQLITE_BLOB];
    out->kind = text ? TL_SQL_TEXT : c->any[SQLITE_FLOAT] ? TL_SQL_REAL : TL_SQL_INTEGER;
    int r = text ? add_texts(c, rows) : add_numbers(c, rows, out->kind);
    if (r >= 0 && c->any[SQLITE_NULL])
        r = add_nulls(c, rows);
    out->values = c->out.p;
    out->texts = c->texts;
    out->n_texts = c->n_texts;
    out->nulls = c->any[SQLITE_NULL] ? c->nulls.p : NULL;
    return r;
}

static void clear(struct tl_sql_cells *c)
{
    tl_buf_reset(&c->text);
    tl_buf_reset(&c->out);
    tl_buf_reset(&c->nulls);
    c->n_texts = 0;
    memset(c->any, 0, sizeof c->any);
}

int tl_sql_gather_send(struct tl_sql_gather *g, bool last, bool truncated, tl_sql_sink *sink,
                       void *context)
{
    int r = TL_OK;
    for (size_t i = 0; i < g->n && r >= 0; i++)
        r = make_column(&g->cells[i], g->rows, &g->columns[i]);
    if (r >= 0)
        r = sink(context, &(struct tl_sql_batch){.columns = g->columns,
                                                 .n_columns = g->n,
                                                 .n_rows = g->rows,
                                                 .last = last,
                                                 .truncated = truncated});
    for (size_t i = 0; i < g->n; i++)
        clear(&g->cells[i]);
    g->rows = g->text = 0;
    return r;
}
