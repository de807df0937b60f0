/* SPDX-License-Identifier: MIT */
#include "rpc/pushchunk.h"

#include "base/pbfield.h"

/* Source: ingest.proto. */
#define KEY_CHUNK  TL_PB_KEY(2, TL_PB_BYTES)
#define KEY_OFFSET TL_PB_KEY(1, TL_PB_VARINT)
#define KEY_DATA   TL_PB_KEY(2, TL_PB_BYTES)
#define KEY_CRC    TL_PB_KEY(3, TL_PB_FIXED32)

bool tl_push_chunk_parse(struct tl_bytes message, struct tl_push_chunk *out)
{
    struct tl_pbfield chunk, field;
    unsigned seen = 0;
    *out = (struct tl_push_chunk){0};
    if (!tl_pbfield_take(&message, &chunk) || chunk.key != KEY_CHUNK || message.n)
        return false;
    while (chunk.bytes.n) {
        if (!tl_pbfield_take(&chunk.bytes, &field) || field.key > KEY_CRC || seen & 1u << field.key)
            return false;
        seen |= 1u << field.key;
        if (field.key == KEY_OFFSET)
            out->offset = field.value;
        else if (field.key == KEY_DATA)
            out->data = field.bytes;
        else if (field.key == KEY_CRC)
            out->crc32c = (uint32_t)field.value;
        else
            return false;
    }
    return true;
}
