/* SPDX-License-Identifier: MIT */
#include "rpc/pushchunk.h"

/* Wire format keys: field number << 3 | wire type. Source: ingest.proto. */
#define KEY_CHUNK  (2 << 3 | 2)
#define KEY_OFFSET (1 << 3 | 0)
#define KEY_DATA   (2 << 3 | 2)
#define KEY_CRC    (3 << 3 | 5)

static bool take_varint(struct tl_bytes *in, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; in->n && shift < 64; shift += 7) {
        const uint8_t b = *in->p++;
        in->n--;
        if (shift == 63 && b > 1)
            return false;
        value |= (uint64_t)(b & 127) << shift;
        if (b < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct tl_bytes *in, struct tl_bytes *out)
{
    uint64_t n;
    if (!take_varint(in, &n) || n > in->n)
        return false;
    *out = (struct tl_bytes){in->p, n};
    in->p += n;
    in->n -= n;
    return true;
}

static bool take_field(struct tl_bytes *in, struct tl_push_chunk *out, unsigned *seen)
{
    const uint8_t key = *in->p++;
    in->n--;
    const unsigned bit = 1u << (key >> 3 & 7);
    if (*seen & bit)
        return false;
    *seen |= bit;
    switch (key) {
    case KEY_OFFSET:
        return take_varint(in, &out->offset);
    case KEY_DATA:
        return take_bytes(in, &out->data);
    case KEY_CRC:
        if (in->n < 4)
            return false;
        out->crc32c = tl_le32(in->p);
        in->p += 4;
        in->n -= 4;
        return true;
    default:
        return false;
    }
}

bool tl_push_chunk_parse(struct tl_bytes message, struct tl_push_chunk *out)
{
    struct tl_bytes chunk;
    unsigned seen = 0;
    *out = (struct tl_push_chunk){0};
    if (message.n == 0 || *message.p != KEY_CHUNK)
        return false;
    message.p++;
    message.n--;
    if (!take_bytes(&message, &chunk) || message.n)
        return false;
    while (chunk.n)
        if (!take_field(&chunk, out, &seen))
            return false;
    return true;
}
