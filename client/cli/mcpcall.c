/* SPDX-License-Identifier: MIT */
/*
 * Answers are short, since whoever asks pays for each letter: rows are few unless more are asked
 * for, long texts lose their middle, and what is left out is said together with how to get it.
 * Places become links here, since nobody else knows the page's address.
 */
#include "cli/mcpcall.h"

#include "cli/viewplace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define AROUND 20 /* instructions that a link shows on both sides */

int tl_mcp_refuse(struct tl_mcp_call *c, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    c->failed = true;
    tl_buf_reset(c->text);
    return tl_buf_add(c->text, text, strlen(text));
}

int tl_mcp_lost(struct tl_mcp_call *c, const struct tracelake_error *error)
{
    if (error->code == TRACELAKE_UNREACHABLE || error->code == TRACELAKE_TIMEOUT) {
        tracelake_close(c->tools->lake); /* the next question connects again */
        c->tools->lake = NULL;
    }
    return tl_mcp_refuse(c, "%s", error->text);
}

/* ---- arguments ------------------------------------------------------------------------------- */

const char *tl_mcp_need_text(struct tl_mcp_call *c, const char *name, int *r)
{
    const char *const text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c->arguments, name));
    if (!text || !*text)
        *r = tl_mcp_refuse(c, "give `%s`, a text", name);
    return text && *text ? text : NULL;
}

bool tl_mcp_take_number(struct tl_mcp_call *c, const char *name, uint64_t most, uint64_t *out,
                        int *r)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(c->arguments, name);
    if (!item)
        return true;
    const double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (!(value >= 0 && value <= (double)most) || value != (double)(uint64_t)value) {
        *r = tl_mcp_refuse(c, "`%s` is a whole number from 0 to %" PRIu64, name, most);
        return false;
    }
    *out = (uint64_t)value;
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

void tl_mcp_put_text(struct tl_jsonout *j, const char *name, const char *text)
{
    tl_jsonout_name(j, name);
    tl_jsonout_text(j, text);
}

void tl_mcp_put_number(struct tl_jsonout *j, const char *name, uint64_t value)
{
    tl_jsonout_name(j, name);
    tl_jsonout_u64(j, value);
}

/* A text without its middle if it is long. */
void tl_mcp_put_short(struct tl_jsonout *j, const char *text)
{
    char cut[TL_MCP_TEXT_MOST + 8];
    const size_t n = strlen(text), half = TL_MCP_TEXT_MOST / 2;
    if (n > TL_MCP_TEXT_MOST)
        snprintf(cut, sizeof cut, "%.*s…%s", (int)half, text, text + n - half);
    tl_jsonout_text(j, n > TL_MCP_TEXT_MOST ? cut : text);
}

/* The page's address of instructions around a place; "": of the whole trace. */
void tl_mcp_put_link(struct tl_mcp_call *c, struct tl_jsonout *j, const char *trace,
                     const char *stream, uint64_t at)
{
    struct tl_view_place place;
    char url[96];
    const char *const all = tl_remote_url(&c->tools->remote);
    snprintf(url, sizeof url, "%.*s", (int)strcspn(all, ","), all);
    if (*stream)
        tl_view_place_range(&place, url, trace, stream, at > AROUND ? at - AROUND : 0, at + AROUND);
    else
        tl_view_place_whole(&place, url, trace);
    tl_jsonout_text(j, place.address);
}
