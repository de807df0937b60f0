/* SPDX-License-Identifier: MIT */
#include "store/pack.h"

#include "base/bytes.h"
#include "stf/record.h"
#include "stf/zstf.h"

#include <assert.h>
#include <stdlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_compressSequences() */
#include <zstd.h>

#define TABLE_BITS 12
#define LEAST      8           /* bytes that a match must have to be worth a sequence */
#define HEAD       12          /* bytes in front of a block that is not compressed */
#define PLAIN_MAX  (64u << 10) /* bytes made in place that are left as they are */
/* Of a turn's records up to where they end at the same place whatever the target was. */
#define TARGET_BYTES 9

struct tl_packer {
    ZSTD_CCtx *any;    /* of bytes */
    ZSTD_CCtx *coding; /* of sequences that were found here */
    ZSTD_Sequence *sequences;
    size_t n, cap;
    struct tl_buf scratch;
    /* The last place of each turn, and of each block's begin, + 1; 0: none yet. */
    uint32_t turns[1u << TABLE_BITS];
    uint32_t entries[1u << TABLE_BITS];
};

static bool set_up(ZSTD_CCtx *coding)
{
    static const struct {
        ZSTD_cParameter parameter;
        int value;
    } settings[] = {
        /* Nothing is searched for: the smallest tables. */
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
    tl_buf_fini(&packer->scratch);
    free(packer);
}

/* The head of a frame of one block that is not compressed (RFC 8878, 3.1.1). */
static void put_head(uint8_t head[static HEAD], size_t n)
{
    enum { SINGLE_SEGMENT = 0x20, SIZE_OF_4 = 0x80, LAST_BLOCK = 1 };
    tl_put_le32(head, ZSTD_MAGICNUMBER);
    head[4] = SINGLE_SEGMENT | SIZE_OF_4;
    tl_put_le32(head + 5, (uint32_t)n);
    tl_put_le16(head + 9, (uint16_t)(n << 3 | LAST_BLOCK));
    head[11] = (uint8_t)(n >> 13);
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

/* ---- finding what was there before ---------------------------------------------------------- */

/* Bytes that are the same at `a` and, behind it, at `b`, up to `end`. Nobody can foresee where they
 * end: there is one jump for that in each 32 bytes. */
static size_t same(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *const begin = b;
    for (; end - b >= 32; a += 32, b += 32) {
        const uint64_t differ[4] = {tl_le64(a) ^ tl_le64(b), tl_le64(a + 8) ^ tl_le64(b + 8),
                                    tl_le64(a + 16) ^ tl_le64(b + 16),
                                    tl_le64(a + 24) ^ tl_le64(b + 24)};
        if (differ[0] | differ[1] | differ[2] | differ[3]) {
            uint64_t first = differ[3];
            size_t at = 24;
            for (unsigned k = 3; k-- > 0;) {
                at = differ[k] ? 8 * k : at;
                first = differ[k] ? differ[k] : first;
            }
            return (size_t)(b - begin) + at + (unsigned)__builtin_ctzll(first) / 8;
        }
    }
    while (b < end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(b - begin);
}

/* Where the block begins whose turn is at `at`: behind a target and a closing record. */
static uint32_t entry_of(struct tl_bytes stf, uint32_t at)
{
    if (at < stf.n && stf.p[at] == TL_STF_INST_PC_TARGET)
        at += 9;
    return at < stf.n && stf.p[at] == TL_STF_INST_16 ? at + 3 : at + 5;
}

static uint32_t slot(uint32_t key)
{
    return key >> (32 - TABLE_BITS);
}

/* A match at `at` with what was at `before`; what lies between the last one and it is literal.
 * Returns where it ends, or `done`: it is none. */
static size_t take(struct tl_packer *p, struct tl_bytes stf, size_t done, size_t before, size_t at)
{
    if (before >= at || at >= stf.n)
        return done;
    const size_t n = same(stf.p + before, stf.p + at, stf.p + stf.n);
    if (n < LEAST)
        return done;
    p->sequences[p->n++] = (ZSTD_Sequence){.offset = (unsigned)(at - before),
                                           .litLength = (unsigned)(at - done),
                                           .matchLength = (unsigned)n};
    return at + n;
}

static void find(struct tl_packer *p, struct tl_bytes stf, const struct tl_stf_mark *marks,
                 size_t n)
{
    size_t done = 0; /* bytes behind the last match */
    memset(p->turns, 0, sizeof(p->turns));
    memset(p->entries, 0, sizeof(p->entries));
    p->n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tl_stf_mark *const m = &marks[i];
        uint32_t *const turn = &p->turns[slot(m->turn)];
        const uint32_t before = *turn;
        *turn = m->at + 1;
        /* The last match may end within the turn: with another target than there. */
        const size_t at = done > m->at ? done : m->at;
        if (at >= m->at + TARGET_BYTES)
            continue;
        const size_t end = before ? take(p, stf, done, before - 1 + (at - m->at), at) : done;
        const uint32_t entry = entry_of(stf, m->at);
        uint32_t *const known = &p->entries[slot(m->entry)];
        if (end == done && *known && entry >= done)
            done = take(p, stf, done, *known - 1, entry);
        else
            done = end;
        *known = entry + 1;
    }
}

int tl_packer_stf(struct tl_packer *packer, struct tl_bytes stf, const struct tl_stf_mark *marks,
                  size_t n, struct tl_buf *out)
{
    if (n == 0 || stf.n > UINT32_MAX / 2)
        return tl_packer_bytes(packer, stf, out);
    const size_t bound = ZSTD_compressBound(stf.n);
    if (tl_grow(&packer->sequences, &packer->cap, n + 1, sizeof(*packer->sequences)) < 0 ||
        tl_buf_reserve(out, bound) < 0)
        return TL_NOMEM;
    find(packer, stf, marks, n);
    const size_t size = ZSTD_compressSequences(packer->coding, out->p + out->n, bound,
                                               packer->sequences, packer->n, stf.p, stf.n);
    if (ZSTD_isError(size))
        return tl_packer_bytes(packer, stf, out);
    out->n += size;
    return TL_OK;
}

int tl_packer_stf_new(struct tl_packer *packer, struct tl_bytes stf,
                      const struct tl_stf_mark *marks, size_t n, uint8_t **out, size_t *size)
{
    tl_buf_reset(&packer->scratch);
    const int r = tl_packer_stf(packer, stf, marks, n, &packer->scratch);
    *out = r < 0 ? NULL : malloc(packer->scratch.n);
    if (!*out)
        return TL_NOMEM;
    memcpy(*out, packer->scratch.p, packer->scratch.n);
    *size = packer->scratch.n;
    return TL_OK;
}
