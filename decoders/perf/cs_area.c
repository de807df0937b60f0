/* SPDX-License-Identifier: MIT */
/*
 * AUX areas of CoreSight, and of RISC-V trace in the same way. Each AUX record corresponds to one
 * enabling of the sink: trace units and formatter restart there, so the bytes it covers are decoded
 * as a separate capture by the CoreSight container. The streams belong to the file: a trace ID is
 * one stream, regardless of the area that contains its bytes.
 *
 * Enablings are decoded in order of the records' times, which are those of their ends. Memory is
 * looked up as of that time, or according to the trace's timestamps if these are comparable; until
 * the first one in the enabling, as of that one.
 */
#include "perf/container.h"
#include "perf/riscv_setup.h"

#include "base/cancel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* An enabling being decoded. */
struct enabling {
    struct tl_perf_decode *owner;
    uint64_t base;                   /* file offset of its first byte */
    uint64_t time;                   /* from the AUX record */
    int64_t cpu;                     /* from the AUX record; -1: unknown */
    int32_t tid;                     /* owner of the buffer; -1: a CPU's buffer */
    uint8_t gap;                     /* enum tl_gap before it */
    struct tl_perf_stream **streams; /* by stream number of the enabling's decode */
    size_t n_streams, cap_streams;
};

/*
 * ---- running thread ---------------------------------------------------------------------------
 */

/* If the trace has no timestamps, report the record's time instead. */
static int report_time(const struct enabling *e, struct tl_perf_stream *s)
{
    const struct tl_item item = {.kind = TL_ITEM_TIME, .value = e->time, .offset = e->base};
    const bool reports = e->time > 0 && !tl_perf_info_has_stamps(&e->owner->info);
    return reports ? tl_stream_out_items(&s->out, &item, 1) : TL_OK;
}

/* This thread runs from now on; pid -1: according to records. */
static int enter(const struct enabling *e, struct tl_perf_stream *s, int32_t pid, int32_t tid,
                 uint64_t offset)
{
    struct tl_perf_decode *const d = e->owner;
    const struct tl_perf_thread *const thread =
        tl_perf_sideband_thread(&d->sideband, 0, tid, e->time);
    const char *const name = thread && thread->name[0] ? thread->name : tid == 0 ? "swapper" : "-";
    const struct tl_perf_run run = {.pid = -1, .tid = tid};
    char note[64];
    int rc = d->setup->threads
                 ? tl_perf_thread_enter(s, &run, thread ? thread->name : "", false, offset)
                 : TL_OK;
    if (rc == TL_OK && s->thread)
        rc = report_time(e, s->thread);
    if (rc < 0 || tid == s->reported_tid)
        return rc;
    pid = pid >= 0 ? pid : thread ? thread->pid : tid;
    snprintf(note, sizeof note, "switch %" PRId32 " %" PRId32 " %s", pid, tid, name);
    s->reported_tid = tid;
    const struct tl_item item = {.kind = TL_ITEM_NOTE, .offset = offset, .text = note};
    return tl_stream_out_items(&s->out, &item, 1);
}

/* The trace does not identify the thread: use the buffer's owner, or the last one that ran on the
 * CPU. */
static int report_run(const struct enabling *e, struct tl_perf_stream *s)
{
    const struct tl_perf_run *const run =
        e->cpu < 0 ? NULL : tl_perf_sideband_run(&e->owner->sideband, (uint32_t)e->cpu, e->time);
    const int32_t tid = run ? run->tid : e->tid;
    return tid < 0 ? TL_OK : enter(e, s, run ? run->pid : -1, tid, e->base);
}

/* ---- output of an enabling ------------------------------------------------------------------- */

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct enabling *const e = context;
    struct tl_perf_decode *const d = e->owner;
    const size_t before = d->n_streams;
    struct tl_perf_stream *const s = tl_perf_stream_of(d, stream->name);
    if (!s || tl_grow(&e->streams, &e->cap_streams, e->n_streams + 1, sizeof(void *)) < 0)
        return TL_NOMEM;
    e->streams[e->n_streams++] = s; /* stream numbers are consecutive */
    int rc = TL_OK;
    if (d->n_streams > before) {
        if (stream->source)
            s->source = *stream->source;
        s->reported_tid = -1;
        rc = tl_perf_stream_announce(s);
    } else {
        const struct tl_item gap = {.kind = TL_ITEM_GAP, .sub = e->gap, .offset = e->base};
        rc = tl_stream_out_items(&s->out, &gap, 1);
    }
    s->thread = NULL; /* until the trace or the records identify the thread */
    rc = rc == TL_OK ? report_time(e, s) : rc;
    return rc == TL_OK && tl_perf_info_context(&d->info) == TL_PERF_CONTEXT_NONE ? report_run(e, s)
                                                                                 : rc;
}

