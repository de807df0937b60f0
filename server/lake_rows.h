/* SPDX-License-Identifier: MIT */
/* Catalog data of traces in the lake's public form, which the store has too. */
#ifndef TL_LAKE_ROWS_H
#define TL_LAKE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* How long raw bytes and decoded data are kept; 0: no limit. */
struct tl_retention {
    uint64_t raw_age_s; /* since the trace last changed */
    uint64_t raw_bytes; /* total for all traces of the rule */
    uint64_t decoded_age_s;
    uint64_t decoded_bytes;
};

enum tl_trace_state {
    TL_TRACE_LIVE,     /* a rig is pushing, or may resume */
    TL_TRACE_DECODING, /* the capture is complete, decoding is not */
    TL_TRACE_SEALED,   /* capture and decoding are complete */
    TL_TRACE_FAILED    /* decoding stopped for the reason in `message`. The raw bytes are kept */
};

/* "live", "decoding" …: as users see a state. */
static inline const char *tl_trace_state_name(unsigned state)
{
    static const char *const names[] = {"live", "decoding", "sealed", "failed"};
    return state <= TL_TRACE_FAILED ? names[state] : "failed";
}

/* A place in the list of all traces (newest first, those of the same time by name): right after the
 * trace with this name and creation time. */
struct tl_trace_place {
    int64_t created_ns; /* Unix time */
    char id[64];
};

#define TL_NOTE_BYTES 2048 /* maximum size of a note's text, with its NUL */

/* A note at a place of a trace; without text it is a bookmark. */
struct tl_note {
    uint64_t id; /* from 1, unique within a trace */
    char stream[32];
    uint64_t at, to; /* first and last position, at <= to */
    bool has_time;
    uint64_t time, time_to; /* times of both, as of when the note was written */
    int64_t created_ns;     /* Unix time */
    int64_t updated_ns;
    char text[TL_NOTE_BYTES]; /* UTF-8, may have several lines */
};

#endif
