/* SPDX-License-Identifier: MIT */
/*
 * Chunks of .zstf files, compressed by whichever thread has time, and given back in the order in
 * which they came.
 *
 * One thread adds chunks, and takes the frames; it compresses, too, as soon as as many chunks wait
 * as may. Others lend a hand whenever they like (tl_zstf_pool_work()). So nobody ever waits for
 * help, and memory is bounded whoever is the slowest. Frames are the same, whoever made them.
 */
#ifndef TL_STF_ZSTF_POOL_H
#define TL_STF_ZSTF_POOL_H

#include "stf/zstf.h"

TL_C_BEGIN

/* A chunk on its way through the pool. */
struct tl_zstf_job {
    void *context; /* the adding thread's */
    uint64_t markers;
    uint64_t start_pc;
    struct tl_buf stf;
    struct tl_buf frame; /* of it, when it is given back */
};

/* Takes a frame, borrowed for the call. A result < 0 is returned by who waits for it. */
typedef int tl_zstf_packed(const struct tl_zstf_job *job);

struct tl_zstf_pool;

/*
 * `threads` (at least 1) is how many there are to compress, the one that adds included: with one,
 * each chunk is given back at once. `packed` is called by the thread that adds. TL_NOMEM.
 */
TL_MUST_USE int tl_zstf_pool_new(struct tl_zstf_pool **out, int level, unsigned threads,
                                 tl_zstf_packed *packed);
/* Nobody may be in a call. What was not given back is dropped. */
void tl_zstf_pool_free(struct tl_zstf_pool *pool);

/*
 * Add a chunk: job->stf is exchanged for an empty buffer that may have memory, the rest is copied.
 * Chunks of before, and this one, may be given back meanwhile. TL_NOMEM, and what `packed` returns.
 */
TL_MUST_USE int tl_zstf_pool_add(struct tl_zstf_pool *pool, struct tl_zstf_job *job);

/* All chunks are given back when it returns. Results as of tl_zstf_pool_add(). */
TL_MUST_USE int tl_zstf_pool_drain(struct tl_zstf_pool *pool);

/* Compress a chunk, if one waits; false: none does. By any thread, also several at once. */
bool tl_zstf_pool_work(struct tl_zstf_pool *pool);

TL_C_END

#endif