static struct tl_perf_stream *stream_of(const struct enabling *e,
                                        const struct tl_decode_stream *stream)
{
    return stream && stream->index < e->n_streams ? e->streams[stream->index] : NULL;
}

/* The running thread according to a CONTEXT item; -1: none. */
static int32_t thread_of(const struct enabling *e, const struct tl_item *item)
{
    const enum tl_perf_context reported = tl_perf_info_context(&e->owner->info);
    const uint64_t id = reported == TL_PERF_CONTEXT_VMID ? item->value : item->pc;
    const uint8_t has = reported == TL_PERF_CONTEXT_ID     ? TL_ITEM_HAS_PC
                        : reported == TL_PERF_CONTEXT_VMID ? TL_ITEM_HAS_VALUE
                                                           : 0;
    return item->flags & has && id <= INT32_MAX ? (int32_t)id : -1;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    enum { SOME = 256 };
    const struct enabling *const e = context;
    struct tl_perf_stream *const s = stream_of(e, stream);
    struct tl_item moved[SOME];
    int rc = TL_OK;
    for (size_t at = 0; rc == TL_OK && s && at < n;) {
        size_t some = 0;
        int32_t tid = -1;
        while (some < SOME && at < n && tid < 0) { /* up to a change of thread */
            moved[some] = items[at++];
            moved[some].offset += e->base;
            tid = items[at - 1].kind == TL_ITEM_CONTEXT ? thread_of(e, &items[at - 1]) : -1;
            some++;
        }
        rc = tl_stream_out_items(&s->out, moved, some);
        if (rc == TL_OK && tid >= 0)
            rc = enter(e, s, -1, tid, moved[some - 1].offset);
    }
    return rc;
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    const struct enabling *const e = context;
    const struct tl_perf_stream *const s = stream_of(e, stream);
    char *after;
    char text[256];
    snprintf(text, sizeof text, "%llu", (unsigned long long)e->base + strtoull(line, &after, 10));
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s", after);
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
    return tl_perf_report_loss(e->owner, stream_of(e, loss->stream), loss->reason,
                               e->base + loss->offset, loss->bytes, loss->fault);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* For an unformatted piece, add only its CPU's unit, if known; else all units that have an ID. */
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
        /* If the CPU is unknown, use the first unit. */
        if (is_raw && (f->cpu < 0 ? i > 0 : unit.cpu != f->cpu))
            continue;
        if (is_raw && !unit.id) /* unformatted bytes do not contain the ID: use any */
            unit.id = (uint8_t)((0x10 + 2 * unit.cpu) & 0x7f);
        if (!unit.id || !tl_perf_info_shares_sink(&d->info, f->cpu, &unit))
            continue;
        struct tl_source *const source = tl_setup_add_source(setup);
        if (!source)
            return TL_NOMEM;
        tl_perf_info_unit(&unit, source);
    }
    return rc;
}

/* Find the first timestamp, and stop there. */
static int on_first_items(void *context, const struct tl_decode_stream *stream,
                          const struct tl_item *items, size_t n)
{
    uint64_t *const time = context;
    (void)stream;
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == TL_ITEM_TIME) {
            *time = items[i].value;
            return TL_EOF;
        }
    return TL_OK;
}

/* Find the first timestamp of an enabling; 0: none. */
static int find_time(const struct tl_setup *setup, struct tl_bytes bytes, uint64_t *out)
{
    enum { LOOK = 4096 }; /* bytes decoded before checking for a timestamp */
    const struct tl_decode_sink sink = {.context = out, .items = on_first_items};
    struct tl_decode *decode = NULL;
    struct tl_fail fail = {0};
    *out = 0;
    int rc = tl_decode_new(&decode, setup, NULL, &sink, &fail);
    for (size_t at = 0; rc == TL_OK && *out == 0 && at < bytes.n; at += LOOK) {
        const size_t n = bytes.n - at < LOOK ? bytes.n - at : LOOK;
        rc = tl_decode_push(decode, bytes.p + at, n);
        if (rc == TL_OK)
            rc = tl_decode_flush(decode);
    }
    tl_decode_free(decode);
    return rc == TL_NOMEM ? rc : TL_OK;
}

