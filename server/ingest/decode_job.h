/* SPDX-License-Identifier: MIT */
/* The decoding of a generation's raw bytes into shards. One job of a generation runs at a time. */
#ifndef TL_INGEST_DECODE_JOB_H
#define TL_INGEST_DECODE_JOB_H

#include "base/err.h"

#include <stdbool.h>

struct tl_gen;

/*
 * Decode raw bytes [decoded, end) of a generation, a bounded amount of them; `last`: the capture
 * ends there. TL_OK: call again; TL_EOF: all of them are decoded (with `last`: finished, and
 * everything is sealed); TL_NOSPACE or TL_IO: try again later; others end the decoding.
 */
TL_MUST_USE int tl_gen_decode(struct tl_gen *gen, uint64_t end, bool last, struct tl_fail *fail);
/* No job runs, and another server is to go on: store what is complete, and a checkpoint if that can
 * be. */
void tl_gen_leave(struct tl_gen *gen);
/* Forget the decoder and the growing shards. */
void tl_gen_stop(struct tl_gen *gen);

#endif
