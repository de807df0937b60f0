/* SPDX-License-Identifier: MIT */
/*
 * The one message that comes by the gigabyte, read in place: a PushRequest that is a chunk in the
 * form that every encoder writes. All else is left to protobuf-c. Pure functions, thread-safe.
 */
#ifndef TL_RPC_PUSHCHUNK_H
#define TL_RPC_PUSHCHUNK_H

#include "base/bytes.h"

#include <stdbool.h>

struct tl_push_chunk {
    uint64_t offset;
    struct tl_bytes data; /* borrowed from the message */
    uint32_t crc32c;
};

/* Returns whether the message is a chunk and nothing else, each of its fields at most once. */
bool tl_push_chunk_parse(struct tl_bytes message, struct tl_push_chunk *out);

#endif
