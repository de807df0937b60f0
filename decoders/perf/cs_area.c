/* SPDX-License-Identifier: MIT */
/*
 * AUX areas of CoreSight. Each AUX record is one enabling of the sink: trace units and formatter
 * begin anew there, so what it says was put into the area is decoded as a capture of its own, by
 * the CoreSight container. Its streams are those of the file: a trace ID is one stream, whichever
 * area its bytes lie in.
 */
#include "perf/container.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One enabling, on its way through a decode of its own. */
struct enabling {
    struct tl_perf_decode *owner;
    uint64_t base;                   /* offset in the file of its first byte */
    uint8_t gap;                     /* in front of it, enum tl_gap */
    struct tl_perf_stream **streams; /* by the decode's numbers */
    size_t n_streams, cap_streams;
};

/* ---- what comes of an enabling --------------------------------------------------------------- */

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct enabling *const e = context;
    struct tl_perf_decode *const d = e->owner;
    const size_t before = d->n_streams;
    struct tl_perf_stream *const s = tl_perf_stream_of(d, stream->name);
    if (!s || tl_grow(&e->streams, &e->cap_streams, e->n_streams + 1, sizeof(void *)) < 0)
        return TL_NOMEM;
    e->streams[e->n_streams++] = s; /* numbers come in order */
    if (d->n_streams > before) {
        if (stream->source)
            s->source = *stream->source;
        return tl_perf_stream_announce(s);
    }
    const struct tl_item gap = {.kind = TL_ITEM_GAP, .sub = e->gap, .offset = e->base};
    return tl_stream_out_items(&s->out, &gap, 1);
}

static struct tl_perf_stream *stream_of(const struct enabling *e,
                                        const struct tl_decode_stream *stream)
{
    return stream && stream->index < e->n_streams ? e->streams[stream->index] : NULL;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    enum { SOME = 256 };
    const struct enabling *const e = context;
    struct tl_perf_stream *const s = stream_of(e, stream);
    struct tl_item moved[SOME];
    int rc = TL_OK;
    for (size_t at = 0; rc == TL_OK && s && at < n; at += SOME) {
        const size_t some = n - at < SOME ? n - at : SOME;
        for (size_t i = 0; i < some; i++) {
            moved[i] = items[at + i];
            moved[i].offset += e->base;
        }
        rc = tl_stream_out_items(&s->out, moved, some);
    }
    return rc;
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    const struct enabling *const e = context;
    const struct tl_perf_stream *const s = stream_of(e, stream);
    char *behind;
    char text[256];
    snprintf(text, sizeof text, "%llu", (unsigned long long)e->base + strtoull(line, &behind, 10));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s", behind);
    return s ? e->owner->sink.packet(e->owner->sink.context, &s->out.stream, text) : TL_OK;
}

