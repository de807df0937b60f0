/* SPDX-License-Identifier: MIT */
/*
 * Rows about finished calls, as bytes. Rows are written column by column, as differences to what
 * the row before lets expect: most of the bytes are then small and alike, and zstd needs one to two
 * bytes for each.
 */
#include "shard/timedrows.h"

#include "shard/varint.h"

#include <stdlib.h>
#include <string.h>

void tl_timed_rows_fini(struct tl_timed_rows *rows)
{
    free(rows->exceptions);
    free(rows->names);
    free(rows->gaps);
    *rows = (struct tl_timed_rows){0};
}

int tl_timed_rows_exception(struct tl_timed_rows *rows, const struct tl_exception_span *exception)
{
    const int r = tl_grow(&rows->exceptions, &rows->cap_exceptions, rows->n_exceptions + 1,
                          sizeof *rows->exceptions);
    if (r >= 0)
        rows->exceptions[rows->n_exceptions++] = *exception;
    return r;
}

const char *tl_timed_rows_find_name(const struct tl_timed_rows *rows, uint16_t number)
{
    for (size_t i = 0; i < rows->n_names; i++)
        if (rows->names[i].number == number)
            return rows->names[i].text;
    return NULL;
}

int tl_timed_rows_name(struct tl_timed_rows *rows, uint16_t number, const char *text)
{
    if (!text || !*text || tl_timed_rows_find_name(rows, number))
        return TL_OK;
    const int r = tl_grow(&rows->names, &rows->cap_names, rows->n_names + 1, sizeof *rows->names);
    if (r < 0)
        return r;
    struct tl_exception_name *const name = &rows->names[rows->n_names++];
    *name = (struct tl_exception_name){.number = number};
    strncpy(name->text, text, sizeof name->text - 1);
    return TL_OK;
}

/* ---- gaps ----------------------------------------------------------------------------------- */

