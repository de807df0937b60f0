/* SPDX-License-Identifier: MIT */
/*
 * Trace is held until the records that apply to it are final, because a file has its records CPU by
 * CPU and mappings may change in the midst of an area. Without ends of rounds a limit on held bytes
 * forces progress; it is checked at fixed counts of bytes, so that chunking changes nothing.
 */
#include "perf/container.h"

#include "base/cancel.h"
#include "base/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_FILLED 4096u /* maximum AUX records of Intel PT kept */

/* ---- areas ----------------------------------------------------------------------------------- */

static void area_free(struct tl_perf_area_state *a)
{
    tl_perf_pt_fini(a);
    tl_buf_fini(&a->bytes);
    free(a->pieces);
    free(a);
}

static uint64_t area_key(int32_t cpu, int32_t tid, uint32_t idx)
{
    /* Buffers are numbered, but another CPU or thread may have the same number. */
    const uint64_t owner =
        cpu >= 0 ? (uint64_t)(uint32_t)cpu << 1 : (uint64_t)(uint32_t)tid << 1 | 1;
    return owner << 31 ^ idx;
}

int tl_perf_area_of(struct tl_perf_decode *d, int32_t cpu, int32_t tid, uint32_t idx, uint64_t max,
                    struct tl_perf_area_state **out)
{
    const uint64_t key = area_key(cpu, tid, idx);
    const int64_t i = tl_perf_map_get(&d->by_area, key);
    *out = i >= 0 ? d->areas[i] : NULL;
    if (i >= 0)
        return TL_OK;
    if (d->n_areas >= max)
        return TL_LIMIT;
    if (tl_grow(&d->areas, &d->cap_areas, d->n_areas + 1, sizeof(void *)) < 0)
        return TL_NOMEM;
    struct tl_perf_area_state *const a = calloc(1, sizeof *a);
    if (!a || tl_perf_map_set(&d->by_area, key, d->n_areas) < 0) {
        free(a);
        return TL_NOMEM;
    }
    a->owner = d;
    a->idx = idx;
    a->cpu = cpu;
    a->tid = tid;
    d->areas[d->n_areas++] = a;
    *out = a;
    return TL_OK;
}

size_t tl_perf_area_piece(const struct tl_perf_area_state *a, uint64_t position)
{
    const size_t begun = tl_count_upto(TL_KEYS(a->pieces, position), a->n_pieces, position);
    return begun > 0 ? begun - 1 : 0;
}

const struct tl_perf_piece *tl_perf_area_find(const struct tl_perf_area_state *a, uint64_t offset)
{
    const size_t begun =
        a->is_mixed ? a->n_pieces : tl_count_upto(TL_KEYS(a->pieces, offset), a->n_pieces, offset);
    const size_t end = a->is_mixed || begun == 0 ? 0 : begun - 1;
    for (size_t i = begun; i-- > end;) {
        const struct tl_perf_piece *const p = &a->pieces[i];
        if (offset - p->offset < p->size && offset >= p->offset)
            return p;
    }
    return NULL;
}

/* Drop decoded pieces, except the last one, which is needed to detect whether the next one
 * continues it. */
static void drop_pieces(struct tl_perf_area_state *a)
{
    const bool is_pt = a->owner->info.kind == TL_PERF_TRACE_PT;
    const size_t seen = is_pt ? a->scanned_pieces : a->n_pieces;
    size_t n = 0;
    while (n + 1 < seen && a->pieces[n + 1].position <= a->next && a->pieces[n].whole)
        n++;
    if (2 * n < a->n_pieces && n + 1 < a->n_pieces)
        return; /* move each only a few times */
    memmove(a->pieces, a->pieces + n, (a->n_pieces - n) * sizeof *a->pieces);
    a->n_pieces -= n;
    a->scanned_pieces -= is_pt ? n : 0;
}