/* Set the time at which memory is looked up. */
static int set_times(const struct tl_perf_decode *d, const struct tl_perf_filled *f,
                     struct tl_setup *setup, struct tl_bytes bytes)
{
    const bool timed = tl_perf_info_is_timed(&d->info, NULL);
    uint64_t since = f->time > 0 ? f->time : UINT64_MAX - 1; /* unknown: the latest state */
    int rc = TL_OK;
    if (!d->image || tl_image_last_change(d->image, UINT64_MAX) == 0)
        return TL_OK;
    if (timed) {
        uint64_t first;
        rc = find_time(setup, bytes, &first);
        since = first > 0 ? first : tl_clock_ticks(&d->info.clock, since);
    }
    for (size_t i = 0; i < setup->n_sources; i++) {
        setup->sources[i].since = since;
        setup->sources[i].other_clock = !timed;
    }
    return rc;
}

static int decode_enabling(struct tl_perf_area_state *a, const struct tl_perf_filled *f,
                           uint64_t position, uint64_t n, uint64_t at)
{
    struct tl_perf_decode *const d = a->owner;
    const struct tl_bytes bytes = {a->bytes.p + (position - a->position), (size_t)n};
    struct enabling e = {.owner = d,
                         .base = at,
                         .time = f->time,
                         .cpu = a->cpu >= 0 ? a->cpu : f->cpu,
                         .tid = a->cpu >= 0 ? -1 : a->tid,
                         .gap = a->truncated ? TL_GAP_OVERFLOW : TL_GAP_OFF};
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
    a->truncated = f->flags & TL_PERF_AUX_TRUNCATED;
    int rc = d->info.kind == TL_PERF_TRACE_RISCV ? tl_perf_riscv_setup(d, bytes, &setup)
                                                 : make_setup(d, f, &setup);
    if (rc == TL_OK)
        rc = set_times(d, f, &setup, bytes);
    if (rc == TL_OK && setup.n_sources == 0 && d->info.kind != TL_PERF_TRACE_RISCV)
        rc = tl_perf_report_loss(d, NULL, "no trace unit is known for this AUX record", f->record,
                                 n, true);
    else if (rc == TL_OK)
        rc = tl_decode_new(&decode, &setup, d->image, &sink, &fail);
    if (rc == TL_OK && decode) {
        if (d->base.paths)
            tl_decode_allow_paths(decode);
        tl_decode_set_code(decode, d->base.code);
        rc = tl_decode_set_crew(decode, d->base.share.crew);
        if (rc == TL_OK)
            rc = tl_decode_push(decode, bytes.p, bytes.n);
        if (rc == TL_OK)
            rc = tl_decode_finish(decode);
    }
    tl_decode_free(decode);
    tl_setup_fini(&setup);
    free(e.streams);
    return rc;
}

/*
 * ---- byte ranges ------------------------------------------------------------------------------
 */

/* Find the piece with the ring's byte `offset`, if the area's pieces contain all `size` bytes from
 * there on; else NULL. */
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

/* Find the bytes of an AUX record; for a snapshot the record gives the end. */
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

/* Decode the bytes of this AUX record. Returns 1: they have not arrived yet. */
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
        if (position < a->next) /* duplicate record */
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

/* Decode an area without AUX records as one enabling. */
static int take_unreported(struct tl_perf_decode *d, struct tl_perf_area_state *a)
{
    for (size_t i = 0; i < d->n_filled; i++)
        if (tl_perf_area_has(a, &d->filled[i]))
            return TL_OK;
    const struct tl_perf_filled all = {.cpu = a->cpu, .tid = a->tid};
    return a->n_pieces > 0 && a->bytes.n > 0
               ? decode_enabling(a, &all, a->position, a->bytes.n, a->pieces[0].at)
               : TL_OK;
}

int tl_perf_cs_continue(struct tl_perf_decode *d, bool last)
{
    int rc = TL_OK;
    size_t kept = 0;
    if (d->n_filled > 1)
        qsort(d->filled, d->n_filled, sizeof *d->filled, by_time);
    for (size_t i = 0; rc == TL_OK && last && i < d->n_areas; i++)
        rc = take_unreported(d, d->areas[i]);
    for (size_t i = 0; i < d->n_filled; i++) {
        struct tl_perf_filled *const f = &d->filled[i];
        rc = rc == TL_OK ? tl_give_way() : rc;
        if (rc == TL_OK && (f->done || f->size == 0)) {
            f->done = true;
        } else if (rc == TL_OK && (last || f->time <= d->sideband.final)) {
            rc = take_filled(d, f);
            f->done = rc == TL_OK;
            if (rc == 1)
                rc = last ? tl_perf_report_loss(d, NULL,
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
