/* SPDX-License-Identifier: MIT */
/*
 * Printed output of software trace (ITM, STM, UART, Open SoC Debug) as lines, from flow text:
 *
 *     TIME SOURCE CHANNEL TEXT
 *
 * TIME is the last timestamp before the line's first character, "-" without one: in ticks, or in
 * nanoseconds if tl_lines_stream() told the clock. Characters of each
 * source and channel form their own lines; each other record, also one with a NUL in it, is an
 * entry of its own, as a number.
 * Gaps are reported. Where a setup tells what a channel is for, all of it is shown as that:
 * characters, or values.
 *
 * Or as CSV, with a head line:
 *
 *     stream,time,seconds,source,channel,form,text
 *
 * or as JSON, an object with these members, as far as they are known, for each entry, one per line.
 *
 * Not thread-safe.
 */
#ifndef TL_OUT_LINES_H
#define TL_OUT_LINES_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

struct tl_lines;

struct tl_lines_options {
    bool one_channel; /* only this channel, and gaps */
    uint32_t channel;
    enum tl_lines_form { TL_LINES_PLAIN, TL_LINES_CSV, TL_LINES_JSON } form;
};

/* `file` is borrowed; `options` NULL: none. TL_NOMEM. */
TL_MUST_USE int tl_lines_new(struct tl_lines **out, const struct tl_lines_options *options,
                             FILE *file);
/* Name the stream that follows, and its clock in Hz, 0 if that is unknown: for CSV and JSON, and
 * for streams whose text does not begin with their name. */
void tl_lines_stream(struct tl_lines *lines, const char *stream, uint64_t clock_hz);
/* Print an entry that is put together already; `time` as in flow text, "-": not known. TL_NOMEM,
 * TL_IO. */
TL_MUST_USE int tl_lines_entry(struct tl_lines *lines, const char *time, const char *source,
                               const char *channel, const char *form, const char *text);
/* Process flow text, split anywhere. TL_NOMEM; TL_IO: CSV or JSON cannot be written. */
TL_MUST_USE int tl_lines_push(struct tl_lines *lines, struct tl_bytes text);
/* Print unfinished lines as they are; more input may follow. */
void tl_lines_flush(struct tl_lines *lines);
/* Accepts NULL. */
void tl_lines_free(struct tl_lines *lines);

#endif
