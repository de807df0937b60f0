/* SPDX-License-Identifier: MIT */
/* Borrowed bytes, and integers in a stated byte order at any alignment. */
#ifndef TL_BASE_BYTES_H
#define TL_BASE_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Always borrowed, always read-only. */
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
    /* Not byte by byte: compilers do not always make one load of that. */
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

/* The same for stores. */
static inline void tl_put_le16(uint8_t *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof(v));
}

static inline void tl_put_be16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void tl_put_le32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void tl_put_le64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof(v));
}

#endif
