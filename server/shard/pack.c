/* SPDX-License-Identifier: MIT */
/*
 * Compresses shard data with zstd, given the repeats that the writer knows. Hardly anything is then
 * searched byte by byte, which is the slow part of compression.
 */
#include "shard/pack.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "shard/search.h"
#include "stf/zstf.h"

#include <assert.h>
#include <stdlib.h>

#define HEAD      12          /* size of the headers before a first uncompressed block */
#define PLAIN_MAX (64u << 10) /* maximum size left uncompressed by tl_packer_end() */

struct tl_packer {
    ZSTD_CCtx *any;    /* for arbitrary bytes */
    ZSTD_CCtx *coding; /* for sequences found here */
    struct tl_search search;
    ZSTD_Sequence *sequences;
    size_t cap;
    struct tl_stf_repeat *repeats; /* for what follows a head */
    size_t cap_repeats;
    struct tl_buf scratch, rest;
};

static bool set_up(ZSTD_CCtx *coding)
{
    static const struct {
        ZSTD_cParameter parameter;
        int value;
    } settings[] = {
        /* No search is done: the smallest tables. */
        {ZSTD_c_strategy, ZSTD_fast}, {ZSTD_c_hashLog, ZSTD_HASHLOG_MIN},
        {ZSTD_c_windowLog, 24},       {ZSTD_c_blockDelimiters, ZSTD_sf_noBlockDelimiters},
        {ZSTD_c_minMatch, 4},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++)
        if (ZSTD_isError(ZSTD_CCtx_setParameter(coding, settings[i].parameter, settings[i].value)))
            return false;
    return true;
}

int tl_packer_new(struct tl_packer **out)
{
    struct tl_packer *p = calloc(1, sizeof(*p));
    if (!p)
        return TL_NOMEM;
    p->any = ZSTD_createCCtx();
    p->coding = ZSTD_createCCtx();
    if (!p->any || !p->coding || !set_up(p->coding)) {
        tl_packer_free(p);
        return TL_NOMEM;
    }
    *out = p;
    return TL_OK;
}

void tl_packer_free(struct tl_packer *packer)
{
    if (!packer)
        return;
    ZSTD_freeCCtx(packer->any);
    ZSTD_freeCCtx(packer->coding);
    free(packer->sequences);
    free(packer->repeats);
    tl_buf_fini(&packer->scratch);
    tl_buf_fini(&packer->rest);
    free(packer);
}

enum { SINGLE_SEGMENT = 0x20, SIZE_OF_4 = 0x80, LAST_BLOCK = 1, BLOCK_HEAD = 3, FRAME_HEAD = 9 };
static_assert(FRAME_HEAD + BLOCK_HEAD == HEAD, "a frame's head and a block's");

/* Header of a frame of `size` bytes (RFC 8878, 3.1.1.1). */
static void put_frame_head(uint8_t head[static FRAME_HEAD], size_t size)
{
    tl_put_le32(head, ZSTD_MAGICNUMBER);
    head[4] = SINGLE_SEGMENT | SIZE_OF_4;
    tl_put_le32(head + 5, (uint32_t)size);
}

/* Header of an uncompressed block of `n` bytes (3.1.1.2). */
static void put_block_head(uint8_t head[static BLOCK_HEAD], size_t n, unsigned last)
{
    tl_put_le16(head, (uint16_t)(n << 3 | last));
    head[2] = (uint8_t)(n >> 13);
}

/* Headers of a frame with one uncompressed block. */
static void put_head(uint8_t head[static HEAD], size_t n)
{
    put_frame_head(head, n);
    put_block_head(head + FRAME_HEAD, n, LAST_BLOCK);
    static_assert(PLAIN_MAX <= ZSTD_BLOCKSIZE_MAX, "one block holds it");
}

int tl_packer_bytes(struct tl_packer *packer, struct tl_bytes plain, struct tl_buf *out)
{
    if (plain.n < TL_PACK_SMALL) {
        uint8_t head[HEAD];
        put_head(head, plain.n);
        const int r = tl_buf_add(out, head, sizeof(head));
        return r < 0 ? r : tl_buf_add(out, plain.p, plain.n);
    }
    const size_t bound = ZSTD_compressBound(plain.n);
    if (tl_buf_reserve(out, bound) < 0)
        return TL_NOMEM;
    const size_t n =
        ZSTD_compressCCtx(packer->any, out->p + out->n, bound, plain.p, plain.n, TL_ZSTF_LEVEL);
    if (ZSTD_isError(n))
        return TL_NOMEM;
    out->n += n;
    return TL_OK;
}

