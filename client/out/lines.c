/* SPDX-License-Identifier: MIT */
/*
 * Puts characters of software trace together to lines, separately by source and channel. Cores
 * print concurrently, a few bytes per packet, so that lines in trace order would be shuffled.
 */
#include "out/lines.h"

#include "base/csv.h"
#include "base/whole.h"
#include "out/jsonwrite.h"
#include "out/linewise.h"
#include "terminal/plain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 64, TEXT_MAX = 4096, LETTERS_MAX = 256 };

/* Of a channel. */
struct origin {
    char source[40], channel[24];
    char form[8]; /* "" if it is not told */
};

struct open_line {
    struct origin origin;
    char time[24];
    struct tl_buf text;
};

struct tl_lines {
    FILE *file;
    struct tl_lines_options options;
    char stream[64];
    uint64_t clock_hz;
    char time[24];
    struct tl_linewise lines;
    struct open_line *open[OPEN_MAX]; /* oldest first */
    size_t n_open;
    struct tl_buf row;
};

int tl_lines_new(struct tl_lines **out, const struct tl_lines_options *options, FILE *file)
{
    struct tl_lines *const l = calloc(1, sizeof *l);
    if (!l)
        return TL_NOMEM;
    l->file = file;
    if (options)
        l->options = *options;
    if (l->options.form == TL_LINES_CSV)
        fputs("stream,time,seconds,source,channel,form,text\n", file);
    strcpy(l->time, "-");
    *out = l;
    return TL_OK;
}