void tl_perf_area_drop(struct tl_perf_area_state *a, uint64_t position)
{
    if (a->n_pieces > 0)
        drop_pieces(a);
    const size_t n = (size_t)(position - a->position);
    /* Only if the amount moved is not much more than the amount dropped. */
    const size_t rest = a->bytes.n - n;
    if (n < rest && (n < ((size_t)1 << 20) || n < rest / 16))
        return;
    tl_buf_drop(&a->bytes, n);
    a->position = position;
}

uint64_t tl_perf_held(const struct tl_perf_decode *d)
{
    uint64_t n = 0;
    for (size_t i = 0; i < d->n_areas; i++)
        n += d->areas[i]->position + d->areas[i]->bytes.n - d->areas[i]->next;
    return n;
}

static int go_on(struct tl_perf_decode *d, bool last);

/* Without rounds, or in a very long one: continue with the records available. */
static int hurry(struct tl_perf_decode *d)
{
    const int rc = tl_perf_sideband_hurry(&d->sideband);
    return rc < 0 ? rc : go_on(d, false);
}

/* Add bytes of a piece. The limit on pending bytes is checked each time that a certain number has
 * been received, independent of chunking. */
static int fill(struct tl_perf_area_state *a, struct tl_bytes bytes, bool whole)
{
    enum { ASKED = 1 << 20 };
    struct tl_perf_decode *const d = a->owner;
    int rc = TL_OK;
    while (rc >= 0 && bytes.n > 0) {
        struct tl_perf_piece *const piece = &a->pieces[a->n_pieces - 1];
        const size_t more = ASKED - d->received % ASKED, n = bytes.n < more ? bytes.n : more;
        piece->n += n;
        piece->whole = whole && n == bytes.n;
        rc = d->hopeless ? TL_OK : tl_buf_add(&a->bytes, bytes.p, n);
        d->received += n;
        bytes.p += n;
        bytes.n -= n;
        if (rc >= 0 && d->received % ASKED == 0 && tl_perf_held(d) > d->held_max)
            rc = hurry(d);
    }
    return rc;
}

/* An area beyond the limit is passed over; the first one is reported. */
static int pass_area(struct tl_perf_decode *d, uint64_t max, uint64_t offset, uint64_t size)
{
    char reason[160];
    if (d->left_out)
        return TL_OK;
    d->left_out = true;
    snprintf(reason, sizeof reason,
             "there are more than %llu AUX areas in the first %llu bytes of the file: the bytes of "
             "others are left out",
             (unsigned long long)max, (unsigned long long)offset);
    return tl_perf_report_loss(d, NULL, reason, offset, size, true);
}

/* Is what AUX records tell of not decoded piece by piece? */
static bool tells_once(const struct tl_perf_decode *d)
{
    return d->info.kind == TL_PERF_TRACE_PT || d->info.kind == TL_PERF_TRACE_SPE;
}

static int begin_piece(struct tl_perf_decode *d, const struct tl_perf_area *area, uint64_t offset)
{
    struct tl_perf_area_state *a;
    const uint64_t max = tl_perf_areas_max(offset);
    const int rc = tl_perf_area_of(d, area->cpu, area->tid, area->idx, max, &a);
    d->passes = rc == TL_LIMIT;
    if (rc < 0)
        return d->passes ? pass_area(d, max, offset, area->size) : rc;
    if (a->n_pieces > 0) {
        const struct tl_perf_piece *const before = &a->pieces[a->n_pieces - 1];
        a->is_mixed |=
            area->offset < before->offset || area->offset - before->offset < before->size;
    }
    if (tl_grow(&a->pieces, &a->cap_pieces, a->n_pieces + 1, sizeof *a->pieces) < 0)
        return TL_NOMEM;
    d->filling = a;
    a->pieces[a->n_pieces++] = (struct tl_perf_piece){
        .position = a->position + a->bytes.n,
        .at = offset,
        .offset = area->offset,
        .size = area->size,
        .whole = area->size == 0,
    };
    return tells_once(d) ? tl_perf_promised_hole(a, &a->pieces[a->n_pieces - 1]) : TL_OK;
}