int tl_gap_span_compare(const void *a, const void *b)
{
    const struct tl_gap_span *x = a, *y = b;
    const uint64_t m = x->end_time - x->time, n = y->end_time - y->time;
    if (m != n)
        return m > n ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

void tl_timed_rows_close(struct tl_timed_rows *rows)
{
    if (rows->n_gaps > 1)
        qsort(rows->gaps, rows->n_gaps, sizeof *rows->gaps, tl_gap_span_compare);
    rows->n_gaps = rows->n_gaps < TL_GAPS_KEPT ? rows->n_gaps : TL_GAPS_KEPT;
}

int tl_timed_rows_gap(struct tl_timed_rows *rows, const struct tl_gap_span *gap)
{
    if (rows->n_gaps == 16 * TL_GAPS_KEPT)
        tl_timed_rows_close(rows);
    const int r = tl_grow(&rows->gaps, &rows->cap_gaps, rows->n_gaps + 1, sizeof *rows->gaps);
    if (r < 0)
        return r;
    rows->gaps[rows->n_gaps++] = *gap;
    rows->all_gaps++;
    return TL_OK;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

enum column {
    NUMBER,
    BEGIN,  /* from that of the row before */
    LENGTH, /* positions */
    CALLED, /* of these, not its own */
    TIME,   /* from that of the row before */
    LASTED, /* ticks */
    WAITED, /* of these, not its own */
    FUNCTION,
    LEVEL, /* and flags */
    COLUMNS
};

static uint64_t distance(uint64_t from, uint64_t to)
{
    return tl_zigzag((int64_t)(to - from));
}

/* A row's value in a column; `b`: the row before, or zeros. */
static uint64_t value_of(const struct tl_exception_span *e, const struct tl_exception_span *b,
                         enum column column)
{
    switch (column) {
    case NUMBER:
        return e->number;
    case BEGIN:
        return distance(b->begin, e->begin);
    case LENGTH:
        return e->end - e->begin;
    case CALLED:
        return e->end - e->begin - e->self;
    case TIME:
        return distance(b->time, e->time);
    case LASTED:
        return e->end_time - e->time;
    case WAITED:
        return e->end_time - e->time - e->self_time;
    case FUNCTION:
        return (uint32_t)(e->function + 1);
    default:
        return (uint64_t)e->level << 4 | e->flags;
    }
}

/* The same from the value; columns come in order. */
static void take_value(struct tl_exception_span *e, const struct tl_exception_span *b,
                       enum column column, uint64_t v)
{
    switch (column) {
    case NUMBER:
        e->number = (uint16_t)v;
        break;
    case BEGIN:
        e->begin = b->begin + (uint64_t)tl_unzigzag(v);
        break;
    case LENGTH:
        e->end = e->begin + v;
        break;
    case CALLED:
        e->self = e->end - e->begin - v;
        break;
    case TIME:
        e->time = b->time + (uint64_t)tl_unzigzag(v);
        break;
    case LASTED:
        e->end_time = e->time + v;
        break;
    case WAITED:
        e->self_time = e->end_time - e->time - v;
        break;
    case FUNCTION:
        e->function = (uint32_t)v - 1;
        break;
    default:
        e->level = (uint32_t)(v >> 4);
        e->flags = v & 15;
    }
}

static int put_exceptions(const struct tl_timed_rows *rows, struct tl_buf *out)
{
    static const struct tl_exception_span none;
    int r = tl_varint_add(out, rows->n_exceptions);
    for (enum column column = 0; column < COLUMNS; column++)
        for (size_t i = 0; i < rows->n_exceptions && r >= 0; i++) {
            const struct tl_exception_span *const e = &rows->exceptions[i];
            r = tl_varint_add(out, value_of(e, i > 0 ? e - 1 : &none, column));
        }
    return r;
}

static int put_names(const struct tl_timed_rows *rows, struct tl_buf *out)
{
    int r = tl_varint_add(out, rows->n_names);
    for (size_t i = 0; i < rows->n_names && r >= 0; i++) {
        const size_t n = strlen(rows->names[i].text);
        const uint64_t words[] = {rows->names[i].number, n};
        r = tl_varint_add_all(out, words, 2);
        if (r >= 0)
            r = tl_buf_add(out, rows->names[i].text, n);
    }
    return r;
}

int tl_timed_rows_encode(const struct tl_timed_rows *rows, struct tl_buf *out)
{
    int r = tl_timed_extent_put(&rows->extent, out);
    if (r >= 0)
        r = put_exceptions(rows, out);
    if (r >= 0)
        r = put_names(rows, out);
    const uint64_t head[] = {rows->all_gaps, rows->n_gaps};
    if (r >= 0)
        r = tl_varint_add_all(out, head, 2);
    for (size_t i = 0; i < rows->n_gaps && r >= 0; i++) {
        const struct tl_gap_span *const g = &rows->gaps[i];
        const uint64_t words[] = {g->position, g->time,    g->end_time - g->time,
                                  g->gaps,     g->reasons, g->kind - (uint64_t)TL_TIMED_LOST};
        r = tl_varint_add_all(out, words, 6);
    }
    return r;
}

/* A number of things of at least so many bytes each, which must follow. */
static size_t get_number(struct tl_varint_reader *in, size_t bytes)
{
    const uint64_t n = tl_varint_get(in);
    if (n > (size_t)(in->end - in->p) / bytes) {
        in->bad = true;
        return 0;
    }
    return (size_t)n;
}

static int get_exceptions(struct tl_timed_rows *rows, struct tl_varint_reader *in)
{
    static const struct tl_exception_span none;
    const size_t n = get_number(in, COLUMNS);
    rows->exceptions = calloc(n + 1, sizeof *rows->exceptions);
    if (!rows->exceptions)
        return TL_NOMEM;
    rows->n_exceptions = n;
    rows->cap_exceptions = n + 1;
    for (enum column column = 0; column < COLUMNS; column++)
        for (size_t i = 0; i < n; i++) {
            struct tl_exception_span *const e = &rows->exceptions[i];
            take_value(e, i > 0 ? e - 1 : &none, column, tl_varint_get(in));
        }
    return TL_OK;
}

static int get_names(struct tl_timed_rows *rows, struct tl_varint_reader *in)
{
    int r = TL_OK;
    for (size_t n = get_number(in, 2); n > 0 && !in->bad && r >= 0; n--) {
        char text[TL_EXCEPTION_NAME] = "";
        const uint16_t number = (uint16_t)tl_varint_get(in);
        const uint64_t length = tl_varint_get(in);
        const uint8_t *const p = tl_varint_bytes(in, length);
        if (!p || length >= sizeof text)
            return TL_NOTFOUND;
        memcpy(text, p, length);
        r = tl_timed_rows_name(rows, number, text);
    }
    return r;
}

static int get_gaps(struct tl_timed_rows *rows, struct tl_varint_reader *in)
{
    const uint64_t all = tl_varint_get(in);
    int r = TL_OK;
    for (size_t n = get_number(in, 6); n > 0 && r >= 0; n--) {
        struct tl_gap_span g = {.position = tl_varint_get(in)};
        g.time = tl_varint_get(in);
        g.end_time = g.time + tl_varint_get(in);
        g.gaps = tl_varint_get(in);
        g.reasons = (uint32_t)tl_varint_get(in);
        g.kind = (uint8_t)(TL_TIMED_LOST + tl_varint_get(in));
        r = g.kind < TL_TIMED_KINDS ? tl_timed_rows_gap(rows, &g) : TL_NOTFOUND;
    }
    rows->all_gaps = all;
    return r;
}

int tl_timed_rows_decode(struct tl_timed_rows *rows, struct tl_bytes bytes)
{
    struct tl_varint_reader in = {.p = bytes.p, .end = bytes.p + bytes.n};
    tl_timed_extent_get(&rows->extent, &in);
    int r = get_exceptions(rows, &in);
    if (r >= 0)
        r = get_names(rows, &in);
    if (r >= 0)
        r = get_gaps(rows, &in);
    return r >= 0 && (in.bad || rows->all_gaps < rows->n_gaps) ? TL_NOTFOUND : r;
}
