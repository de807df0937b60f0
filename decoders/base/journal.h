/* SPDX-License-Identifier: MIT */
/*
 * What a server tells the one who operates it: a line for each event, with time, level and named
 * values, as text or as JSON. Decoders have no part in it; they tell by their sinks.
 *
 *     2026-03-01T09:30:00.125Z info push ended: rig=bench3 trace=bench3-1 bytes=4096 why=complete
 *     {"time":"2026-03-01T09:30:00.125Z","level":"info","event":"push ended","rig":"bench3",…}
 *
 * Silent until it is opened. Where the lines go to systemd's journal ($JOURNAL_STREAM names the
 * descriptor) each has its priority in front, "<6>", and text has no time: the journal has it.
 *
 * Thread-safe: a line is one write(). Opening is not: do it before there are other threads.
 */
#ifndef TL_BASE_JOURNAL_H
#define TL_BASE_JOURNAL_H

#include "base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are those of syslog. Source: RFC 5424, table 2. */
enum tl_journal_level {
    TL_JOURNAL_ERROR = 3,   /* something does not work: someone must look */
    TL_JOURNAL_WARNING = 4, /* it goes on, but not as it should */
    TL_JOURNAL_INFO = 6,
    TL_JOURNAL_DEBUG = 7
};

enum tl_journal_format { TL_JOURNAL_TEXT, TL_JOURNAL_JSON };

/* Write lines up to this level to a descriptor, which is borrowed. -1: silent again. */
void tl_journal_open(int fd, enum tl_journal_format format, enum tl_journal_level most);
/* Names: "text", "json"; "error", "warning", "info", "debug". TL_USAGE. */
TL_MUST_USE int tl_journal_format_parse(const char *text, enum tl_journal_format *out);
TL_MUST_USE int tl_journal_level_parse(const char *text, enum tl_journal_level *out);

/*
 * One line, as it is put together. Values that do not fit into it are cut off, and a value ends
 * with "…" then. Text may be any bytes; control characters and what is no UTF-8 are escaped.
 */
struct tl_journal_line {
    enum tl_journal_level level;
    bool silent;
    size_t n;
    unsigned values;
    char text[1536];
};

/* Begin a line about an event, which is a short constant text: "push ended". */
void tl_journal_begin(struct tl_journal_line *line, enum tl_journal_level level, const char *event);
/* A value; an empty or NULL text is left out. */
void tl_journal_text(struct tl_journal_line *line, const char *name, const char *value);
void tl_journal_number(struct tl_journal_line *line, const char *name, uint64_t value);
void tl_journal_seconds(struct tl_journal_line *line, const char *name, uint64_t ns);
/* Write it. */
void tl_journal_end(struct tl_journal_line *line);

/* A whole line of an event alone, and of one with a text in `why`. */
void tl_journal_say(enum tl_journal_level level, const char *event);
void tl_journal_why(enum tl_journal_level level, const char *event, const char *why);

/*
 * Lines that someone outside can cause at will: at most TL_JOURNAL_BURST in ten seconds. Zeroed at
 * first. Returns whether one more may be written; `*left_out` gets how many were not since the last
 * one that was.
 */
#define TL_JOURNAL_BURST 20
struct tl_journal_limit {
    atomic_ullong since; /* ten-second period of the monotonic clock */
    atomic_uint written;
    atomic_uint left_out;
};
bool tl_journal_may(struct tl_journal_limit *limit, unsigned *left_out);

#endif