int tl_packer_checked(struct tl_packer *packer, struct tl_bytes plain, struct tl_buf *out)
{
    static const uint8_t none[sizeof(uint32_t)];
    const size_t begin = out->n, frame = begin + sizeof none;
    int r = tl_buf_add(out, none, sizeof none);
    if (r >= 0)
        r = tl_packer_bytes(packer, plain, out);
    if (r >= 0)
        tl_put_le32(out->p + begin, tl_crc32c(0, out->p + frame, out->n - frame));
    return r;
}

int tl_packer_begin(struct tl_buf *out)
{
    static const uint8_t none[HEAD];
    return tl_buf_add(out, none, sizeof(none));
}

int tl_packer_end(struct tl_packer *packer, size_t begin, struct tl_buf *out)
{
    const struct tl_bytes plain = {out->p + begin + HEAD, out->n - begin - HEAD};
    if (plain.n <= PLAIN_MAX) {
        put_head(out->p + begin, plain.n);
        return TL_OK;
    }
    tl_buf_reset(&packer->scratch);
    const int r = tl_packer_bytes(packer, plain, &packer->scratch);
    if (r < 0)
        return r;
    out->n = begin;
    return tl_buf_add(out, packer->scratch.p, packer->scratch.n);
}

/* Size of a frame's header. */
static size_t frame_head_size(const uint8_t *frame)
{
    static const uint8_t window[] = {1, 0}, sizes[2][4] = {{0, 2, 4, 8}, {1, 2, 4, 8}};
    static const uint8_t dictionary[] = {0, 1, 2, 4};
    const unsigned single = frame[4] >> 5 & 1;
    return (size_t)5 + window[single] + dictionary[frame[4] & 3] + sizes[single][frame[4] >> 6];
}

/* Is there a block in the frame whose bytes zstd read, instead of those of sequences? */
static bool has_plain_block(struct tl_bytes frame)
{
    enum { COMPRESSED = 2 };
    for (size_t at = frame_head_size(frame.p); at + BLOCK_HEAD <= frame.n;) {
        const uint8_t *const block = frame.p + at;
        if ((block[0] >> 1 & 3) != COMPRESSED)
            return true;
        at += BLOCK_HEAD + (size_t)(block[0] >> 3 | block[1] << 5 | block[2] << 13);
    }
    return false;
}

/* Is so much of `n` bytes between repeats that these had better be searched as a whole? */
static bool has_much_between(size_t n, const struct tl_stf_repeat *repeats, size_t n_repeats)
{
    size_t repeated = 0;
    for (size_t i = 0; i < n_repeats; i++)
        repeated += repeats[i].n;
    return repeated < n / 2;
}

/* Append a frame of records without a separate head. */
static int pack_stf(struct tl_packer *packer, uint8_t *p, size_t n,
                    const struct tl_stf_repeat *repeats, size_t n_repeats, struct tl_buf *out)
{
    const struct tl_bytes stf = {p, n};
    if (n_repeats == 0 || n > TL_SEARCH_MAX) {
        tl_stf_fill(p, repeats, n_repeats);
        return tl_packer_bytes(packer, stf, out);
    }
    const size_t bound = ZSTD_compressBound(n), most = n / TL_SEARCH_MIN + n_repeats;
    if (tl_grow(&packer->sequences, &packer->cap, most, sizeof(*packer->sequences)) < 0 ||
        tl_buf_reserve(out, bound) < 0)
        return TL_NOMEM;
    uint8_t *const to = out->p + out->n;
    const bool complete = has_much_between(n, repeats, n_repeats);
    if (complete)
        tl_stf_fill(p, repeats, n_repeats);
    const size_t found =
        tl_search_run(&packer->search, stf, repeats, n_repeats, complete, packer->sequences);
    size_t size = ZSTD_compressSequences(packer->coding, to, bound, packer->sequences, found, p, n);
    if (!complete && (ZSTD_isError(size) || has_plain_block((struct tl_bytes){to, size}))) {
        tl_stf_fill(p, repeats, n_repeats);
        size = ZSTD_compressSequences(packer->coding, to, bound, packer->sequences, found, p, n);
    }
    if (ZSTD_isError(size))
        return tl_packer_bytes(packer, stf, out);
    out->n += size;
    return TL_OK;
}

/* ---- heads apart ---------------------------------------------------------------------------- */

