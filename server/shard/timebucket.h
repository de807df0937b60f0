/* SPDX-License-Identifier: MIT */
/*
 * Buckets in time: which function had how much of a stream's time, as tiles on the time axis show
 * it. A bucket of level L spans [k * 4^L, (k + 1) * 4^L) of the time shown to users (struct
 * tl_axis); a tick of the stream belongs to the bucket in which it begins. So a bucket lies within
 * one bucket of each coarser level, and is never divided.
 *
 * A shard has the finest level that is worth its space, and the next one. The latter has all
 * functions, so that sums of any number of buckets of any number of shards have the right winner;
 * the finest leaves out rare ones, but in its first and last bucket, where shards meet.
 *
 * Durations are in ticks. Not thread-safe.
 */
#ifndef TL_SHARD_TIMEBUCKET_H
#define TL_SHARD_TIMEBUCKET_H

#include "setup/clock.h"
#include "shard/timedspan.h"
#include "shard/varint.h"

#define TL_TIME_LEVELS  28  /* levels 0 to 27, as tiles have them */
#define TL_TIME_SHARES  512 /* functions of a bucket, at most */
#define TL_TIME_SUMMARY 16  /* buckets of a summary, at most */

/* ---- how times are shown -------------------------------------------------------------------- */

/* A stream's ticks as users see them: nanoseconds, or ticks if no rate is known. */
struct tl_axis {
    struct tl_clock clock;
    uint64_t hz; /* unless the clock is known; 0: none */
};

/* Never decreases with the ticks; at most 2^64-1. */
uint64_t tl_axis_shown(const struct tl_axis *axis, uint64_t ticks);
/* The first tick that is shown as at least `shown`. */
uint64_t tl_axis_ticks(const struct tl_axis *axis, uint64_t shown);

/* ---- buckets -------------------------------------------------------------------------------- */

struct tl_time_share {
    uint32_t function; /* symbol index + 1; 0: none */
    uint64_t ticks;
};

struct tl_time_bucket {
    uint64_t number;                /* begins at number << 2 * level */
    uint64_t ticks[TL_TIMED_KINDS]; /* by enum tl_timed_kind */
    uint64_t insns;                 /* positions that begin in it */
    uint64_t events;                /* as in struct tl_bucket */
    uint64_t privilege[4];          /* ticks run at each level */
    uint16_t event_mask;            /* enum tl_bucket_event */
    uint8_t flags;                  /* enum tl_bucket_flag; also of trace lost since before it */
    bool ran;                       /* a function ran, and the depths are known */
    uint8_t depth_min, depth_max;
    struct tl_time_share *shares; /* of the functions; without the rarest */
    uint32_t n_shares, cap_shares;
};

void tl_time_bucket_fini(struct tl_time_bucket *bucket);
/* Add everything but the functions. */
void tl_time_bucket_add_sums(struct tl_time_bucket *into, const struct tl_time_bucket *from);
/* Add all of `from`. If there are too many functions, an equal part is taken from all of them: none
 * loses more than one in TL_TIME_SHARES of the bucket. TL_NOMEM. */
TL_MUST_USE int tl_time_bucket_merge(struct tl_time_bucket *into,
                                     const struct tl_time_bucket *from);
/* Sort the functions by time, most first. Otherwise they are ascending by function, which merging
 * and encoding expect. */
void tl_time_bucket_rank(struct tl_time_bucket *bucket);

/* ---- pyramids ------------------------------------------------------------------------------- */

struct tl_time_level {
    struct tl_time_bucket *p; /* ascending by number; empty ones are left out */
    size_t n, cap;
};

/* Levels finest to finest + n - 1 of a shard. n == 0: not known. */
struct tl_time_pyramid {
    unsigned finest, n;
    struct tl_time_level levels[TL_TIME_LEVELS];
};

void tl_time_level_fini(struct tl_time_level *level);
/* Add all of `from`, whose level is finer by `levels`. TL_NOMEM. */
TL_MUST_USE int tl_time_level_coarsen(struct tl_time_level *into, const struct tl_time_level *from,
                                      unsigned levels);
/* The bucket with this number, which is not before the last one; NULL: out of memory. */
struct tl_time_bucket *tl_time_level_at(struct tl_time_level *level, uint64_t number);

/* Append an encoded level; read it into an empty one, of level `number`. TL_NOMEM; TL_BAD. */
TL_MUST_USE int tl_time_level_encode(const struct tl_time_level *level, struct tl_buf *out);
TL_MUST_USE int tl_time_level_read(struct tl_time_level *level, struct tl_varint_reader *in,
                                   unsigned number);

void tl_time_pyramid_fini(struct tl_time_pyramid *pyramid);
/* Copy into an empty one. TL_NOMEM. */
TL_MUST_USE int tl_time_pyramid_copy(struct tl_time_pyramid *out,
                                     const struct tl_time_pyramid *from);
/*
 * The buckets of which those of `level` consist: of this level, or of the coarsest one below it.
 * `*shift`: how many bits their numbers have more. NULL: all are coarser.
 */
const struct tl_time_level *tl_time_pyramid_at(const struct tl_time_pyramid *pyramid,
                                               unsigned level, unsigned *shift);

/* Append the encoded pyramid. TL_NOMEM. */
TL_MUST_USE int tl_time_pyramid_encode(const struct tl_time_pyramid *pyramid, struct tl_buf *out);
/*
 * Append a summary: one level with the sums of the coarsest one; `finest`, or the first one above
 * it that has few buckets and functions. The shards for which it is coarser than a tile are so long
 * that there are few of them in the tile. TL_NOMEM.
 */
TL_MUST_USE int tl_time_pyramid_encode_summary(const struct tl_time_pyramid *pyramid,
                                               unsigned finest, struct tl_buf *out);
/* Read what one of these wrote into an empty one. TL_BAD, TL_NOMEM. */
TL_MUST_USE int tl_time_pyramid_read(struct tl_time_pyramid *out, struct tl_varint_reader *in);

#endif
