/* SPDX-License-Identifier: MIT */
/* Flow text by stream: ours, that of a reference in a file, and a comparison of both, class by
 * class of lines. */
#ifndef TL_CONFORMANCE_FLOW_TEXT_H
#define TL_CONFORMANCE_FLOW_TEXT_H

#include "decode/decode.h"
#include "steps.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STREAMS_MAX   128
#define LINE_MAX_SIZE 512

/* Flow text by stream, sorted by name. */
struct streams {
    struct {
        char name[32];
        struct tl_buf text;
    } v[STREAMS_MAX];
    size_t n;
    struct steps_streams steps;
};

static inline struct tl_buf *stream_text(struct streams *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].name, name) == 0)
            return &s->v[i].text;
    if (s->n == STREAMS_MAX)
        return NULL;
    snprintf(s->v[s->n].name, sizeof s->v[0].name, "%s", name);
    return &s->v[s->n++].text;
}

static inline void streams_fini(struct streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        tl_buf_fini(&s->v[i].text);
    *s = (struct streams){.n = 0};
}

/* ---- ours ------------------------------------------------------------------------------- */

/* A sink's `items`; its context is a struct streams. */
static inline int on_items(void *context, const struct tl_decode_stream *stream,
                           const struct tl_item *items, size_t n)
{
    struct tl_buf *text = stream_text(context, stream->name);
    steps_demand_of(&((struct streams *)context)->steps, stream->index, items, n);
    return text ? tl_item_text(text, items, n) : TL_LIMIT;
}

static inline int push_all(struct tl_decode *decode, const struct tl_buf *bytes, size_t chunk)
{
    for (size_t at = 0; at < bytes->n; at += chunk) {
        const size_t n = bytes->n - at < chunk ? bytes->n - at : chunk;
        const int rc = tl_decode_push(decode, bytes->p + at, n);
        if (rc < 0)
            return rc;
    }
    return tl_decode_finish(decode);
}

/* ---- the reference's -------------------------------------------------------------------- */

static inline int read_golden(struct streams *out, const char *path)
{
    char command[LINE_MAX_SIZE + 32], line[LINE_MAX_SIZE];
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *f = popen(command, "r");
    struct tl_buf *text = NULL;
    int rc = f ? TL_OK : TL_IO;
    while (rc == TL_OK && fgets(line, sizeof line, f)) {
        char name[32];
        if (sscanf(line, "# stream %31s", name) == 1)
            text = stream_text(out, name);
        else
            rc = text ? tl_buf_add(text, line, strlen(line)) : TL_BAD;
    }
    if (f && pclose(f) != 0)
        rc = TL_IO;
    return rc;
}

/* ---- comparison ------------------------------------------------------------------------- */

struct cursor {
    const char *p, *end;
    size_t count;
};

/* Get the next line of a class, without its line end, in a form that can be compared. Returns false
 * at the end. */
static inline bool next_line(struct cursor *c, char class, char out[static LINE_MAX_SIZE])
{
    while (c->p < c->end) {
        const char *line = c->p;
        const char *stop = memchr(line, '\n', (size_t)(c->end - line));
        stop = stop ? stop : c->end;
        c->p = stop < c->end ? stop + 1 : stop;
        if (*line != class || (stop - line > 1 && line[1] != ' '))
            continue;
        const char *from = line;
        if (class == 'X') { /* the last two fields: only ours has a name before them */
            int spaces = 0;
            for (from = stop; from > line && spaces < 2; from--)
                spaces += from[-1] == ' ';
        }
        snprintf(out, LINE_MAX_SIZE, "%.*s", (int)(stop - from), from);
        c->count++;
        return true;
    }
    return false;
}

/* The number of the reference's lines to skip before line `at` of a class. */
typedef size_t surplus_lines(const char *what, char class, size_t at);

static inline size_t compare_class(const char *what, const char *stream, char class,
                                   const struct tl_buf *reference, const struct tl_buf *ours,
                                   surplus_lines *surplus)
{
    struct cursor a = {(const char *)reference->p, (const char *)reference->p + reference->n, 0};
    struct cursor b = {(const char *)ours->p, (const char *)ours->p + ours->n, 0};
    char x[LINE_MAX_SIZE], y[LINE_MAX_SIZE];
    for (;;) {
        for (size_t skip = surplus ? surplus(what, class, a.count) : 0; skip > 0; skip--)
            next_line(&a, class, x);
        const bool more_a = next_line(&a, class, x), more_b = next_line(&b, class, y);
        if (!more_a && !more_b)
            return 0;
        if (more_a == more_b && strcmp(x, y) == 0)
            continue;
        printf("%s %s: %c differs at %zu: reference '%s', ours '%s'\n", what, stream, class,
               a.count, more_a ? x : "(end)", more_b ? y : "(end)");
        return 1;
    }
}

/* Compare `classes` of lines, each as a sequence of its own. Returns the number that differ, having
 * printed where. `surplus` may be NULL. */
static inline size_t compare(const char *what, struct streams *reference, struct streams *ours,
                             const char *classes, surplus_lines *surplus)
{
    size_t differences = 0;
    for (size_t i = 0; i < ours->n; i++)
        stream_text(reference, ours->v[i].name);
    for (size_t i = 0; i < reference->n; i++) {
        const char *name = reference->v[i].name;
        for (const char *class = classes; *class; class ++)
            differences += compare_class(what, name, *class, &reference->v[i].text,
                                         stream_text(ours, name), surplus);
    }
    return differences;
}

static inline bool same_text(struct streams *a, struct streams *b)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct tl_buf *x = &a->v[i].text, *y = stream_text(b, a->v[i].name);
        if (x->n != y->n || (x->n > 0 && memcmp(x->p, y->p, x->n) != 0))
            return false;
    }
    return a->n == b->n;
}

#endif
