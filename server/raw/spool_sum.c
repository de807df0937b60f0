/* SPDX-License-Identifier: MIT */
/*
 * The checksum of the begin of a stored capture. The head of each block repeats it for the bytes
 * before the block, so that the capture is read only if it is packed, damaged or of an earlier
 * version.
 */
#include "raw/segment.h"
#include "raw/spool.h"

#include "base/cancel.h"
#include "base/crc32c.h"

/* Find the block in `log`, of the segment from `first`, that contains the byte before `end`. */
static int find_block(struct tl_log *log, uint64_t first, uint64_t end, uint64_t *at,
                      struct tl_spool_block *block, struct tl_fail *fail)
{
    uint64_t offset = first;
    *at = TL_SEGMENT_HEAD;
    for (;;) {
        int r = tl_cancel_check();
        if (r >= 0)
            r = tl_block_read_head(log, *at, offset, block, fail);
        if (r < 0)
            return r;
        offset += block->n;
        if (offset >= end)
            return TL_OK;
        *at += block->head + (uint64_t)block->n;
    }
}

static int sum_of_log(struct tl_log *log, uint64_t first, uint64_t end, uint32_t *sum,
                      struct tl_fail *fail)
{
    struct tl_spool_block block;
    struct tl_buf data = {0};
    uint64_t at;
    int r = find_block(log, first, end, &at, &block, fail);
    if (r >= 0 && !block.summed)
        r = TL_BAD;
    if (r >= 0)
        r = tl_block_read_data(log, at, &block, &data, fail);
    if (r >= 0)
        *sum = tl_crc32c(block.before, data.p, (size_t)(end - block.offset));
    tl_buf_fini(&data);
    return r;
}

/* From the block before `end`. TL_BAD, TL_NOTFOUND: not known there. */
static int sum_of_block(struct tl_backend *backend, const char *name, uint64_t end, uint32_t *sum,
                        struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    struct tl_log *log = NULL;
    char key[128];
    uint64_t size;
    int r = tl_segments_list(&segments, backend, name, fail);
    const long i = r < 0 ? -1 : tl_segments_find(&segments, end - 1);
    const uint64_t first = i < 0 ? 0 : segments.v[i].first;
    if (r >= 0 && (i < 0 || segments.v[i].packed))
        r = TL_BAD;
    tl_segments_fini(&segments);
    if (r >= 0)
        r = backend->ops->log_open(backend, tl_segment_key(key, name, first), false, &log, &size,
                                   fail);
    if (r < 0)
        return r;
    r = sum_of_log(log, first, end, sum, fail);
    log->ops->log_close(log);
    return r == TL_EOF ? TL_BAD : r;
}

static int sum_of_all(struct tl_backend *backend, const char *name, uint64_t end, uint32_t *sum,
                      struct tl_fail *fail)
{
    struct tl_spool_reader *reader;
    struct tl_buf piece = {0};
    uint64_t at = 0;
    int r = tl_spool_reader_new(&reader, backend, name);
    *sum = 0;
    if (r < 0)
        return r;
    while (r >= 0 && at < end) {
        tl_buf_reset(&piece);
        r = tl_cancel_check();
        if (r >= 0)
            r = tl_spool_read(reader, at, end, &piece, fail);
        if (r >= 0)
            *sum = tl_crc32c(*sum, piece.p, piece.n);
        at += piece.n;
    }
    tl_spool_reader_free(reader);
    tl_buf_fini(&piece);
    return r;
}

int tl_spool_sum(struct tl_backend *backend, const char *name, uint64_t end, uint32_t *sum,
                 struct tl_fail *fail)
{
    *sum = 0;
    if (end == 0)
        return TL_OK;
    const int r = sum_of_block(backend, name, end, sum, fail);
    return r == TL_BAD || r == TL_NOTFOUND ? sum_of_all(backend, name, end, sum, fail) : r;
}
