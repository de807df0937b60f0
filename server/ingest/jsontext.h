/* SPDX-License-Identifier: MIT */
/* JSON, appended piece by piece. Not thread-safe. */
#ifndef TL_INGEST_JSONTEXT_H
#define TL_INGEST_JSONTEXT_H

#include "base/buf.h"

/* A JSON string of bytes that may be anything: what is not ASCII is escaped byte by byte. */
TL_MUST_USE int tl_json_string(struct tl_buf *out, const char *text, size_t n);
/* The same of a NUL-ended text; NULL is "". */
TL_MUST_USE int tl_json_text(struct tl_buf *out, const char *text);

#endif