void tl_lines_stream(struct tl_lines *l, const char *stream, uint64_t clock_hz)
{
    tl_lines_flush(l);
    strcpy(l->time, "-");
    snprintf(l->stream, sizeof l->stream, "%s", stream);
    l->clock_hz = clock_hz;
    if (l->options.form == TL_LINES_PLAIN)
        fprintf(l->file, "# stream %s\n", stream);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Seconds of a time in ticks, to the nanosecond; "" if that is not known. */
static void seconds_text(const struct tl_lines *l, const char *time, char out[static 48])
{
    char *end;
    const uint64_t hz = l->clock_hz, ticks = strtoull(time, &end, 10);
    out[0] = '\0';
    if (hz == 0 || end == time || *end)
        return;
    const uint64_t ns = (uint64_t)((unsigned __int128)(ticks % hz) * 1000000000 / hz);
    snprintf(out, 48, "%" PRIu64 ".%09" PRIu64, ticks / hz, ns);
}

/* A time in ticks as nanoseconds, the unit of all other answers, if the clock is known. */
static const char *time_text(const struct tl_lines *l, const char *time, char out[static 24])
{
    char *end;
    const uint64_t hz = l->clock_hz, ticks = strtoull(time, &end, 10);
    if (hz == 0 || end == time || *end)
        return time;
    snprintf(out, 24, "%" PRIu64, (uint64_t)((unsigned __int128)ticks * 1000000000 / hz));
    return out;
}

static const char *or_empty(const char *text)
{
    return strcmp(text, "-") == 0 ? "" : text;
}

/* Write the row, unless making it has failed with `made`. */
static int put_row(struct tl_lines *l, int made)
{
    if (made >= 0 && !tl_write_all(l->file, l->row.p, l->row.n))
        return TL_IO;
    return made;
}

static int print_csv(struct tl_lines *l, const char *time, const struct origin *of,
                     const char *text)
{
    char seconds[48], ns[24];
    const char *const fields[] = {l->stream,
                                  or_empty(time_text(l, time, ns)),
                                  seconds,
                                  of->source,
                                  or_empty(of->channel),
                                  of->form,
                                  text};
    const size_t n = sizeof fields / sizeof *fields;
    int r = TL_OK;
    seconds_text(l, time, seconds);
    tl_buf_reset(&l->row);
    for (size_t i = 0; i < n && r >= 0; i++)
        r = tl_csv_field(&l->row, fields[i], i + 1 < n ? ',' : '\n');
    return put_row(l, r);
}

static int print_json(struct tl_lines *l, const char *time, const struct origin *of,
                      const char *text)
{
    char seconds[48], ns[24];
    struct tl_json o = tl_json_begin();
    seconds_text(l, time, seconds);
    tl_json_put_text(&o, "stream", l->stream);
    if (*or_empty(time))
        tl_json_put_u64(&o, "time", strtoull(time_text(l, time, ns), NULL, 10));
    if (*seconds)
        tl_json_put_text(&o, "seconds", seconds);
    tl_json_put_text(&o, "source", of->source);
    if (*or_empty(of->channel))
        tl_json_put_text(&o, "channel", of->channel);
    if (*of->form)
        tl_json_put_text(&o, "form", of->form);
    tl_json_put_text(&o, "text", text);
    tl_buf_reset(&l->row);
    return put_row(l, tl_json_line(&l->row, &o));
}

static int print(struct tl_lines *l, const char *time, const struct origin *of, const char *text)
{
    if (l->options.form == TL_LINES_CSV)
        return print_csv(l, time, of, text);
    if (l->options.form == TL_LINES_JSON)
        return print_json(l, time, of, text);
    char ns[24];
    fprintf(l->file, "%s %s %s ", time_text(l, time, ns), of->source, of->channel);
    tl_print_plain(l->file, text, 0);
    putc('\n', l->file);
    return TL_OK;
}

static int end_line(struct tl_lines *l, size_t i)
{
    struct open_line *const line = l->open[i];
    const int r = print(l, line->time, &line->origin, line->text.p ? (char *)line->text.p : "");
    tl_buf_fini(&line->text);
    free(line);
    memmove(l->open + i, l->open + i + 1, (--l->n_open - i) * sizeof *l->open);
    return r;
}

/* Index of the origin's open line; n_open: none. */
static size_t find_open(const struct tl_lines *l, const struct origin *of)
{
    size_t i = 0;
    while (i < l->n_open && (strcmp(l->open[i]->origin.source, of->source) != 0 ||
                             strcmp(l->open[i]->origin.channel, of->channel) != 0))
        i++;
    return i;
}

/* ---- characters ------------------------------------------------------------------------------ */

static bool is_letter(uint8_t c)
{
    return (c >= ' ' && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

/* The origin's open line, or a new one; NULL: out of memory. */
static struct open_line *line_of(struct tl_lines *l, const struct origin *of, size_t *at)
{
    *at = find_open(l, of);
    if (*at < l->n_open)
        return l->open[*at];
    if (l->n_open == OPEN_MAX && end_line(l, 0) < 0)
        return NULL;
    struct open_line *const line = calloc(1, sizeof *line);
    if (!line)
        return NULL;
    line->origin = *of;
    memcpy(line->time, l->time, sizeof line->time);
    *at = l->n_open++;
    return l->open[*at] = line;
}

/* What is no letter is there only where the channel is for text; NULs fill words. */
static int add_letter(struct tl_lines *l, const struct origin *of, uint8_t c)
{
    size_t at;
    char out[8] = {(char)c};
    if (c == '\r' || c == '\0')
        return TL_OK;
    struct open_line *const line = line_of(l, of, &at);
    if (!line)
        return TL_NOMEM;
    if (c == '\n')
        return end_line(l, at);
    if (!is_letter(c))
        snprintf(out, sizeof out, "\\x%02x", c);
    line->text.n -= line->text.n > 0; /* its NUL */
    if (tl_buf_add(&line->text, out, strlen(out) + 1) < 0)
        return TL_NOMEM;
    return line->text.n > TEXT_MAX ? end_line(l, at) : TL_OK;
}

/* Bytes of a payload in memory order; 0 if not all are characters, or the channel has numbers. */
static size_t letters_of(const struct origin *of, const char *hex, uint8_t out[static LETTERS_MAX])
{
    size_t n = tl_line_bytes(hex, out, LETTERS_MAX);
    const bool text = strcmp(of->form, "text") == 0;
    if (hex[2 * n] || (of->form[0] && !text))
        return 0;
    for (size_t i = 0; n <= 8 && i < n / 2; i++) { /* a number: reverse the bytes */
        const uint8_t c = out[i];
        out[i] = out[n - 1 - i];
        out[n - 1 - i] = c;
    }
    /* This channel prints: each value is a character. */
    if (strcmp(of->source, "osd-stm") == 0 && strcmp(of->channel, "4") == 0)
        while (n > 1 && out[n - 1] == 0)
            n--;
    for (size_t i = 0; i < n && !text; i++)
        if (!is_letter(out[i]))
            return 0;
    return n;
}

/* A record that is a number: its value, or its payload. */
static int take_number(struct tl_lines *l, const struct origin *of, const char *payload,
                       const char *value)
{
    char number[80];
    const size_t open = find_open(l, of);
    const int r = open < l->n_open ? end_line(l, open) : TL_OK;
    snprintf(number, sizeof number, "0x%.64s%s", payload, strlen(payload) > 64 ? "…" : "");
    return r < 0 ? r : print(l, l->time, of, *value ? value : number);
}

/* Is it the wanted channel? That of an STM is behind its master. */
static bool is_wanted(const struct tl_lines *l, const struct origin *of)
{
    const char *const dot = strchr(of->channel, '.');
    const char *const digits = dot ? dot + 1 : of->channel;
    char *end;
    const uint64_t channel = strtoull(digits, &end, 16);
    return !l->options.one_channel ||
           (end > digits && *end == '\0' && channel == l->options.channel);
}

/* "SOURCE CHANNEL PAYLOAD [FORM [VALUE]]" */
static int take_software(struct tl_lines *l, char *text)
{
    char *words[5] = {"", "", "", "", ""};
    struct origin of;
    uint8_t letters[LETTERS_MAX];
    for (size_t i = 0; i < sizeof words / sizeof *words && text; i++)
        words[i] = strsep(&text, " ");
    snprintf(of.source, sizeof of.source, "%s", words[0]);
    snprintf(of.channel, sizeof of.channel, "%s", words[1]);
    snprintf(of.form, sizeof of.form, "%s", words[3]);
    if (!*words[2] || !is_wanted(l, &of))
        return TL_OK;
    const size_t n = letters_of(&of, words[2], letters);
    for (size_t i = 0; i < n; i++)
        if (add_letter(l, &of, letters[i]) < 0)
            return TL_NOMEM;
    return n > 0 ? TL_OK : take_number(l, &of, words[2], words[4]);
}

static int take_line(void *context, char *line)
{
    struct tl_lines *const l = context;
    if (line[0] && line[1] != ' ' && line[0] != '#')
        return TL_OK;
    switch (line[0]) {
    case 'T':
        snprintf(l->time, sizeof l->time, "%s", line + 2);
        return TL_OK;
    case 'A': /* of software trace */
        if (strncmp(line, "A time ", 7) == 0)
            snprintf(l->time, sizeof l->time, "%s", line + 7);
        return TL_OK;
    case 'S':
        return take_software(l, line + 2);
    case 'H':
        return l->options.one_channel
                   ? TL_OK
                   : print(l, l->time, &(struct origin){"dwt", "-", ""}, line + 2);
    case 'G':
        tl_lines_flush(l);
        return print(l, l->time, &(struct origin){"gap", "-", ""}, line + 2);
    case '#':
        tl_lines_flush(l);
        strcpy(l->time, "-");
        if (!*l->stream)
            fprintf(l->file, "%s\n", line);
        return TL_OK;
    default:
        return TL_OK;
    }
}

int tl_lines_entry(struct tl_lines *l, const char *time, const char *source, const char *channel,
                   const char *form, const char *text)
{
    struct origin of;
    snprintf(of.source, sizeof of.source, "%s", source);
    snprintf(of.channel, sizeof of.channel, "%s", *channel ? channel : "-");
    snprintf(of.form, sizeof of.form, "%s", form);
    return is_wanted(l, &of) ? print(l, time, &of, text) : TL_OK;
}

int tl_lines_push(struct tl_lines *l, struct tl_bytes text)
{
    return tl_linewise_push(&l->lines, text, take_line, l);
}

void tl_lines_flush(struct tl_lines *l)
{
    while (l->n_open > 0)
        (void)end_line(l, 0);
}

void tl_lines_free(struct tl_lines *l)
{
    if (!l)
        return;
    tl_lines_flush(l);
    tl_linewise_fini(&l->lines);
    tl_buf_fini(&l->row);
    free(l);
}
