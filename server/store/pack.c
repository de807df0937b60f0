/* SPDX-License-Identifier: MIT */
#include "store/pack.h"

#include "base/bytes.h"
#include "stf/zstf.h"
#include "store/search.h"

#include <assert.h>
#include <stdlib.h>

#define HEAD      12          /* bytes in front of a block that is not compressed */
#define PLAIN_MAX (64u << 10) /* bytes made in place that are left as they are */

struct tl_packer {
    ZSTD_CCtx *any;    /* of bytes */
    ZSTD_CCtx *coding; /* of sequences that were found here */
    tl_search_run *find;
    struct tl_search search;
    ZSTD_Sequence *sequences;
    size_t cap;
    struct tl_buf scratch;
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
    p->find = tl_search_variant(tl_cpu_level());
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

int tl_packer_stf(struct tl_packer *packer, struct tl_bytes stf, const struct tl_stf_mark *marks,
                  size_t n, struct tl_buf *out)
{
    if (n == 0 || stf.n > TL_SEARCH_MOST)
        return tl_packer_bytes(packer, stf, out);
    const size_t bound = ZSTD_compressBound(stf.n), most = stf.n / TL_SEARCH_LEAST + 1;
    if (tl_grow(&packer->sequences, &packer->cap, most, sizeof(*packer->sequences)) < 0 ||
        tl_buf_reserve(out, bound) < 0)
        return TL_NOMEM;
    const size_t found = packer->find(&packer->search, stf, marks, n, packer->sequences);
    const size_t size = ZSTD_compressSequences(packer->coding, out->p + out->n, bound,
                                               packer->sequences, found, stf.p, stf.n);
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