static int on_area(void *context, const struct tl_perf_area *area, uint64_t at,
                   struct tl_bytes bytes, uint64_t offset)
{
    struct tl_perf_decode *const d = context;
    if (at == 0 && bytes.n == 0)
        return begin_piece(d, area, offset);
    return d->passes ? TL_OK : fill(d->filling, bytes, at + bytes.n == area->size);
}

/* Without an AUXTRACE_INFO the setup may define the contents of areas. */
static void take_setup(struct tl_perf_decode *d)
{
    for (size_t i = 0; i < d->setup->n_sources && d->info.kind == TL_PERF_TRACE_NONE; i++)
        if (d->setup->sources[i].protocol == TL_PROTO_PT)
            d->info.kind = TL_PERF_TRACE_PT;
}

/* Decode everything that is final. */
static int go_on(struct tl_perf_decode *d, bool last)
{
    int rc = tl_perf_events_continue(d);
    if (last && d->info.kind == TL_PERF_TRACE_NONE)
        take_setup(d);
    if (rc < 0)
        return rc;
    if (d->info.kind == TL_PERF_TRACE_CORESIGHT || d->info.kind == TL_PERF_TRACE_RISCV)
        return tl_perf_cs_continue(d, last);
    if (d->info.kind == TL_PERF_TRACE_SPE)
        return tl_perf_spe_continue(d, last);
    return d->info.kind == TL_PERF_TRACE_PT ? tl_perf_pt_continue(d, last) : TL_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct tl_perf_decode *const d = context;
    d->trouble++;
    return tl_perf_report_loss(d, NULL, reason, offset, bytes, true);
}

static int on_info(struct tl_perf_decode *d, const struct tl_perf_raw *raw)
{
    struct tl_fail fail = {0};
    if (d->info.kind != TL_PERF_TRACE_NONE)
        return TL_OK;
    const int rc = tl_perf_info_read(&d->info, tl_perf_reader_swaps(d->reader), raw->body, &fail);
    if (rc == TL_OK && d->info.kind == TL_PERF_TRACE_PT &&
        !tl_perf_attrs_by_type(tl_perf_reader_attrs(d->reader), d->info.pmu))
        return on_loss(d, "no event has the trace's PMU type: perf's default options are assumed",
                       raw->offset, 0);
    if (rc == TL_OK || rc == TL_NOMEM)
        return rc;
    d->hopeless = rc == TL_UNSUPPORTED;
    d->trouble++;
    return tl_perf_report_loss(d, NULL, fail.text, raw->offset, 0, true);
}

struct tl_clock tl_perf_axis(const struct tl_perf_decode *d)
{
    return tl_perf_info_axis(&d->info,
                             tl_perf_attrs_by_type(tl_perf_reader_attrs(d->reader), d->info.pmu));
}

bool tl_perf_area_has(const struct tl_perf_area_state *a, const struct tl_perf_filled *f)
{
    return a->cpu >= 0 ? a->cpu == f->cpu : a->tid == f->tid;
}

bool tl_perf_area_overwrites(const struct tl_perf_area_state *a)
{
    const struct tl_perf_decode *const d = a->owner;
    for (size_t i = 0; i < d->n_filled && !d->info.snapshot; i++)
        if (d->filled[i].flags & TL_PERF_AUX_OVERWRITE && tl_perf_area_has(a, &d->filled[i]))
            return true;
    return d->info.snapshot;
}

/* For Intel PT and SPE: does the record have new information? */
static bool is_news(const struct tl_perf_decode *d, const struct tl_perf_filled *f)
{
    for (size_t i = 0; i < d->n_filled && f->flags & TL_PERF_AUX_OVERWRITE; i++)
        if (d->filled[i].flags == f->flags && d->filled[i].cpu == f->cpu &&
            d->filled[i].tid == f->tid)
            return false;
    return f->flags & (TL_PERF_AUX_OVERWRITE | TL_PERF_AUX_TRUNCATED);
}

