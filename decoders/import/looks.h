/* SPDX-License-Identifier: MIT */
/*
 * What a file that is given where a capture belongs is, by its first bytes. Names are not decisive:
 * captures have any. Stateless, thread-safe.
 */
#ifndef TL_IMPORT_LOOKS_H
#define TL_IMPORT_LOOKS_H

#include "base/bytes.h"

#include <stdbool.h>

enum tl_looks_like {
    TL_LOOKS_RAW, /* nothing that is known here: any trace */
    TL_LOOKS_PERF,
    TL_LOOKS_LOG, /* of a model */
    TL_LOOKS_STF, /* plain, or in chunks */
    TL_LOOKS_PROGRAM,
    TL_LOOKS_PACKED, /* and archives */
    TL_LOOKS_TEXT,
};

struct tl_looks {
    enum tl_looks_like like;
    const char *format; /* of PERF, LOG, STF, as in --format; NULL: the others say none */
    bool is_text;       /* only characters, a log or whatever */
    bool may_hold_stf;  /* it is packed in a way that STF is read from */
    /* Why it is never trace as it is, to follow the file's name; NULL: it may be. */
    const char *no_trace;
};

/* TL_FILE_KIND_BYTES tell everything, 16 the format. */
struct tl_looks tl_looks(struct tl_bytes head);

#endif
