/* SPDX-License-Identifier: MIT */
/*
 * Storing complete shards of a generation: for its decode job, on the job's thread. Results are
 * TL_OK, TL_NOSPACE or TL_IO (later again), TL_CANCELLED, TL_NOMEM, TL_DENIED (the lease is gone).
 */
#ifndef TL_DECODING_STORE_SHARDS_H
#define TL_DECODING_STORE_SHARDS_H

#include "base/err.h"

#include <stddef.h>

/* Number of shards stored together. Virtual ones are small, and produced quickly: more of them. */
#define TOGETHER 3

struct tl_decode_job;
struct tl_gen;

/* Number of lanes. Any thread. */
size_t tl_gen_lane_count(struct tl_gen *gen);
/* Write the streams' names and numbers. */
TL_MUST_USE int tl_store_streams(struct tl_decode_job *job, struct tl_fail *fail);
/* Store all complete shards, while no sealing thread runs. */
TL_MUST_USE int tl_store_shards_all(struct tl_decode_job *job, struct tl_fail *fail);
/* Start storing them in parallel with decoding, if there are enough; wait if there are too many. */
TL_MUST_USE int tl_store_shards_beside(struct tl_decode_job *job, struct tl_fail *fail);
/* Wait until the sealing thread is idle; returns its result. */
TL_MUST_USE int tl_store_shards_wait(struct tl_decode_job *job, struct tl_fail *fail);
/* A shard was completed, somewhere within a push, which cannot be left: wait until it can be
 * stored, or until enough others have been. TL_LIMIT: too many of a live edge. */
TL_MUST_USE int tl_store_shards_within(struct tl_decode_job *job);

#endif
