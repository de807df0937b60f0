/* SPDX-License-Identifier: MIT */
/*
 * The outline of a trace whose index is made behind its decoding (label index=behind, or =auto and
 * it lags): what raw bytes have arrived are first followed by a decoder that counts nothing,
 * several times as fast as the index is made. It takes marks (decoding/marks.h) and notes where
 * shards and their chunks begin, when, and how many events and gaps they have. So every position
 * can be found and read, while tiles, calls and statistics end where the index does. The outline's
 * job goes before the index's, bounded pieces of each in turns: the index has a small share of them
 * also while the outline has more to do, since a rig may never pause. Nothing of it is stored but
 * its marks: the index, and everything in the store, is what it would be without an outline.
 */
#ifndef TL_DECODING_OUTLINE_JOB_H
#define TL_DECODING_OUTLINE_JOB_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_decode_job;
struct tl_trace;

enum tl_outline_turn {
    TL_OUTLINE_DONE, /* it is complete so far, or waits for the index, or there is none */
    TL_OUTLINE_MORE, /* there is more to do */
    TL_OUTLINE_YIELD /* there is, but the index has its share first */
};

/*
 * As the job of this trace, before its `index` goes on: go on with its outline, towards raw byte
 * `end`; `last`: the capture ends there. Begins it if the trace wants one.
 */
enum tl_outline_turn tl_outline_run(struct tl_trace *trace, struct tl_decode_job *index,
                                    uint64_t end, bool last);
/* The index has everything, or is made anew: drop the outline, if there is one. */
void tl_outline_end(struct tl_trace *trace);

#endif
