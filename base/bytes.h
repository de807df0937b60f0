/* SPDX-License-Identifier: MIT */
/* Borrowed bytes, and unaligned integers in a given byte order. */
#ifndef TL_BASE_BYTES_H
#define TL_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Convert between host byte order and little-endian; valid in strict C and C++. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TL_LITTLE16(v) (v)
#define TL_LITTLE32(v) (v)
#define TL_LITTLE64(v) (v)
#else
#define TL_LITTLE16(v) __builtin_bswap16(v)
#define TL_LITTLE32(v) __builtin_bswap32(v)
#define TL_LITTLE64(v) __builtin_bswap64(v)
#endif

/* A byte range: always borrowed and read-only. */
struct tl_bytes {
    const uint8_t *p;
    size_t n;
};

static inline uint16_t tl_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint16_t tl_be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t tl_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t tl_le64(const uint8_t *p)
{
    /* memcpy, since compilers do not always merge byte-wise reads into one load. */
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return TL_LITTLE64(v);
}

/* Stores. */
static inline void tl_put_le16(uint8_t *p, uint16_t v)
{
    v = TL_LITTLE16(v);
    memcpy(p, &v, sizeof(v));
}

static inline void tl_put_be16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void tl_put_le32(uint8_t *p, uint32_t v)
{
    v = TL_LITTLE32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void tl_put_le64(uint8_t *p, uint64_t v)
{
    v = TL_LITTLE64(v);
    memcpy(p, &v, sizeof(v));
}

#endif
