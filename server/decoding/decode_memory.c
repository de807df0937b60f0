/* SPDX-License-Identifier: MIT */
/*
 * Memory is measured every few milliseconds rather than counted at each allocation: what can grow
 * quickly is few arrays, whose sizes are known. Once all decoding together exceeds the limit, a
 * generation that has more than an even share of it fails, so that the small ones go on.
 */
#include "decoding/decode_memory.h"

#include "decoding/decode_job.h"
#include "lake/lakeint.h"

#define PENDING_BYTES ((size_t)2 << 20) /* of a complete shard until it is stored, roughly */
#define OUTLINE_BYTES ((size_t)8 << 10) /* of its outline */

static size_t measure(struct tl_decode_job *job)
{
    const size_t pending = job->role == TL_DECODE_OUTLINE ? OUTLINE_BYTES : PENDING_BYTES;
    size_t n = job->decode ? tl_decode_bytes(job->decode) : 0;
    for (size_t i = 0; i < job->n_by_stream; i++) {
        struct tl_lane *const lane = job->by_stream[i];
        pthread_mutex_lock(&lane->lock);
        n += lane->n_pending * pending + (lane->build ? tl_build_bytes(lane->build) : 0);
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

/* Returns what all of them use. */
static uint64_t note(struct tl_decode_job *job, size_t now)
{
    struct tl_lake *const lake = job->gen->lake;
    const size_t before = job->memory;
    job->memory = now;
    if (before == 0 && now > 0)
        atomic_fetch_add(&lake->decodes, 1);
    if (before > 0 && now == 0)
        atomic_fetch_sub(&lake->decodes, 1);
    return atomic_fetch_add(&lake->decode_bytes, now - before) + now - before;
}

/* Of its images, which others may have, too. */
static uint64_t measure_images(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    const uint64_t n = gen->program ? tl_program_size(gen->program) : 0;
    pthread_mutex_unlock(&gen->lock);
    return n;
}

int tl_decode_memory_check(struct tl_decode_job *job, struct tl_fail *fail)
{
    struct tl_gen *const gen = job->gen;
    struct tl_lake *const lake = gen->lake;
    const uint64_t limit = lake->decode_limit;
    const size_t without = measure(job);
    const uint64_t own = without + measure_images(gen);
    const uint64_t all = note(job, without) + tl_programs_bytes(lake);
    const uint64_t n = atomic_load(&lake->decodes);
    const bool too_large = own > limit / 2;
    if (!too_large && (all <= limit || n == 0 || own <= limit / n))
        return TL_OK;
    return tl_fail_set(fail, TL_LIMIT,
                       "decoding it needs over %llu MiB of memory; serve with more --decode-memory "
                       "(%s%llu MiB), then redecode: its bytes are kept",
                       (unsigned long long)(own >> 20), too_large ? "each trace half of " : "",
                       (unsigned long long)(limit >> 20));
}

void tl_decode_memory_release(struct tl_decode_job *job)
{
    (void)note(job, 0);
}
