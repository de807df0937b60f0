/* SPDX-License-Identifier: MIT */
/*
 * Counts of calls and times that shards of older servers do not have, or have lost, made in the
 * background, so that the first question does not wait for them. Until then each question counts
 * what it needs by itself. An object of the store tells that all traces were gone through for the
 * form of counts that this program has. Until then each start goes through them from the first one
 * on, which reads the head of one object for each shard that has its counts. So it is, too, where
 * several servers share a store, as each goes through its own traces only.
 */
#ifndef TL_UPKEEP_BACKFILL_H
#define TL_UPKEEP_BACKFILL_H

#include "base/err.h"

#include <stddef.h>

struct tl_lake;

/* Go through all traces that this server may change; `*counted` receives the
 * number of shards counted. With `rests`, at most half of one processor is used, and a fifth while
 * anything is decoded. Shards that cannot be read or stored are left out. TL_AGAIN: there are
 * traces that other servers work on; TL_NOMEM, TL_CANCELLED, or the catalog's error. */
TL_MUST_USE int tl_backfill_all(struct tl_lake *lake, bool rests, size_t *counted,
                                struct tl_fail *fail);
/* A thread that does so once. */
TL_MUST_USE int tl_backfill_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_backfill_stop(struct tl_lake *lake);
/* Check the object. TL_BAD: it is damaged, and with `repair` removed; TL_IO. */
TL_MUST_USE int tl_backfill_check(struct tl_lake *lake, bool repair);

#endif
