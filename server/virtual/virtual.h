/* SPDX-License-Identifier: MIT */
/*
 * Virtual shards for readers: their contents are made from raw bytes when they are read.
 */
#ifndef TL_VIRTUAL_VIRTUAL_H
#define TL_VIRTUAL_VIRTUAL_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct tl_gen;
struct tl_trace;
struct tl_view;

/*
 * The serving generation, for reading the contents of its shards; release with tl_gen_put(). If
 * another server version made virtual shards of it, it is decoded again and waited for, at most a
 * minute.
 */
struct tl_gen *tl_trace_settled(struct tl_trace *trace);
/*
 * Does the generation have virtual shards, which are useless without raw bytes? Queries the store.
 */
TL_MUST_USE int tl_gen_has_virtual(struct tl_gen *gen, bool *has, struct tl_fail *fail);
/* Regenerate part of a virtual shard's view: a tl_view_make (shard/view.h), with the lane as maker.
 */
int tl_lane_make(void *lane, struct tl_view *view, size_t from, size_t to, bool packed,
                 struct tl_view **out, struct tl_fail *fail);

#endif
