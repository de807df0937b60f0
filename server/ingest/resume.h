/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints (store/checkpoint.h) of a decode job, which alone calls these. Nothing of this ever
 * fails a decode: without a checkpoint it begins at the first byte.
 */
#ifndef TL_INGEST_RESUME_H
#define TL_INGEST_RESUME_H

#include "base/err.h"

#include <stdbool.h>

struct tl_gen;
struct tl_lake;

/* Fill in gen->whose: what the result hangs on beside the raw bytes. Any thread. */
TL_MUST_USE int tl_resume_whose(struct tl_gen *gen);
/* Nothing was pushed to the decoder yet: go on from the last checkpoint, if there is one. An error:
 * that cannot be, and decoder and builders are of no use any more. */
TL_MUST_USE int tl_resume_load(struct tl_gen *gen);
/* Is it time for a checkpoint? */
bool tl_resume_due(const struct tl_gen *gen);
/* Between two slices, with all complete shards in the store: store one. */
void tl_resume_mark(struct tl_gen *gen);
/* All is sealed, or nobody wants it any more: remove all of a generation. By any thread. */
void tl_resume_remove(struct tl_lake *lake, const char *trace, uint64_t generation);

#endif
