/* SPDX-License-Identifier: MIT */
/*
 * Decoding of a generation's raw bytes into shards. At most one job per generation runs at a time.
 */
#ifndef TL_DECODING_DECODE_JOB_H
#define TL_DECODING_DECODE_JOB_H

#include "base/err.h"

#include <stdbool.h>

struct tl_gen;
struct tl_trace;

/*
 * As the job of this trace, decode a bounded part of the raw bytes [decoded, end) of one of its
 * generations; `last`: the capture ends
 * at `end`. TL_OK: call again; TL_EOF: all of them are decoded (with `last`: finished, and
 * everything is sealed); TL_NOSPACE or TL_IO: retry later; other errors end the decoding.
 */
TL_MUST_USE int tl_gen_decode(struct tl_gen *gen, struct tl_trace *trace, uint64_t end, bool last,
                              struct tl_fail *fail);
/* Prepare for another server to continue, while no job runs: store what is complete, and a
 * checkpoint if possible. */
void tl_gen_leave(struct tl_gen *gen);
/* Discard the decoder and the growing shards. */
void tl_gen_stop(struct tl_gen *gen);
/* Free what decoding has of it, with its last reference. */
void tl_gen_end_decode(struct tl_gen *gen);

#endif
