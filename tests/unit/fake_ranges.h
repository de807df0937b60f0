/* SPDX-License-Identifier: MIT */
/* The fake lake's ranges: a part of fake_lake.c, whose structs it needs. */
#ifndef TL_TEST_FAKE_RANGES_H
#define TL_TEST_FAKE_RANGES_H

#include "lake_filter.h"

/* ---- ranges ------------------------------------------------------------------------------- */

struct tl_range {
    uint64_t at, first, end;
    size_t stored_at;
    bool begun;
    uint8_t *raw;
};

static int check_stream(const struct trace *t, const char *stream, struct tl_fail *fail)
{
    if (!t)
        return TL_NOTFOUND;
    if (strcmp(stream, STREAM))
        return tl_fail_set(fail, TL_NOTFOUND, "no stream \"%s\"", stream);
    return TL_OK;
}

int tl_range_open(struct tl_lake *lake, const struct tl_range_request *request,
                  struct tl_range **out, struct tl_fail *fail)
{
    slow();
    pthread_mutex_lock(&lake->lock);
    const struct trace *const t = find_locked(lake, request->trace);
    int rc = check_stream(t, request->stream, fail);
    if (rc == TL_OK && request->from > request->to)
        rc = tl_fail_set(fail, TL_USAGE, "from > to");
    if (rc == TL_OK) {
        struct tl_range *const range = calloc(1, sizeof *range);
        const uint64_t insns = t->durable / 4 - atomic_exchange(&fake.after, 0);
        range->end = request->to < insns ? request->to : insns;
        range->at = range->first = request->from < range->end ? request->from : range->end;
        range->raw = malloc(t->durable + 1);
        if (t->durable)
            memcpy(range->raw, t->raw.p, t->durable);
        *out = range;
        atomic_fetch_add(&fake.ranges, 1);
    }
    pthread_mutex_unlock(&lake->lock);
    return rc;
}

void tl_range_extent(const struct tl_range *range, uint64_t *first, uint64_t *count)
{
    *first = range->first;
    *count = range->end - range->first;
}

static void let_go_stored(void *owner)
{
    atomic_fetch_sub(&fake.pieces, 1);
}

int tl_range_next_stored(struct tl_range *range, struct tl_range_stored *out, struct tl_fail *fail)
{
    const size_t left = atomic_load(&fake.stored_n) - range->stored_at;
    *out = (struct tl_range_stored){0};
    if (!range->begun || range->at < range->end || !atomic_load(&fake.stored) || !left)
        return TL_AGAIN;
    const size_t n = left < FAKE_STORED ? left : FAKE_STORED;
    const int rc = tl_buf_add(&out->before, "B", 1);
    out->bytes = (struct tl_bytes){atomic_load(&fake.stored) + range->stored_at, n};
    out->let_go = let_go_stored;
    range->stored_at += n;
    atomic_fetch_add(&fake.pieces, 1);
    atomic_fetch_add(&fake.given, 1);
    return rc;
}

int tl_range_next(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    int rc = TL_OK;
    while (range->begun && atomic_load(&fake.mute))
        usleep(1000);
    if (!range->begun)
        rc = tl_buf_printf(out, "# stream " STREAM "\n");
    else if (range->at == range->end)
        return TL_EOF;
    range->begun = true;
    for (unsigned i = 0; i < PIECE && range->at < range->end && rc == TL_OK; i++, range->at++)
        rc = tl_buf_printf(out, "I %016" PRIx64 " %08x\n", range->at * 4,
                           tl_le32(range->raw + range->at * 4));
    return rc;
}

int tl_range_lines(struct tl_range *range, tl_line_sink *sink, void *context, struct tl_fail *fail)
{
    char line[64];
    if (range->at == range->end)
        return TL_EOF;
    const int n = snprintf(line, sizeof line, "I %016" PRIx64 " größe", range->at * 4);
    return sink(context, range->at++, (struct tl_bytes){(uint8_t *)line, (size_t)n});
}

bool tl_range_filter_given(const struct tl_range_filter *filter)
{
    return (filter->mode && *filter->mode) || (filter->process && *filter->process) ||
           (filter->thread && *filter->thread);
}

/* Nothing is left out. */
int tl_range_filter(struct tl_range *range, const struct tl_range_filter *filter,
                    struct tl_fail *fail)
{
    return TL_OK;
}

uint64_t tl_range_kept(const struct tl_range *range)
{
    return range->at;
}

void tl_range_close(struct tl_range *range)
{
    if (!range)
        return;
    atomic_fetch_sub(&fake.ranges, 1);
    free(range->raw);
    free(range);
}

#include "lake_filter.h"
#include "unit/fake_lake_looks.h"
#include "unit/fake_lake_timing.h"

#endif
