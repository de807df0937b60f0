/* SPDX-License-Identifier: MIT */
/*
 * Ranges of a stream, as files and text, and positions in all units. Threads and errors as in
 * lake.h.
 */
#ifndef TL_LAKE_RANGES_H
#define TL_LAKE_RANGES_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_lake;

enum tl_range_unit {
    TL_UNIT_INSN,
    TL_UNIT_TIME, /* the stream's unit: ns, or ticks where its clock rate is not known */
    TL_UNIT_BYTE,
    TL_UNIT_NS, /* ns; TL_USAGE for a stream whose clock rate is not known */
    TL_UNITS
};
/* What counts in an analysis. */
enum tl_weight { TL_WEIGHT_INSNS, TL_WEIGHT_TIME, TL_WEIGHT_CYCLES, TL_WEIGHTS };

enum tl_range_format {
    TL_FORMAT_ZSTF,
    TL_FORMAT_STF,
    TL_FORMAT_TEXT,
    TL_FORMAT_LINES, /* lines of flow text with their positions: tl_range_lines() */
    TL_FORMAT_NAMED, /* text, with the function of each instruction */
    TL_FORMATS
};

struct tl_range_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit unit;
    uint64_t from; /* first position, in units */
    uint64_t to;   /* end, exclusive; UINT64_MAX: to the end of the stream */
    enum tl_range_format format;
};

struct tl_range;

/*
 * Open a range. Errors: TL_NOTFOUND (trace or stream), TL_USAGE (from > to; range of time on a
 * stream without time).
 */
TL_MUST_USE int tl_range_open(struct tl_lake *lake, const struct tl_range_request *request,
                              struct tl_range **out, struct tl_fail *fail);
/* First instruction index and instruction count of the range, as resolved at open. */
void tl_range_extent(const struct tl_range *range, uint64_t *first, uint64_t *count);
/* Append the next piece (about 64 KiB to 1 MiB) to `out`. TL_EOF after the last. The concatenated
 * pieces are one complete file of the format. */
TL_MUST_USE int tl_range_next(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail);
/* Stored bytes of a range, in a file mapped to memory. */
struct tl_range_stored {
    struct tl_buf before;  /* bytes of the range before them; owned by the caller */
    struct tl_bytes bytes; /* for system calls only, which fail with EFAULT if the file was cut
                            * short, or the disk fails; the process would be killed */
    /* To be called with `owner` when the bytes are no longer needed; any thread. */
    void (*let_go)(void *owner);
    void *owner;
};
/* Instead of tl_range_next(): if what comes next is stored as it is, and known to be undamaged, get
 * it without reading it. TL_AGAIN: call tl_range_next(). */
TL_MUST_USE int tl_range_next_stored(struct tl_range *range, struct tl_range_stored *out,
                                     struct tl_fail *fail);
/* Receives a line of flow text without its line end, and its position, from a range of
 * TL_FORMAT_LINES. A result < 0 ends tl_range_lines(), which returns it. */
typedef int tl_line_sink(void *context, uint64_t at, struct tl_bytes line);
/* Pass the lines of the next item to `sink`. TL_EOF after the last. */
TL_MUST_USE int tl_range_lines(struct tl_range *range, tl_line_sink *sink, void *context,
                               struct tl_fail *fail);
void tl_range_close(struct tl_range *range);

/* A position in all units. */
struct tl_position {
    uint64_t insn;
    uint64_t time;
    /* Set by tl_lake_locate(): bounds of the real time, the last timestamp before the position and
     * the next one, UINT64_MAX if there is none. `time` is interpolated between them by instruction
     * count. */
    uint64_t time_from, time_to;
    uint64_t byte;
    bool has_time;
};
TL_MUST_USE int tl_lake_locate(struct tl_lake *lake, const char *trace, const char *stream,
                               enum tl_range_unit unit, uint64_t at, struct tl_position *out,
                               struct tl_fail *fail);

#endif
