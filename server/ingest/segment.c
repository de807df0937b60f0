/* SPDX-License-Identifier: MIT */
#include "ingest/segment.h"

#include "base/crc32c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char segment_magic[8] = "TLSPOOL1";
#define OLD_HEAD 20 /* of blocks without their arrival */

static const char block_magic[4] = "TLB2";
static const char old_magic[4] = "TLB1";

char *tl_segment_key(char out[static 128], const char *name, uint64_t first)
{
    snprintf(out, 128, "r/%s/%016" PRIx64 ".seg", name, first);
    return out;
}

static int take_name(void *context, const char *key, uint64_t size)
{
    struct tl_segments *segments = context;
    (void)size;
    const char *slash = strrchr(key, '/');
    char *end;
    const uint64_t first = slash ? strtoull(slash + 1, &end, 16) : 0;
    if (!slash || end != slash + 17 || strcmp(end, ".seg") != 0)
        return TL_OK; /* not one of ours */
    const int r =
        tl_grow(&segments->first, &segments->cap, segments->n + 1, sizeof(*segments->first));
    if (r < 0)
        return r;
    segments->first[segments->n++] = first;
    return TL_OK;
}

int tl_segments_list(struct tl_segments *out, struct tl_backend *backend, const char *name,
                     struct tl_fail *fail)
{
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "r/%s", name);
    out->n = 0;
    /* Keys come in order, and their hexadecimal digits sort as the numbers do. */
    return backend->ops->list(backend, prefix, take_name, out, fail);
}

void tl_segments_fini(struct tl_segments *segments)
{
    free(segments->first);
    *segments = (struct tl_segments){0};
}

long tl_segments_find(const struct tl_segments *segments, uint64_t offset)
{
    size_t low = 0, high = segments->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (segments->first[middle] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return (long)low - 1;
}

void tl_segment_head(uint8_t out[static TL_SEGMENT_HEAD], uint64_t first)
{
    memcpy(out, segment_magic, 8);
    tl_put_le64(out + 8, first);
}

void tl_block_head(uint8_t out[static TL_BLOCK_HEAD], uint64_t offset, uint64_t arrival,
                   struct tl_bytes data)
{
    memcpy(out, block_magic, 4);
    tl_put_le32(out + 4, (uint32_t)data.n);
    tl_put_le64(out + 8, offset);
    tl_put_le64(out + 16, arrival);
    tl_put_le32(out + 24, tl_crc32c(tl_crc32c(0, out, 24), data.p, data.n));
}

/* As the block's head, that was read into `block`, would be if `data` is what it was made of. */
static uint32_t block_crc(const struct tl_spool_block *block, struct tl_bytes data)
{
    uint8_t head[TL_BLOCK_HEAD];
    tl_block_head(head, block->offset, block->arrival, data);
    if (block->head == TL_BLOCK_HEAD)
        return tl_le32(head + 24);
    memcpy(head, old_magic, 4);
    return tl_crc32c(tl_crc32c(0, head, 16), data.p, data.n);
}

/* TL_BAD: no block of `offset` begins like this. */
static int parse_head(const struct tl_buf *buf, uint64_t offset, struct tl_spool_block *out)
{
    const uint8_t *const p = buf->p;
    const bool old = buf->n >= OLD_HEAD && memcmp(p, old_magic, 4) == 0;
    if (!old && (buf->n < TL_BLOCK_HEAD || memcmp(p, block_magic, 4) != 0))
        return TL_BAD;
    *out = (struct tl_spool_block){.offset = offset,
                                   .n = tl_le32(p + 4),
                                   .crc = tl_le32(p + (old ? 16 : 24)),
                                   .head = old ? OLD_HEAD : TL_BLOCK_HEAD,
                                   .arrival = old ? 0 : tl_le64(p + 16)};
    return tl_le64(p + 8) == offset ? TL_OK : TL_BAD;
}

int tl_block_read_head(struct tl_log *log, uint64_t at, uint64_t offset, struct tl_spool_block *out,
                       struct tl_fail *fail)
{
    struct tl_buf buf = {0};
    int r = log->ops->log_read(log, at, TL_BLOCK_HEAD, &buf, fail);
    if (r >= 0 && buf.n == 0) {
        r = TL_EOF;
    } else if (r >= 0 && parse_head(&buf, offset, out) < 0) {
        r = tl_fail_at(fail, TL_BAD, offset, "no block of the raw capture begins here");
    } else if (r >= 0 && (out->n == 0 || out->n > TL_BLOCK_BYTES)) {
        r = tl_fail_at(fail, TL_BAD, offset, "a block of the raw capture has no valid length");
    }
    tl_buf_fini(&buf);
    return r;
}

int tl_block_read_data(struct tl_log *log, uint64_t at, const struct tl_spool_block *block,
                       struct tl_buf *out, struct tl_fail *fail)
{
    const size_t before = out->n;
    const int r = log->ops->log_read(log, at + block->head, block->n, out, fail);
    if (r < 0)
        return r;
    const struct tl_bytes data = {out->p + before, out->n - before};
    if (data.n == block->n && block_crc(block, data) == block->crc)
        return TL_OK;
    out->n = before;
    return tl_fail_at(fail, TL_BAD, block->offset, "a block of the raw capture is damaged");
}

static int scan_blocks(struct tl_log *log, bool check, struct tl_segment_extent *at,
                       struct tl_buf *data, struct tl_fail *fail)
{
    for (;;) {
        struct tl_spool_block block;
        int r = tl_block_read_head(log, at->bytes, at->end, &block, fail);
        if (r == TL_EOF || r == TL_BAD)
            return TL_OK;
        if (r < 0)
            return r;
        data->n = 0;
        /* Unchecked, the last byte's presence is enough. */
        if (check)
            r = tl_block_read_data(log, at->bytes, &block, data, fail);
        else
            r = log->ops->log_read(log, at->bytes + block.head + block.n - 1, 1, data, fail);
        if (r == TL_BAD || (r >= 0 && data->n == 0))
            return TL_OK;
        if (r < 0)
            return r;
        at->bytes += block.head + block.n;
        at->end += block.n;
    }
}

int tl_segment_scan(struct tl_log *log, uint64_t first, bool check, struct tl_segment_extent *out,
                    struct tl_fail *fail)
{
    struct tl_buf buf = {0};
    uint8_t head[TL_SEGMENT_HEAD];
    tl_segment_head(head, first);
    *out = (struct tl_segment_extent){first, 0};
    int r = log->ops->log_read(log, 0, TL_SEGMENT_HEAD, &buf, fail);
    if (r >= 0 && buf.n == TL_SEGMENT_HEAD && memcmp(buf.p, head, TL_SEGMENT_HEAD) == 0) {
        out->bytes = TL_SEGMENT_HEAD;
        r = scan_blocks(log, check, out, &buf, fail);
    }
    tl_buf_fini(&buf);
    return r < 0 ? r : TL_OK;
}
