/* SPDX-License-Identifier: MIT */
#include "setup/ini_text.h"

#include <ctype.h>
#include <ini.h>
#include <string.h>
#include <strings.h>

enum { LINE_MAX_CHARS = 190 }; /* inih as built by Debian cuts lines at 200 bytes */

struct parse {
    const char *text;
    size_t n;
    size_t at;
    int line;     /* line of the last entry, from 1 */
    int too_long; /* first line that was cut, 0: none */
    bool begins;  /* a section header was read last */
    tl_ini_entry *entry;
    void *context;
    struct tl_fail *fail;
    int rc; /* result of the entry function */
};

static bool cut_is_harmless(const char *line)
{
    while (isspace((unsigned char)*line))
        line++;
    return *line == ';' || *line == '#' || !strncasecmp(line, "description", 11);
}

/*
 * inih treats a line that begins with white space as a continuation of the previous value.
 * Snapshots indent freely, so leading white space is dropped here. A long line is cut, not split.
 */
static char *read_line(char *out, int size, void *stream)
{
    struct parse *p = stream;
    if (p->at >= p->n || size < 2 || p->rc < 0) /* inih itself would continue */
        return NULL;
    p->line++;
    const char *const from = p->text + p->at;
    const char *const end = memchr(from, '\n', p->n - p->at);
    size_t len = end ? (size_t)(end - from) : p->n - p->at;
    p->at += len + (end ? 1 : 0);
    const char *start = from;
    while (len && (*start == ' ' || *start == '\t')) {
        start++;
        len--;
    }
    const size_t room = (size_t)size - 2 < LINE_MAX_CHARS ? (size_t)size - 2 : LINE_MAX_CHARS;
    const bool cut = len > room;
    if (cut)
        len = room;
    memcpy(out, start, len);
    out[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if (!out[i])
            out[i] = ' ';
    if (cut && !cut_is_harmless(out) && !p->too_long)
        p->too_long = p->line;
    out[len] = '\n';
    out[len + 1] = '\0';
    p->begins |= out[0] == '[';
    return out;
}

static int on_entry(void *user, const char *section, const char *name, const char *value)
{
    struct parse *p = user;
    char key[256];
    const char *real = value;
    const char *equals;
    /* inih ends a key at ':' as well as at '='. */
    if (strchr(name, '(') && !strchr(name, ')') && (equals = strchr(value, '='))) {
        snprintf(key, sizeof key, "%s:%.*s", name, (int)(equals - value), value);
        real = equals + 1;
        while (isspace((unsigned char)*real))
            real++;
    } else {
        snprintf(key, sizeof key, "%s", name);
    }
    for (size_t len = strlen(key); len && isspace((unsigned char)key[len - 1]); len--)
        key[len - 1] = '\0';
    p->rc = p->entry(p->context, section, p->begins, key, real, p->fail);
    p->begins = false;
    return p->rc >= 0;
}

int tl_ini_parse(const char *text, size_t n, tl_ini_entry *entry, void *context,
                 struct tl_fail *fail)
{
    struct parse p = {.text = text, .n = n, .entry = entry, .context = context, .fail = fail};
    const int line = ini_parse_stream(read_line, &p, on_entry, &p);
    if (p.rc < 0) {
        if (fail && fail->code == (enum tl_err)p.rc) {
            char what[sizeof fail->text];
            memcpy(what, fail->text, sizeof what);
            tl_fail_set(fail, (enum tl_err)p.rc, "line %d: %.180s", p.line, what);
        }
        return p.rc;
    }
    if (p.too_long)
        return tl_fail_set(fail, TL_BAD, "line %d is longer than %d characters; shorten it",
                           p.too_long, LINE_MAX_CHARS);
    if (line < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (line > 0)
        return tl_fail_set(fail, TL_BAD, "line %d is neither [section] nor key=value", line);
    return TL_OK;
}
