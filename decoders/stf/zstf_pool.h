/* SPDX-License-Identifier: MIT */
/*
 * Compresses chunks of .zstf files with several threads, returning the frames in the order in which
 * the chunks were added.
 *
 * One thread adds chunks and receives frames; it also compresses when the maximum number of chunks
 * is pending. Other threads help at any time (tl_zstf_pool_work()). So no thread ever depends on
 * another's help, and memory is bounded whichever is slowest. Frames do not depend on the thread
 * that made them.
 */
#ifndef TL_STF_ZSTF_POOL_H
#define TL_STF_ZSTF_POOL_H

#include "stf/zstf.h"

TL_C_BEGIN

/* A chunk on its way through the pool. */
struct tl_zstf_job {
    void *context; /* for the adding thread */
    uint64_t markers;
    uint64_t start_pc;
    struct tl_buf stf;
    struct tl_buf frame; /* compressed chunk, when it is returned */
};

/* Receive a frame, borrowed for the call. A result < 0 is returned by the call that delivers it. */
typedef int tl_zstf_packed(const struct tl_zstf_job *job);

struct tl_zstf_pool;

/*
 * Create a pool. `threads` (at least 1) is the number of threads that compress, including the
 * adding one: with one, each chunk is returned immediately. `packed` is called by the adding
 * thread. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_zstf_pool_new(struct tl_zstf_pool **out, int level, unsigned threads,
                                 tl_zstf_packed *packed);
/* No thread may be in a call. Chunks not returned yet are dropped. */
void tl_zstf_pool_free(struct tl_zstf_pool *pool);

/*
 * Add a chunk: job->stf is exchanged for an empty buffer that may have capacity, the rest is
 * copied. Previous chunks and this one may be returned during the call. Returns TL_NOMEM, and what
 * `packed` returns.
 */
TL_MUST_USE int tl_zstf_pool_add(struct tl_zstf_pool *pool, struct tl_zstf_job *job);

/* Return all chunks. Results as tl_zstf_pool_add(). */
TL_MUST_USE int tl_zstf_pool_drain(struct tl_zstf_pool *pool);

/* Compress a pending chunk; returns false if there is none. May be called by several threads
 * concurrently. */
bool tl_zstf_pool_work(struct tl_zstf_pool *pool);

TL_C_END

#endif
