/* SPDX-License-Identifier: MIT */
/*
 * Marks, taken while a generation with virtual shards is decoded: states of the decoder and the
 * builders, from which shards can be made again (virtual/remake.h has what they are stored as).
 */
#ifndef TL_DECODING_MARKS_H
#define TL_DECODING_MARKS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_decode;
struct tl_decode_job;
struct tl_gen;

#define TL_MARKS "marks" /* used in place of a stream name */

struct tl_mark {
    uint64_t offset;
    struct tl_buf bytes; /* a checkpoint */
};

/* The key of the list that begins at `*offset`; NULL: their common prefix. */
char *tl_mark_key(char out[static 192], const struct tl_gen *gen, const uint64_t *offset);
/* The key of the object that says which program took them. */
char *tl_mark_identity_key(char out[static 192], const struct tl_gen *gen);

/* Can a new decoder's state be saved? If not, each shard would have to be regenerated from the
 * first byte. */
bool tl_can_mark(struct tl_decode *decode);
/* Begin decoding a generation with virtual shards: record the server version. */
void tl_mark_begin(struct tl_decode_job *job);
/* Take a mark if it is time for one. Called by the decode job after a flush of the decoder. Failure
 * only costs time later. */
void tl_mark(struct tl_decode_job *job);
/* Store pending marks; called by the decode job. Bytes decoded after this may be decoded again. */
void tl_mark_flush(struct tl_decode_job *job);
/* Discard pending marks. */
void tl_mark_drop(struct tl_decode_job *job);

#endif
