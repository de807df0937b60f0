/* SPDX-License-Identifier: MIT */
/*
 * Collects each stream's lines with their offset in temporary files and merges them at the end.
 * Decoders of different streams report at different times, so the order by offset is known only
 * then.
 */
#include "out/interleave.h"

#include "base/whole.h"
#include "frame/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES (1u << 20) /* per stream, before its next packet */

/* Lines with their offset in the capture, which never decreases: u64 offset, u32 length, text. */
struct track {
    FILE *file; /* NULL: none yet */
    uint64_t last;
    /* While printing: */
    bool done;
    uint64_t next;
    struct tl_buf text;
};

/* A stream, or the container. Its last packet is held until the begin of the next one is known. */
struct source {
    struct track packets, items;
    bool waiting;
    uint64_t begin;     /* of the held packet */
    struct tl_buf line; /* its text */
    struct tl_buf bytes;
    uint64_t *places; /* offsets of the bytes, [cap] */
    size_t cap;
};

struct tl_interleave {
    struct source **sources; /* the container, followed by the streams by index */
    size_t n, cap;
    struct tl_buf text;
};

int tl_interleave_new(struct tl_interleave **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? TL_OK : TL_NOMEM;
}

static void fini_track(struct track *t)
{
    if (t->file)
        fclose(t->file);
    tl_buf_fini(&t->text);
}

void tl_interleave_free(struct tl_interleave *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++) {
        struct source *const s = w->sources[i];
        fini_track(&s->packets);
        fini_track(&s->items);
        tl_buf_fini(&s->line);
        tl_buf_fini(&s->bytes);
        free(s->places);
        free(s);
    }
    free(w->sources);
    tl_buf_fini(&w->text);
    free(w);
}

static int source_of(struct tl_interleave *w, const struct tl_decode_stream *stream,
                     struct source **out)
{
    const size_t i = stream ? stream->index + (size_t)1 : 0;
    if (i >= w->cap && tl_grow(&w->sources, &w->cap, i + 1, sizeof *w->sources) < 0)
        return TL_NOMEM;
    for (; w->n <= i; w->n++)
        if (!(w->sources[w->n] = calloc(1, sizeof **w->sources)))
            return TL_NOMEM;
    *out = w->sources[i];
    return TL_OK;
}

static int add(struct track *t, uint64_t place, const void *text, size_t n)
{
    const uint32_t bytes = (uint32_t)n;
    if (!t->file && !(t->file = tmpfile()))
        return TL_IO;
    t->last = place > t->last ? place : t->last;
    return fwrite(&t->last, sizeof t->last, 1, t->file) == 1 &&
                   fwrite(&bytes, sizeof bytes, 1, t->file) == 1 && tl_write_all(t->file, text, n)
               ? TL_OK
               : TL_IO;
}

/* ---- packets and their bytes ----------------------------------------------------------------- */

static void forget_bytes(struct source *s, size_t n)
{
    memmove(s->bytes.p, s->bytes.p + n, s->bytes.n - n);
    memmove(s->places, s->places + n, (s->bytes.n - n) * sizeof *s->places);
    s->bytes.n -= n;
}

/* Attach the bytes from the held packet's first one up to `end` to it, and drop them. */
static int add_raw(struct source *s, uint64_t end)
{
    size_t from = 0, to;
    while (from < s->bytes.n && s->places[from] < s->begin)
        from++;
    for (to = from; to < s->bytes.n && s->places[to] < end;)
        to++;
    /* The raw bytes are shown only if none of the first ones was dropped. */
    const bool whole = from < to && s->places[from] == s->begin;
    const size_t most = whole ? TL_INTERLEAVE_RAW : 0;
    const size_t n = to - from < most ? to - from : most;
    int rc = from < to ? tl_buf_printf(&s->line, " raw=") : TL_OK;
    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = tl_buf_printf(&s->line, "%02x", s->bytes.p[from + i]);
    if (rc >= 0 && to - from > n)
        rc = tl_buf_printf(&s->line, "…");
    if (to > 0)
        forget_bytes(s, to);
    return rc < 0 ? rc : TL_OK;
}

/* The held packet ends at `end`. */
static int end_packet(struct source *s, uint64_t end)
{
    if (!s->waiting)
        return TL_OK;
    int rc = add_raw(s, end);
    if (rc >= 0)
        rc = tl_buf_add(&s->line, "\n", 1);
    if (rc >= 0)
        rc = add(&s->packets, s->begin, s->line.p, s->line.n);
    tl_buf_reset(&s->line);
    s->waiting = false;
    return rc;
}

