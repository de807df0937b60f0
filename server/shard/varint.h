/* SPDX-License-Identifier: MIT */
/*
 * Variable-length integers as in protobuf: 7 bits per byte, lowest first. Writing appends to a
 * buffer; reading has a sticky error, so that a whole structure is read and checked once.
 */
#ifndef TL_SHARD_VARINT_H
#define TL_SHARD_VARINT_H

#include "base/buf.h"
#include "base/bytes.h"

#define TL_VARINT_MAX 10 /* bytes */

static inline size_t tl_varint_put(uint8_t out[static TL_VARINT_MAX], uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        out[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    out[n++] = (uint8_t)v;
    return n;
}

/* Branch-free variant for values of unpredictable length. May also change bytes after the
 * result. */
static inline size_t tl_varint_put_any(uint8_t out[static TL_VARINT_MAX], uint64_t v)
{
    if (v >> 56 != 0)
        return tl_varint_put(out, v);
    const unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1), n = (bits * 9 + 64) / 64;
    v = (v & 0x0fffffff) | (v & 0xfffffff0000000) << 4;
    v = (v & 0x3fff00003fff) | (v & 0xfffc0000fffc000) << 2;
    v = (v & 0x7f007f007f007f) | (v & 0x3f803f803f803f80) << 1;
    tl_put_le64(out, v | (0x8080808080808080 & ((UINT64_C(1) << 8 * (n - 1)) - 1)));
    return n;
}

static inline uint64_t tl_zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t tl_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1 ^ -(v & 1));
}

TL_MUST_USE static inline int tl_varint_add(struct tl_buf *out, uint64_t v)
{
    const int r = tl_buf_reserve(out, TL_VARINT_MAX);
    if (r >= 0)
        out->n += tl_varint_put(out->p + out->n, v);
    return r;
}

TL_MUST_USE static inline int tl_varint_add_all(struct tl_buf *out, const uint64_t *words, size_t n)
{
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = tl_varint_add(out, words[i]);
    return r;
}

struct tl_varint_reader {
    const uint8_t *p, *end;
    bool bad; /* a number was truncated or too long: all later ones are 0 */
};

static inline uint64_t tl_varint_get(struct tl_varint_reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (r->p == r->end)
            break;
        const uint8_t byte = *r->p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    r->bad = true;
    r->p = r->end;
    return 0;
}

static inline int64_t tl_varint_get_signed(struct tl_varint_reader *r)
{
    return tl_unzigzag(tl_varint_get(r));
}

/* Pass over `n` numbers, whose lengths are not checked: each has one byte below 0x80, its last. */
static inline void tl_varint_skip(struct tl_varint_reader *r, uint64_t n)
{
    while (n >= 8 && r->end - r->p >= 8) {
        const uint64_t ends = ~tl_le64(r->p) >> 7 & 0x0101010101010101;
        n -= ends * 0x0101010101010101 >> 56;
        r->p += 8;
    }
    for (; n > 0 && !r->bad; n--)
        (void)tl_varint_get(r);
}

/* Take `n` bytes; NULL and `bad` if there are fewer. */
static inline const uint8_t *tl_varint_bytes(struct tl_varint_reader *r, uint64_t n)
{
    if ((uint64_t)(r->end - r->p) < n) {
        r->bad = true;
        r->p = r->end;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    return p;
}

#endif
