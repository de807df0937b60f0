/* SPDX-License-Identifier: MIT */
/*
 * Consistent snapshots of lanes, for readers: a tl_cut keeps the shards that a lane had when it was
 * opened readable, and a tl_cut_walk iterates over their items. Each is used by one thread.
 */
#ifndef TL_LAKE_CUT_H
#define TL_LAKE_CUT_H

#include "flow/callstack.h"
#include "lake/away.h"
#include "lake/lakeint.h"
#include "lake_ranges.h"
#include "shard/walk.h"

struct tl_stf_known;

struct tl_cut {
    struct tl_gen *gen;
    struct tl_lane *lane;
    struct tl_shard_row *rows; /* all shards, in order; those in memory are last */
    struct tl_rows_copy copy;  /* the memory of `rows` */
    size_t n_rows;
    size_t n_stored;       /* number of shards in the store */
    struct tl_view **tail; /* views of rows[n_stored…], which are in memory; NULL: put away */
    struct tl_away_taken away;
    uint64_t end; /* after the last position */
    bool open;    /* the lane may still grow */
    /* If the last ones are outlines: their owner, and lane; those before `n_indexed` are not. They
     * are only good for walks, unless they were indexed for this snapshot. */
    struct tl_gen *outline;
    struct tl_lane *outlined;
    size_t n_indexed;
    bool behind; /* what is behind `end`, of the range that was asked for, is outlined only */
    uint64_t behind_time; /* the time of `end`, as shown; 0: not known */
};

/* Open a snapshot. TL_NOTFOUND: no such trace or stream. */
TL_MUST_USE int tl_cut_open(struct tl_cut *out, struct tl_lake *lake, const char *trace,
                            const char *stream, struct tl_fail *fail);
/* The same, with what is decoded ahead of the index. The shards there can be walked, but have no
 * buckets, code, statistics or times (builder/shard_builder.h). */
TL_MUST_USE int tl_cut_open_outlined(struct tl_cut *out, struct tl_lake *lake, const char *trace,
                                     const char *stream, struct tl_fail *fail);
/* Open a snapshot of a lane of a generation, to which the snapshot has a reference of its own. */
TL_MUST_USE int tl_cut_of_lane(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane);
/*
 * The same for questions about a range, which need the index: what is only outlined of it is
 * indexed at once, up to a bound. If that is not all of it, the snapshot is `behind`, and ends
 * where the index does. Outside of the range there may still be outlines.
 */
struct tl_cut_range {
    enum tl_range_unit unit;
    uint64_t from, to; /* to UINT64_MAX: to the end */
};
#define TL_CUT_ALL ((const struct tl_cut_range){TL_UNIT_INSN, 0, UINT64_MAX})
TL_MUST_USE int tl_cut_open_range(struct tl_cut *out, struct tl_lake *lake, const char *trace,
                                  const char *stream, const struct tl_cut_range *range,
                                  struct tl_fail *fail);
TL_MUST_USE int tl_cut_of_lane_range(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane,
                                     const struct tl_cut_range *range, struct tl_fail *fail);
void tl_cut_close(struct tl_cut *cut);
/* Does the stream itself have instructions or, if `samples`, samples of them? Derived ones have
 * none. */
bool tl_lane_has_insns(const struct tl_lane *lane, bool samples);
/* Samples are all there is: no stream has instructions. */
bool tl_gen_has_only_samples(struct tl_gen *gen);
/*
 * Call `take` for the named stream of a trace or, if `stream` is NULL or empty, for each one that
 * has instructions, or if none has, samples of them, with the unit of [from, to) in it: a range
 * over all streams is in time, and streams without time are included only if everything is
 * requested, 0 to UINT64_MAX. `*gen` receives the serving generation, which the caller releases,
 * also after an error. TL_USAGE, TL_NOTFOUND, TL_NOMEM, or a negative result of `take`, which ends
 * the iteration.
 */
typedef int tl_cut_taker(void *context, const struct tl_cut *cut, enum tl_range_unit unit,
                         struct tl_fail *fail);
