/* SPDX-License-Identifier: MIT */
/*
 * A line is built in a fixed buffer and written at once, so that lines of different threads never
 * mix and no allocation can fail. Values come from clients: they are escaped and cut, otherwise one
 * of them could forge a line or hide the rest of its own.
 */
#include "base/journal.h"

#include "base/now.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TAIL 8 /* reserved for the quotes of a value that is cut, and for the end of a line */
static_assert(sizeof "\"…\"}\n" - 1 <= TAIL, "all of it fits");

static struct {
    int fd;
    enum tl_journal_format format;
    enum tl_journal_level most;
    bool systemd; /* output goes to systemd, which adds the time and accepts priorities */
} journal = {.fd = -1};

/* Source: systemd.exec(5), $JOURNAL_STREAM: device and inode of the stream. */
static bool goes_to_systemd(int fd)
{
    const char *const stream = getenv("JOURNAL_STREAM");
    struct stat st;
    unsigned long long device, inode;
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && !fstat(fd, &st) &&
           st.st_dev == device && st.st_ino == inode;
}

void tl_journal_open(int fd, enum tl_journal_format format, enum tl_journal_level most)
{
    journal.fd = fd;
    journal.format = format;
    journal.most = most;
    journal.systemd = fd >= 0 && goes_to_systemd(fd);
}

int tl_journal_format_parse(const char *text, enum tl_journal_format *out)
{
    const bool json = !strcmp(text, "json");
    if (!json && strcmp(text, "text") != 0)
        return TL_USAGE;
    *out = json ? TL_JOURNAL_JSON : TL_JOURNAL_TEXT;
    return TL_OK;
}

static const char *const level_names[] = {
    [TL_JOURNAL_ERROR] = "error",
    [TL_JOURNAL_WARNING] = "warning",
    [TL_JOURNAL_INFO] = "info",
    [TL_JOURNAL_DEBUG] = "debug",
};

int tl_journal_level_parse(const char *text, enum tl_journal_level *out)
{
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (level_names[i] && !strcmp(level_names[i], text)) {
            *out = (enum tl_journal_level)i;
            return TL_OK;
        }
    return TL_USAGE;
}

/* ---- building a line ------------------------------------------------------------------------- */

/* Append all or nothing. */
static bool put(struct tl_journal_line *line, const char *p, size_t n)
{
    if (line->n + n + TAIL > sizeof line->text)
        return false;
    memcpy(line->text + line->n, p, n);
    line->n += n;
    return true;
}

static bool put_text(struct tl_journal_line *line, const char *text)
{
    return put(line, text, strlen(text));
}

static void put_end(struct tl_journal_line *line, const char *text)
{
    const size_t n = strlen(text);
    if (line->n + n > sizeof line->text)
        return;
    memcpy(line->text + line->n, text, n);
    line->n += n;
}

/* Append a quoted text, with JSON's escapes in both formats. */
static void put_escaped(struct tl_journal_line *line, const char *text)
{
    char one[8];
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = tl_utf8_length((const char *)p);
        bool fits;
        if (n == 0) { /* invalid UTF-8 */
            fits = put_text(line, "\\ufffd");
            n = 1;
        } else if (*p == '"' || *p == '\\') {
            snprintf(one, sizeof one, "\\%c", *p);
            fits = put_text(line, one);
        } else if (*p < 0x20 || *p == 0x7f || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)) {
            snprintf(one, sizeof one, "\\u%04x", n == 2 ? p[1] : p[0]);
            fits = put_text(line, one);
        } else {
            fits = put(line, (const char *)p, n);
        }
        if (!fits) {
            put_end(line, "…");
            return;
        }
        p += n;
    }
}

static bool is_plain(const char *text)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                               "._-:/[]@+,";
    return *text && strspn(text, safe) == strlen(text);
}

static bool put_name(struct tl_journal_line *line, const char *name)
{
    const bool json = journal.format == TL_JOURNAL_JSON;
    const size_t before = line->n;
    const char *const gap = json ? ",\"" : line->values ? " " : ": ";
    if (!line->silent && put_text(line, gap) && put_text(line, name) &&
        put_text(line, json ? "\":" : "=")) {
        line->values++;
        return true;
    }
    line->n = before;
    return false;
}

void tl_journal_begin(struct tl_journal_line *line, enum tl_journal_level level, const char *event)
{
    struct timespec now;
    struct tm utc;
    char time[40];
    char head[16] = "";
    line->level = level;
    line->n = 0;
    line->values = 0;
    line->silent = journal.fd < 0 || level > journal.most;
    if (line->silent)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    const size_t n = strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(time + n, sizeof time - n, ".%03dZ", (int)(now.tv_nsec / 1000000));
    if (journal.systemd)
        snprintf(head, sizeof head, "<%d>", level);
    put_text(line, head);
    if (journal.format == TL_JOURNAL_JSON) {
        put_text(line, "{\"time\":\"");
        put_text(line, time);
        put_text(line, "\",\"level\":\"");
        put_text(line, level_names[level]);
        put_text(line, "\",\"event\":\"");
        put_escaped(line, event);
        put_text(line, "\"");
        return;
    }
    if (!journal.systemd) {
        put_text(line, time);
        put_text(line, " ");
        put_text(line, level_names[level]);
        put_text(line, " ");
    }
    put_text(line, event);
}

void tl_journal_text(struct tl_journal_line *line, const char *name, const char *value)
{
    if (!value || !*value || !put_name(line, name))
        return;
    if (journal.format == TL_JOURNAL_TEXT && is_plain(value) && put_text(line, value))
        return;
    put_end(line, "\"");
    put_escaped(line, value);
    put_end(line, "\"");
}

static void put_value(struct tl_journal_line *line, const char *name, const char *digits)
{
    const size_t before = line->n;
    if (put_name(line, name) && !put_text(line, digits))
        line->n = before;
}

void tl_journal_number(struct tl_journal_line *line, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    put_value(line, name, digits);
}

void tl_journal_seconds(struct tl_journal_line *line, const char *name, uint64_t ns)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRIu64 ".%03u", ns / 1000000000,
             (unsigned)(ns % 1000000000 / 1000000));
    put_value(line, name, digits);
}

void tl_journal_end(struct tl_journal_line *line)
{
    if (line->silent)
        return;
    put_end(line, journal.format == TL_JOURNAL_JSON ? "}\n" : "\n");
    /* A failure to write the log must not stop the server. */
    (void)!write(journal.fd, line->text, line->n);
}

void tl_journal_say(enum tl_journal_level level, const char *event)
{
    tl_journal_why(level, event, NULL);
}

void tl_journal_why(enum tl_journal_level level, const char *event, const char *why)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, level, event);
    tl_journal_text(&line, "why", why);
    tl_journal_end(&line);
}

/* ---- limit ---------------------------------------------------------------------------------- */

bool tl_journal_may(struct tl_journal_limit *limit, unsigned *left_out)
{
    const unsigned long long period =
        (unsigned long long)(tl_monotonic_ns() / (10 * TL_NS_PER_S)) + 1;
    if (atomic_exchange(&limit->since, period) != period)
        atomic_store(&limit->written, 0);
    if (atomic_fetch_add(&limit->written, 1) >= TL_JOURNAL_BURST) {
        atomic_fetch_add(&limit->left_out, 1);
        return false;
    }
    *left_out = atomic_exchange(&limit->left_out, 0);
    return true;
}
