/* SPDX-License-Identifier: MIT */
/*
 * Traces and their streams: rows of them, labels and notes, and what users do with whole traces.
 * Threads and errors as in lake.h.
 */
#ifndef TL_LAKE_TRACES_H
#define TL_LAKE_TRACES_H

#include "base/buf.h"
#include "base/err.h"
#include "lake_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_lake;

/*
 * Relation of a stream's time to the server's clock, derived from the arrival of its bytes:
 * unix_ns(t) = unix_ns + (t - at) * rate. The result is later than the real time by the shortest
 * delay between the trace source and the server, which is unknown. Meaningful for a capture that
 * was pushed while it was recorded. A capture pushed later has no relation if its clock rate is
 * known, otherwise the relation only reflects how it was sent.
 */
struct tl_stream_clock {
    uint64_t pairs;   /* samples of (time, arrival) it is based on; 0: no relation */
    uint64_t at;      /* a time in the middle of the trace, in its unit */
    uint64_t unix_ns; /* the server's clock at that time */
    double rate; /* ns of the server's clock per unit of the trace's time: near 1 if that is ns */
    double rate_error;  /* error bound of `rate`, ± */
    uint64_t spread_ns; /* additional delay within which 95 % of the samples arrived */
};

struct tl_stream_row {
    char name[32];
    char protocol[16];
    char core[40];         /* as named by the setup, "" if it names none */
    char device[40];       /* name of the source in the board's description, "" if none */
    uint64_t insns;        /* decoded so far (including the live edge) */
    uint64_t sealed_insns; /* how many of them are in sealed shards */
    uint64_t shards;
    uint64_t time_first; /* ns since the trace's epoch, or ticks: see time_unit_ns */
    uint64_t time_last;
    uint64_t events; /* exceptions, hardware events, software trace */
    uint64_t gaps;
    uint64_t lost_bytes;
    uint64_t stored_bytes; /* size of its shards */
    bool has_time;
    bool time_unit_ns; /* false: ticks of the source's clock */
    /* Between two timestamps, on average; 0: it has not two of them. Durations without bounds that
     * are shorter are estimates. */
    uint64_t time_step;
    /* What is decoded ahead of the index (label index=behind): the end of its positions, and its
     * last timestamp, in the unit of time_last. It can be found and read, but is not counted in
     * anything else. 0: nothing is. */
    uint64_t outlined_insns, outlined_time;
    struct tl_stream_clock clock;
};

#define TL_CONTENT_BYTES 72 /* "sha256:<64 hex>" and its NUL */

/* A trace. Readers may also name it by its `content`. */
struct tl_trace_row {
    char id[64]; /* [A-Za-z0-9._-]+, unique */
    char rig[64];
    uint8_t state; /* enum tl_trace_state */
    char format[64];
    int64_t created_ns; /* Unix time */
    int64_t updated_ns;
    uint64_t raw_bytes;     /* durable bytes */
    uint64_t decoded_bytes; /* how many of them are decoded */
    uint64_t generation;    /* changes when the trace is decoded again (`gen` of tile URLs) */
    uint64_t revision;      /* increases with every visible change */
    char message[256];      /* last problem, "" if none */
    bool raw_removed;       /* by retention: the trace cannot be decoded again */
    bool decoded_removed;   /* by retention: decoding again restores it */
    char content[TL_CONTENT_BYTES]; /* hash of the raw bytes, set soon after the capture is complete
                                     */
    char *labels;                   /* "key=value\n"…, owned */
    uint64_t notes; /* increases with every change of its notes; 0: there are none */
    struct tl_stream_row *streams;
    size_t n_streams;
};

struct tl_trace_list {
    struct tl_trace_row *rows;
    size_t n;
    uint64_t revision; /* of the catalog as a whole */
};

/*
 * List all traces, newest first; may take long. Free with tl_trace_list_free(), also after an
 * error.
 */
TL_MUST_USE int tl_lake_traces(struct tl_lake *lake, struct tl_trace_list *out);
/* Append up to `most` traces after a place (NULL: from the newest). Returns 1: there may be more,
 * even if fewer were appended; TL_OK: end of the list. While the store does not respond: all that
 * are in memory. `revision` is not set. */
