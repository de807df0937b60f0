/* SPDX-License-Identifier: MIT */
/*
 * An AUX area of Intel PT. The scout scans bytes as they arrive; its points, together with the
 * records, determine where in the trace the thread or memory changes. The decoder receives the
 * bytes up to there, and is then informed.
 */
#include "perf/container.h"

#include "base/cancel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- beginning ------------------------------------------------------------------------------- */

/* Create the stream, named by its CPU or thread; for a further buffer of the same one its number is
 * appended. */
static struct tl_perf_stream *make_stream(struct tl_perf_area_state *a)
{
    struct tl_perf_decode *const d = a->owner;
    char name[40];
    int n = a->cpu >= 0 ? snprintf(name, sizeof name, "pt.%" PRId32, a->cpu)
                        : snprintf(name, sizeof name, "pt.t%" PRId32, a->tid);
    for (size_t i = 0; i < d->n_streams; i++)
        if (!strcmp(d->streams[i]->name, name)) {
            snprintf(name + n, sizeof name - (size_t)n, "-%" PRIu32, a->idx);
            break;
        }
    return tl_perf_stream_of(d, name);
}

static int begin_area(struct tl_perf_area_state *a)
{
    struct tl_perf_decode *const d = a->owner;
    const struct tl_perf_attr *const attr =
        tl_perf_attrs_by_type(tl_perf_reader_attrs(d->reader), d->info.pmu);
    a->stream = make_stream(a);
    if (!a->stream)
        return TL_NOMEM;
    a->stream->source.id = (uint16_t)(a->cpu >= 0 ? a->cpu : 0);
    tl_perf_info_pt(&d->info, attr, &a->stream->source);
    a->timed = tl_perf_info_is_timed(&d->info, attr);
    a->reported_pid = a->reported_tid = INT32_MIN;
    a->guest_pid = a->guest_tid = -1;
    int rc = tl_perf_stream_announce(a->stream);
    if (rc == TL_OK)
        rc = tl_perf_stream_decoder(a->stream, &a->decoder);
    return rc;
}

/*
 * ---- sideband information ---------------------------------------------------------------------
 */

static uint64_t file_offset(const struct tl_perf_area_state *a, uint64_t position)
{
    const size_t i = a->n_pieces > 0 ? tl_perf_area_piece(a, position) : 0;
    if (a->n_pieces == 0 || a->pieces[i].position > position)
        return 0;
    return a->pieces[i].at + (position - a->pieces[i].position);
}

struct tl_perf_run tl_perf_pt_run(const struct tl_perf_area_state *a, uint64_t time)
{
    const struct tl_perf_sideband *const s = &a->owner->sideband;
    const bool by_cpu = a->cpu >= 0 && (a->timed || a->tid < 0);
    const struct tl_perf_run *const run =
        by_cpu ? tl_perf_sideband_run(s, (uint32_t)a->cpu, time) : NULL;
    if (run)
        return *run;
    struct tl_perf_run known = {.pid = a->tid, .tid = a->tid};
    const struct tl_perf_thread *const thread =
        a->tid >= 0 ? tl_perf_sideband_thread(s, 0, a->tid, time) : NULL;
    known.pid = thread ? thread->pid : a->tid;
    return known;
}

/* The context while a process runs: its virtual machine's process goes with it. */
static struct tl_image_context context_of(const struct tl_perf_area_state *a)
{
    return (struct tl_image_context){.context_id = (uint32_t)a->reported_pid,
                                     .has_context_id = true,
                                     .vmid = (uint32_t)a->guest_pid,
                                     .has_vmid = a->guest_tid >= 0};
}

/* What runs in the virtual machine whose processor this thread is. Returns whether that is new. */
static bool take_guest(struct tl_perf_area_state *a, const struct tl_perf_run *host,
                       const char *thread_name, uint64_t time)
{
    const struct tl_perf_decode *const d = a->owner;
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(d->reader);
    const struct tl_perf_vcpu *const vcpu =
        host->tid > 0 ? tl_perf_attrs_vcpu(attrs, host->pid, host->tid, thread_name) : NULL;
    const struct tl_perf_run *const run =
        vcpu ? tl_perf_sideband_guest(&d->sideband, vcpu, time) : NULL;
    const struct tl_perf_thread *const thread =
        run ? tl_perf_sideband_thread(&d->sideband, vcpu->machine, run->tid, time) : NULL;
    const char *const name = thread ? thread->name : "";
    const int32_t pid = run ? run->pid : -1, tid = run ? run->tid : -1;
    if (pid == a->guest_pid && tid == a->guest_tid && strcmp(name, a->guest_name) == 0)
        return false;
    a->guest_pid = pid;
    a->guest_tid = tid;
    snprintf(a->guest_name, sizeof a->guest_name, "%s", name);
    return true;
}