/* Report flags of AUX records about their bytes, once each. */
static int report_flags(struct tl_perf_decode *d, const struct tl_perf_record *r)
{
    static const struct {
        uint64_t flag;
        const char *text;
    } flags[] = {
        {TL_PERF_AUX_PARTIAL, "an AUX record says that trace is missing within its bytes"},
        {TL_PERF_AUX_COLLISION, "an AUX record says that others used the trace sink, too"},
    };
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < sizeof flags / sizeof *flags; i++)
        if (r->aux.flags & flags[i].flag & ~d->reported_flags) {
            d->reported_flags |= flags[i].flag;
            rc = tl_perf_report_loss(d, NULL, flags[i].text, r->offset, 0, false);
        }
    return rc;
}

static int on_aux(struct tl_perf_decode *d, const struct tl_perf_record *r)
{
    const struct tl_perf_filled f = {
        .cpu = r->has_cpu ? (int64_t)r->cpu : -1,
        .tid = r->has_tid ? r->tid : -1,
        .offset = r->aux.offset,
        .size = r->aux.size,
        .flags = r->aux.flags,
        .time = r->time,
        .record = r->offset,
    };
    int rc = report_flags(d, r);
    if (rc == TL_OK && tells_once(d))
        rc = tl_perf_promise(d, &f);
    if (rc < 0)
        return rc;
    if (tells_once(d) && (d->n_filled >= MAX_FILLED || !is_news(d, &f)))
        return TL_OK;
    if (tl_grow(&d->filled, &d->cap_filled, d->n_filled + 1, sizeof *d->filled) < 0)
        return TL_NOMEM;
    d->filled[d->n_filled++] = f;
    d->n_truncated += f.flags & TL_PERF_AUX_TRUNCATED && f.size > 0;
    return TL_OK;
}

static int on_hw_id(struct tl_perf_decode *d, const struct tl_perf_record *r)
{
    if (r->has_cpu)
        tl_perf_info_hw_id(&d->info, r->cpu, r->hw_id);
    return TL_OK;
}

/* Trace in a sample is a snapshot of the preceding execution. */
static int on_aux_sample(struct tl_perf_decode *d, const struct tl_perf_sample *s, uint64_t offset,
                         bool packed)
{
    const struct tl_perf_area area = tl_perf_sample_area(s);
    d->info.snapshot = true;
    const int rc = on_area(d, &area, 0, (struct tl_bytes){0}, offset);
    if (rc < 0 || d->passes)
        return rc;
    d->filling->pieces[d->filling->n_pieces - 1].copied = packed;
    return on_area(d, &area, 0, s->aux, offset);
}

/* A sample belongs to an event; sched:sched_switch may be the only source of context switches. */
static int on_sample(struct tl_perf_decode *d, const struct tl_perf_raw *raw)
{
    const bool swap = tl_perf_reader_swaps(d->reader);
    struct tl_perf_sample s;
    struct tl_perf_sched_switch sched;
    const struct tl_perf_attrs *const attrs = tl_perf_reader_attrs(d->reader);
    if (!d->setup->events && d->info.switches != TL_PERF_SWITCHES_TRACEPOINT && !attrs->aux_samples)
        return TL_OK;
    int rc = tl_perf_sample_read(&s, raw, swap, attrs);
    if (rc < 0)
        return rc == TL_BAD ? on_loss(d, "a sample is shorter than its fields", raw->offset, 0)
                            : TL_OK;
    if (s.aux.n > 0)
        rc = on_aux_sample(d, &s, raw->offset + 8 + (uint64_t)(s.aux.p - raw->body.p), raw->packed);
    if (rc == TL_OK && d->setup->events)
        rc = tl_perf_events_sample(d, &s, raw->offset);
    if (rc < 0 || d->info.switches != TL_PERF_SWITCHES_TRACEPOINT || !s.has_cpu ||
        !tl_perf_sched_switch_read(&sched, s.raw, swap, s.tid))
        return rc;
    const struct tl_perf_record r = {
        .type = TL_PERF_SWITCH_CPU_WIDE,
        .misc = TL_PERF_MISC_OUT,
        .offset = raw->offset,
        .has_time = s.time > 0,
        .has_cpu = true,
        .time = s.time,
        .cpu = s.cpu,
        .who = {.pid = -1, .tid = sched.to},
    };
    return tl_perf_sideband_add(&d->sideband, &r);
}

