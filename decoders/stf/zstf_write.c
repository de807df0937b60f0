/* SPDX-License-Identifier: MIT */
/*
 * Writes the .zstf container: see zstf.h for its layout and rules. Frames contain their size, so
 * that a reader knows the space that it needs.
 */
#include "stf/zstf.h"

#include <stdlib.h>
#include <zstd.h>

struct tl_zstf_packer {
    ZSTD_CCtx *zstd;
    int level;
};

struct tl_zstf_writer {
    uint64_t markers; /* per chunk */
    struct tl_zstf_packer *packer;
    uint64_t offset;  /* file offset of the next byte */
    bool short_chunk; /* the last chunk was not full: nothing may follow */
    struct tl_zstf_entry *entries;
    size_t n, cap;
};

int tl_zstf_packer_new(struct tl_zstf_packer **out, int level)
{
    struct tl_zstf_packer *const packer = calloc(1, sizeof *packer);
    if (!packer)
        return TL_NOMEM;
    packer->level = level ? level : TL_ZSTF_LEVEL;
    packer->zstd = ZSTD_createCCtx();
    if (!packer->zstd) {
        free(packer);
        return TL_NOMEM;
    }
    *out = packer;
    return TL_OK;
}

void tl_zstf_packer_free(struct tl_zstf_packer *packer)
{
    if (!packer)
        return;
    ZSTD_freeCCtx(packer->zstd);
    free(packer);
}

/* Compress to one frame that includes its content size, so that readers know the space needed. */
int tl_zstf_pack(struct tl_zstf_packer *packer, struct tl_bytes stf, struct tl_buf *out)
{
    const size_t bound = ZSTD_compressBound(stf.n);
    const int result = tl_buf_reserve(out, bound);
    if (result < 0)
        return result;
    const size_t n =
        ZSTD_compressCCtx(packer->zstd, out->p + out->n, bound, stf.p, stf.n, packer->level);
    if (ZSTD_isError(n))
        return TL_NOMEM;
    out->n += n;
    return TL_OK;
}

int tl_zstf_writer_new(struct tl_zstf_writer **out, uint64_t markers, int level)
{
    struct tl_zstf_writer *const w = calloc(1, sizeof *w);
    if (!w)
        return TL_NOMEM;
    w->markers = markers ? markers : TL_ZSTF_MARKERS;
    const int result = tl_zstf_packer_new(&w->packer, level);
    if (result < 0)
        free(w);
    else
        *out = w;
    return result;
}

void tl_zstf_writer_free(struct tl_zstf_writer *writer)
{
    if (!writer)
        return;
    tl_zstf_packer_free(writer->packer);
    free(writer->entries);
    free(writer);
}

void tl_zstf_head(uint8_t head[static TL_ZSTF_HEAD], uint64_t markers, uint64_t index)
{
    memcpy(head, "ZSTF", 4);
    tl_put_le64(head + 4, markers);
    tl_put_le64(head + 12, index);
}

int tl_zstf_writer_begin(struct tl_zstf_writer *writer, struct tl_buf *out)
{
    uint8_t head[TL_ZSTF_HEAD];
    tl_zstf_head(head, writer->markers, 0);
    writer->n = 0;
    writer->short_chunk = false;
    writer->offset = TL_ZSTF_HEAD;
    return tl_buf_add(out, head, sizeof head);
}

/* Is a chunk of `markers` allowed now? */
static int check_chunk(const struct tl_zstf_writer *writer, uint64_t markers)
{
    return writer->short_chunk || markers > writer->markers ? TL_USAGE : TL_OK;
}

static int add_entry(struct tl_zstf_writer *writer, uint64_t compressed, uint64_t size,
                     uint64_t markers, uint64_t start_pc)
{
    const int result =
        tl_grow(&writer->entries, &writer->cap, writer->n + 1, sizeof *writer->entries);
    if (result < 0)
        return result;
    writer->entries[writer->n] = (struct tl_zstf_entry){
        .offset = writer->offset, .start_pc = writer->n ? start_pc : 0, .size = size};
    writer->n++;
    writer->offset += compressed;
    writer->short_chunk = markers < writer->markers;
    return TL_OK;
}

int tl_zstf_writer_chunk(struct tl_zstf_writer *writer, struct tl_bytes stf, uint64_t markers,
                         uint64_t start_pc, struct tl_buf *out)
{
    int result = check_chunk(writer, markers);
    if (result < 0)
        return result;
    const size_t before = out->n;
    result = tl_zstf_pack(writer->packer, stf, out);
    if (result < 0)
        return result;
    result = add_entry(writer, out->n - before, stf.n, markers, start_pc);
    if (result < 0)
        out->n = before;
    return result;
}

int tl_zstf_writer_frame(struct tl_zstf_writer *writer, struct tl_bytes frame, uint64_t size,
                         uint64_t markers, uint64_t start_pc, struct tl_buf *out)
{
    int result = check_chunk(writer, markers);
    if (result < 0)
        return result;
    result = tl_buf_reserve(out, frame.n);
    if (result < 0)
        return result;
    result = add_entry(writer, frame.n, size, markers, start_pc);
    return result < 0 ? result : tl_buf_add(out, frame.p, frame.n);
}

int tl_zstf_writer_skip(struct tl_zstf_writer *writer, uint64_t n, uint64_t size, uint64_t markers,
                        uint64_t start_pc)
{
    const int result = check_chunk(writer, markers);
    return result < 0 ? result : add_entry(writer, n, size, markers, start_pc);
}

int tl_zstf_writer_finish(struct tl_zstf_writer *writer, struct tl_bytes private,
                          struct tl_buf *out, uint8_t head[static TL_ZSTF_HEAD])
{
    if (writer->n == 0)
        return TL_USAGE;
    const size_t size = 8 + 24 * writer->n;
    const int result = tl_buf_reserve(out, size + private.n);
    if (result < 0)
        return result;
    uint8_t *p = out->p + out->n;
    tl_put_le64(p, writer->n);
    p += 8;
    for (size_t i = 0; i < writer->n; i++, p += 24) {
        tl_put_le64(p, writer->entries[i].offset);
        tl_put_le64(p + 8, writer->entries[i].start_pc);
        tl_put_le64(p + 16, writer->entries[i].size);
    }
    if (private.n)
        memcpy(p, private.p, private.n);
    out->n += size + private.n;
    tl_zstf_head(head, writer->markers, writer->offset);
    writer->offset += size + private.n;
    return TL_OK;
}
