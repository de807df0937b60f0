/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON in the server's style (docs/http.md), one object per line. If memory runs out while
 * an object is built, tl_json_line() and tl_json_print() report it: no object is printed with
 * members missing.
 */
#ifndef TL_OUT_JSONWRITE_H
#define TL_OUT_JSONWRITE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <cjson/cJSON.h>

/* An object being built, from tl_json_begin(). Freed when it is printed or put into another one. */
struct tl_json {
    cJSON *object;
    bool failed; /* out of memory: a member is missing */
};

struct tl_json tl_json_begin(void);
void tl_json_put_u64(struct tl_json *json, const char *name, uint64_t value); /* string from 2^53 */
void tl_json_put_address(struct tl_json *json, const char *name, uint64_t value); /* "0x…" */
/* Invalid UTF-8 becomes "?". */
void tl_json_put_bytes(struct tl_json *json, const char *name, struct tl_bytes text);
void tl_json_put_text(struct tl_json *json, const char *name, const char *text);
void tl_json_put_object(struct tl_json *json, const char *name, struct tl_json *member);
/* Append the object and a newline, and free the object. TL_NOMEM, also if a member is missing. */
TL_MUST_USE int tl_json_line(struct tl_buf *out, struct tl_json *json);
/* The same, to standard output. TL_NOMEM, TL_IO; errno says which. */
TL_MUST_USE int tl_json_print(struct tl_json *json);

#endif
