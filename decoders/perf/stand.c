/* SPDX-License-Identifier: MIT */
/*
 * Saved state of a perf.data decode. Bytes held in areas are stored as positions in the capture and
 * reread, so the state is small: it consists of the context switch records, which grow with the
 * recording, and the state of each decoder.
 */
#include "perf/container.h"

#include <ctype.h>
#include <stdlib.h>

#define NO_STREAM UINT32_MAX

/* ---- streams --------------------------------------------------------------------------------- */

static void text_state(char *text, size_t size, struct tl_state *s)
{
    tl_state_bytes(s, text, size);
    tl_state_check(s, text[size - 1] == '\0');
    text[size - 1] = '\0';
}

static void source_state(struct tl_source *source, struct tl_state *s)
{
    text_state(source->name, sizeof source->name, s);
    tl_state_u16(s, &source->id);
    tl_state_u8(s, &source->protocol, TL_PROTOCOLS - 1);
    text_state(source->type, sizeof source->type, s);
    text_state(source->core, sizeof source->core, s);
    text_state(source->device, sizeof source->device, s);
    tl_state_u64(s, &source->clock_hz);
    tl_state_u64(s, &source->since);
    tl_state_bool(s, &source->other_clock);
    tl_state_size(s, &source->n_regs, TL_SETUP_REGS);
    for (size_t i = 0; i < source->n_regs; i++) {
        text_state(source->regs[i].name, sizeof source->regs[i].name, s);
        tl_state_u64(s, &source->regs[i].value);
    }
}

static bool is_name(const char *name)
{
    const char *p = name;
    while (isalnum((unsigned char)*p) || (*p && strchr("._-", *p)))
        p++;
    return p > name && !*p;
}

/* The stream with this number; on restoring it is announced again. NULL: error. */
static struct tl_perf_stream *named_stream(struct tl_perf_decode *d, size_t i, struct tl_state *s)
{
    struct tl_perf_stream *stream = tl_state_loads(s) ? NULL : d->streams[i];
    char name[sizeof stream->name] = "";
    if (stream)
        memcpy(name, stream->name, sizeof name);
    text_state(name, sizeof name, s);
    tl_state_check(s, is_name(name));
    if (!tl_state_loads(s) || s->rc < 0)
        return stream;
    stream = tl_perf_stream_of(d, name);
    tl_state_fail(s, stream ? TL_OK : TL_NOMEM);
    tl_state_check(s, stream && stream->out.stream.index == i);
    return s->rc < 0 ? NULL : stream;
}

static void stream_state(struct tl_perf_decode *d, size_t i, struct tl_state *s)
{
    struct tl_perf_stream *const stream = named_stream(d, i, s);
    if (!stream)
        return;
    source_state(&stream->source, s);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, tl_perf_stream_announce(stream));
    tl_state_bool(s, &stream->out.heard);
    tl_state_u64(s, &stream->mode);
    tl_state_u64(s, &stream->context);
    tl_state_u64(s, &stream->vmid);
    tl_state_u8(s, &stream->context_flags, TL_ITEM_HAS_PC | TL_ITEM_HAS_VALUE);
    tl_state_i32(s, &stream->reported_tid);
    tl_state_bool(s, &stream->has_mode);
    tl_state_bool(s, &stream->runs);
    tl_state_bool(s, &stream->here);
    tl_state_i32(s, &stream->entered);
    tl_state_i32(s, &stream->entered_pid);
}

static void link_state(const struct tl_perf_decode *d, struct tl_perf_stream **stream,
                       struct tl_state *s)
{
    uint32_t i = *stream ? (*stream)->out.stream.index : NO_STREAM;
    tl_state_u32(s, &i);
    tl_state_check(s, i == NO_STREAM || i < d->n_streams);
    if (tl_state_loads(s))
        *stream = s->rc >= 0 && i != NO_STREAM ? d->streams[i] : NULL;
}

static void streams_state(struct tl_perf_decode *d, struct tl_state *s)
{
    size_t n = d->n_streams;
    tl_state_size(s, &n, SIZE_MAX);
    for (size_t i = 0; i < n && s->rc >= 0; i++)
        stream_state(d, i, s);
    for (size_t i = 0; i < d->n_streams; i++) {
        link_state(d, &d->streams[i]->thread, s);
        link_state(d, &d->streams[i]->from, s);
    }
    /* A thread's stream does not forward items to another one. */
    for (size_t i = 0; tl_state_loads(s) && i < d->n_streams; i++)
        tl_state_check(s, !d->streams[i]->thread || !d->streams[i]->thread->thread);
    tl_perf_map_state(&d->by_tid, s, d->n_streams);
    tl_state_size(s, &d->n_threads, SIZE_MAX);
}

/* ---- areas ----------------------------------------------------------------------------------- */

