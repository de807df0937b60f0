/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints (store/checkpoint.h) of a decode job, which is the only caller. Nothing here ever
 * fails a decode: without a checkpoint it begins at the first byte.
 */
#ifndef TL_DECODING_RESUME_H
#define TL_DECODING_RESUME_H

#include "base/err.h"

#include <stdbool.h>

struct tl_decode_job;
struct tl_gen;
struct tl_lake;

/* Compute gen->whose: everything that the result depends on besides the raw bytes. Any thread. */
TL_MUST_USE int tl_resume_identity(struct tl_gen *gen);
/* Before anything is pushed to the decoder: continue from the last checkpoint, if there is one. On
 * an error decoder and builders are unusable and must be discarded. */
TL_MUST_USE int tl_resume_load(struct tl_decode_job *job);
/* Is it time for a checkpoint? */
bool tl_resume_due(const struct tl_decode_job *job);
/* Store a checkpoint. Called between two slices, with all complete shards in the store. */
void tl_resume_save(struct tl_decode_job *job);
/*
 * Remove all checkpoints of a generation, once everything is sealed or it is not wanted any more.
 * Any thread.
 */
void tl_resume_remove(struct tl_lake *lake, const char *trace, uint64_t generation);

#endif
