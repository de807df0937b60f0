/* SPDX-License-Identifier: MIT */
/*
 * Zero-copy parser for the only message with a high data volume: a PushRequest that is a chunk, in
 * the form that every encoder writes. Everything else is left to protobuf-c. Pure functions,
 * thread-safe.
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

/* Parse; returns whether the message is only a chunk, with each field at most once. */
bool tl_push_chunk_parse(struct tl_bytes message, struct tl_push_chunk *out);

#endif
