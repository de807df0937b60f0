/* SPDX-License-Identifier: MIT */
/* Writes JSON in the server's style (docs/http.md), one object per line. */
#ifndef TL_CLI_JSONWRITE_H
#define TL_CLI_JSONWRITE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <cjson/cJSON.h>

void tl_json_put_u64(cJSON *object, const char *name, uint64_t value); /* a string from 2^53 on */
void tl_json_put_address(cJSON *object, const char *name, uint64_t value); /* "0x…" */
/* Invalid UTF-8 becomes "?". */
void tl_json_put_bytes(cJSON *object, const char *name, struct tl_bytes text);
void tl_json_put_text(cJSON *object, const char *name, const char *text);
/* Append the object and a newline, and free the object. TL_NOMEM, also for a NULL object. */
TL_MUST_USE int tl_json_line(struct tl_buf *out, cJSON *object);
/* The same, to standard output. TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_json_print(cJSON *object);

#endif
