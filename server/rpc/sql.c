/* SPDX-License-Identifier: MIT */
/*
 * Questions in SQL, over RPC: batches of rows become Table messages, whose columns are sent as they
 * are.
 */
#include "lake_sql.h"
#include "rpc/rangejson.h"
#include "rpc/scoped.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdlib.h>
#include <string.h>

struct answer {
    struct tl_call *call;
    Tracelake__V1__TableColumn *columns; /* one for each, reused */
    Tracelake__V1__TableColumn **places;
    size_t n;
};

static int make_room(struct answer *a, size_t n)
{
    if (a->columns)
        return TL_OK;
    a->n = n;
    a->columns = calloc(n + 1, sizeof *a->columns);
    a->places = calloc(n + 1, sizeof(Tracelake__V1__TableColumn *));
    return a->columns && a->places ? TL_OK : TL_NOMEM;
}

/* Descriptions of messages are not const, though nothing writes to them. */
static ProtobufCBinaryData bytes_of(const uint8_t *p, size_t n)
{
    return (ProtobufCBinaryData){.len = n, .data = (uint8_t *)(uintptr_t)p};
}

static void fill(Tracelake__V1__TableColumn *out, const struct tl_sql_column *column, size_t rows)
{
    tracelake__v1__table_column__init(out);
    out->name = (char *)(uintptr_t)column->name;
    out->kind = (Tracelake__V1__TableColumn__Kind)column->kind;
    out->values = bytes_of(column->values, rows * (column->kind == TL_SQL_TEXT ? 4 : 8));
    out->texts = (char **)(uintptr_t)column->texts;
    out->n_texts = column->n_texts;
    if (column->nulls)
        out->nulls = bytes_of(column->nulls, (rows + 7) / 8);
}

static int send_batch(void *context, const struct tl_sql_batch *batch)
{
    struct answer *const a = context;
    const int r = make_room(a, batch->n_columns);
    if (r < 0)
        return r;
    for (size_t i = 0; i < a->n; i++) {
        fill(&a->columns[i], &batch->columns[i], batch->n_rows);
        a->places[i] = &a->columns[i];
    }
    Tracelake__V1__Table table = TRACELAKE__V1__TABLE__INIT;
    table.columns = a->places;
    table.n_columns = a->n;
    table.rows = batch->n_rows;
    table.last = batch->last;
    table.truncated = batch->truncated;
    return tl_call_send(a->call, &table.base);
}

static bool sees(void *viewer, const struct tl_trace_row *trace)
{
    const struct tl_scope *const scope = viewer;
    return !scope || tl_scope_covers(scope, trace->rig, trace->labels);
}

int tl_run_sql(struct tl_call *call, const void *message)
{
    const Tracelake__V1__SqlRequest *const r = message;
    struct answer answer = {.call = call};
    const struct tl_sql_request request = {.trace = r->trace,
                                           .text = r->text,
                                           .rows = r->rows,
                                           .seconds = r->seconds,
                                           .sees = sees,
                                           .viewer = (void *)(uintptr_t)tl_call_scope(call)};
    const int rc =
        tl_lake_sql(tl_call_rpc(call)->lake, &request, send_batch, &answer, tl_call_fail(call));
    free(answer.columns);
    free(answer.places);
    return rc;
}