static void piece_state(struct tl_perf_piece *p, struct tl_state *s)
{
    tl_state_u64(s, &p->position);
    tl_state_u64(s, &p->n);
    tl_state_u64(s, &p->at);
    tl_state_u64(s, &p->offset);
    tl_state_u64(s, &p->size);
    tl_state_bool(s, &p->whole);
    tl_state_bool(s, &p->begun);
    tl_state_bool(s, &p->copied);
}

/* Are the pieces contiguous, up to `end`? */
static bool are_joined(const struct tl_perf_area_state *a, uint64_t end)
{
    uint64_t next = a->n_pieces > 0 ? a->pieces[0].position : end;
    for (size_t i = 0; i < a->n_pieces; i++) {
        const struct tl_perf_piece *const p = &a->pieces[i];
        if (p->position != next || p->n > UINT64_MAX - next)
            return false;
        next += p->n;
    }
    return next == end && (a->n_pieces == 0 || a->pieces[0].position <= a->next);
}

/* Save or restore bytes of a piece not decoded yet. */
static void held_state(struct tl_perf_area_state *a, const struct tl_perf_piece *p,
                       struct tl_state *s)
{
    const uint64_t from = p->position > a->next ? p->position : a->next;
    const uint64_t end = p->position + p->n;
    if (end <= from)
        return;
    if (!p->copied) {
        if (tl_state_loads(s))
            tl_state_fail(s, tl_decode_reread(&a->owner->base, p->at + (from - p->position),
                                              end - from, &a->bytes));
        return;
    }
    if (tl_state_loads(s)) {
        tl_state_check(s, end - from <= s->in.n);
        tl_state_fail(s, s->rc < 0 ? s->rc : tl_buf_reserve(&a->bytes, (size_t)(end - from)));
        if (s->rc < 0)
            return;
        a->bytes.n += (size_t)(end - from);
    }
    tl_state_bytes(s, a->bytes.p + (from - a->position), (size_t)(end - from));
}

static void bytes_state(struct tl_perf_area_state *a, struct tl_state *s)
{
    enum { PIECE_MIN = 40 };
    uint64_t end = a->position + a->bytes.n;
    tl_state_u64(s, &a->next);
    tl_state_u64(s, &end);
    tl_state_count(s, &a->pieces, &a->n_pieces, &a->cap_pieces, sizeof *a->pieces, PIECE_MIN);
    for (size_t i = 0; i < a->n_pieces; i++)
        piece_state(&a->pieces[i], s);
    tl_state_bool(s, &a->is_mixed);
    if (tl_state_loads(s))
        a->position = a->next;
    if (a->owner->hopeless) /* no bytes are kept */
        return;
    tl_state_check(s, a->next <= end && are_joined(a, end));
    for (size_t i = 0; i < a->n_pieces && s->rc >= 0; i++)
        held_state(a, &a->pieces[i], s);
}

static void breaks_state(struct tl_perf_area_state *a, struct tl_state *s)
{
    enum { BREAK_MIN = 10 };
    tl_state_count(s, &a->breaks, &a->n_breaks, &a->cap_breaks, sizeof *a->breaks, BREAK_MIN);
    for (size_t i = 0; i < a->n_breaks; i++) {
        tl_state_u64(s, &a->breaks[i].position);
        tl_state_u8(s, &a->breaks[i].gap, TL_GAP_KINDS - 1);
        tl_state_bool(s, &a->breaks[i].is_anew);
    }
    tl_state_size(s, &a->first_break, a->n_breaks);
}

static void scout_state(struct tl_perf_area_state *a, struct tl_state *s)
{
    const uint64_t end = a->position + a->bytes.n;
    struct tl_pt_config config;
    tl_state_bool(s, &a->timed);
    tl_state_bool(s, &a->scouting);
    tl_state_size(s, &a->scanned_pieces, a->n_pieces);
    tl_state_u64(s, &a->scanned);
    tl_state_check(s, a->owner->hopeless || a->scanned <= end);
    tl_perf_snapshot_state(&a->snapshot, s);
    tl_state_check(s, !a->scouting || a->stream);
    if (s->rc < 0 || !a->scouting)
        return;
    if (tl_state_loads(s)) {
        tl_pt_config_init(&config, &a->stream->source);
        tl_perf_scout_begin(&a->scout, &config, &a->owner->info.clock, 0);
    }
    tl_perf_scout_state(&a->scout, s);
    tl_state_check(s, a->scout.packetizer.end <= end);
}

static void order_state(struct tl_perf_area_state *a, struct tl_state *s)
{
    tl_state_bool(s, &a->reported);
    tl_state_bool(s, &a->left);
    tl_state_u64(s, &a->seen);
    tl_state_u64(s, &a->timeless);
    tl_state_u64(s, &a->changed);
    tl_state_i32(s, &a->reported_pid);
    tl_state_i32(s, &a->reported_tid);
    text_state(a->reported_name, sizeof a->reported_name, s);
    tl_state_i32(s, &a->guest_pid);
    tl_state_i32(s, &a->guest_tid);
    text_state(a->guest_name, sizeof a->guest_name, s);
}

