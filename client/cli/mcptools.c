/* SPDX-License-Identifier: MIT */
/*
 * The table of the tools, and those that tell what there is. A server that cannot be reached is a
 * tool's answer: the next question tries again.
 */
#include "cli/mcpcall.h"

#include <stdio.h>
#include <string.h>

/* Connect, if that has not been done: true. */
static bool is_connected(struct tl_mcp_call *c, int *r)
{
    struct tracelake_error error = {.text =
                                        "the server refuses: see the messages of tracelake mcp"};
    if (!c->tools->lake &&
        tl_remote_try(&c->tools->lake, &c->tools->remote, &error) != TL_ARGS_GO) {
        c->tools->lake = NULL;
        *r = tl_mcp_refuse(c, "%s", error.text);
    }
    return c->tools->lake != NULL;
}

void tl_mcp_tools_fini(struct tl_mcp_tools *tools)
{
    tracelake_close(tools->lake);
    tools->lake = NULL;
}

/* ---- traces ---------------------------------------------------------------------------------- */

static void put_stream(struct tl_jsonout *j, const struct tracelake_stream *s)
{
    tl_jsonout_line(j);
    tl_jsonout_open(j, '{');
    tl_mcp_put_text(j, "stream", s->name);
    tl_mcp_put_text(j, "protocol", s->protocol);
    if (*s->core)
        tl_mcp_put_text(j, "core", s->core);
    tl_mcp_put_number(j, "insns", s->insns);
    if (s->has_time) {
        tl_mcp_put_text(j, "time_unit", s->time_unit_ns ? "ns" : "ticks");
        tl_mcp_put_number(j, "time_first", s->time_first);
        tl_mcp_put_number(j, "time_last", s->time_last);
    }
    tl_mcp_put_number(j, "gaps", s->gaps);
    tl_mcp_put_number(j, "lost_bytes", s->lost_bytes);
    tl_jsonout_close(j, '}');
}

static void put_trace(struct tl_mcp_call *c, struct tl_jsonout *j, const struct tracelake_trace *t)
{
    tl_jsonout_line(j);
    tl_jsonout_open(j, '{');
    tl_mcp_put_text(j, "trace", t->id);
    tl_mcp_put_text(j, "rig", t->rig);
    tl_mcp_put_text(j, "state", tracelake_state_name(t->state));
    tl_mcp_put_text(j, "format", t->format);
    tl_mcp_put_number(j, "created_ns", (uint64_t)t->created_ns);
    if (*t->message) {
        tl_jsonout_name(j, "message");
        tl_mcp_put_short(j, t->message);
    }
    tl_jsonout_name(j, "link");
    tl_mcp_put_link(c, j, t->id, "", 0);
    tl_jsonout_name(j, "streams");
    tl_jsonout_open(j, '[');
    for (size_t i = 0; i < t->n_streams && j->out->n < TL_MCP_BYTES; i++)
        put_stream(j, &t->streams[i]);
    tl_jsonout_close(j, ']');
    tl_jsonout_close(j, '}');
}

static int tell_traces(struct tl_mcp_call *c)
{
    struct tracelake_list *list;
    struct tracelake_error error;
    uint64_t limit = TL_MCP_ROWS, skip = 0;
    int r = TL_OK;
    if (!tl_mcp_take_number(c, "limit", TL_MCP_ROWS_MOST, &limit, &r) ||
        !tl_mcp_take_number(c, "skip", UINT32_MAX, &skip, &r))
        return r;
    if (tracelake_list_traces(c->tools->lake, &list, &error) < 0)
        return tl_mcp_lost(c, &error);
    struct tl_jsonout j = {.out = c->text};
    tl_jsonout_open(&j, '{');
    tl_mcp_put_number(&j, "all", list->n);
    tl_jsonout_name(&j, "traces");
    tl_jsonout_open(&j, '[');
    size_t i = skip < list->n ? (size_t)skip : list->n;
    for (size_t n = 0; i < list->n && n < limit && j.out->n < TL_MCP_BYTES; i++, n++)
        put_trace(c, &j, &list->traces[i]);
    tl_jsonout_close(&j, ']');
    if (i < list->n) {
        tl_jsonout_name(&j, "truncated");
        tl_jsonout_bool(&j, true);
        tl_mcp_put_number(&j, "next_skip", i);
    }
    tl_jsonout_close(&j, '}');
    tracelake_list_free(list);
    return j.rc;
}

/* ---- schema ---------------------------------------------------------------------------------- */

static const struct {
    const char *name, *rows;
} tables[] = {
    {"trace", "a trace of the server"},
    {"stream", "a stream of the trace: what one core or thread did, or a source of messages"},
    {"function",
     "a function that ran: self and total instructions, without and with callees; cheap"},
    {"insn", "an executed instruction; bound position or time where you can"},
    {"call",
     "a call or the handling of an exception: insns, duration (in the unit of stream.time_unit)"},
    {"event", "an exception, a return, a change of mode or context, a hardware event"},
    {"gap", "a place where the trace does not say what happened"},
    {"access", "an access to memory that the trace tells: variable, value, by whom"},
    {"timeline", "frames that open, begin, end; events; gaps; in order"},
    {"log", "a message that the program sent"},
    {"note", "a note that somebody wrote"},
};

static const char notes[] =
    "\"SQLite's SELECT, one statement; read-only.\","
    "\"position counts the instructions of a stream from 0; time is in the stream's time_unit.\","
    "\"Conditions on stream, position and time with constants are cheap: nothing else is read.\","
    "\"pc is a signed number: address(pc) is its text, and 0x… in a question is such a number.\","
    "\"Functions besides SQLite's: percentile(x, p), histogram(x, width), overlap(a, b, c, d), "
    "demangle(name), address(x).\","
    "\"Rows with the columns stream and position get a link to the page.\"";

