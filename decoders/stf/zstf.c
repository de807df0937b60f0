/* SPDX-License-Identifier: MIT */
/*
 * Reads the .zstf container through its index. Files of other producers are allowed whatever the
 * format allows, on a slower path.
 */
#include "stf/zstf.h"

#include <assert.h>
#include <stdlib.h>
#include <zstd.h>

/* The index: a number of entries, and these. Bytes. */
enum { INDEX_HEAD = 8, INDEX_ENTRY = 24 };

static_assert(TL_ZSTF_CHUNK_MAX == 1 << 30, "as the message says");

struct tl_zstf {
    struct tl_zstf_input input;
    struct tl_bytes memory; /* the file, if it is in memory */
    uint64_t markers;       /* of a chunk */
    uint64_t index;         /* offset of the index */
    struct tl_zstf_entry *entries;
    size_t n;
    ZSTD_DCtx *zstd;
    struct tl_buf frame; /* compressed bytes read from `input` */
};

static int read_at(struct tl_zstf *zstf, uint64_t offset, size_t n, struct tl_bytes *out,
                   struct tl_fail *fail)
{
    if (zstf->memory.p) {
        *out = (struct tl_bytes){zstf->memory.p + offset, n};
        return TL_OK;
    }
    tl_buf_reset(&zstf->frame);
    int result = tl_buf_reserve(&zstf->frame, n ? n : 1);
    if (result < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    result = zstf->input.read(zstf->input.context, offset, zstf->frame.p, n, fail);
    *out = (struct tl_bytes){zstf->frame.p, n};
    return result;
}

/* Check that chunks are in order, between the head and the index. */
static int check_entries(const struct tl_zstf *zstf, struct tl_fail *fail)
{
    uint64_t min = TL_ZSTF_HEAD;
    for (size_t i = 0; i < zstf->n; i++) {
        if (zstf->entries[i].offset < min || zstf->entries[i].offset >= zstf->index)
            return tl_fail_at(fail, TL_BAD, zstf->index + INDEX_HEAD + INDEX_ENTRY * i,
                              "chunk index: chunk %zu lies outside the chunks' place", i);
        min = zstf->entries[i].offset + 1;
    }
    return TL_OK;
}

static int read_entries(struct tl_zstf *zstf, struct tl_fail *fail)
{
    struct tl_bytes bytes;
    int result = read_at(zstf, zstf->index, INDEX_HEAD, &bytes, fail);
    if (result < 0)
        return result;
    const uint64_t n = tl_le64(bytes.p);
    if (n == 0 || n > (zstf->input.size - zstf->index - INDEX_HEAD) / INDEX_ENTRY)
        return tl_fail_at(fail, TL_BAD, zstf->index, "chunk index: %llu chunks cannot be",
                          (unsigned long long)n);
    zstf->entries = malloc((size_t)n * sizeof *zstf->entries);
    if (!zstf->entries)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    result = read_at(zstf, zstf->index + INDEX_HEAD, (size_t)n * INDEX_ENTRY, &bytes, fail);
    if (result < 0)
        return result;
    for (const uint8_t *p = bytes.p; zstf->n < n; p += INDEX_ENTRY) {
        zstf->entries[zstf->n++] = (struct tl_zstf_entry){
            .offset = tl_le64(p), .start_pc = tl_le64(p + 8), .size = tl_le64(p + 16)};
    }
    return check_entries(zstf, fail);
}

static int read_head(struct tl_zstf *zstf, struct tl_fail *fail)
{
    struct tl_bytes head;
    if (zstf->input.size < TL_ZSTF_HEAD)
        return tl_fail_at(fail, TL_BAD, 0, "too short for a .zstf");
    const int result = read_at(zstf, 0, TL_ZSTF_HEAD, &head, fail);
    if (result < 0)
        return result;
    if (memcmp(head.p, "ZSTF", 4) != 0)
        return tl_fail_at(fail, TL_BAD, 0, "no .zstf: it does not begin with ZSTF");
    zstf->markers = tl_le64(head.p + 4);
    zstf->index = tl_le64(head.p + 12);
    if (zstf->index == 0)
        return tl_fail_at(fail, TL_EOF, 12, "the .zstf was never completed: it has no chunk index");
    if (zstf->markers == 0)
        return tl_fail_at(fail, TL_BAD, 4, "chunks of 0 instructions");
    if (zstf->index < TL_ZSTF_HEAD || zstf->input.size < INDEX_HEAD ||
        zstf->index > zstf->input.size - INDEX_HEAD)
        return tl_fail_at(fail, TL_BAD, 12, "the chunk index lies outside the file: it is cut");
    return TL_OK;
}

static int open_zstf(struct tl_zstf **out, const struct tl_zstf_input *input,
                     struct tl_bytes memory, struct tl_fail *fail)
{
    struct tl_zstf *const zstf = calloc(1, sizeof *zstf);
    if (!zstf)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    zstf->input = *input;
    zstf->memory = memory;
    int result = read_head(zstf, fail);
    if (result == TL_OK)
        result = read_entries(zstf, fail);
    if (result == TL_OK && !(zstf->zstd = ZSTD_createDCtx()))
        result = tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (result < 0) {
        tl_zstf_close(zstf);
        return result;
    }
    *out = zstf;
    return TL_OK;
}

int tl_zstf_open(struct tl_zstf **out, const struct tl_zstf_input *input, struct tl_fail *fail)
{
    return open_zstf(out, input, (struct tl_bytes){0}, fail);
}

int tl_zstf_open_bytes(struct tl_zstf **out, struct tl_bytes file, struct tl_fail *fail)
{
    return open_zstf(out, &(struct tl_zstf_input){.size = file.n}, file, fail);
}

void tl_zstf_close(struct tl_zstf *zstf)
{
    if (!zstf)
        return;
    ZSTD_freeDCtx(zstf->zstd);
    tl_buf_fini(&zstf->frame);
    free(zstf->entries);
    free(zstf);
}

uint64_t tl_zstf_markers(const struct tl_zstf *zstf)
{
    return zstf->markers;
}

uint64_t tl_zstf_chunks(const struct tl_zstf *zstf)
{
    return zstf->n;
}

uint64_t tl_zstf_index(const struct tl_zstf *zstf)
{
    return zstf->index;
}

const struct tl_zstf_entry *tl_zstf_chunk(const struct tl_zstf *zstf, uint64_t i)
{
    return &zstf->entries[i];
}

/* Unpack frame by frame, with any contents: the slow path for other producers' files. */
static int unpack_frames(struct tl_zstf *zstf, struct tl_bytes frame, struct tl_buf *out,
                         size_t *used)
{
    ZSTD_inBuffer in = {frame.p, frame.n, 0};
    const size_t begin = out->n;
    size_t hint = 1; /* 0: at the end of a frame */
    ZSTD_DCtx_reset(zstf->zstd, ZSTD_reset_session_only);
    while (in.pos < in.size) {
        if (hint == 0 && in.size - in.pos < 4)
            break;
        if (tl_buf_reserve(out, ZSTD_DStreamOutSize()) < 0)
            return TL_NOMEM;
        ZSTD_outBuffer o = {out->p + out->n, out->cap - out->n, 0};
        const size_t at = in.pos;
        const size_t result = ZSTD_decompressStream(zstf->zstd, &o, &in);
        if (ZSTD_isError(result)) {
            *used = at;
            return hint == 0 ? TL_OK : TL_BAD; /* not another frame: bytes after the chunk */
        }
        hint = result;
        out->n += o.pos;
        if (out->n - begin > TL_ZSTF_CHUNK_MAX)
            return TL_LIMIT;
    }
    *used = in.pos;
    return hint == 0 ? TL_OK : TL_BAD;
}

static int unpack_chunk(struct tl_zstf *zstf, const struct tl_zstf_entry *entry,
                        struct tl_bytes frame, struct tl_buf *out, bool *odd)
{
    /* The regular case: exactly one frame of exactly the expected size. */
    const size_t begin = out->n;
    const unsigned long long reported = ZSTD_getFrameContentSize(frame.p, frame.n);
    if (entry->size <= TL_ZSTF_CHUNK_MAX &&
        (reported == entry->size || reported == ZSTD_CONTENTSIZE_UNKNOWN) &&
        ZSTD_findFrameCompressedSize(frame.p, frame.n) == frame.n) {
        if (tl_buf_reserve(out, entry->size ? (size_t)entry->size : 1) < 0)
            return TL_NOMEM;
        const size_t n =
            ZSTD_decompressDCtx(zstf->zstd, out->p + begin, (size_t)entry->size, frame.p, frame.n);
        if (n == entry->size) {
            out->n += n;
            return TL_OK;
        }
    }
    size_t used = 0;
    const int result = unpack_frames(zstf, frame, out, &used);
    if (odd)
        *odd = true;
    return result;
}

int tl_zstf_read(struct tl_zstf *zstf, uint64_t i, struct tl_buf *out, bool *odd,
                 struct tl_fail *fail)
{
    if (i >= zstf->n)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no chunk %llu", (unsigned long long)i);
    const struct tl_zstf_entry *const entry = &zstf->entries[i];
    const uint64_t end = i + 1 < zstf->n ? entry[1].offset : zstf->index;
    struct tl_bytes frame;
    int result = read_at(zstf, entry->offset, (size_t)(end - entry->offset), &frame, fail);
    if (result < 0)
        return result;
    result = unpack_chunk(zstf, entry, frame, out, odd);
    if (result == TL_NOMEM)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (result < 0)
        return tl_fail_at(fail, (enum tl_err)result, entry->offset,
                          "chunk %llu cannot be decompressed: %s", (unsigned long long)i,
                          result == TL_LIMIT ? "larger than 1 GiB" : "damaged or cut");
    return TL_OK;
}
