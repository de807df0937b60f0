/* SPDX-License-Identifier: MIT */
/*
 * Lines are split in a copy, in place, without a limit on their length: values may be long paths.
 * Zero bytes become blanks, since they would hide the rest of a line from whoever reads it as a
 * text.
 */
#include "setup/ini_text.h"

#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\f\v";

/* Remove blanks from both ends; returns the new begin. */
static char *trim(char *text)
{
    text += strspn(text, blanks);
    size_t n = strlen(text);
    while (n && strchr(blanks, text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

/* Cut a comment off: one that begins the line, or ';' after a blank. */
static void drop_comment(char *line)
{
    if (*line == '#' || *line == ';')
        *line = '\0';
    for (char *p = line; (p = strchr(p, ';')); p++) {
        if (strchr(blanks, p[-1])) {
            *p = '\0';
            return;
        }
    }
}

/* The end of a section's name or of a key; NULL: the line is neither a section nor a key. A colon
 * separates as well if there is no '='. */
static char *separator(char *line)
{
    if (*line == '[')
        return strchr(line, ']');
    char *const equals = strchr(line, '=');
    return equals ? equals : strchr(line, ':');
}

/* Put the number of the line before what the entry function said. */
static int name_line(unsigned line, int rc, struct tl_fail *fail)
{
    if (fail && fail->code == (enum tl_err)rc) {
        char what[sizeof fail->text];
        memcpy(what, fail->text, sizeof what);
        tl_fail_set(fail, (enum tl_err)rc, "line %u: %.180s", line, what);
    }
    return rc;
}

static int parse_lines(char *text, tl_ini_entry *entry, void *context, struct tl_fail *fail)
{
    const char *section = "";
    bool begins = false;
    unsigned number = 0;
    for (char *next = text; next;) {
        char *line = strsep(&next, "\n");
        number++;
        line = trim(line);
        drop_comment(line);
        if (!*line)
            continue;
        char *const end = separator(line);
        if (!end)
            return tl_fail_set(fail, TL_BAD, "line %u is neither [section] nor key=value", number);
        *end = '\0';
        if (*line == '[') {
            section = trim(line + 1);
            begins = true;
            continue;
        }
        const int rc = entry(context, section, begins, trim(line), trim(end + 1), fail);
        if (rc < 0)
            return name_line(number, rc, fail);
        begins = false;
    }
    return TL_OK;
}

int tl_ini_parse(const char *text, size_t n, tl_ini_entry *entry, void *context,
                 struct tl_fail *fail)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8, as some editors say so */
    if (n >= 3 && !memcmp(text, mark, 3)) {
        text += 3;
        n -= 3;
    }
    char *const copy = malloc(n + 1);
    if (!copy)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        copy[i] = text[i] ? text[i] : ' ';
    copy[n] = '\0';
    const int rc = parse_lines(copy, entry, context, fail);
    free(copy);
    return rc;
}
