/* SPDX-License-Identifier: MIT */
/*
 * Questions in SQL. Over RPC batches of rows become Table messages, whose columns are sent as they
 * are; over HTTP one object of bounded size, so that an error at the last row still has its status.
 */
#include "base/bytes.h"
#include "base/jsonout.h"
#include "lake_sql.h"
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webapi.h"
#include "rpc/webargs.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdlib.h>
#include <string.h>

static bool sees(void *viewer, const struct tl_trace_row *trace)
{
    const struct tl_scope *const scope = viewer;
    return !scope || tl_scope_covers(scope, trace->rig, trace->labels);
}

/* ---- gRPC ------------------------------------------------------------------------------------ */

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
    out->values = bytes_of(column->values, rows * tl_sql_width(column->kind));
    out->texts = (char **)(uintptr_t)column->texts;
    out->n_texts = column->n_texts;
    if (column->nulls)
        out->nulls = bytes_of(column->nulls, (rows + 7) / 8);
}

/* The batch, whose bytes it borrows, as a message. */
static int table_of(struct answer *a, const struct tl_sql_batch *batch, Tracelake__V1__Table *table)
{
    const int r = make_room(a, batch->n_columns);
    if (r < 0)
        return r;
    for (size_t i = 0; i < a->n; i++) {
        fill(&a->columns[i], &batch->columns[i], batch->n_rows);
        a->places[i] = &a->columns[i];
    }
    tracelake__v1__table__init(table);
    table->columns = a->places;
    table->n_columns = a->n;
    table->rows = batch->n_rows;
    table->last = batch->last;
    table->truncated = batch->truncated;
    return TL_OK;
}

static void answer_fini(struct answer *a)
{
    free(a->columns);
    free(a->places);
}

static int send_batch(void *context, const struct tl_sql_batch *batch)
{
    struct answer *const a = context;
    Tracelake__V1__Table table;
    const int rc = table_of(a, batch, &table);
    return rc < 0 ? rc : tl_call_send(a->call, &table.base);
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
    answer_fini(&answer);
    return rc;
}

/* The columns asked for; TL_USAGE. */
static int columns_of(const Tracelake__V1__InsnColumnsRequest *r,
                      struct tl_insn_columns_request *out, struct tl_fail *fail)
{
    static const enum tl_insn_column usual[] = {TL_INSN_PC, TL_INSN_OPCODE, TL_INSN_SIZE};
    bool taken[TL_INSN_COLUMNS] = {false};
    if (r->n_columns == 0) {
        memcpy(out->columns, usual, sizeof usual);
        out->n_columns = sizeof usual / sizeof *usual;
    }
    for (size_t i = 0; i < r->n_columns; i++) {
        const enum tl_insn_column column = tl_insn_column_named(r->columns[i]);
        if (column == TL_INSN_COLUMNS || taken[column])
            return tl_fail_set(fail, TL_USAGE,
                               "column %.40s; there are position, time, pc, opcode and size, once",
                               r->columns[i]);
        taken[column] = true;
        out->columns[out->n_columns++] = column;
    }
    return (unsigned)r->unit < TL_UNITS
               ? TL_OK
               : tl_fail_set(fail, TL_USAGE, "unit %u is not known", (unsigned)r->unit);
}

