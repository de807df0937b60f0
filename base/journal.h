/* SPDX-License-Identifier: MIT */
/*
 * The server's log for its operator: one line per event, with time, level and named values, as text
 * or JSON. Decoders do not use it; they report to their sinks.
 *
 *     2026-03-01T09:30:00.125Z info push ended: rig=bench3 trace=bench3-1 bytes=4096 why=complete
 *     {"time":"2026-03-01T09:30:00.125Z","level":"info","event":"push ended","rig":"bench3",…}
 *
 * Disabled until opened. If the lines go to systemd's journal ($JOURNAL_STREAM names the
 * descriptor) each is prefixed with its priority, "<6>", and text lines omit the time, which the
 * journal adds.
 *
 * Thread-safe: a line is one write(). tl_journal_open() is not: call it before creating threads.
 */
#ifndef TL_BASE_JOURNAL_H
#define TL_BASE_JOURNAL_H

#include "base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Values are syslog's. Source: RFC 5424, table 2. */
enum tl_journal_level {
    TL_JOURNAL_ERROR = 3,   /* something does not work: needs attention */
    TL_JOURNAL_WARNING = 4, /* continues, with restrictions */
    TL_JOURNAL_INFO = 6,
    TL_JOURNAL_DEBUG = 7
};

enum tl_journal_format { TL_JOURNAL_TEXT, TL_JOURNAL_JSON };

/* Write lines up to this level to a descriptor, which is borrowed. -1: disable. */
void tl_journal_open(int fd, enum tl_journal_format format, enum tl_journal_level most);
/* Parse a name: "text", "json"; "error", "warning", "info", "debug". Returns TL_USAGE. */
TL_MUST_USE int tl_journal_format_parse(const char *text, enum tl_journal_format *out);
TL_MUST_USE int tl_journal_level_parse(const char *text, enum tl_journal_level *out);

/*
 * A line under construction. Values that do not fit are truncated and end with "…". Text may
 * contain any bytes; control characters and invalid UTF-8 are escaped.
 */
struct tl_journal_line {
    enum tl_journal_level level;
    bool silent;
    size_t n;
    unsigned values;
    char text[1536];
};

/* Begin a line. `event` is a short constant text: "push ended". */
void tl_journal_begin(struct tl_journal_line *line, enum tl_journal_level level, const char *event);
/* Add a value; an empty or NULL text is omitted. */
void tl_journal_text(struct tl_journal_line *line, const char *name, const char *value);
void tl_journal_number(struct tl_journal_line *line, const char *name, uint64_t value);
void tl_journal_seconds(struct tl_journal_line *line, const char *name, uint64_t ns);
/* Write the line. */
void tl_journal_end(struct tl_journal_line *line);

/* Write a complete line with only an event, or with an event and a text `why`. */
void tl_journal_say(enum tl_journal_level level, const char *event);
void tl_journal_why(enum tl_journal_level level, const char *event, const char *why);

/*
 * Rate limit for lines that outsiders can trigger: at most TL_JOURNAL_BURST in ten seconds.
 * Initialise to zero. Returns whether a line may be written; sets `*left_out` to the number
 * suppressed since the last one written.
 */
#define TL_JOURNAL_BURST 20
struct tl_journal_limit {
    atomic_ullong since; /* ten-second period of the monotonic clock */
    atomic_uint written;
    atomic_uint left_out;
};
bool tl_journal_may(struct tl_journal_limit *limit, unsigned *left_out);

#endif