/*
 * End of a round: decode what is final. This looks at all areas and AUX records, so that there must
 * be so many new bytes that the time it takes is in proportion to the size of the file.
 */
static int on_round(struct tl_perf_decode *d, uint64_t offset)
{
    enum { PER_BYTE = 16 };
    const int rc = tl_perf_sideband_round(&d->sideband);
    const bool by_aux =
        d->info.kind == TL_PERF_TRACE_CORESIGHT || d->info.kind == TL_PERF_TRACE_RISCV;
    const uint64_t lost = by_aux ? d->n_filled : d->n_truncated;
    if (rc < 0 || offset - d->looked_at < d->n_areas * (1 + lost) / PER_BYTE)
        return rc < 0 ? rc : tl_perf_events_continue(d);
    d->looked_at = offset;
    return go_on(d, false);
}

static int take_record(struct tl_perf_decode *d, const struct tl_perf_raw *raw)
{
    const bool swap = tl_perf_reader_swaps(d->reader);
    struct tl_perf_record r;
    switch (raw->type) {
    case TL_PERF_AUXTRACE_INFO:
        return on_info(d, raw);
    case TL_PERF_SAMPLE:
        return on_sample(d, raw);
    case TL_PERF_TIME_CONV:
        tl_perf_info_clock(&d->info, swap, raw->body);
        return TL_OK;
    case TL_PERF_FINISHED_ROUND:
        return on_round(d, raw->offset);
    default:
        break;
    }
    int rc = tl_perf_record_read(&r, raw, swap, tl_perf_reader_attrs(d->reader));
    if (rc == TL_NOTFOUND)
        return TL_OK;
    if (rc == TL_BAD)
        return on_loss(d, "a record is shorter than its fields", raw->offset, 0);
    if (r.type == TL_PERF_AUX)
        rc = on_aux(d, &r);
    else if (r.type == TL_PERF_AUX_OUTPUT_HW_ID)
        rc = on_hw_id(d, &r);
    else if (r.type == TL_PERF_LOST)
        rc = tl_perf_report_loss(d, NULL,
                                 "perf lost records; processes and their memory may be wrong",
                                 r.offset, 0, false);
    else if (r.type == TL_PERF_LOST_SAMPLES && r.lost > 0)
        rc = tl_perf_report_loss(d, NULL, "perf lost samples; events may be missing", r.offset, 0,
                                 false);
    if (rc >= 0)
        rc = tl_perf_sideband_add(&d->sideband, &r);
    /* Events are those of the host. */
    return rc < 0 || !d->setup->events || r.machine ? rc : tl_perf_events_record(d, &r);
}

/* Because of a limit, later records were already taken as final. */
static int report_late(struct tl_perf_decode *d, uint64_t offset)
{
    char reason[160];
    d->late = true;
    snprintf(reason, sizeof reason,
             "a record comes after more than %u later ones, or %" PRIu64
             " MiB of trace: it, and others like it, count as later than they were",
             TL_PERF_WAITING_MAX / 2, d->held_max >> 20);
    return tl_perf_report_loss(d, NULL, reason, offset, 0, true);
}

static int on_record(void *context, const struct tl_perf_raw *raw)
{
    enum { OFTEN = 1024 };
    struct tl_perf_decode *const d = context;
    int rc = take_record(d, raw);
    if (rc >= 0 && d->sideband.late > 0 && !d->late)
        rc = report_late(d, raw->offset);
    return rc < 0 || ++d->records % OFTEN ? rc : tl_give_way();
}

/* ---- tl_decode_ops --------------------------------------------------------------------------- */

