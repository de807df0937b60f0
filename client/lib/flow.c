/* SPDX-License-Identifier: MIT */
/*
 * Flow, element by element, parsed from the JSON of ranges, which has one element per line. When
 * the connection of a live stream broke, elements at the last position are skipped when they are
 * received again.
 */
#include "ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS = 50, PAUSE_MAX_MS = 1000, AWAY_MS = 600000, UNKNOWN_MS = 20000 };

struct tracelake_flow {
    struct tracelake *lake;
    struct tracelake_fetch *fetch; /* NULL: to be opened again */
    char *trace, *stream;          /* of a live stream, otherwise NULL */
    struct tl_buf lines;
    size_t at;           /* bytes consumed */
    uint64_t last, seen; /* elements at position `last` that were handed out */
    uint64_t skip;       /* how many of them are still to be received again */
    bool begun;
    uint64_t time;
    bool has_time;
    char mode[48], context[24], vmid[24];
};

static int new_flow(struct tracelake_flow **out, struct tracelake *lake,
                    struct tracelake_error *error)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    (*out)->lake = lake;
    return TRACELAKE_OK;
}

int tracelake_flow_open(struct tracelake_flow **out, struct tracelake *lake,
                        const struct tracelake_range *range, struct tracelake_error *error)
{
    struct tracelake_flow *flow;
    int result = new_flow(&flow, lake, error);
    if (result < 0)
        return result;
    result = tracelake_fetch_open(&flow->fetch, lake, range, TRACELAKE_JSON, error);
    if (result < 0) {
        tracelake_flow_close(flow);
        return result;
    }
    *out = flow;
    return TRACELAKE_OK;
}

int tracelake_flow_follow(struct tracelake_flow **out, struct tracelake *lake, const char *trace,
                          const char *stream, uint64_t from, struct tracelake_error *error)
{
    struct tracelake_flow *flow;
    int result = new_flow(&flow, lake, error);
    if (result < 0)
        return result;
    flow->last = from;
    flow->trace = strdup(trace);
    flow->stream = strdup(stream);
    result =
        !flow->trace || !flow->stream
            ? tl_client_fail(error, TRACELAKE_NOMEM, "out of memory")
            : tracelake_follow_open(&flow->fetch, lake, trace, stream, from, TRACELAKE_JSON, error);
    if (result < 0) {
        tracelake_flow_close(flow);
        return result;
    }
    *out = flow;
    return TRACELAKE_OK;
}

void tracelake_flow_close(struct tracelake_flow *flow)
{
    if (!flow)
        return;
    tracelake_fetch_close(flow->fetch);
    tl_buf_fini(&flow->lines);
    free(flow->trace);
    free(flow->stream);
    free(flow);
}

/* ---- lines -------------------------------------------------------------------------------- */

/* Value of a member whose text needs no JSON unescaping, as for all of flow text. */
static char *member(char *line, const char *name)
{
    char *const at = strstr(line, name);
    char *const value = at ? at + strlen(name) : NULL;
    char *const end = value ? strchr(value, '"') : NULL;
    if (end)
        *end = 0;
    return value;
}

static void copy_word(char *out, size_t size, const char **from)
{
    const size_t n = strcspn(*from, " ");
    snprintf(out, size, "%.*s", (int)n, *from);
    *from += n + ((*from)[n] == ' ');
}

/* Update the state for following elements, and set the element's own fields. */
static void take_meaning(struct tracelake_flow *flow, struct tracelake_item *item)
{
    const char *words = item->text;
    char number[24];
    switch (item->kind) {
    case 'I':
    case 'N':
        item->pc = strtoull(words, NULL, 16);
        break;
    case 'X':
        words = strrchr(words, ' ');
        item->pc = words ? strtoull(words + 1, NULL, 16) : 0;
        break;
    case 'T':
        copy_word(number, sizeof number, &words);
        flow->time = strtoull(number, NULL, 10);
        flow->has_time = true;
        break;
    case 'A':
        if (strncmp(words, "time ", 5) == 0) {
            flow->time = strtoull(words + 5, NULL, 10);
            flow->has_time = true;
        }
        break;
    case 'M':
        copy_word(flow->mode, sizeof flow->mode, &words);
        break;
    case 'C':
        copy_word(flow->context, sizeof flow->context, &words);
        copy_word(flow->vmid, sizeof flow->vmid, &words);
        break;
    default:
        break;
    }
}

