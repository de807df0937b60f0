/* SPDX-License-Identifier: MIT */
/*
 * The tool `sql`: rows go into the answer until it is full. The rest is not read any more than the
 * server has sent already.
 */
#include "cli/mcpcall.h"

#include <string.h>

struct answer {
    struct tl_mcp_call *call;
    const char *trace;
    struct tl_jsonout j;
    size_t rows;
    bool begun, full, more;
    size_t position, stream; /* columns; n_columns: there is none */
};

static size_t column_named(const struct tracelake_table *table, const char *name)
{
    size_t i = 0;
    while (i < table->n_columns && strcmp(table->columns[i].name, name) != 0)
        i++;
    return i;
}

static bool is_place(const struct answer *a, const struct tracelake_table *table)
{
    return a->position < table->n_columns && a->stream < table->n_columns;
}

static void begin_rows(struct answer *a, const struct tracelake_table *table)
{
    a->begun = true;
    a->position = column_named(table, "position");
    a->stream = column_named(table, "stream");
    tl_jsonout_name(&a->j, "columns");
    tl_jsonout_open(&a->j, '[');
    for (size_t i = 0; i < table->n_columns; i++)
        tl_jsonout_text(&a->j, table->columns[i].name);
    if (is_place(a, table))
        tl_jsonout_text(&a->j, "link");
    tl_jsonout_close(&a->j, ']');
    tl_jsonout_name(&a->j, "rows");
    tl_jsonout_open(&a->j, '[');
}

static void put_cell(struct tl_jsonout *j, const struct tracelake_column *c, size_t row)
{
    if (c->nulls[row])
        tl_jsonout_null(j);
    else if (c->kind == TRACELAKE_TEXTS)
        tl_mcp_put_short(j, c->texts[row]);
    else if (c->kind == TRACELAKE_REAL)
        tl_jsonout_double(j, c->reals[row]);
    else
        tl_jsonout_i64(j, c->integers[row]);
}

static void put_row(struct answer *a, const struct tracelake_table *table, size_t row)
{
    tl_jsonout_line(&a->j);
    tl_jsonout_open(&a->j, '[');
    for (size_t i = 0; i < table->n_columns; i++)
        put_cell(&a->j, &table->columns[i], row);
    if (is_place(a, table)) {
        const struct tracelake_column *const position = &table->columns[a->position];
        const struct tracelake_column *const stream = &table->columns[a->stream];
        if (position->kind == TRACELAKE_INTEGER && !position->nulls[row] &&
            stream->kind == TRACELAKE_TEXTS && !stream->nulls[row])
            tl_mcp_put_link(a->call, &a->j, a->trace, stream->texts[row],
                            (uint64_t)position->integers[row]);
        else
            tl_jsonout_null(&a->j);
    }
    tl_jsonout_close(&a->j, ']');
}

static int take_rows(void *context, const struct tracelake_table *table)
{
    struct answer *const a = context;
    if (!a->begun)
        begin_rows(a, table);
    for (size_t row = 0; row < table->n_rows && !a->full; row++) {
        a->full = a->j.out->n >= TL_MCP_BYTES;
        if (!a->full)
            put_row(a, table, row);
        a->rows += !a->full;
    }
    a->more |= table->truncated || a->full;
    return a->j.rc < 0 ? TRACELAKE_NOMEM : TRACELAKE_OK;
}

int tl_mcp_tell_sql(struct tl_mcp_call *c)
{
    struct tracelake_error error;
    uint64_t limit = TL_MCP_ROWS, seconds = 0;
    int r = TL_OK;
    const char *const trace = tl_mcp_need_text(c, "trace", &r);
    const char *const text = trace ? tl_mcp_need_text(c, "query", &r) : NULL;
    if (!text || !tl_mcp_take_number(c, "limit", TL_MCP_ROWS_MOST, &limit, &r) ||
        !tl_mcp_take_number(c, "seconds", 30, &seconds, &r))
        return r;
    const struct tracelake_question question = {
        .trace = trace, .text = text, .rows = limit ? limit : 1, .seconds = (uint32_t)seconds};
    struct answer a = {.call = c, .trace = trace, .j.out = c->text};
    tl_jsonout_open(&a.j, '{');
    if (tracelake_sql(c->tools->lake, &question, take_rows, &a, &error) < 0)
        return tl_mcp_lost(c, &error);
    tl_jsonout_close(&a.j, ']');
    tl_mcp_put_number(&a.j, "n", a.rows);
    if (a.more)
        tl_mcp_put_text(&a.j, "truncated",
                        a.full
                            ? "the answer is long: ask for fewer columns, sums, or LIMIT … OFFSET …"
                            : "there are more rows: ask for sums, give a larger `limit` (at most "
                              "1000), or LIMIT … OFFSET …");
    tl_jsonout_close(&a.j, '}');
    return a.j.rc;
}
