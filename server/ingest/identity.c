/* SPDX-License-Identifier: MIT */
/*
 * A capture is identified by its bytes, not by its name and length: every dump of a trace buffer is
 * equally long. Known hashes are compared; stored bytes are read only if the same ones are sent
 * again.
 */
#include "ingest/identity.h"
#include "lake/lakeint.h"
#include "share/share.h"

#include <inttypes.h>
#include <stdio.h>

void tl_identity_set_sum(struct tl_identity *identity, uint32_t sum)
{
    snprintf(identity->content, sizeof identity->content, "crc32c:%08" PRIx32, sum);
}

void tl_trace_identify(struct tl_trace *trace, struct tl_identity *out)
{
    uint32_t sum = 0;
    pthread_mutex_lock(&trace->lock);
    *out = (struct tl_identity){.durable = trace->raw_bytes, .complete = trace->complete};
    if (trace->complete)
        memcpy(out->content, trace->content, sizeof out->content);
    bool known = out->content[0] || trace->raw_removed || out->durable == 0;
    pthread_mutex_unlock(&trace->lock);
    if (known)
        return;
    known = !out->complete && tl_trace_pushed_sum(trace, &out->durable, &sum);
    if (!known)
        known = tl_spool_sum(trace->lake->backend, trace->id, out->durable, &sum, NULL) >= 0;
    if (known && out->durable > 0)
        tl_identity_set_sum(out, sum);
}

int tl_lake_identify(struct tl_lake *lake, const char *id, struct tl_identity *out,
                     struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_now(lake, id);
    if (!trace)
        return tl_no_trace(lake, fail, id);
    tl_trace_identify(trace, out);
    tl_trace_put(trace);
    return TL_OK;
}

static int differ(const struct tl_trace *trace, uint64_t offset, struct tl_fail *fail)
{
    return tl_fail_at(fail, TL_EXISTS, offset,
                      "trace %s has another byte %" PRIu64
                      ": it is another capture; push this one under another name",
                      trace->id, offset);
}

int tl_trace_compare(struct tl_trace *trace, uint64_t offset, struct tl_bytes bytes, uint64_t end,
                     struct tl_fail *fail)
{
    struct tl_spool_reader *reader;
    struct tl_buf piece = {0};
    pthread_mutex_lock(&trace->lock);
    const bool removed = trace->raw_removed;
    pthread_mutex_unlock(&trace->lock);
    if (removed)
        return tl_fail_at(fail, TL_DENIED, offset, "the raw bytes of trace %s were removed",
                          trace->id);
    int r = tl_spool_reader_new(&reader, trace->lake->backend, trace->id);
    if (r < 0)
        return tl_fail_set(fail, r, "no memory");
    while (bytes.n > 0 && offset < end) {
        const uint64_t to = bytes.n < end - offset ? offset + bytes.n : end;
        tl_buf_reset(&piece);
        r = tl_spool_read(reader, offset, to, &piece, fail);
        if (r < 0)
            break;
        size_t same = 0;
        while (same < piece.n && bytes.p[same] == piece.p[same])
            same++;
        if (same < piece.n) {
            r = differ(trace, offset + same, fail);
            break;
        }
        offset += piece.n;
        bytes = (struct tl_bytes){bytes.p + piece.n, bytes.n - piece.n};
    }
    tl_spool_reader_free(reader);
    tl_buf_fini(&piece);
    return r;
}
