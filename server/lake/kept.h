/* SPDX-License-Identifier: MIT */
/*
 * Counts of the code of stored shards (store/codecount.h) and their call trees (store/calltree.h),
 * kept beside them, so that each is counted once: where the shard is built, or if it could not be
 * there, when somebody asks. A shard never changes, so that nothing can become outdated; they go
 * with the shard. One that is not there, or damaged, is no error: what it says is in the shard.
 */
#ifndef TL_LAKE_KEPT_H
#define TL_LAKE_KEPT_H

#include "lake/calltree.h"
#include "lake/lakeint.h"
#include "store/codecount.h"

#define TL_KEPT_MOST (512u << 10) /* bytes of one that is worth its place */

/* Those of one thread that wait to be stored together. Zeroed it is empty. */
struct tl_kept {
    struct tl_kept_object *v;
    size_t n, cap;
    struct tl_packer *packer; /* NULL: nothing has been packed */
};

/* Add the counts of the cut's shard `i`. TL_NOTFOUND: they are not there. TL_NOMEM. */
TL_MUST_USE int tl_kept_counts_get(const struct tl_cut *cut, size_t i, struct tl_codecount *out);
/* Keep them. Now and then those that wait are stored. TL_NOMEM. */
TL_MUST_USE int tl_kept_counts_add(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                                   const struct tl_codecount *counts);
/* The same of a call tree, which is empty at first. */
TL_MUST_USE int tl_kept_calls_get(const struct tl_cut *cut, size_t i, struct tl_calltree *out);
TL_MUST_USE int tl_kept_calls_add(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                                  const struct tl_calltree *tree);
/* Store those that wait, as far as that can be done, and forget them. */
void tl_kept_store(struct tl_kept *kept, const struct tl_cut *cut);

#endif
