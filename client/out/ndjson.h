/* SPDX-License-Identifier: MIT */
/*
 * A range as JSON (docs/http.md), converted from one document to one object per line, each with its
 * stream: {"stream":"cs.10","at":7,"kind":"I",…}. Not thread-safe.
 */
#ifndef TL_OUT_NDJSON_H
#define TL_OUT_NDJSON_H

#include "out/linewise.h"

#include <stdio.h>

struct tl_ndjson {
    FILE *file;
    const char *stream; /* borrowed */
    struct tl_linewise lines;
};

/* Process the document, split anywhere. TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_ndjson_push(struct tl_ndjson *n, struct tl_bytes json);

#endif
