/* SPDX-License-Identifier: MIT */
/*
 * Writes and finds the checksums of all blocks of a shard apart from the index. If the index is
 * damaged they still tell where each block is and whether it is intact.
 */
#include "shard/sums.h"

#include "base/crc32c.h"
#include "shard/varint.h"

#include <stdlib.h>

static const char magic[8] = "TLSUMS01";

#define HEAD 24 /* size before the list */
#define TAIL 4  /* size after the list */

void tl_sums_fini(struct tl_sums *sums)
{
    free(sums->sums);
    *sums = (struct tl_sums){0};
}

size_t tl_sums_size(const struct tl_shard_index *index)
{
    return HEAD + 8 * (index->n_frames + index->n_chunks) + TAIL;
}

static uint8_t *put_sum(uint8_t *p, uint32_t size, uint32_t crc)
{
    tl_put_le32(p, size);
    tl_put_le32(p + 4, crc);
    return p + 8;
}

void tl_sums_put(const struct tl_shard_index *index, const struct tl_shard_footer *footer,
                 uint8_t *out)
{
    memcpy(out, magic, sizeof(magic));
    tl_put_le32(out + 8, (uint32_t)index->n_frames);
    tl_put_le32(out + 12, (uint32_t)index->n_chunks);
    uint8_t *p = put_sum(out + 16, (uint32_t)footer->body_size, footer->body_crc);
    for (size_t i = 0; i < index->n_frames; i++)
        p = put_sum(p, index->frames[i].size, index->frames[i].crc);
    for (size_t i = 0; i < index->n_chunks; i++)
        p = put_sum(p, index->chunks[i].items_size, index->chunks[i].items_crc);
    tl_put_le32(p, tl_crc32c(0, out, (size_t)(p - out)));
}

static struct tl_sum get_sum(const uint8_t *p)
{
    return (struct tl_sum){tl_le32(p), tl_le32(p + 4)};
}

/* Are there sums at the begin of `bytes`? */
static int read_sums(struct tl_bytes bytes, struct tl_sums *out)
{
    if (bytes.n < HEAD + TAIL)
        return TL_NOTFOUND;
    const uint64_t frames = tl_le32(bytes.p + 8), blocks = tl_le32(bytes.p + 12);
    if (frames + blocks > (bytes.n - HEAD - TAIL) / 8)
        return TL_NOTFOUND;
    const size_t n = (size_t)(frames + blocks), checked = HEAD + 8 * n;
    if (tl_le32(bytes.p + checked) != tl_crc32c(0, bytes.p, checked))
        return TL_NOTFOUND;
    out->sums = malloc((n + 1) * sizeof(*out->sums));
    if (!out->sums)
        return TL_NOMEM;
    out->size = checked + TAIL;
    out->n_frames = (uint32_t)frames;
    out->n_blocks = (uint32_t)blocks;
    out->body = get_sum(bytes.p + 16);
    for (size_t i = 0; i < n; i++)
        out->sums[i] = get_sum(bytes.p + HEAD + 8 * i);
    return TL_OK;
}

int tl_sums_find(struct tl_bytes file, struct tl_sums *out)
{
    const uint8_t *p = file.p, *const end = file.p + file.n;
    *out = (struct tl_sums){0};
    while (p < end && (p = memmem(p, (size_t)(end - p), magic, sizeof(magic))) != NULL) {
        const int r = read_sums((struct tl_bytes){p, (size_t)(end - p)}, out);
        out->at = (size_t)(p - file.p);
        if (r != TL_NOTFOUND)
            return r;
        p++;
    }
    return TL_NOTFOUND;
}

/* ---- chunk heads ---------------------------------------------------------------------------- */

int tl_chunk_head_encode(const struct tl_chunk *chunk, struct tl_buf *out)
{
    int r = tl_varint_add(out, chunk->first);
    if (r >= 0)
        r = tl_varint_add(out, chunk->marker);
    if (r >= 0)
        r = tl_varint_add(out, chunk->stf);
    return r < 0 ? r : tl_flow_now_encode(&chunk->at, out);
}

int tl_chunk_head_decode(struct tl_chunk *chunk, struct tl_bytes bytes)
{
    struct tl_varint_reader r = {bytes.p, bytes.p + bytes.n, false};
    *chunk = (struct tl_chunk){0};
    chunk->first = tl_varint_get(&r);
    chunk->marker = tl_varint_get(&r);
    const uint64_t stf = tl_varint_get(&r);
    if (r.bad || stf > UINT32_MAX)
        return TL_BAD;
    chunk->stf = (uint32_t)stf;
    return tl_flow_now_decode(&chunk->at, (struct tl_bytes){r.p, (size_t)(r.end - r.p)});
}