static int notify(struct tl_perf_area_state *a, const struct tl_stream_notice *notice)
{
    return a->decoder && a->decoder->ops->notify ? a->decoder->ops->notify(a->decoder, notice)
                                                 : TL_OK;
}

/* Say what a virtual machine runs now. */
static int report_guest(struct tl_perf_area_state *a, struct tl_stream_notice notice)
{
    char note[64];
    snprintf(note, sizeof note, "guest %" PRId32 " %" PRId32 " %s", a->guest_pid, a->guest_tid,
             a->guest_name[0]    ? a->guest_name
             : a->guest_tid == 0 ? "swapper"
                                 : "-");
    notice.note = note;
    notice.has_context = true;
    notice.context = context_of(a);
    return notify(a, &notice);
}

int tl_perf_pt_report(struct tl_perf_area_state *a, uint64_t time)
{
    struct tl_perf_decode *const d = a->owner;
    const struct tl_perf_run run = tl_perf_pt_run(a, time);
    const struct tl_perf_thread *const thread =
        run.tid >= 0 ? tl_perf_sideband_thread(&d->sideband, 0, run.tid, time) : NULL;
    const uint64_t changed = a->timed ? tl_perf_sideband_changed(&d->sideband, time) : 0;
    const char *const name = thread ? thread->name : "";
    char note[64];
    struct tl_stream_notice notice = {.offset = file_offset(a, a->next)};
    if (changed > a->changed) {
        a->changed = changed;
        notice.time = tl_clock_ticks(&d->info.clock, changed);
    }
    const bool other = run.tid >= 0 && (run.tid != a->reported_tid || run.pid != a->reported_pid ||
                                        strcmp(name, a->reported_name) != 0);
    const bool guest_is_new = take_guest(a, &run, name, time);
    if (other) {
        if (a->timed && run.time > changed)
            notice.time = tl_clock_ticks(&d->info.clock, run.time);
        a->reported_tid = run.tid;
        a->reported_pid = run.pid;
        snprintf(a->reported_name, sizeof a->reported_name, "%s", name);
        snprintf(note, sizeof note, "switch %" PRId32 " %" PRId32 " %s", run.pid, run.tid,
                 name[0]        ? name
                 : run.tid == 0 ? "swapper"
                                : "-");
        notice.note = note;
        notice.has_context = true;
        notice.context = context_of(a);
    }
    const bool was_out = a->timed && tl_perf_sideband_left(&d->sideband, run.tid, a->seen, time);
    if (!other && !notice.time && !guest_is_new && !was_out)
        return TL_OK;
    int rc = TL_OK;
    if (d->setup->threads && a->timed && a->cpu < 0 && was_out)
        rc = tl_perf_thread_return(a->stream, notice.offset);
    else if (d->setup->threads && a->timed && a->cpu >= 0 && (other || was_out))
        rc = tl_perf_thread_enter(a->stream, &run, name, was_out, notice.offset);
    if (rc == TL_OK && (other || notice.time))
        rc = notify(a, &notice);
    if (rc < 0 || !guest_is_new || a->guest_tid < 0)
        return rc;
    return report_guest(a, (struct tl_stream_notice){.offset = notice.offset});
}

/* ---- decoding -------------------------------------------------------------------------------- */

static int add_break(struct tl_perf_area_state *a, uint64_t position, enum tl_gap gap, bool is_anew)
{
    if (tl_grow(&a->breaks, &a->cap_breaks, a->n_breaks + 1, sizeof *a->breaks) < 0)
        return TL_NOMEM;
    size_t i = a->n_breaks++;
    for (; i > a->first_break && a->breaks[i - 1].position > position; i--)
        a->breaks[i] = a->breaks[i - 1];
    a->breaks[i] = (struct tl_perf_break){position, (uint8_t)gap, is_anew};
    return TL_OK;
}