static void decoder_state(struct tl_perf_area_state *a, struct tl_state *s)
{
    bool decodes = a->decoder != NULL;
    tl_state_bool(s, &decodes);
    tl_state_check(s, !decodes || a->stream);
    if (tl_state_loads(s) && s->rc >= 0 && decodes) {
        tl_state_fail(s, tl_perf_stream_decoder(a->stream, &a->decoder));
        tl_state_check(s, a->decoder && a->decoder->ops->notify);
    }
    if (s->rc < 0 || !decodes)
        return;
    if (a->decoder->ops->state)
        a->decoder->ops->state(a->decoder, s);
    else
        tl_state_fail(s, TL_UNSUPPORTED);
}

static void area_state(struct tl_perf_decode *d, size_t i, struct tl_state *s)
{
    struct tl_perf_area_state *a = tl_state_loads(s) ? NULL : d->areas[i];
    int32_t cpu = a ? a->cpu : 0, tid = a ? a->tid : 0;
    uint32_t idx = a ? a->idx : 0;
    tl_state_i32(s, &cpu);
    tl_state_i32(s, &tid);
    tl_state_u32(s, &idx);
    if (s->rc < 0)
        return;
    if (!a) {
        tl_state_fail(s, tl_perf_area_of(d, cpu, tid, idx, UINT64_MAX, &a));
        tl_state_check(s, d->n_areas == i + 1);
    }
    if (s->rc < 0)
        return;
    link_state(d, &a->stream, s);
    bytes_state(a, s);
    tl_state_bool(s, &a->truncated);
    tl_state_u64(s, &a->begin);
    tl_state_u64(s, &a->end);
    breaks_state(a, s);
    scout_state(a, s);
    order_state(a, s);
    decoder_state(a, s);
}

static void areas_state(struct tl_perf_decode *d, struct tl_state *s)
{
    size_t n = d->n_areas, filling = SIZE_MAX;
    tl_state_size(s, &n, SIZE_MAX);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        area_state(d, i, s);
        filling = !tl_state_loads(s) && d->areas[i] == d->filling ? i : filling;
    }
    tl_state_size(s, &filling, SIZE_MAX);
    tl_state_bool(s, &d->passes);
    tl_state_bool(s, &d->left_out);
    tl_state_bool(s, &d->late);
    tl_state_u64(s, &d->turned);
    tl_state_bool(s, &d->hastened);
    tl_state_bool(s, &d->overtaken);
    tl_state_u64(s, &d->received);
    tl_state_u64(s, &d->looked_at);
    if (!tl_state_loads(s))
        return;
    d->filling = filling < d->n_areas ? d->areas[filling] : NULL;
    tl_state_check(s, !tl_perf_reader_in_area(d->reader) || d->passes ||
                          (d->filling && d->filling->n_pieces));
}

/* ---- overall --------------------------------------------------------------------------------- */

static void filled_state(struct tl_perf_filled *f, struct tl_state *s)
{
    tl_state_bytes(s, &f->cpu, sizeof f->cpu);
    tl_state_bytes(s, &f->tid, sizeof f->tid);
    tl_state_u64(s, &f->offset);
    tl_state_u64(s, &f->size);
    tl_state_u64(s, &f->flags);
    tl_state_u64(s, &f->time);
    tl_state_u64(s, &f->record);
    tl_state_bool(s, &f->done);
}

void tl_perf_state(struct tl_decode *decode, struct tl_state *s)
{
    enum { FILLED_MIN = 57 };
    struct tl_perf_decode *const d = (struct tl_perf_decode *)decode;
    tl_state_check(s, d->n_streams == 0 && d->n_areas == 0 && d->sideband.number == 0);
    if (d->sink.packet) /* a packet listing cannot be continued */
        tl_state_fail(s, TL_UNSUPPORTED);
    if (s->rc < 0)
        return;
    tl_perf_reader_state(d->reader, decode, s);
    tl_perf_info_state(&d->info, s);
    tl_perf_sideband_state(&d->sideband, s);
    tl_perf_events_state(d, s);
    tl_state_bool(s, &d->hopeless);
    tl_state_u64(s, &d->reported_flags);
    tl_state_u64(s, &d->trouble);
    tl_state_check(s, !d->hopeless || (d->info.kind != TL_PERF_TRACE_PT &&
                                       d->info.kind != TL_PERF_TRACE_CORESIGHT));
    tl_state_count(s, &d->filled, &d->n_filled, &d->cap_filled, sizeof *d->filled, FILLED_MIN);
    for (size_t i = 0; i < d->n_filled; i++)
        filled_state(&d->filled[i], s);
    for (size_t i = 0; tl_state_loads(s) && i < d->n_filled; i++)
        d->n_truncated += !d->filled[i].done && d->filled[i].size > 0 &&
                          d->filled[i].flags & TL_PERF_AUX_TRUNCATED;
    tl_perf_promised_state(d, s);
    streams_state(d, s);
    tl_perf_events_check(d, s);
    areas_state(d, s);
}