TL_MUST_USE int tl_cuts_of_flow(struct tl_lake *lake, const char *trace, const char *stream,
                                enum tl_range_unit unit, uint64_t from, uint64_t to,
                                tl_cut_taker *take, void *context, struct tl_gen **gen,
                                struct tl_fail *fail);
/* Instruction set of its trace until its items give one: that of the source, or of the header of
 * imported STF. */
enum tl_isa tl_cut_isa(const struct tl_cut *cut);
/* Registers and page walks recorded before `position`, for writing imported STF from there on. NULL
 * in `*out`: none. Reads up to one shard. Errors as tl_cut_walk_next(). */
TL_MUST_USE int tl_cut_known(const struct tl_cut *cut, uint64_t position, struct tl_stf_known **out,
                             struct tl_fail *fail);
/* The view of shard `i`, with a reference. */
TL_MUST_USE int tl_cut_view(const struct tl_cut *cut, size_t i, struct tl_view **out,
                            struct tl_fail *fail);
/* The shard that contains `position`; n_rows if there is none. */
size_t tl_cut_shard_at(const struct tl_cut *cut, uint64_t position);
/* First shard that may have items at `position`: the items before an instruction may fill several
 * shards. */
size_t tl_cut_items_at(const struct tl_cut *cut, uint64_t position);

/*
 * Buckets of level TL_LEVEL_SUMMARY, or coarser ones if a tile could not show more of them, for the
 * first `*shards` shards, as far as these overlap positions [from, to) (0 to UINT64_MAX: all). Read
 * from the catalog, without opening a shard. The caller frees them, also after an error.
 */
TL_MUST_USE int tl_cut_summary(const struct tl_cut *cut, uint64_t from, uint64_t to,
                               struct tl_buckets *out, uint64_t *shards, struct tl_fail *fail);

/* Iterates over a cut, chunk by chunk. */
struct tl_cut_walk {
    const struct tl_cut *cut; /* borrowed */
    struct tl_walk_range range;
    size_t shard, chunk; /* next to read */
    struct tl_view *view;
    struct tl_walk walk; /* items of the last chunk */
    const struct tl_chunk *at;
    /* If set: shards for which it returns false are skipped without opening them. */
    bool (*wanted)(const void *context, size_t shard);
    const void *context;
    /* Receives the call stack at the first chunk's begin; may be NULL. */
    struct tl_callstack *calls;
};
/* Begin a walk of positions [from, to). Items after the last position are included if `to` is at or
 * after the snapshot's end. */
void tl_cut_walk_begin(struct tl_cut_walk *walk, const struct tl_cut *cut, uint64_t from,
                       uint64_t to);
/*
 * Move the begin to the first instruction of the chunk that contains `from`, where the call stack
 * is known. The first tl_cut_walk_next() sets `calls`, which must be initialised; call
 * tl_walk_follow() to update it with each item read.
 */
TL_MUST_USE int tl_cut_walk_calls(struct tl_cut_walk *walk, struct tl_callstack *calls,
                                  struct tl_fail *fail);
/*
 * Do all of this to the end of a walk that has just begun; `calls` is not initialised. Its sink and
 * `each` (may be NULL), which is called after each item, receive `context`. If the sink returns
 * TL_EOF, the walk ends with TL_OK.
 */
typedef void tl_cut_each(void *context, const struct tl_walk *walk, size_t i);
TL_MUST_USE int tl_cut_walk_follow(struct tl_cut_walk *walk, struct tl_callstack *calls,
                                   tl_frame_sink *sink, tl_cut_each *each, void *context,
                                   struct tl_fail *fail);
/* Read the next chunk's items into walk->walk: TL_OK, or TL_EOF. */
TL_MUST_USE int tl_cut_walk_next(struct tl_cut_walk *walk, struct tl_fail *fail);
/* Get the next chunk's index entry, NULL after the last; the chunk itself is not read. */
TL_MUST_USE int tl_cut_walk_peek(struct tl_cut_walk *walk, const struct tl_chunk **out,
                                 struct tl_fail *fail);
/* Pass over the chunk that tl_cut_walk_peek() returned. */
void tl_cut_walk_skip(struct tl_cut_walk *walk);
/* Free what the walk holds. */
void tl_cut_walk_end(struct tl_cut_walk *walk);

#endif
