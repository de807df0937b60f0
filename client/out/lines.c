/* SPDX-License-Identifier: MIT */
/*
 * Puts characters of software trace together to lines, separately by source and channel. Cores
 * print concurrently, a few bytes per packet, so that lines in trace order would be shuffled.
 */
#include "out/lines.h"

#include "out/linewise.h"
#include "terminal/plain.h"

#include <stdlib.h>
#include <string.h>

enum { OPEN_MAX = 64, TEXT_MAX = 4096, LETTERS_MAX = 256 };

/* Incomplete line of one source and channel. */
struct open_line {
    char origin[64]; /* "itm 0" */
    char time[24];
    struct tl_buf text;
};

struct tl_lines {
    FILE *file;
    char time[24];
    struct tl_linewise lines;
    struct open_line *open[OPEN_MAX]; /* oldest first */
    size_t n_open;
};

int tl_lines_new(struct tl_lines **out, FILE *file)
{
    struct tl_lines *const l = calloc(1, sizeof *l);
    if (!l)
        return TL_NOMEM;
    l->file = file;
    strcpy(l->time, "-");
    *out = l;
    return TL_OK;
}

static void print(const struct tl_lines *l, const char *time, const char *origin, const char *text)
{
    fprintf(l->file, "%s %s ", time, origin);
    tl_print_plain(l->file, text, 0);
    putc('\n', l->file);
}

static void end_line(struct tl_lines *l, size_t i)
{
    struct open_line *const line = l->open[i];
    print(l, line->time, line->origin, line->text.p ? (char *)line->text.p : "");
    tl_buf_fini(&line->text);
    free(line);
    memmove(l->open + i, l->open + i + 1, (--l->n_open - i) * sizeof *l->open);
}

/* Index of the origin's open line; n_open: none. */
static size_t find_open(const struct tl_lines *l, const char *origin)
{
    size_t i = 0;
    while (i < l->n_open && strcmp(l->open[i]->origin, origin) != 0)
        i++;
    return i;
}

static int add_letter(struct tl_lines *l, const char *origin, uint8_t c)
{
    size_t i = find_open(l, origin);
    if (i == l->n_open) {
        if (l->n_open == OPEN_MAX)
            end_line(l, 0);
        struct open_line *const line = calloc(1, sizeof *line);
        if (!line)
            return TL_NOMEM;
        snprintf(line->origin, sizeof line->origin, "%s", origin);
        memcpy(line->time, l->time, sizeof line->time);
        i = l->n_open++;
        l->open[i] = line;
    }
    struct tl_buf *const text = &l->open[i]->text;
    if (c == '\r')
        return TL_OK;
    text->n -= text->n > 0; /* its NUL */
    if (tl_buf_add(text, (const uint8_t[2]){c == '\n' ? 0 : c, 0}, c == '\n' ? 1 : 2) < 0)
        return TL_NOMEM;
    if (c == '\n' || text->n > TEXT_MAX)
        end_line(l, i);
    return TL_OK;
}

static bool is_letter(uint8_t c)
{
    return (c >= ' ' && c != 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

/* Bytes of a payload of `origin` in memory order; 0 if not all are characters. */
static size_t letters_of(const char *origin, const char *hex, uint8_t out[static LETTERS_MAX])
{
    size_t n = tl_line_bytes(hex, out, LETTERS_MAX);
    if (hex[2 * n])
        return 0;
    for (size_t i = 0; n <= 8 && i < n / 2; i++) { /* a number: reverse the bytes */
        const uint8_t c = out[i];
        out[i] = out[n - 1 - i];
        out[n - 1 - i] = c;
    }
    if (strcmp(origin, "osd-stm 4") == 0) /* prints: each value is a character */
        while (n > 1 && out[n - 1] == 0)
            n--;
    for (size_t i = 0; i < n; i++)
        if (!is_letter(out[i]))
            return 0;
    return n;
}

/* "SOURCE CHANNEL PAYLOAD" */
static int take_software(struct tl_lines *l, char *text)
{
    char *const space = strrchr(text, ' ');
    uint8_t letters[LETTERS_MAX];
    if (!space || space == text)
        return TL_OK;
    *space = 0;
    const size_t n = letters_of(text, space + 1, letters);
    for (size_t i = 0; i < n; i++)
        if (add_letter(l, text, letters[i]) < 0)
            return TL_NOMEM;
    if (n > 0)
        return TL_OK;
    char number[80];
    const size_t open = find_open(l, text);
    if (open < l->n_open)
        end_line(l, open);
    snprintf(number, sizeof number, "0x%.64s%s", space + 1, strlen(space + 1) > 64 ? "…" : "");
    print(l, l->time, text, number);
    return TL_OK;
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
        print(l, l->time, "dwt -", line + 2);
        return TL_OK;
    case 'G':
        tl_lines_flush(l);
        print(l, l->time, "gap -", line + 2);
        return TL_OK;
    case '#':
        tl_lines_flush(l);
        strcpy(l->time, "-");
        fprintf(l->file, "%s\n", line);
        return TL_OK;
    default:
        return TL_OK;
    }
}

int tl_lines_push(struct tl_lines *l, struct tl_bytes text)
{
    return tl_linewise_push(&l->lines, text, take_line, l);
}

void tl_lines_flush(struct tl_lines *l)
{
    while (l->n_open > 0)
        end_line(l, 0);
}

void tl_lines_free(struct tl_lines *l)
{
    if (!l)
        return;
    tl_lines_flush(l);
    tl_linewise_fini(&l->lines);
    free(l);
}
