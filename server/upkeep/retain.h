/* SPDX-License-Identifier: MIT */
/* Private to retention: a round, and what is removed in it. */
#ifndef TL_UPKEEP_RETAIN_H
#define TL_UPKEEP_RETAIN_H

#include "lake_upkeep.h"

struct tl_lake;

#define TL_SCOPE_IMAGES "images" /* scope of the rule for images that no trace refers to */

/* Applying the rules once, or telling what that would remove. */
struct tl_retain_round {
    struct tl_lake *lake;
    int64_t now_ns;
    bool ages; /* it is certain how old things are */
    size_t n;  /* traces */
    /* NULL: remove. */
    int (*each)(void *context, const struct tl_retention_victim *victim);
    void *context;
    struct tl_fail *fail;
};

/* Tell the journal what was removed, by which rule. */
void tl_retain_report(const struct tl_retention_victim *victim);

/*
 * Count images that no trace refers to, and remove them if there is a rule; under retain_lock. All
 * setups are read for this, so without a rule only every few rounds. Returns the number of
 * removals.
 */
TL_MUST_USE int tl_retain_images(struct tl_retain_round *round,
                                 const struct tl_retention_row *rules, size_t n);

#endif
