/* SPDX-License-Identifier: MIT */
/*
 * AUX records of the kernel tell how far it has filled a ring buffer; perf copies the bytes in
 * AUXTRACE records. What perf could not copy any more, as when it was killed, is missing without a
 * trace of it in the bytes, so both are compared at the end. They name a buffer by its CPU or its
 * thread: which of the two, only the AUXTRACE record tells.
 */
#include "perf/container.h"

#include <stdlib.h>

/* Bytes of a ring buffer in its running count; begin UINT64_MAX: none. */
struct extent {
    uint64_t begin, end;
};

struct tl_perf_promise {
    uint64_t key;           /* key_of() its buffer's owner */
    struct extent told;     /* by AUX records */
    uint64_t first, record; /* file offsets of the records that tell of its begin and end */
    struct extent came;     /* in AUXTRACE records */
};

static const struct extent nothing = {UINT64_MAX, 0};

static void widen(struct extent *e, uint64_t begin, uint64_t end)
{
    e->begin = begin < e->begin ? begin : e->begin;
    e->end = end > e->end ? end : e->end;
}

static uint64_t key_of(bool by_cpu, int64_t id)
{
    return (uint64_t)(uint32_t)id << 1 | by_cpu;
}

static int promise(struct tl_perf_decode *d, bool by_cpu, int64_t id,
                   const struct tl_perf_filled *f)
{
    if (id < 0)
        return TL_OK;
    const uint64_t key = key_of(by_cpu, id);
    const int64_t known = tl_perf_map_get(&d->by_owner, key);
    if (known < 0 &&
        (tl_grow(&d->promised, &d->cap_promised, d->n_promised + 1, sizeof *d->promised) < 0 ||
         tl_perf_map_set(&d->by_owner, key, d->n_promised) < 0))
        return TL_NOMEM;
    if (known < 0)
        d->promised[d->n_promised] =
            (struct tl_perf_promise){.key = key, .told = nothing, .came = nothing};
    struct tl_perf_promise *const p = &d->promised[known < 0 ? d->n_promised++ : (size_t)known];
    p->first = f->offset < p->told.begin ? f->record : p->first;
    p->record = f->offset + f->size > p->told.end ? f->record : p->record;
    widen(&p->told, f->offset, f->offset + f->size);
    return TL_OK;
}

int tl_perf_promise(struct tl_perf_decode *d, const struct tl_perf_filled *f)
{
    if (f->size == 0 || f->flags & TL_PERF_AUX_OVERWRITE)
        return TL_OK;
    const int rc = promise(d, true, f->cpu, f);
    return rc < 0 ? rc : promise(d, false, f->tid, f);
}

int tl_perf_promised_hole(struct tl_perf_area_state *a, const struct tl_perf_piece *piece)
{
    const uint64_t end = a->end;
    a->begin = a->n_pieces == 1 || piece->offset < a->begin ? piece->offset : a->begin;
    a->end = piece->offset + piece->size > end ? piece->offset + piece->size : end;
    if (a->n_pieces == 1 || piece->offset <= end || tl_perf_area_overwrites(a))
        return TL_OK;
    return tl_perf_report_loss(a->owner, NULL, "trace in front of an AUXTRACE record is missing",
                               piece->at, piece->offset - end, true);
}

static int report_missing(struct tl_perf_decode *d, uint64_t record, uint64_t bytes)
{
    return tl_perf_report_loss(d, NULL, "bytes that AUX records tell of are missing", record, bytes,
                               true);
}

int tl_perf_promised_check(struct tl_perf_decode *d)
{
    bool by_cpu = false;
    for (size_t i = 0; i < d->n_areas; i++) {
        const struct tl_perf_area_state *const a = d->areas[i];
        const uint64_t key = key_of(a->cpu >= 0, a->cpu >= 0 ? a->cpu : a->tid);
        const int64_t known = tl_perf_map_get(&d->by_owner, key);
        if (tl_perf_area_overwrites(a))
            return TL_OK;
        by_cpu |= a->cpu >= 0;
        if (known >= 0 && a->end > 0)
            widen(&d->promised[known].came, a->begin, a->end);
    }
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < d->n_promised; i++) {
        const struct tl_perf_promise *const p = &d->promised[i];
        if (p->came.end == 0) { /* if buffers are threads', the CPU that ran them has none */
            rc = by_cpu && p->key & 1 ? report_missing(d, p->first, p->told.end - p->told.begin)
                                      : TL_OK;
            continue;
        }
        if (p->told.begin < p->came.begin)
            rc = report_missing(d, p->first, p->came.begin - p->told.begin);
        if (rc == TL_OK && p->told.end > p->came.end)
            rc = report_missing(d, p->record, p->told.end - p->came.end);
    }
    return rc;
}

void tl_perf_promised_fini(struct tl_perf_decode *d)
{
    free(d->promised);
    tl_perf_map_fini(&d->by_owner);
}

size_t tl_perf_promised_bytes(const struct tl_perf_decode *d)
{
    return d->cap_promised * sizeof *d->promised + tl_perf_map_memory(&d->by_owner);
}

void tl_perf_promised_state(struct tl_perf_decode *d, struct tl_state *s)
{
    enum { PROMISE_MIN = 40 };
    tl_state_count(s, &d->promised, &d->n_promised, &d->cap_promised, sizeof *d->promised,
                   PROMISE_MIN);
    for (size_t i = 0; i < d->n_promised && s->rc >= 0; i++) {
        struct tl_perf_promise *const p = &d->promised[i];
        if (tl_state_loads(s))
            p->came = nothing;
        tl_state_u64(s, &p->key);
        tl_state_u64(s, &p->told.begin);
        tl_state_u64(s, &p->told.end);
        tl_state_u64(s, &p->first);
        tl_state_u64(s, &p->record);
        tl_state_check(s, !tl_state_loads(s) || tl_perf_map_get(&d->by_owner, p->key) < 0);
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, tl_perf_map_set(&d->by_owner, p->key, i));
    }
}