int tl_interleave_packet(struct tl_interleave *w, const struct tl_decode_stream *stream,
                         const char *line)
{
    struct source *s;
    /* "@OFFSET" for a datagram, which belongs to the container; otherwise "OFFSET". */
    const bool datagram = line[0] == '@';
    const uint64_t place = strtoull(line + datagram, NULL, 10);
    int rc = source_of(w, datagram ? NULL : stream, &s);
    if (rc >= 0)
        rc = end_packet(s, place);
    if (rc >= 0)
        rc = tl_buf_add(&s->line, line, strlen(line));
    if (rc < 0)
        return rc;
    s->begin = place;
    s->waiting = true;
    return TL_OK;
}

int tl_interleave_bytes(struct tl_interleave *w, const struct tl_decode_stream *stream,
                        const struct tl_run *run)
{
    struct source *s;
    int rc = source_of(w, stream, &s);
    if (rc >= 0 && s->bytes.n > KEPT_BYTES)
        forget_bytes(s, s->bytes.n - KEPT_BYTES / 2);
    if (rc >= 0)
        rc = tl_grow(&s->places, &s->cap, s->bytes.n + run->n, sizeof *s->places);
    const size_t at = rc >= 0 ? s->bytes.n : 0;
    if (rc >= 0)
        rc = tl_buf_add(&s->bytes, run->p, run->n);
    for (size_t i = 0; i < run->n && rc >= 0; i++)
        s->places[at + i] = tl_run_offset(run, i);
    return rc;
}

/* ---- items ----------------------------------------------------------------------------------- */

int tl_interleave_items(struct tl_interleave *w, const struct tl_decode_stream *stream,
                        const struct tl_item *items, size_t n)
{
    struct source *s;
    int rc = source_of(w, stream, &s);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        struct tl_buf *const text = &w->text;
        tl_buf_reset(text);
        rc = tl_item_text(text, &items[i], 1);
        /* An item may have several lines: the instructions of a block. */
        const char *p = (const char *)text->p, *const end = p + text->n;
        for (const char *line; rc >= 0 && p < end; p = line) {
            char name[40];
            line = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
            const int m = snprintf(name, sizeof name, "  %s ", stream->name);
            tl_buf_reset(&s->items.text);
            rc = tl_buf_add(&s->items.text, name, (size_t)m);
            if (rc >= 0)
                rc = tl_buf_add(&s->items.text, p, (size_t)(line - p));
            if (rc >= 0)
                rc = add(&s->items, items[i].offset, s->items.text.p, s->items.text.n);
        }
    }
    return rc;
}

/* ---- output ---------------------------------------------------------------------------------- */

static int read_next(struct track *t)
{
    uint32_t n;
    tl_buf_reset(&t->text);
    t->done = !t->file || fread(&t->next, sizeof t->next, 1, t->file) != 1;
    if (t->done)
        return t->file && ferror(t->file) ? TL_IO : TL_OK;
    if (fread(&n, sizeof n, 1, t->file) != 1)
        return TL_IO;
    if (tl_buf_reserve(&t->text, n) < 0)
        return TL_NOMEM;
    t->text.n = fread(t->text.p, 1, n, t->file);
    return t->text.n == n ? TL_OK : TL_IO;
}

static int begin_track(struct track *t)
{
    if (t->file && (fflush(t->file) != 0 || fseeko(t->file, 0, SEEK_SET) != 0))
        return TL_IO;
    return read_next(t);
}

/* The track whose line is next: at equal offsets packets first, then by stream. */
static struct track *first_of(struct tl_interleave *w)
{
    struct track *first = NULL;
    for (size_t i = 0; i < 2 * w->n; i++) {
        struct source *const s = w->sources[i % w->n];
        struct track *const t = i < w->n ? &s->packets : &s->items;
        if (!t->done && (!first || t->next < first->next))
            first = t;
    }
    return first;
}

int tl_interleave_print(struct tl_interleave *w)
{
    int rc = TL_OK;
    for (size_t i = 0; i < w->n && rc >= 0; i++) {
        rc = end_packet(w->sources[i], UINT64_MAX);
        if (rc >= 0)
            rc = begin_track(&w->sources[i]->packets);
        if (rc >= 0)
            rc = begin_track(&w->sources[i]->items);
    }
    for (struct track *t; rc >= 0 && (t = first_of(w));) {
        if (!tl_write_all(stdout, t->text.p, t->text.n))
            return TL_IO;
        rc = read_next(t);
    }
    return rc >= 0 && fflush(stdout) != 0 ? TL_IO : rc;
}
