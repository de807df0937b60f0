/* SPDX-License-Identifier: MIT */
/*
 * Reads a capture's raw bytes and setup. Packed segments and those still in the spool look the same
 * to a caller.
 */
#include "base/recent.h"
#include "lake/lakeint.h"
#include "lake_raw.h"

#include <stdlib.h>

struct tl_raw_range {
    struct tl_trace *trace;
    struct tl_spool_reader *reader;
    uint64_t at, end;
};

/* ---- readers -------------------------------------------------------------------------------- */

/*
 * A reader that has found the segments of a capture is kept for the next range of it, which then
 * takes one read of the store: of the bytes.
 */
static int take_reader(struct tl_lake *lake, const char *trace, struct tl_spool_reader **out)
{
    struct tl_spool_reader *found = NULL;
    pthread_mutex_lock(&lake->cache_lock);
    for (size_t i = 0; i < TL_READERS && lake->readers[i] && !found; i++)
        if (strcmp(tl_spool_reader_name(lake->readers[i]), trace) == 0)
            tl_recent_take(lake->readers, sizeof found, TL_READERS, i, &found);
    pthread_mutex_unlock(&lake->cache_lock);
    *out = found;
    return found ? TL_OK : tl_spool_reader_new(out, lake->backend, trace);
}

static void keep_reader(struct tl_lake *lake, struct tl_spool_reader *reader)
{
    struct tl_spool_reader *last;
    tl_spool_reader_rest(reader);
    pthread_mutex_lock(&lake->cache_lock);
    tl_recent_put(lake->readers, sizeof reader, TL_READERS, &reader, &last);
    pthread_mutex_unlock(&lake->cache_lock);
    tl_spool_reader_free(last);
}

void tl_lake_forget_readers(struct tl_lake *lake)
{
    for (size_t i = 0; i < TL_READERS; i++) {
        tl_spool_reader_free(lake->readers[i]);
        lake->readers[i] = NULL;
    }
}

/* ---- ranges --------------------------------------------------------------------------------- */

int tl_raw_open(struct tl_lake *lake, const char *id, uint64_t from, uint64_t to,
                struct tl_raw_range **out, struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_content(lake, id);
    if (!trace)
        return tl_no_content(lake, fail, id);
    pthread_mutex_lock(&trace->lock);
    const uint64_t durable = trace->raw_bytes;
    const bool removed = trace->raw_removed;
    pthread_mutex_unlock(&trace->lock);
    struct tl_raw_range *range = NULL;
    int r = TL_OK;
    if (removed)
        r = tl_fail_set(fail, TL_DENIED, "the raw bytes of %s were removed by retention", id);
    else if (from > durable || to < from)
        r = tl_fail_set(fail, TL_USAGE, "%s has %llu bytes: none from %llu on", id,
                        (unsigned long long)durable, (unsigned long long)from);
    else if (!(range = calloc(1, sizeof(*range))) ||
             take_reader(lake, trace->id, &range->reader) < 0)
        r = tl_fail_set(fail, TL_NOMEM, "no memory");
    if (r < 0) {
        free(range);
        tl_trace_put(trace);
        return r;
    }
    range->trace = trace;
    range->at = from;
    range->end = to < durable ? to : durable;
    *out = range;
    return TL_OK;
}

int tl_raw_next(struct tl_raw_range *range, uint64_t *offset, struct tl_buf *out,
                struct tl_fail *fail)
{
    const size_t before = out->n;
    *offset = range->at;
    if (range->at == range->end)
        return TL_EOF;
    const int r = tl_spool_read(range->reader, range->at, range->end, out, fail);
    range->at += out->n - before;
    if (r == TL_BAD || r == TL_NOTFOUND || r == TL_EOF)
        return tl_fail_at(fail, TL_IO, range->at,
                          "the raw bytes of %s are damaged or missing from offset 0x%llx on; "
                          "`tracelake verify %s` says how far",
                          range->trace->id, (unsigned long long)range->at, range->trace->id);
    return r;
}

uint64_t tl_raw_arrival(const struct tl_raw_range *range, bool *lost)
{
    *lost = tl_spool_reader_rejoined(range->reader);
    return tl_spool_reader_arrival(range->reader);
}

void tl_raw_close(struct tl_raw_range *range)
{
    if (!range)
        return;
    keep_reader(range->trace->lake, range->reader);
    tl_trace_put(range->trace);
    free(range);
}

int tl_lake_setup(struct tl_lake *lake, const char *id, struct tl_buf *text, struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_content(lake, id);
    if (!trace)
        return tl_no_content(lake, fail, id);
    pthread_mutex_lock(&trace->lock);
    const int r = tl_buf_add(text, trace->setup, strlen(trace->setup) + 1);
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    return r < 0 ? tl_fail_set(fail, r, "no memory") : TL_OK;
}