/* Parse an element's line; false: another kind of line. */
static bool take_line(struct tracelake_flow *flow, char *line, struct tracelake_item *item)
{
    char *at = line + strlen("{\"at\":");
    if (strncmp(line, "{\"at\":", strlen("{\"at\":")) != 0)
        return false;
    at += *at == '"';
    *item = (struct tracelake_item){.at = strtoull(at, NULL, 10)};
    char *const text = member(line, "\"text\":\"");
    const char *const kind = member(line, "\"kind\":\"");
    if (!kind || !*kind)
        return false;
    item->kind = *kind;
    item->text = text ? text : "";
    return true;
}

/* The next complete line received, or NULL. */
static char *next_line(struct tracelake_flow *flow)
{
    char *const line = (char *)flow->lines.p + flow->at;
    char *const end =
        flow->lines.n > flow->at ? memchr(line, '\n', flow->lines.n - flow->at) : NULL;
    if (!end)
        return NULL;
    *end = 0;
    flow->at += (size_t)(end + 1 - line);
    return line;
}

/* ---- fetching more ------------------------------------------------------------------------- */

static int fetch_more(struct tracelake_flow *flow, struct tracelake_error *error)
{
    const void *data;
    size_t n;
    tl_buf_drop(&flow->lines, flow->at);
    flow->at = 0;
    const int result = tracelake_fetch_next(flow->fetch, &data, &n, error);
    if (result < 0)
        return result;
    return tl_buf_add(&flow->lines, data, n) < 0
               ? tl_client_fail(error, TRACELAKE_NOMEM, "out of memory")
               : TRACELAKE_OK;
}

/* The connection of a live stream broke with `result`: reconnect. */
static int go_on(struct tracelake_flow *flow, int result, struct tracelake_error *error)
{
    const int64_t begun = tl_monotonic_ms();
    int pause = PAUSE_MS;
    /* A server that takes over the trace knows its streams once it has decoded some of them. */
    while ((result == TRACELAKE_UNREACHABLE && tl_monotonic_ms() - begun < AWAY_MS) ||
           (result == TRACELAKE_NOTFOUND && tl_monotonic_ms() - begun < UNKNOWN_MS)) {
        tracelake_fetch_close(flow->fetch);
        flow->fetch = NULL;
        const int slept = tl_wire_sleep(pause, flow->lake->wake_fd, error);
        if (slept < 0)
            return slept;
        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
        flow->skip = flow->seen;
        flow->at = 0;
        tl_buf_reset(&flow->lines);
        result = tracelake_follow_open(&flow->fetch, flow->lake, flow->trace, flow->stream,
                                       flow->last, TRACELAKE_JSON, error);
        /* Only the first answer shows whether the server is available. */
        if (result == TRACELAKE_OK)
            result = fetch_more(flow, error);
    }
    return result;
}

int tracelake_flow_next(struct tracelake_flow *flow, struct tracelake_item *out,
                        struct tracelake_error *error)
{
    for (;;) {
        char *const line = next_line(flow);
        if (!line) {
            int result = fetch_more(flow, error);
            if (result == TRACELAKE_UNREACHABLE && flow->trace)
                result = go_on(flow, result, error);
            if (result < 0)
                return result;
            continue;
        }
        if (!take_line(flow, line, out))
            continue;
        if (flow->skip > 0 && out->at == flow->last) {
            flow->skip--;
            continue;
        }
        flow->seen = flow->begun && out->at == flow->last ? flow->seen + 1 : 1;
        flow->last = out->at;
        flow->begun = true;
        take_meaning(flow, out);
        out->time = flow->time;
        out->has_time = flow->has_time;
        out->mode = flow->mode;
        out->context = flow->context;
        out->vmid = flow->vmid;
        return TRACELAKE_OK;
    }
}