static int on_bytes(void *context, const struct tl_decode_stream *stream, const struct tl_run *run)
{
    const struct enabling *const e = context;
    const struct tl_perf_stream *const s = stream_of(e, stream);
    struct tl_run moved = *run;
    moved.base += e->base;
    return s ? e->owner->sink.bytes(e->owner->sink.context, &s->out.stream, &moved) : TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    const struct enabling *const e = context;
    return tl_perf_tell_loss(e->owner, stream_of(e, loss->stream), loss->reason,
                             e->base + loss->offset, loss->bytes, loss->fault);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* Of an unformatted piece its CPU's unit alone, else all that have an ID. */
static int make_setup(const struct tl_perf_decode *d, const struct tl_perf_filled *f,
                      struct tl_setup *setup)
{
    const bool is_raw = (f->flags & 0xff00) == TL_PERF_AUX_RAW;
    struct tl_fail fail;
    int rc = TL_OK;
    tl_setup_init(setup);
    if (!is_raw)
        rc = tl_setup_format(setup, "tpiu", &fail);
    else
        setup->container = TL_CONTAINER_SINGLE;
    for (size_t i = 0; rc == TL_OK && i < d->info.n_units; i++) {
        struct tl_perf_unit unit = d->info.units[i];
        if (is_raw && unit.cpu != f->cpu)
            continue;
        if (is_raw && !unit.id) /* it is in no byte: any will do */
            unit.id = (uint8_t)((0x10 + 2 * unit.cpu) & 0x7f);
        if (!unit.id)
            continue;
        struct tl_source *const source = tl_setup_add_source(setup);
        if (!source)
            return TL_NOMEM;
        tl_perf_info_unit(&unit, source);
        snprintf(source->name, sizeof source->name, "cs.%02x", unit.id);
    }
    return rc;
}

static int decode_enabling(struct tl_perf_area_state *a, const struct tl_perf_filled *f,
                           uint64_t position, uint64_t n, uint64_t at)
{
    struct tl_perf_decode *const d = a->owner;
    struct enabling e = {.owner = d, .base = at, .gap = TL_GAP_OFF};
    const struct tl_decode_sink sink = {
        .context = &e,
        .stream = on_stream,
        .items = on_items,
        .packet = d->sink.packet ? on_packet : NULL,
        .bytes = d->sink.bytes ? on_bytes : NULL,
        .loss = on_loss,
    };
    struct tl_setup setup;
    struct tl_decode *decode = NULL;
    struct tl_fail fail = {0};
    int rc = make_setup(d, f, &setup);
    if (rc == TL_OK && setup.n_sources == 0)
        rc = tl_perf_tell_loss(d, NULL, "no trace unit is known for this AUX record", f->record, n,
                               true);
    else if (rc == TL_OK)
        rc = tl_decode_new(&decode, &setup, d->image, &sink, &fail);
    if (rc == TL_OK && decode) {
        if (d->base.paths)
            tl_decode_paths(decode);
        tl_decode_code(decode, d->base.code);
        rc = tl_decode_crew(decode, d->base.share.crew);
        if (rc == TL_OK)
            rc = tl_decode_push(decode, a->bytes.p + (position - a->position), (size_t)n);
        if (rc == TL_OK)
            rc = tl_decode_finish(decode);
    }
    tl_decode_free(decode);
    tl_setup_fini(&setup);
    free(e.streams);
    return rc;
}

/* ---- which bytes ----------------------------------------------------------------------------- */

/* The area's pieces have all bytes of the ring from `offset` on: where the first one lies; NULL:
 * they have not. */
static const struct tl_perf_piece *find_bytes(const struct tl_perf_area_state *a, uint64_t offset,
                                              uint64_t size)
{
    const struct tl_perf_piece *const first = tl_perf_area_find(a, offset);
    const struct tl_perf_piece *piece = first;
    while (piece && piece->whole && size > piece->size - (offset - piece->offset)) {
        const uint64_t n = piece->size - (offset - piece->offset);
        offset += n;
        size -= n;
        piece = piece + 1 < a->pieces + a->n_pieces && piece[1].offset == offset ? piece + 1 : NULL;
    }
    if (!piece || (!piece->whole && piece->n < offset - piece->offset + size))
        return NULL;
    return first;
}

/* Which bytes an AUX record is of; of a snapshot it tells the end. */
static const struct tl_perf_piece *bytes_of(const struct tl_perf_area_state *a,
                                            const struct tl_perf_filled *f, uint64_t *offset,
                                            uint64_t *size)
{
    *offset = f->offset;
    *size = f->size;
    if (!(f->flags & TL_PERF_AUX_OVERWRITE))
        return find_bytes(a, *offset, *size);
    for (size_t i = a->n_pieces; i-- > 0;) {
        const struct tl_perf_piece *const p = &a->pieces[i];
        *size = f->size < p->size ? f->size : p->size;
        *offset = f->offset - *size;
        if (p->whole && *offset >= p->offset && *offset - p->offset <= p->size - *size)
            return p;
    }
    return NULL;
}

/* Decode what this AUX record is of. 1: its bytes have not come yet. */
static int take_filled(struct tl_perf_decode *d, struct tl_perf_filled *f)
{
    for (size_t i = 0; i < d->n_areas; i++) {
        struct tl_perf_area_state *const a = d->areas[i];
        uint64_t offset, size;
        const struct tl_perf_piece *const piece =
            tl_perf_area_has(a, f) ? bytes_of(a, f, &offset, &size) : NULL;
        if (!piece)
            continue;
        const uint64_t into = offset - piece->offset, position = piece->position + into;
        if (position < a->next) /* it is told twice */
            return TL_OK;
        a->next = position + size;
        return decode_enabling(a, f, position, size, piece->at + into);
    }
    return 1;
}

static int by_time(const void *a, const void *b)
{
    const struct tl_perf_filled *const x = a, *const y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->record < y->record ? -1 : x->record > y->record;
}

/* An area of which no record says anything: all of it is one enabling. */
static int take_untold(struct tl_perf_decode *d, struct tl_perf_area_state *a)
{
    for (size_t i = 0; i < d->n_filled; i++)
        if (tl_perf_area_has(a, &d->filled[i]))
            return TL_OK;
    const struct tl_perf_filled all = {.cpu = a->cpu, .tid = a->tid};
    return a->n_pieces > 0 && a->bytes.n > 0
               ? decode_enabling(a, &all, a->position, a->bytes.n, a->pieces[0].at)
               : TL_OK;
}

int tl_perf_cs_go_on(struct tl_perf_decode *d, bool last)
{
    int rc = TL_OK;
    size_t kept = 0;
    if (d->n_filled > 1)
        qsort(d->filled, d->n_filled, sizeof *d->filled, by_time);
    for (size_t i = 0; rc == TL_OK && last && i < d->n_areas; i++)
        rc = take_untold(d, d->areas[i]);
    for (size_t i = 0; i < d->n_filled; i++) {
        struct tl_perf_filled *const f = &d->filled[i];
        if (rc == TL_OK && (f->done || f->size == 0)) {
            f->done = true;
        } else if (rc == TL_OK && (last || f->time <= d->sideband.final)) {
            rc = take_filled(d, f);
            f->done = rc == TL_OK;
            if (rc == 1)
                rc = last ? tl_perf_tell_loss(d, NULL,
                                              "bytes that an AUX record tells of are missing",
                                              f->record, f->size, true)
                          : TL_OK;
        }
        if (!f->done || !last)
            d->filled[kept++] = *f;
    }
    for (size_t i = 0; rc == TL_OK && i < d->n_areas; i++)
        if (d->areas[i]->next > d->areas[i]->position)
            tl_perf_area_drop(d->areas[i], d->areas[i]->next);
    d->n_filled = rc == TL_OK ? kept : d->n_filled;
    return rc;
}
