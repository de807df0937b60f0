/* SPDX-License-Identifier: MIT */
/*
 * Memory that decoding uses: decoders, images, growing shards, shards not stored yet. Each
 * generation that is being decoded has an account; so that no capture, however made, takes the
 * memory of others, there is a limit for all of them together, and half of it for each one
 * (lake->decode_limit).
 */
#ifndef TL_DECODING_DECODE_MEMORY_H
#define TL_DECODING_DECODE_MEMORY_H

#include "base/err.h"

struct tl_decode_job;

/* Measure the generation's memory; for its decode job. TL_LIMIT, and the reason in `fail`: it is
 * too much. */
TL_MUST_USE int tl_decode_memory_check(struct tl_decode_job *job, struct tl_fail *fail);
/* It uses none any more. */
void tl_decode_memory_release(struct tl_decode_job *job);

#endif
