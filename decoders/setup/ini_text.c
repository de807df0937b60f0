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

/* Begin a section; `end`: its bracket, already removed. */
static int take_header(const char *name, const char *end, enum tl_ini_form form, unsigned line,
                       struct tl_fail *fail)
{
    const char *const more = end + 1 + strspn(end + 1, blanks);
    if (form == TL_INI_FLAT)
        return tl_fail_set(fail, TL_BAD, "line %u: there are no sections, \"[%.40s]\" is none",
                           line, name);
    return form == TL_INI_STRICT && *more && *more != '#'
               ? tl_fail_set(fail, TL_BAD, "line %u: \"%.40s\" behind [%.40s]", line, more, name)
               : TL_OK;
}

static int parse_lines(char *text, enum tl_ini_form form, tl_ini_entry *entry, void *context,
                       unsigned *number, struct tl_fail *fail)
{
    const char *section = "";
    bool begins = false;
    *number = 0;
    for (char *next = text; next;) {
        char *line = strsep(&next, "\n");
        ++*number;
        line = trim(line);
        drop_comment(line);
        if (!*line)
            continue;
        char *const end = separator(line);
        if (!end)
            return tl_fail_set(fail, TL_BAD, "line %u is neither [section] nor key=value", *number);
        *end = '\0';
        if (*line == '[') {
            section = trim(line + 1);
            begins = true;
            if (take_header(section, end, form, *number, fail) < 0)
                return TL_BAD;
            continue;
        }
        const int rc = entry(context, section, begins, trim(line), trim(end + 1), fail);
        if (rc < 0)
            return name_line(*number, rc, fail);
        begins = false;
    }
    return TL_OK;
}

int tl_ini_parse(const char *text, size_t n, enum tl_ini_form form, tl_ini_entry *entry,
                 void *context, unsigned *line, struct tl_fail *fail)
{
    unsigned number;
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
    const int rc = parse_lines(copy, form, entry, context, line ? line : &number, fail);
    free(copy);
    return rc;
}
