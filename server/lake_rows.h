/* SPDX-License-Identifier: MIT */
/* What the catalog keeps of traces as the lake shows it: included by lake.h and the store. */
#ifndef TL_LAKE_ROWS_H
#define TL_LAKE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* How long raw bytes and what was decoded of them are kept; 0: no limit. */
struct tl_retention {
    uint64_t raw_age_s; /* since the trace last changed */
    uint64_t raw_bytes; /* of all traces of the rule together */
    uint64_t decoded_age_s;
    uint64_t decoded_bytes;
};

enum tl_trace_state {
    TL_TRACE_LIVE,     /* a rig is pushing, or may resume */
    TL_TRACE_DECODING, /* the capture is complete, decoding is not */
    TL_TRACE_SEALED,   /* all done */
    TL_TRACE_FAILED    /* decoding stopped; `message` says why. The raw bytes are kept */
};

/* A place in the list of all traces, newest first and those of one moment by name: behind the trace
 * of that name, made then. */
struct tl_trace_place {
    int64_t created_ns; /* Unix time */
    char id[64];
};

#define TL_NOTE_BYTES 2048 /* of a note's text, with its NUL */

/* What somebody wrote at a place of a trace; a bookmark, if there is no text. */
struct tl_note {
    uint64_t id; /* from 1 in a trace */
    char stream[32];
    uint64_t at, to; /* its first position and the last one, at <= to */
    bool has_time;
    uint64_t time, time_to; /* of both, when it was written */
    int64_t created_ns;     /* Unix time */
    int64_t updated_ns;
    char text[TL_NOTE_BYTES]; /* UTF-8, lines */
};

#endif
