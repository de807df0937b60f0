/* SPDX-License-Identifier: MIT */
/*
 * Text goes straight to the buffer: a tree of the values would cost more than the answer. Runs of
 * plain characters are copied at once.
 */
#include "base/jsonout.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT (UINT64_C(1) << 53) /* below this a double represents every integer */

static void put(struct tl_jsonout *j, const char *text, size_t n)
{
    if (j->rc >= 0)
        j->rc = tl_buf_add(j->out, text, n);
}

/* Before a value. */
static void begin(struct tl_jsonout *j)
{
    if (j->after)
        put(j, ",", 1);
    j->after = true;
}

void tl_jsonout_open(struct tl_jsonout *j, char bracket)
{
    begin(j);
    put(j, &bracket, 1);
    j->after = false;
}

void tl_jsonout_close(struct tl_jsonout *j, char bracket)
{
    put(j, &bracket, 1);
    j->after = true;
}

void tl_jsonout_raw(struct tl_jsonout *j, const char *json, size_t n)
{
    begin(j);
    put(j, json, n);
}

void tl_jsonout_line(struct tl_jsonout *j)
{
    if (j->after)
        put(j, ",", 1);
    put(j, "\n", 1);
    j->after = false;
}

/* ---- texts ---------------------------------------------------------------------------------- */

static void put_escape(struct tl_jsonout *j, char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *const at = strchr(from, c);
    char text[8];
    const int n = at ? snprintf(text, sizeof text, "\\%c", to[at - from])
                     : snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
    put(j, text, (size_t)n);
}

/* Bytes from `p` that are written as they are. */
static size_t plain(const char *p)
{
    const char *const first = p;
    for (size_t n = 1; n > 0 && (unsigned char)*p >= ' ' && *p != '"' && *p != '\\'; p += n)
        n = tl_utf8_length(p);
    return (size_t)(p - first);
}

void tl_jsonout_text(struct tl_jsonout *j, const char *text)
{
    begin(j);
    put(j, "\"", 1);
    for (size_t n; *text && j->rc >= 0; text += *text != 0) {
        n = plain(text);
        put(j, text, n);
        text += n;
        if ((unsigned char)*text >= 0x80)
            put(j, "?", 1);
        else if (*text)
            put_escape(j, *text);
    }
    put(j, "\"", 1);
}

void tl_jsonout_bytes(struct tl_jsonout *j, const char *text, size_t n)
{
    char *const copy = strndup(text, n);
    if (copy)
        tl_jsonout_text(j, copy);
    else
        j->rc = TL_NOMEM;
    free(copy);
}

void tl_jsonout_name(struct tl_jsonout *j, const char *name)
{
    tl_jsonout_text(j, name);
    put(j, ":", 1);
    j->after = false;
}

/* ---- numbers -------------------------------------------------------------------------------- */

void tl_jsonout_u64(struct tl_jsonout *j, uint64_t value)
{
    char text[28];
    const int n =
        snprintf(text, sizeof text, value < EXACT ? "%" PRIu64 : "\"%" PRIu64 "\"", value);
    tl_jsonout_raw(j, text, (size_t)n);
}

void tl_jsonout_i64(struct tl_jsonout *j, int64_t value)
{
    const bool exact = value < (int64_t)EXACT && value > -(int64_t)EXACT;
    char text[28];
    const int n = snprintf(text, sizeof text, exact ? "%" PRId64 : "\"%" PRId64 "\"", value);
    tl_jsonout_raw(j, text, (size_t)n);
}

void tl_jsonout_address(struct tl_jsonout *j, uint64_t value)
{
    char text[24];
    const int n = snprintf(text, sizeof text, "\"0x%" PRIx64 "\"", value);
    tl_jsonout_raw(j, text, (size_t)n);
}

void tl_jsonout_double(struct tl_jsonout *j, double value)
{
    char text[32];
    int n = 0;
    if (isnan(value) || isinf(value)) {
        tl_jsonout_text(j, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    for (int digits = 15; digits <= 17 && (n == 0 || strtod(text, NULL) != value); digits++)
        n = snprintf(text, sizeof text, "%.*g", digits, value);
    tl_jsonout_raw(j, text, (size_t)n);
}

void tl_jsonout_bool(struct tl_jsonout *j, bool value)
{
    tl_jsonout_raw(j, value ? "true" : "false", value ? 4 : 5);
}

void tl_jsonout_null(struct tl_jsonout *j)
{
    tl_jsonout_raw(j, "null", 4);
}
