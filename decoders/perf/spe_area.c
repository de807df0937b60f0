/* SPDX-License-Identifier: MIT */
/*
 * An AUX area of Arm SPE is a stream of samples, each an item of its own with its time. Records are
 * independent, so nothing is kept between them but what was told last, and a damaged one costs
 * itself. They wait until it is known which thread ran.
 */
#include "perf/container.h"

#include "base/cancel.h"
#include "flow/hardware.h"
#include "perf/spe.h"

#include <inttypes.h>
#include <stdio.h>

static int begin_area(struct tl_perf_area_state *a)
{
    char name[40];
    if (a->cpu >= 0)
        snprintf(name, sizeof name, "spe.%" PRId32, a->cpu);
    else
        snprintf(name, sizeof name, "spe.t%" PRId32, a->tid);
    a->stream = tl_perf_stream_of(a->owner, name);
    if (!a->stream)
        return TL_NOMEM;
    a->reported_pid = a->reported_tid = INT32_MIN;
    if (a->stream->source.protocol == TL_PROTO_SPE) /* a further buffer of the same CPU */
        return TL_OK;
    a->stream->source.protocol = TL_PROTO_SPE;
    a->stream->source.id = (uint16_t)(a->cpu >= 0 ? a->cpu : 0);
    return tl_perf_stream_announce(a->stream);
}

static uint64_t ns_of(const struct tl_perf_area_state *a, const struct tl_spe_record *r)
{
    const struct tl_clock *const clock = &a->owner->info.clock;
    return r->has_time && clock->known ? tl_clock_ns(clock, r->time) : 0;
}

/* The thread: by the record's context, which Linux sets to its number, else by who ran there. */
static struct tl_perf_run run_of(const struct tl_perf_area_state *a, const struct tl_spe_record *r)
{
    const uint64_t time = ns_of(a, r);
    struct tl_perf_run run = tl_perf_pt_run(a, time);
    if (!r->has_context || r->context == 0 || r->context > INT32_MAX)
        return run;
    const struct tl_perf_thread *const thread =
        tl_perf_sideband_thread(&a->owner->sideband, 0, (int32_t)r->context, time);
    run.tid = (int32_t)r->context;
    run.pid = thread ? thread->pid : run.tid;
    return run;
}

/* Say that another thread runs. */
static int report_thread(struct tl_perf_area_state *a, const struct tl_spe_record *r,
                         uint64_t offset)
{
    const struct tl_perf_run run = run_of(a, r);
    char note[64];
    if (run.tid < 0 || (run.tid == a->reported_tid && run.pid == a->reported_pid))
        return TL_OK;
    a->reported_tid = run.tid;
    a->reported_pid = run.pid;
    const struct tl_perf_thread *const thread =
        tl_perf_sideband_thread(&a->owner->sideband, 0, run.tid, ns_of(a, r));
    snprintf(note, sizeof note, "switch %" PRId32 " %" PRId32 " %s", run.pid, run.tid,
             thread && thread->name[0] ? thread->name
             : run.tid == 0            ? "swapper"
                                       : "-");
    const struct tl_item items[] = {
        {.kind = TL_ITEM_CONTEXT,
         .flags = TL_ITEM_HAS_PC,
         .pc = (uint32_t)run.tid,
         .offset = offset},
        {.kind = TL_ITEM_NOTE, .text = note, .offset = offset},
    };
    return tl_stream_out_items(&a->stream->out, items, 2);
}

