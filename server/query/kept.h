/* SPDX-License-Identifier: MIT */
/*
 * Stored code counts (shard/codecount.h) and call trees (shard/calltree.h) of stored shards, so
 * that each shard is counted once: when it is built, or if that was not possible, at the first
 * query. A shard never changes, so they cannot become outdated; they are removed with the shard. A
 * missing or damaged one is not an error: it can be recomputed from the shard.
 */
#ifndef TL_QUERY_KEPT_H
#define TL_QUERY_KEPT_H

#include "lake/cut.h"
#include "shard/codecount.h"
#include "shard/shardcalls.h"

/* Objects of one thread waiting to be stored together. Zero-initialised: empty. */
struct tl_kept {
    struct tl_kept_object *v;
    size_t n, cap;
    uint64_t bytes;           /* of all of them */
    struct tl_packer *packer; /* NULL: nothing has been packed yet */
};

/* Add the stored counts of the cut's shard `i`. TL_NOTFOUND: there are none. TL_NOMEM. */
TL_MUST_USE int tl_kept_counts_get(const struct tl_cut *cut, size_t i, struct tl_codecount *out);
/* Store counts; waiting objects are written from time to time. TL_NOMEM. */
TL_MUST_USE int tl_kept_counts_add(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                                   const struct tl_codecount *counts);
/* The same for a call tree, which must be empty on get. */
TL_MUST_USE int tl_kept_calls_get(const struct tl_cut *cut, size_t i, struct tl_calltree *out);
/* The same with the counts in time, as bytes. TL_NOTFOUND also if the object is an older one
 * without. */
TL_MUST_USE int tl_kept_times_get(const struct tl_cut *cut, size_t i, struct tl_shard_calls *out);
TL_MUST_USE int tl_kept_calls_add(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                                  const struct tl_calltree *tree);
/* What the calls of the cut's shard `i` took, as far as its times can be known; must be empty.
 * TL_NOTFOUND: there is nothing, or from an older server. TL_NOMEM. */
TL_MUST_USE int tl_kept_index_get(const struct tl_cut *cut, size_t i, struct tl_call_index *out);
/* Could shard `i` have more in store about its calls than it has? By the object's head alone; false
 * also if the store does not respond. */
bool tl_kept_is_missing(const struct tl_cut *cut, size_t i);
/* The exceptions and gaps of shard `i`, as far as its times can be known; must be empty.
 * TL_NOTFOUND, TL_NOMEM as above. */
TL_MUST_USE int tl_kept_rows_get(const struct tl_cut *cut, size_t i, struct tl_timed_rows *out);
/* Store all about the calls in place of what is there. TL_NOMEM. */
TL_MUST_USE int tl_kept_calls_replace(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                                      const struct tl_shard_calls *calls);
/* Write waiting objects, as far as possible, and empty the list. */
void tl_kept_store(struct tl_kept *kept, const struct tl_cut *cut);

#endif