/* Apply a gap in the trace. */
static int take_break(struct tl_perf_area_state *a, const struct tl_perf_break *b)
{
    struct tl_stream_notice notice = {
        .offset = file_offset(a, b->position), .is_gap = true, .gap = b->gap};
    if (!a->decoder)
        return TL_OK;
    int rc = TL_OK;
    if (b->is_anew) {
        rc = a->decoder->ops->finish(a->decoder, TL_LOSS_CUT_OFF);
        a->decoder->ops->destroy(a->decoder);
        a->decoder = NULL;
        if (rc == TL_OK)
            rc = tl_perf_stream_decoder(a->stream, &a->decoder);
        if (rc < 0 || !a->decoder)
            return rc;
        if (a->reported_tid >= 0) {
            notice.has_context = true;
            notice.context = context_of(a);
        }
        notice.time = a->changed ? tl_clock_ticks(&a->owner->info.clock, a->changed) : 0;
    }
    return a->decoder->ops->notify(a->decoder, &notice);
}

/* Decode bytes up to `to` within one piece. */
static int decode_some(struct tl_perf_area_state *a, uint64_t to)
{
    const struct tl_perf_piece *const piece = &a->pieces[tl_perf_area_piece(a, a->next)];
    const uint64_t end = piece->position + piece->n;
    to = to < end ? to : end;
    const struct tl_run run = {
        .p = a->bytes.p + (a->next - a->position),
        .n = (size_t)(to - a->next),
        .base = piece->at + (a->next - piece->position),
    };
    a->next = to;
    const struct tl_decode_sink *const sink = &a->owner->sink;
    int rc = TL_OK;
    if (a->decoder && run.n > 0 && sink->bytes)
        rc = sink->bytes(sink->context, &a->stream->out.stream, &run);
    return rc >= 0 && a->decoder && run.n > 0 ? a->decoder->ops->push(a->decoder, &run) : rc;
}

/* Decode, applying the breaks in between. */
int tl_perf_pt_decode(struct tl_perf_area_state *a, uint64_t to)
{
    int rc = TL_OK;
    while (rc == TL_OK) {
        const struct tl_perf_break *const b =
            a->first_break < a->n_breaks ? &a->breaks[a->first_break] : NULL;
        if (b && b->position <= a->next) {
            rc = take_break(a, b);
            if (++a->first_break == a->n_breaks)
                a->first_break = a->n_breaks = 0;
        } else if (a->next < to) {
            rc = decode_some(a, b && b->position < to ? b->position : to);
        } else {
            break;
        }
    }
    return rc;
}

/* ---- looking ahead --------------------------------------------------------------------------- */

static int scout_anew(struct tl_perf_area_state *a, uint64_t position)
{
    struct tl_pt_config config;
    const int rc = a->scouting ? tl_perf_scout_end(&a->scout) : TL_OK;
    tl_pt_config_init(&config, &a->stream->source);
    tl_perf_scout_begin(&a->scout, &config, &a->owner->info.clock, position);
    a->scouting = true;
    return rc;
}

/* Remove the last `padding` bytes before piece `i`, and its first `known` ones. */
static void leave_out(struct tl_perf_area_state *a, size_t i, size_t padding, size_t known)
{
    struct tl_perf_piece *const piece = &a->pieces[i];
    uint8_t *const p = a->bytes.p + (piece->position - a->position);
    const size_t n = padding + known;
    memmove(p - padding, p + known, a->bytes.n - (size_t)(p - a->bytes.p) - known);
    a->bytes.n -= n;
    if (padding > 0)
        a->pieces[i - 1].n -= padding;
    piece->position -= padding;
    piece->at += known;
    piece->n -= known;
    for (size_t k = i + 1; k < a->n_pieces; k++)
        a->pieces[k].position -= n;
}

/* Remove the bytes of a snapshot that the previous one already had. */
static int join_snapshot(struct tl_perf_area_state *a, size_t i, bool *joined)
{
    const struct tl_perf_piece *const piece = &a->pieces[i];
    const struct tl_bytes dump = {a->bytes.p + (piece->position - a->position), (size_t)piece->n};
    size_t known, padding;
    const int rc = tl_perf_snapshot_join(&a->snapshot, dump, &known, &padding);
    if (rc < 0)
        return rc;
    *joined = rc == 1;
    /* Padding has not been scanned yet, unless everything had to be processed. */
    const uint64_t waits = piece->position - a->scanned;
    leave_out(a, i, padding < waits ? padding : (size_t)waits, known);
    return TL_OK;
}