/* Repeats after the first `head` bytes, relative to there, of what is there. */
static int shift_repeats(struct tl_packer *packer, const struct tl_stf_repeat *repeats, size_t *n,
                         size_t head)
{
    size_t kept = 0;
    if (tl_grow(&packer->repeats, &packer->cap_repeats, *n + 1, sizeof(*packer->repeats)) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < *n; i++) {
        if (repeats[i].at < head + repeats[i].back)
            continue;
        packer->repeats[kept] = repeats[i];
        packer->repeats[kept++].at -= (uint32_t)head;
    }
    *n = kept;
    return TL_OK;
}

/*
 * The part after the head is a frame of its own, which begins without offsets and tables from
 * before, as every frame does. An uncompressed block does not set any, so it may precede it.
 */
static int put_apart(struct tl_bytes head, struct tl_bytes rest, size_t size, struct tl_buf *out)
{
    if (tl_buf_reserve(out, HEAD + head.n + rest.n) < 0)
        return TL_NOMEM;
    const int r = tl_pack_rehead(head, size, out);
    return r < 0 ? r : tl_buf_add(out, rest.p, rest.n);
}

int tl_pack_rehead(struct tl_bytes head, size_t plain, struct tl_buf *out)
{
    if (tl_buf_reserve(out, HEAD + head.n) < 0)
        return TL_NOMEM;
    uint8_t *const p = out->p + out->n;
    put_frame_head(p, plain);
    out->n += FRAME_HEAD;
    if (head.n == 0)
        return TL_OK;
    put_block_head(p + FRAME_HEAD, head.n, 0);
    memcpy(p + HEAD, head.p, head.n);
    out->n += BLOCK_HEAD + head.n;
    return TL_OK;
}

size_t tl_pack_rest(size_t old_head)
{
    return HEAD + old_head;
}

int tl_packer_stf(struct tl_packer *packer, const struct tl_stf_piece *piece, struct tl_buf *out)
{
    uint8_t *const p = piece->stf.p;
    const size_t size = piece->stf.n, head = piece->head;
    size_t n = piece->n_repeats;
    if (head == 0 || head > TL_PACK_HEAD)
        return pack_stf(packer, p, size, piece->repeats, n, out);
    tl_buf_reset(&packer->rest);
    int r = shift_repeats(packer, piece->repeats, &n, head);
    if (n < piece->n_repeats)
        tl_stf_fill(p, piece->repeats, piece->n_repeats);
    if (r >= 0)
        r = pack_stf(packer, p + head, size - head, packer->repeats, n, &packer->rest);
    if (r < 0)
        return r;
    const size_t skip = frame_head_size(packer->rest.p);
    return put_apart((struct tl_bytes){p, head},
                     (struct tl_bytes){packer->rest.p + skip, packer->rest.n - skip}, size, out);
}

struct tl_bytes tl_pack_head(struct tl_bytes frame)
{
    enum { RAW = 0 };
    const uint8_t *const block = frame.p + FRAME_HEAD;
    if (frame.n < HEAD || frame.p[4] != (SINGLE_SEGMENT | SIZE_OF_4))
        return (struct tl_bytes){0};
    const size_t n = (size_t)(block[0] >> 3 | block[1] << 5 | block[2] << 13);
    if ((block[0] & 7) != RAW << 1 || n > TL_PACK_HEAD || n > frame.n - HEAD)
        return (struct tl_bytes){0};
    return (struct tl_bytes){frame.p + HEAD, n};
}

size_t tl_pack_reheaded_size(size_t frame, size_t old_head, size_t new_head)
{
    return frame - old_head - BLOCK_HEAD + new_head + (new_head > 0 ? BLOCK_HEAD : 0);
}

int tl_pack_reheaded(struct tl_bytes frame, struct tl_bytes head, struct tl_buf *out)
{
    const size_t old = tl_pack_head(frame).n;
    const size_t skip = tl_pack_rest(old);
    const struct tl_bytes rest = {frame.p + skip, frame.n - skip};
    return put_apart(head, rest, tl_le32(frame.p + 5) - old + head.n, out);
}

int tl_packer_stf_new(struct tl_packer *packer, const struct tl_stf_piece *piece, uint8_t **out,
                      size_t *size)
{
    tl_buf_reset(&packer->scratch);
    const int r = tl_packer_stf(packer, piece, &packer->scratch);
    *out = r < 0 ? NULL : malloc(packer->scratch.n);
    if (!*out)
        return TL_NOMEM;
    memcpy(*out, packer->scratch.p, packer->scratch.n);
    *size = packer->scratch.n;
    return TL_OK;
}