static void destroy(struct tl_decode *decode)
{
    struct tl_perf_decode *const d = (struct tl_perf_decode *)decode;
    if (!d)
        return;
    for (size_t i = 0; i < d->n_areas; i++)
        area_free(d->areas[i]);
    for (size_t i = 0; i < d->n_streams; i++)
        free(d->streams[i]);
    free(d->areas);
    free(d->filled);
    free(d->streams);
    tl_perf_map_fini(&d->by_area);
    tl_perf_promised_fini(d);
    tl_perf_map_fini(&d->by_tid);
    tl_perf_events_fini(&d->events);
    tl_perf_sideband_fini(&d->sideband);
    tl_perf_info_fini(&d->info);
    tl_perf_reader_free(d->reader);
    free(d);
}

static int create(struct tl_decode **out, const struct tl_setup *setup,
                  const struct tl_image *image, const struct tl_decode_sink *sink,
                  struct tl_fail *fail)
{
    struct tl_perf_decode *const d = calloc(1, sizeof *d);
    const struct tl_perf_reader_sink from_reader = {
        .context = d, .record = on_record, .area = on_area, .loss = on_loss};
    if (!d || tl_perf_reader_new(&d->reader, &from_reader) < 0) {
        free(d);
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    d->base.ops = &tl_perf_ops;
    d->setup = setup;
    d->image = image;
    d->sink = *sink;
    d->held_max = TL_PERF_HELD_MAX;
    *out = &d->base;
    return TL_OK;
}

static int flush(struct tl_decode *decode)
{
    struct tl_perf_decode *const d = (struct tl_perf_decode *)decode;
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < d->n_areas; i++) {
        struct tl_stream_decoder *const s = d->areas[i]->decoder;
        rc = s && s->ops->flush ? s->ops->flush(s) : TL_OK;
    }
    return rc;
}

static int push(struct tl_decode *decode, const uint8_t *p, size_t n)
{
    struct tl_perf_decode *const d = (struct tl_perf_decode *)decode;
    const int rc = tl_perf_reader_push(d->reader, (struct tl_bytes){p, n});
    return rc < 0 || d->base.share.crew ? rc : flush(decode);
}

static int finish(struct tl_decode *decode)
{
    struct tl_perf_decode *const d = (struct tl_perf_decode *)decode;
    int rc = tl_perf_reader_finish(d->reader);
    if (rc == TL_OK)
        rc = tl_perf_sideband_end(&d->sideband);
    if (rc == TL_OK)
        rc = go_on(d, true);
    if (rc == TL_OK && tells_once(d))
        rc = tl_perf_promised_check(d);
    if (rc == TL_OK && d->info.kind == TL_PERF_TRACE_NONE && !d->trouble &&
        !(d->setup->events && d->n_streams > 0))
        rc = tl_perf_report_loss(d, NULL,
                                 d->n_areas ? "no AUXTRACE_INFO, and no source by --config"
                                            : "there is no hardware trace in it",
                                 0, tl_perf_held(d), true);
    return rc;
}

static size_t bytes(struct tl_decode *decode)
{
    const struct tl_perf_decode *const d = (struct tl_perf_decode *)decode;
    size_t n = tl_perf_sideband_bytes(&d->sideband) + tl_perf_events_bytes(&d->events) +
               tl_perf_promised_bytes(d) + d->cap_filled * sizeof *d->filled +
               d->n_streams * sizeof **d->streams;
    for (size_t i = 0; i < d->n_areas; i++)
        n += sizeof **d->areas + d->areas[i]->bytes.cap +
             d->areas[i]->cap_pieces * sizeof *d->areas[i]->pieces +
             tl_stream_bytes(d->areas[i]->decoder);
    return n;
}

const struct tl_decode_ops tl_perf_ops = {
    .bytes = bytes,
    .name = "perf",
    .create = create,
    .push = push,
    .flush = flush,
    .finish = finish,
    .destroy = destroy,
    .state = tl_perf_state,
};
