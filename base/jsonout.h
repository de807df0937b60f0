/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON as text, piece by piece, in the form of docs/http.md: integers are numbers below 2^53
 * and decimal strings from there on, so that every reader gets them exactly. Commas are placed by
 * the writer; names and values must come in an order that makes JSON. Not thread-safe.
 */
#ifndef TL_BASE_JSONOUT_H
#define TL_BASE_JSONOUT_H

#include "base/buf.h"

#include <stdbool.h>

TL_C_BEGIN

/* Begins as {.out = buffer}. After TL_NOMEM nothing more is written. */
struct tl_jsonout {
    struct tl_buf *out; /* borrowed */
    int rc;             /* TL_OK, or TL_NOMEM: the text is not complete */
    bool after;         /* a comma is due before the next value */
};

void tl_jsonout_open(struct tl_jsonout *j, char bracket);  /* '{' or '[' */
void tl_jsonout_close(struct tl_jsonout *j, char bracket); /* '}' or ']' */
/* The name of the member whose value follows. */
void tl_jsonout_name(struct tl_jsonout *j, const char *name);

void tl_jsonout_u64(struct tl_jsonout *j, uint64_t value);
void tl_jsonout_i64(struct tl_jsonout *j, int64_t value);
void tl_jsonout_address(struct tl_jsonout *j, uint64_t value); /* "0x…" */
/* As few digits as read back to the same number; "Infinity", "-Infinity" and "NaN" are strings. */
void tl_jsonout_double(struct tl_jsonout *j, double value);
void tl_jsonout_bool(struct tl_jsonout *j, bool value);
void tl_jsonout_null(struct tl_jsonout *j);
/* `text` may be any bytes; what is no UTF-8 becomes "?". */
void tl_jsonout_text(struct tl_jsonout *j, const char *text);
/* The same for `n` bytes, up to a NUL if there is one. */
void tl_jsonout_bytes(struct tl_jsonout *j, const char *text, size_t n);
/* A value that is JSON already. */
void tl_jsonout_raw(struct tl_jsonout *j, const char *json, size_t n);
/* Begin a new line; between elements, so that long arrays have a line for each. */
void tl_jsonout_line(struct tl_jsonout *j);

TL_C_END

#endif