int tl_run_insn_columns(struct tl_call *call, const void *message)
{
    const Tracelake__V1__InsnColumnsRequest *const r = message;
    struct tl_fail *const fail = tl_call_fail(call);
    struct answer answer = {.call = call};
    struct tl_insn_columns_request request = {.trace = r->trace,
                                              .stream = r->stream,
                                              .unit = (enum tl_range_unit)r->unit,
                                              .from = r->begin,
                                              .to = r->to ? r->to : UINT64_MAX};
    int rc = columns_of(r, &request, fail);
    if (rc >= 0)
        rc = tl_lake_insn_columns(tl_call_rpc(call)->lake, &request, send_batch, &answer, fail);
    answer_fini(&answer);
    return tl_explain(fail, rc, r->trace, r->stream);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

#define MOST_BYTES (16u << 20) /* of rows in an answer */

struct document {
    struct tl_buf rows;
    struct tl_jsonout json; /* of these */
    size_t n_rows, n_columns;
    char **names;
    enum tl_sql_kind *kinds; /* the widest of all batches */
    bool truncated;
};

/* Names and kinds of the columns, with each batch. */
static int take_columns(struct document *d, const struct tl_sql_batch *batch)
{
    if (!d->names) {
        d->n_columns = batch->n_columns;
        d->names = calloc(d->n_columns + 1, sizeof *d->names);
        d->kinds = calloc(d->n_columns + 1, sizeof *d->kinds);
        if (!d->names || !d->kinds)
            return TL_NOMEM;
    }
    for (size_t i = 0; i < d->n_columns; i++) {
        if (!d->names[i] && !(d->names[i] = strdup(batch->columns[i].name)))
            return TL_NOMEM;
        if (batch->columns[i].kind > d->kinds[i])
            d->kinds[i] = batch->columns[i].kind;
    }
    return TL_OK;
}

static void write_value(struct tl_jsonout *json, const struct tl_sql_column *c, size_t row)
{
    double real;
    if (c->nulls && c->nulls[row / 8] >> row % 8 & 1) {
        tl_jsonout_null(json);
        return;
    }
    if (c->kind == TL_SQL_TEXT) {
        tl_jsonout_text(json, c->texts[tl_le32(c->values + 4 * row)]);
        return;
    }
    const uint64_t bits = tl_le64(c->values + 8 * row);
    memcpy(&real, &bits, sizeof real);
    if (c->kind == TL_SQL_REAL)
        tl_jsonout_double(json, real);
    else
        tl_jsonout_i64(json, (int64_t)bits);
}

static int write_batch(void *context, const struct tl_sql_batch *batch)
{
    struct document *const d = context;
    int rc = take_columns(d, batch);
    for (size_t row = 0; row < batch->n_rows && rc >= 0; row++) {
        if (d->rows.n > MOST_BYTES) {
            d->truncated = true;
            return TL_EOF;
        }
        tl_jsonout_line(&d->json);
        tl_jsonout_open(&d->json, '[');
        for (size_t i = 0; i < batch->n_columns; i++)
            write_value(&d->json, &batch->columns[i], row);
        tl_jsonout_close(&d->json, ']');
        rc = d->json.rc;
    }
    d->truncated |= batch->truncated;
    return rc;
}

/* {"columns":[{"name","kind"}…],"truncated":…,"rows":[[…]…]} */
static void write_document(const struct document *d, struct tl_jsonout *json)
{
    static const char *const kinds[] = {"integer", "real", "text"};
    tl_jsonout_open(json, '{');
    tl_webjson_open(json, "columns", '[');
    for (size_t i = 0; i < d->n_columns; i++) {
        tl_jsonout_open(json, '{');
        tl_webjson_text(json, "name", d->names[i]);
        tl_webjson_text(json, "kind", kinds[d->kinds[i]]);
        tl_jsonout_close(json, '}');
    }
    tl_jsonout_close(json, ']');
    tl_webjson_bool(json, "truncated", d->truncated);
    tl_webjson_open(json, "rows", '[');
    tl_jsonout_raw(json, (const char *)d->rows.p, d->rows.n);
    tl_jsonout_close(json, ']');
    tl_jsonout_close(json, '}');
}

static void document_fini(struct document *d)
{
    tl_buf_fini(&d->rows);
    for (size_t i = 0; d->names && i < d->n_columns; i++)
        free(d->names[i]);
    free(d->names);
    free(d->kinds);
}

/* Messages, which together are one. */
static int pack_batch(void *context, const struct tl_sql_batch *batch)
{
    struct tl_http_response *const response = context;
    struct answer answer = {0};
    Tracelake__V1__Table table, *tables[] = {&table};
    Tracelake__V1__Tables message = TRACELAKE__V1__TABLES__INIT;
    message.tables = tables;
    message.n_tables = 1;
    int rc = table_of(&answer, batch, &table);
    if (rc >= 0)
        rc = tl_web_pack(response, &message.base);
    answer_fini(&answer);
    return rc < 0 ? rc : response->body.n > MOST_BYTES && !batch->last ? TL_EOF : TL_OK;
}

static int respond_tables(struct tl_http_response *response, struct tl_lake *lake,
                          const struct tl_sql_request *asked)
{
    const int rc = tl_lake_sql(lake, asked, pack_batch, response, &response->fail);
    if (rc == TL_EOF) {
        Tracelake__V1__Tables more = TRACELAKE__V1__TABLES__INIT;
        more.truncated = true;
        return tl_web_pack(response, &more.base);
    }
    return rc;
}

int tl_web_sql(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__SqlRequest r = TRACELAKE__V1__SQL_REQUEST__INIT;
    struct document d = {.json = {.out = &d.rows}};
    struct tl_buf body = {0};
    struct tl_jsonout json = {.out = &body};
    const struct tl_bytes posted = request->body;
    char *const text = posted.n ? strndup((const char *)posted.p, posted.n) : NULL;
    int rc = posted.n && !text ? TL_NOMEM : tl_web_fill(request, &r, &response->fail);
    const struct tl_sql_request asked = {.trace = r.trace,
                                         .text = text ? text : r.text,
                                         .rows = r.rows,
                                         .seconds = r.seconds,
                                         .sees = sees,
                                         .viewer = request->scope};
    const bool packed = tl_web_wants_protobuf(request);
    if (rc >= 0 && packed)
        rc = respond_tables(response, tl_web_lake(request), &asked);
    else if (rc >= 0)
        rc = tl_lake_sql(tl_web_lake(request), &asked, write_batch, &d, &response->fail);
    rc = rc == TL_EOF && d.truncated ? TL_OK : rc;
    if (rc >= 0 && !packed)
        write_document(&d, &json);
    if (rc < 0)
        rc = tl_explain(&response->fail, rc, request->part[0], NULL);
    else
        rc = packed ? tl_fields_add(&response->headers, "cache-control", "no-store")
                    : tl_webjson_respond(response, &json);
    document_fini(&d);
    free(text);
    return rc;
}
