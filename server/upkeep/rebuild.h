/* SPDX-License-Identifier: MIT */
/*
 * Rows of the catalog made anew from the objects in the store. Thread-safe.
 */
#ifndef TL_UPKEEP_REBUILD_H
#define TL_UPKEEP_REBUILD_H

#include "base/err.h"

struct tl_lake;

/* Fill an empty catalog from the store's objects. */
TL_MUST_USE int tl_lake_rebuild_catalog(struct tl_lake *lake, struct tl_fail *fail);
/* Write all rows of a trace anew, from the copy of its row and its shards. TL_AGAIN: it is being
 * worked on; TL_BAD: the copy is damaged, too. */
TL_MUST_USE int tl_lake_restore_rows(struct tl_lake *lake, const char *id, struct tl_fail *fail);
/* Add rows of images that have none. */
TL_MUST_USE int tl_lake_restore_images(struct tl_lake *lake, struct tl_fail *fail);

#endif
