/* SPDX-License-Identifier: MIT */
/*
 * Search in what programs print. A line consists of many records, which may be in several chunks:
 * so a chunk is searched for the lines that begin in it, wherever they end.
 */
#include "query/seek_lines.h"

#include "base/pattern.h"
#include "base/utf8.h"
#include "query/softlines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found {
    uint64_t at;
    char text[TL_HIT_TEXT];
};

struct found_lines {
    const char *wanted;
    struct found *v;
    size_t n, cap;
};

/* Does the text contain the wanted one, ignoring case? */
static bool contains(const char *text, const char *wanted)
{
    char pattern[TL_LINE_PATTERN + 3];
    if (!strpbrk(wanted, "*?"))
        return strcasestr(text, wanted) != NULL;
    snprintf(pattern, sizeof pattern, "*%s*", wanted);
    return tl_text_fits(pattern, text);
}

static int add_line(void *context, const struct tl_soft_entry *entry, struct tl_bytes text)
{
    struct found_lines *const lines = context;
    char channel[TL_SOFT_CHANNEL];
    char *const copy = strndup((const char *)text.p, text.n);
    int r = copy ? TL_OK : TL_NOMEM;
    if (r < 0 || !contains(copy, lines->wanted)) {
        free(copy);
        return r;
    }
    r = tl_grow(&lines->v, &lines->cap, lines->n + 1, sizeof *lines->v);
    if (r >= 0) {
        struct found *const to = &lines->v[lines->n++];
        to->at = entry->at;
        snprintf(to->text, sizeof to->text, "%s %s %s", entry->source,
                 tl_soft_channel(entry, channel), copy);
        tl_utf8_clean(to->text);
    }
    free(copy);
    return r;
}

static int by_position(const void *a, const void *b)
{
    const struct found *const x = a, *const y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : strcmp(x->text, y->text);
}

int tl_seek_lines(struct tl_seek *s, uint64_t from, uint64_t to, struct tl_fail *fail)
{
    const struct tl_softlines wanted = {.from = from, .to = to};
    struct found_lines lines = {.wanted = s->sought->text};
    int r = tl_softlines_walk(&wanted, s->cut, add_line, &lines, fail);
    if (lines.n > 1)
        qsort(lines.v, lines.n, sizeof *lines.v, by_position);
    for (size_t i = 0; i < lines.n && r >= 0; i++)
        r = s->sink(s->context, lines.v[i].at, 0, s->count ? "" : lines.v[i].text);
    free(lines.v);
    return r;
}