/* Does the piece continue where the previous one ended? */
static bool continues(const struct tl_perf_piece *before, const struct tl_perf_piece *piece)
{
    const uint64_t end = before->offset + before->size;
    return end - piece->offset <= TL_PERF_PAD_MAX;
}

static int begin_piece(struct tl_perf_area_state *a, size_t i)
{
    struct tl_perf_piece *const piece = &a->pieces[i];
    const bool is_snapshot = tl_perf_area_overwrites(a);
    bool joined = i > 0 && continues(&a->pieces[i - 1], piece);
    int rc = TL_OK;
    if (is_snapshot)
        rc = join_snapshot(a, i, &joined);
    if (rc == TL_OK && (!a->scouting || !joined)) {
        if (a->scouting)
            rc = add_break(a, piece->position, TL_GAP_TRANSPORT, true);
        if (rc == TL_OK)
            rc = scout_anew(a, piece->position);
        a->scanned = piece->position;
    }
    return rc;
}

/* Position up to which a piece can be scanned: a snapshot must be complete, and its last bytes may
 * turn out to be padding when the next one arrives. */
static uint64_t scan_end(const struct tl_perf_area_state *a, const struct tl_perf_piece *piece,
                         bool is_snapshot)
{
    struct tl_bytes bytes = {.n = (size_t)piece->n};
    if (bytes.n > 0)
        bytes.p = a->bytes.p + (piece->position - a->position);
    return piece->position + piece->n - (is_snapshot ? tl_perf_padding(bytes) : 0);
}

static int scan(struct tl_perf_area_state *a)
{
    const bool is_snapshot = tl_perf_area_overwrites(a);
    int rc = TL_OK;
    while (rc == TL_OK && a->scanned_pieces < a->n_pieces) {
        const size_t i = a->scanned_pieces;
        struct tl_perf_piece *const piece = &a->pieces[i];
        if (is_snapshot && !piece->whole)
            break;
        if (!piece->begun)
            rc = begin_piece(a, i);
        rc = rc == TL_OK ? tl_give_way() : rc;
        piece->begun = true;
        const uint64_t end = scan_end(a, piece, is_snapshot);
        if (rc == TL_OK && a->timed && a->scanned < end)
            rc = tl_perf_scout_push(&a->scout,
                                    (struct tl_bytes){a->bytes.p + (a->scanned - a->position),
                                                      (size_t)(end - a->scanned)});
        a->scanned = end > a->scanned ? end : a->scanned;
        if (!piece->whole)
            break;
        a->scanned_pieces++;
    }
    return rc;
}

/* Add breaks where AUX records report lost trace after their bytes. */
static int report_truncated(struct tl_perf_area_state *a)
{
    const struct tl_perf_decode *const d = a->owner;
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && d->n_truncated > 0 && i < d->n_filled; i++) {
        struct tl_perf_filled *const f = &d->filled[i];
        const uint64_t end = f->offset + f->size;
        if (f->done || !(f->flags & TL_PERF_AUX_TRUNCATED) || !f->size || !tl_perf_area_has(a, f))
            continue;
        const struct tl_perf_piece *const piece = tl_perf_area_find(a, end - 1);
        if (!piece)
            continue;
        f->done = true;
        a->owner->n_truncated--;
        const uint64_t position = piece->position + (end - piece->offset);
        rc = add_break(a, position > a->next ? position : a->next, TL_GAP_OVERFLOW, false);
    }
    return rc;
}

int tl_perf_pt_look(struct tl_perf_area_state *a, bool last)
{
    int rc = a->stream ? TL_OK : begin_area(a);
    if (rc == TL_OK)
        rc = scan(a);
    if (rc == TL_OK && last && a->scouting)
        rc = tl_perf_scout_end(&a->scout);
    return rc == TL_OK ? report_truncated(a) : rc;
}

int tl_perf_pt_finish(struct tl_perf_area_state *a)
{
    return a->decoder ? a->decoder->ops->finish(a->decoder, TL_LOSS_CUT_OFF) : TL_OK;
}

void tl_perf_pt_fini(struct tl_perf_area_state *a)
{
    if (a->decoder)
        a->decoder->ops->destroy(a->decoder);
    tl_perf_scout_fini(&a->scout);
    tl_perf_snapshot_fini(&a->snapshot);
    free(a->breaks);
}