static int put_columns(void *context, const struct tracelake_table *table)
{
    struct tl_jsonout *const j = context;
    for (size_t i = 0; i < table->n_columns; i++)
        tl_jsonout_text(j, table->columns[i].name);
    return j->rc < 0 ? TRACELAKE_NOMEM : TRACELAKE_OK;
}

static int tell_schema(struct tl_mcp_call *c)
{
    struct tracelake_error error;
    int r = TL_OK;
    const char *const trace = tl_mcp_need_text(c, "trace", &r);
    if (!trace)
        return r;
    struct tl_jsonout j = {.out = c->text};
    tl_jsonout_open(&j, '{');
    tl_jsonout_name(&j, "tables");
    tl_jsonout_open(&j, '[');
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char text[64];
        snprintf(text, sizeof text, "SELECT * FROM %s LIMIT 0", tables[i].name);
        const struct tracelake_question question = {.trace = trace, .text = text};
        tl_jsonout_line(&j);
        tl_jsonout_open(&j, '{');
        tl_mcp_put_text(&j, "table", tables[i].name);
        tl_mcp_put_text(&j, "row", tables[i].rows);
        tl_jsonout_name(&j, "columns");
        tl_jsonout_open(&j, '[');
        if (tracelake_sql(c->tools->lake, &question, put_columns, &j, &error) < 0)
            return tl_mcp_lost(c, &error);
        tl_jsonout_close(&j, ']');
        tl_jsonout_close(&j, '}');
    }
    tl_jsonout_close(&j, ']');
    tl_jsonout_name(&j, "notes");
    tl_jsonout_open(&j, '[');
    tl_jsonout_raw(&j, notes, sizeof notes - 1);
    tl_jsonout_close(&j, ']');
    tl_jsonout_close(&j, '}');
    return j.rc;
}

/* ---- the tools ------------------------------------------------------------------------------- */

#define TEXT(name, what)   "\"" name "\":{\"type\":\"string\",\"description\":\"" what "\"}"
#define NUMBER(name, what) "\"" name "\":{\"type\":\"integer\",\"description\":\"" what "\"}"
#define OBJECT(needed, ...)                                                                        \
    "{\"type\":\"object\",\"properties\":{" __VA_ARGS__ "},\"required\":[" needed                  \
    "],\"additionalProperties\":false}"
#define TRACE TEXT("trace", "its name, as `traces` tells it")
#define PLACE                                                                                      \
    TRACE "," TEXT("stream", "e.g. cs.10") "," NUMBER(                                             \
        "position",                                                                                \
        "number of an instruction") "," NUMBER("time",                                             \
                                               "instead of position, in the stream's unit")

static const struct {
    const char *name, *description, *schema;
    int (*run)(struct tl_mcp_call *c);
} tools[] = {
    {"traces", "The traces of the server, newest first, with their streams, times and losses.",
     OBJECT("", NUMBER("limit", "default 20") "," NUMBER("skip", "leave out the first ones")),
     tell_traces},
    {"schema", "The tables that `sql` asks about a trace, with their columns.",
     OBJECT("\"trace\"", TRACE), tell_schema},
    {"sql",
     "Any question about a trace in SQL: functions, calls, durations, instructions, exceptions, "
     "gaps, messages.",
     OBJECT("\"trace\",\"query\"",
            TRACE "," TEXT("query", "one SELECT of SQLite") "," NUMBER(
                "limit", "rows, default 20, at most 1000") "," NUMBER("seconds", "at most 30")),
     tl_mcp_tell_sql},
    {"disassembly", "The instructions executed around a place, with functions and source lines.",
     OBJECT("\"trace\",\"stream\"",
            PLACE "," NUMBER("before", "instructions before it, default 5") "," NUMBER(
                "count", "instructions in all, default 20, at most 200")),
     tl_mcp_tell_disassembly},
    {"source", "The lines of source code around the instruction at a place.",
     OBJECT("\"trace\",\"stream\"",
            PLACE "," NUMBER("around", "lines on both sides, default 10") "," NUMBER(
                "frame", "1, 2, …: the call sites, if the code is inlined")),
     tl_mcp_tell_source},
};
enum { TOOLS = sizeof tools / sizeof *tools };

void tl_mcp_tools_list(struct tl_jsonout *j)
{
    static const char hints[] = "{\"readOnlyHint\":true,\"openWorldHint\":false}";
    tl_jsonout_open(j, '[');
    for (size_t i = 0; i < TOOLS; i++) {
        tl_jsonout_open(j, '{');
        tl_mcp_put_text(j, "name", tools[i].name);
        tl_mcp_put_text(j, "description", tools[i].description);
        tl_jsonout_name(j, "inputSchema");
        tl_jsonout_raw(j, tools[i].schema, strlen(tools[i].schema));
        tl_jsonout_name(j, "annotations");
        tl_jsonout_raw(j, hints, sizeof hints - 1);
        tl_jsonout_close(j, '}');
    }
    tl_jsonout_close(j, ']');
}

int tl_mcp_tools_call(struct tl_mcp_tools *mcp, const char *name, const cJSON *arguments,
                      struct tl_buf *text, bool *failed)
{
    struct tl_mcp_call c = {.tools = mcp, .arguments = arguments, .text = text};
    size_t i = 0;
    while (i < TOOLS && strcmp(name, tools[i].name) != 0)
        i++;
    if (i == TOOLS)
        return TL_NOTFOUND;
    int r = TL_OK;
    if (arguments && !cJSON_IsObject(arguments))
        r = tl_mcp_refuse(&c, "`arguments` is an object");
    else if (is_connected(&c, &r))
        r = tools[i].run(&c);
    *failed = c.failed;
    return r;
}
