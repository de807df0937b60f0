/* SPDX-License-Identifier: MIT */
/*
 * Code around a place, for assistants. The tools `disassembly` and `source`: a line of text for
 * each instruction and line, which is what an assistant reads best, and a third of the same as
 * JSON.
 */
#include "cli/mcpcall.h"
#include "out/jsonread.h"
#include "tracelake_lookups.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The place that a call names: trace, stream, and a position or a time. */
struct place {
    const char *trace, *stream;
    uint64_t at;
};

static bool take_place(struct tl_mcp_call *c, struct place *p, int *r)
{
    struct tracelake_position found;
    struct tracelake_error error;
    uint64_t time = UINT64_MAX;
    p->at = UINT64_MAX;
    p->trace = tl_mcp_need_text(c, "trace", r);
    p->stream = p->trace ? tl_mcp_need_text(c, "stream", r) : NULL;
    if (!p->stream || !tl_mcp_take_number(c, "position", INT64_MAX, &p->at, r) ||
        !tl_mcp_take_number(c, "time", INT64_MAX, &time, r))
        return false;
    if (p->at == UINT64_MAX && time == UINT64_MAX) {
        *r = tl_mcp_refuse(c, "give `position`, or `time` in the stream's unit");
        return false;
    }
    if (p->at != UINT64_MAX)
        return true;
    if (tracelake_locate(c->tools->lake, p->trace, p->stream, TRACELAKE_TIME, time, &found,
                         &error) < 0) {
        *r = tl_mcp_lost(c, &error);
        return false;
    }
    p->at = found.insn;
    return true;
}

static void begin_place(struct tl_mcp_call *c, struct tl_jsonout *j, const struct place *p)
{
    tl_jsonout_open(j, '{');
    tl_mcp_put_number(j, "position", p->at);
    tl_jsonout_name(j, "link");
    tl_mcp_put_link(c, j, p->trace, p->stream, p->at);
}

static const char *member(const cJSON *row, const char *name)
{
    const char *const text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));
    return text ? text : "";
}

/* "> 1200 0x80000010 main+0x10 main.c:12 addi a0, a0, 1" */
static void put_insn(struct tl_jsonout *j, const cJSON *row, uint64_t at)
{
    char text[1024];
    const uint64_t insn = tl_json_u64(row, "insn");
    const char *const file = member(row, "file"), *const name = strrchr(file, '/');
    int n = snprintf(text, sizeof text, "%s %" PRIu64 " %.32s %.300s", insn == at ? ">" : " ", insn,
                     member(row, "pc"), member(row, "function"));
    if (*file)
        n += snprintf(text + n, sizeof text - (size_t)n, " %.100s:%" PRIu64, name ? name + 1 : file,
                      tl_json_u64(row, "line"));
    snprintf(text + n, sizeof text - (size_t)n, "  %.300s", member(row, "text"));
    tl_jsonout_line(j);
    tl_jsonout_text(j, text);
}

int tl_mcp_tell_disassembly(struct tl_mcp_call *c)
{
    struct tracelake_error error;
    struct place p;
    uint64_t before = 5, count = TL_MCP_ROWS;
    char *json;
    int r = TL_OK;
    if (!take_place(c, &p, &r) || !tl_mcp_take_number(c, "before", TL_MCP_ROWS_MOST, &before, &r) ||
        !tl_mcp_take_number(c, "count", 200, &count, &r))
        return r;
    const uint64_t from = p.at > before ? p.at - before : 0;
    if (tracelake_disassembly(c->tools->lake, p.trace, p.stream, from,
                              (uint32_t)(count ? count : 1), &json, &error) < 0)
        return tl_mcp_lost(c, &error);
    cJSON *const rows = cJSON_Parse(json);
    struct tl_jsonout j = {.out = c->text};
    begin_place(c, &j, &p);
    tl_mcp_put_text(&j, "form",
                    "position address function+offset [file:line]  instruction; > is the place");
    tl_jsonout_name(&j, "insns");
    tl_jsonout_open(&j, '[');
    const cJSON *row;
    cJSON_ArrayForEach(row, rows) put_insn(&j, row, p.at);
    tl_jsonout_close(&j, ']');
    tl_jsonout_close(&j, '}');
    cJSON_Delete(rows);
    free(json);
    return j.rc;
}

/* Lines [first, last] of a text, from 1, with their numbers. */
static void put_lines(struct tl_jsonout *j, const char *text, uint64_t first, uint64_t last,
                      uint64_t at)
{
    for (uint64_t number = 1; *text && number <= last; number++) {
        const size_t n = strcspn(text, "\n");
        if (number >= first) {
            char line[TL_MCP_TEXT_MOST + 32];
            snprintf(line, sizeof line, "%s %" PRIu64 " %.*s", number == at ? ">" : " ", number,
                     (int)(n < TL_MCP_TEXT_MOST ? n : TL_MCP_TEXT_MOST), text);
            tl_jsonout_line(j);
            tl_jsonout_text(j, line);
        }
        text += n + (text[n] == '\n');
    }
}

int tl_mcp_tell_source(struct tl_mcp_call *c)
{
    struct tracelake_error error;
    struct place p;
    uint64_t around = 10, frame = 0;
    char *json;
    int r = TL_OK;
    if (!take_place(c, &p, &r) || !tl_mcp_take_number(c, "around", 100, &around, &r) ||
        !tl_mcp_take_number(c, "frame", 100, &frame, &r))
        return r;
    if (tracelake_source(c->tools->lake, p.trace, p.stream, p.at, (uint32_t)frame, &json, &error) <
        0)
        return tl_mcp_lost(c, &error);
    cJSON *const told = cJSON_Parse(json);
    const uint64_t line = tl_json_u64(told, "line");
    struct tl_jsonout j = {.out = c->text};
    begin_place(c, &j, &p);
    tl_mcp_put_text(&j, "file", member(told, "file"));
    tl_mcp_put_number(&j, "line", line);
    if (*member(told, "why"))
        tl_mcp_put_text(&j, "why", member(told, "why"));
    tl_jsonout_name(&j, "lines");
    tl_jsonout_open(&j, '[');
    put_lines(&j, member(told, "text"), line > around ? line - around : 1, line + around, line);
    tl_jsonout_close(&j, ']');
    tl_jsonout_close(&j, '}');
    cJSON_Delete(told);
    free(json);
    return j.rc;
}
