/* SPDX-License-Identifier: MIT */
/*
 * Parses the one message whose data must not be copied, and leaves every unusual encoding to
 * protobuf-c. A general parser copies bytes fields, and no other call has as many bytes as a push.
 */
#include "rpc/pushchunk.h"

#include "base/pbfield.h"

/* Source: ingest.proto. */
#define KEY_CHUNK  TL_PB_KEY(2, TL_PB_BYTES)
#define KEY_OFFSET TL_PB_KEY(1, TL_PB_VARINT)
#define KEY_DATA   TL_PB_KEY(2, TL_PB_BYTES)
#define KEY_CRC    TL_PB_KEY(3, TL_PB_FIXED32)

bool tl_push_chunk_parse(struct tl_bytes message, struct tl_push_chunk *out)
{
    static const uint64_t keys[] = {KEY_OFFSET, KEY_DATA, KEY_CRC};
    struct tl_pbfield chunk, fields[3];
    bool others;
    if (!tl_pbfield_take(&message, &chunk) || chunk.key != KEY_CHUNK || message.n ||
        !tl_pbfield_pick(chunk.bytes, keys, 3, fields, &others) || others)
        return false;
    *out = (struct tl_push_chunk){
        .offset = fields[0].value, .data = fields[1].bytes, .crc32c = (uint32_t)fields[2].value};
    return true;
}
