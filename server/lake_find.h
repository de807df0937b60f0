/* SPDX-License-Identifier: MIT */
/* Looking for places of a trace. Threads and errors as in lake.h. */
#ifndef TL_LAKE_FIND_H
#define TL_LAKE_FIND_H

#include "lake_ranges.h"

#include <stddef.h>

enum tl_find_kind {
    TL_FIND_PC,     /* executions of addresses [pc_from, pc_to) */
    TL_FIND_SYMBOL, /* entries of the flow into the function of this name */
    TL_FIND_EVENT, /* exception, gap, event, software …, or a single reason for gaps: overflow … */
    TL_FIND_CALL, /* calls of the function of this name; if there is none, of all functions whose
                     names contain it, ignoring case, or match it if it has * or ? */
    TL_FIND_MNEMONIC, /* instructions with this mnemonic (* and ? as above), or, if the text has a
                         space, whose assembly text contains it */
    TL_FIND_OPCODE, /* instructions with this encoding, as in flow text: hex digits, x for any digit
                     */
    TL_FIND_TEXT,   /* any of these kinds, as described for `q` in docs/http.md */
    TL_FIND_LINE    /* lines and values of software trace, and hardware events, whose text contains
                       this, ignoring case; * and ? as above */
};
struct tl_find_request {
    const char *trace;
    const char *stream; /* NULL, "": all streams of the trace, merged */
    enum tl_find_kind kind;
    uint64_t pc_from, pc_to; /* PC: [from, to) */
    const char *text;        /* for the other kinds */
    uint64_t from, to;       /* instruction range to search; only with a single stream */
    const char *near;        /* only hits after instruction `at` of this stream, or before it if
                                `backward`. NULL: all */
    uint64_t at;
    uint64_t skip;  /* > 0: also hits at `at`, without this many of them, the first ones in this
                       direction */
    bool backward;  /* return the last hits instead of the first */
    bool count;     /* also count all hits, regardless of `near` */
    uint64_t limit; /* maximum number of hits, 0: 100; hits at one position stay together, as long
                       as the list exceeds the limit by at most TL_FIND_TOGETHER */
};
#define TL_FIND_TOGETHER 256

#define TL_HIT_TEXT 160
struct tl_hit {
    struct tl_position at;
    uint64_t pc;
    char stream[32];
    char text[TL_HIT_TEXT]; /* description: "exception irq 14 00400078 <main+0x10>" */
    /* Number of the hit among those at its position, from 1, in search direction: `skip` of a
     * request that continues after it, with its stream and position as `near` and `at`. */
    uint64_t nth;
};
struct tl_found {
    struct tl_hit *hits; /* in order; with `backward` nearest first */
    size_t n;
    bool more;       /* the limit cut the list; with several streams: it may have */
    uint64_t total;  /* number of all hits, if `count` was set */
    uint64_t before; /* number of hits before hits[0], if `count` was set */
    enum tl_find_kind kind;
    char what[128];     /* description of the query: "calls of main" */
    uint64_t functions; /* SYMBOL, CALL: number of functions that the text names */
    bool behind;        /* of this stream, what is from here on is still being indexed */
    uint64_t behind_from;
    char behind_stream[32];
};
/*
 * Find hits, in order. With all streams: by time, followed by those of streams without time, stream
 * by stream. Free with tl_found_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_find(struct tl_lake *lake, const struct tl_find_request *request,
                             struct tl_found *out, struct tl_fail *fail);
void tl_found_fini(struct tl_found *found);

#endif
