/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of a section of a stream, and its longest gaps, one by one with their times. Made
 * while a shard is built (builder/exception_times.h, call_times.h), and stored with its calls
 * (shardcalls.h), and have the extent of these. `timed` false: there are no rows.
 *
 * Exceptions are in the order of their ends; those that are still active at the section's end come
 * last, the outermost first, and are told again in the next section, where they go on.
 *
 * All zero: empty. Not thread-safe.
 */
#ifndef TL_SHARD_TIMEDROWS_H
#define TL_SHARD_TIMEDROWS_H

#include "shard/timedextent.h"

#define TL_GAPS_KEPT      128 /* the longest gaps of a section */
#define TL_EXCEPTION_NAME 32

enum tl_exception_flag {
    TL_EXCEPTION_RESUMED = 1, /* it began earlier, before another stack was active */
    TL_EXCEPTION_OPEN = 2,    /* it is still active at the section's end */
    TL_EXCEPTION_UNSEEN = 4,  /* its handler, or its end, is not traced: it has no length */
    TL_EXCEPTION_SIGNAL = 8   /* a signal handler, which no item tells of */
};
/* … of those whose length is known: none of */
#define TL_EXCEPTION_CUT (TL_EXCEPTION_RESUMED | TL_EXCEPTION_OPEN | TL_EXCEPTION_UNSEEN)

struct tl_exception_span {
    uint64_t begin, end;      /* positions, also before the section */
    uint64_t time, end_time;  /* ticks */
    uint64_t self, self_time; /* in the handler itself, without callees, in the section */
    uint32_t function;        /* the last one of the handler: index of the image's symbol */
    uint32_t level;           /* exceptions active while it began, itself included */
    uint16_t number;          /* with flag, as in the exception's item */
    uint8_t flags;            /* enum tl_exception_flag */
};

struct tl_exception_name {
    uint16_t number;
    char text[TL_EXCEPTION_NAME];
};

/* Trace is missing, or was off, for a time. */
struct tl_gap_span {
    uint64_t position;
    uint64_t time, end_time; /* ticks: the last timestamp before it, and the next one */
    uint64_t gaps;           /* number between the two; 0: only switched off */
    uint32_t reasons;        /* bit set of enum tl_gap */
    uint8_t kind;            /* enum tl_timed_kind: whose time it is */
};

struct tl_timed_rows {
    struct tl_timed_extent extent;
    struct tl_exception_span *exceptions;
    size_t n_exceptions, cap_exceptions;
    struct tl_exception_name *names;
    size_t n_names, cap_names;
    struct tl_gap_span *gaps; /* the longest; first ones first once the rows are closed */
    size_t n_gaps, cap_gaps;
    uint64_t all_gaps; /* number, also of shorter ones */
};

void tl_timed_rows_fini(struct tl_timed_rows *rows);
/* TL_NOMEM. */
TL_MUST_USE int tl_timed_rows_exception(struct tl_timed_rows *rows,
                                        const struct tl_exception_span *exception);
/* Know an exception's name, if it has none yet. `text` may be NULL. TL_NOMEM. */
TL_MUST_USE int tl_timed_rows_name(struct tl_timed_rows *rows, uint16_t number, const char *text);
/* NULL: none is known. */
const char *tl_timed_rows_find_name(const struct tl_timed_rows *rows, uint16_t number);
/* Add a gap of some duration. TL_NOMEM. */
TL_MUST_USE int tl_timed_rows_gap(struct tl_timed_rows *rows, const struct tl_gap_span *gap);
/* For qsort(): the longest gaps first. */
int tl_gap_span_compare(const void *a, const void *b);

/* No more gaps are added: sort them, and keep only the longest. */
void tl_timed_rows_close(struct tl_timed_rows *rows);
/* Append the encoding of closed rows. TL_NOMEM. */
TL_MUST_USE int tl_timed_rows_encode(const struct tl_timed_rows *rows, struct tl_buf *out);
/* Read what tl_timed_rows_encode() wrote into empty rows. TL_NOTFOUND: it is damaged; TL_NOMEM. */
TL_MUST_USE int tl_timed_rows_decode(struct tl_timed_rows *rows, struct tl_bytes bytes);

#endif
