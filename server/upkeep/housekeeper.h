/* SPDX-License-Identifier: MIT */
/*
 * The thread that looks after the lake: retention, what the medium refused, hashes of captures.
 */
#ifndef TL_UPKEEP_HOUSEKEEPER_H
#define TL_UPKEEP_HOUSEKEEPER_H

#include "base/err.h"

#include <stdbool.h>

struct tl_lake;

/*
 * Continue hashing complete captures that have no hash: upkeep/contents.c. Returns whether there is
 * more to do; `*soon` is set if that is due after TL_FRESH_NS (lake/trace.h), not with the next
 * round. Housekeeper's thread only.
 */
bool tl_contents_hash(struct tl_lake *lake, bool *soon);
/* Drop a hash that is not complete. */
void tl_contents_free(struct tl_lake *lake);
/* The housekeeper's thread applies retention, retries failed operations of the medium, and returns
 * free memory. */
TL_MUST_USE int tl_housekeeper_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_housekeeper_stop(struct tl_lake *lake);
void tl_housekeeper_free(struct tl_lake *lake);

#endif