static int report_record(struct tl_perf_area_state *a, const struct tl_spe_record *r,
                         uint64_t offset)
{
    char text[TL_SPE_TEXT], whole[TL_HARDWARE_TEXT];
    const struct tl_item time = {.kind = TL_ITEM_TIME, .value = r->time, .offset = offset};
    struct tl_item item = {.kind = TL_ITEM_HARDWARE, .offset = offset};
    const struct tl_hardware event = {
        .kind = tl_spe_is_retired(r) ? TL_HARDWARE_SAMPLE : TL_HARDWARE_SPECULATIVE,
        .has_pc = true,
        .pc = r->address[TL_SPE_PC],
        .target = tl_spe_is_taken(r) ? r->address[TL_SPE_TARGET] : 0,
        .back = r->addresses >> TL_SPE_BACK & 1 ? r->address[TL_SPE_BACK] : 0,
        .name = tl_spe_text(r, text)};
    int rc = TL_OK;
    if (r->has_time)
        rc = tl_stream_out_items(&a->stream->out, &time, 1);
    if (rc == TL_OK)
        rc = report_thread(a, r, offset);
    item.text = tl_hardware_text(&event, whole);
    tl_hardware_item(&event, &item);
    return rc == TL_OK ? tl_stream_out_items(&a->stream->out, &item, 1) : rc;
}

static bool is_padding(struct tl_bytes in)
{
    size_t i = 0;
    while (i < in.n && in.p[i] == 0)
        i++;
    return i == in.n;
}

static int report_bad(struct tl_perf_area_state *a, const char *why, uint64_t offset, uint64_t n)
{
    return tl_perf_report_loss(a->owner, a->stream, why, offset, n, true);
}

/*
 * Take the next record of the piece at a->next. Returns TL_AGAIN: it is not there yet, or it is not
 * known yet what ran then.
 */
static int take_record(struct tl_perf_area_state *a, const struct tl_perf_piece *piece, bool last)
{
    const uint64_t in_piece = a->next - piece->position, offset = piece->at + in_piece;
    const struct tl_bytes in = {a->bytes.p + (a->next - a->position),
                                (size_t)(piece->n - in_piece)};
    struct tl_spe_record r;
    uint64_t bad = 0;
    const size_t n = tl_spe_parse(in, piece->offset + in_piece, &r, &bad);
    if (n == 0 && !piece->whole && !last)
        return TL_AGAIN;
    if (n == 0) {
        a->next += in.n;
        return is_padding(in) ? TL_OK : report_bad(a, "a record is cut short", offset, in.n);
    }
    if (!last && ns_of(a, &r) > a->owner->sideband.final)
        return TL_AGAIN;
    /* What a ring that wraps begins with is the end of a record. */
    const bool is_rest = in_piece == 0 && tl_perf_area_overwrites(a);
    a->next += n;
    int rc = bad ? report_bad(a, "bytes that are no packets", offset, bad) : TL_OK;
    if (rc == TL_OK && r.addresses >> TL_SPE_PC & 1 && !is_rest)
        rc = report_record(a, &r, offset);
    return rc == TL_OK ? tl_give_way() : rc;
}

/* Bytes of the ring are missing before this piece. */
static int report_gap(struct tl_perf_area_state *a, size_t i)
{
    const struct tl_perf_piece *const piece = &a->pieces[i];
    const struct tl_item gap = {.kind = TL_ITEM_GAP, .sub = TL_GAP_TRANSPORT, .offset = piece->at};
    const struct tl_perf_piece *const before = i > 0 ? &a->pieces[i - 1] : NULL;
    if (!before || a->next != piece->position ||
        before->offset + before->size - piece->offset <= TL_PERF_PAD_MAX)
        return TL_OK;
    return tl_stream_out_items(&a->stream->out, &gap, 1);
}

static int take_area(struct tl_perf_area_state *a, bool last)
{
    int rc = a->stream ? TL_OK : begin_area(a);
    while (rc == TL_OK && a->next < a->position + a->bytes.n) {
        const size_t i = tl_perf_area_piece(a, a->next);
        rc = report_gap(a, i);
        const uint64_t end = a->pieces[i].position + a->pieces[i].n;
        while (rc == TL_OK && a->next < end)
            rc = take_record(a, &a->pieces[i], last);
    }
    if (rc == TL_OK || rc == TL_AGAIN)
        tl_perf_area_drop(a, a->next);
    return rc == TL_AGAIN ? TL_OK : rc;
}

int tl_perf_spe_continue(struct tl_perf_decode *d, bool last)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < d->n_areas; i++)
        rc = take_area(d->areas[i], last);
    return rc;
}