TL_MUST_USE int tl_lake_page(struct tl_lake *lake, const struct tl_trace_place *after, size_t most,
                             struct tl_trace_list *list);
/* The place of a row, after which the next page begins. */
struct tl_trace_place tl_trace_place_of(const struct tl_trace_row *row);
/*
 * List the traces that are in memory, in no order: all that are live or being decoded here, and
 * some others.
 */
TL_MUST_USE int tl_lake_at_hand(struct tl_lake *lake, struct tl_trace_list *out);
/* One row in a list of one. TL_NOTFOUND; TL_UNREACHABLE, TL_AGAIN: the store cannot answer now. */
TL_MUST_USE int tl_lake_trace(struct tl_lake *lake, const char *trace, struct tl_trace_list *out);
/* Does a trace of exactly this name exist, serving this generation? Only looks at the table in
 * memory. */
bool tl_lake_serves(struct tl_lake *lake, const char *trace, uint64_t generation);
void tl_trace_list_free(struct tl_trace_list *list);

#define TL_LABELS_MAX        1100   /* labels per trace: 1000 regions and others */
#define TL_LABELS_BYTES      131072 /* total bytes of a trace's label keys and values */
#define TL_LABEL_KEY_BYTES   128
#define TL_LABEL_VALUE_BYTES 4096

/*
 * Merge "key=value\n"… into the labels; an empty value removes the key, which need not be a valid
 * one. TL_NOTFOUND; TL_USAGE, with nothing changed: a limit above is exceeded, or there are control
 * characters.
 */
TL_MUST_USE int tl_lake_set_labels(struct tl_lake *lake, const char *trace, const char *labels,
                                   struct tl_fail *fail);
#define TL_NOTES_MAX 1000 /* per trace */

/* List notes by id; free `*notes` with free(). TL_NOTFOUND. */
TL_MUST_USE int tl_lake_notes(struct tl_lake *lake, const char *trace, struct tl_note **notes,
                              size_t *n, struct tl_fail *fail);
/*
 * Write a note: id 0 creates one and sets its id; another id replaces the note that has it. Stream,
 * at, to and text are used, the rest is filled in. Invalid UTF-8 in the text becomes '?'.
 * TL_NOTFOUND: no such trace, stream or note; TL_USAGE: control characters, to < at; TL_LIMIT: too
 * many.
 */
TL_MUST_USE int tl_lake_put_note(struct tl_lake *lake, const char *trace, struct tl_note *note,
                                 struct tl_fail *fail);
TL_MUST_USE int tl_lake_remove_note(struct tl_lake *lake, const char *trace, uint64_t id,
                                    struct tl_fail *fail);

/* Remove a trace and free its space: at once, or if it is being read, when the last reader closes.
 * TL_NOTFOUND, TL_DENIED while a rig is pushing it. */
TL_MUST_USE int tl_lake_delete(struct tl_lake *lake, const char *trace, struct tl_fail *fail);
/* Remove `n` traces with a single commit. For each failure, `refused` is called with errors as for
 * tl_lake_delete(). Returns how many were removed. */
size_t tl_lake_delete_all(struct tl_lake *lake, const char *const *traces, size_t n,
                          void (*refused)(void *context, size_t i, int code,
                                          const struct tl_fail *fail),
                          void *context);
/* Decode the raw bytes again (new image, new setup text, or NULL to keep it). The old shards serve
 * until the new ones replace them in one step. TL_NOTFOUND; TL_DENIED if the raw bytes were
 * removed. */
TL_MUST_USE int tl_lake_redecode(struct tl_lake *lake, const char *trace, const char *setup,
                                 struct tl_fail *fail);
/* Decode again with the setup before the present one. TL_USAGE: there was none. */
TL_MUST_USE int tl_lake_redecode_back(struct tl_lake *lake, const char *trace,
                                      struct tl_fail *fail);

/* Get a trace's setup as the rig sent it, NUL-terminated INI text, into `text`. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_setup(struct tl_lake *lake, const char *trace, struct tl_buf *text,
                              struct tl_fail *fail);

#endif
