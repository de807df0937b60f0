/* SPDX-License-Identifier: MIT */
/*
 * Address translation reported by a trace: the last PAGE_TABLE_WALK of each page in each address
 * space. No I/O, not thread-safe. Private to the library.
 *
 * If walks exceed TL_STF_WALKS_MAX bytes, the most recent ones are kept: about 15,000 pages of
 * Sv39, which still fit into a group of records. Memory: about 5 MiB with Sv39, 8 MiB at most, and
 * half as much again while old walks are dropped.
 */
#ifndef TL_STF_WALKS_H
#define TL_STF_WALKS_H

#include "base/state.h"
#include "stf/record.h"

#define TL_STF_WALKS_MAX ((size_t)1 << 20)

struct tl_stf_walks;

TL_MUST_USE int tl_stf_walks_new(struct tl_stf_walks **out);
void tl_stf_walks_free(struct tl_stf_walks *walks);

/* Process a PAGE_TABLE_WALK, in order. Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_walks_add(struct tl_stf_walks *walks, const struct tl_stf_record *record);

/*
 * Iterate over the known walks, in trace order, as PAGE_TABLE_WALK records valid before the first
 * instruction. Walks with an entry contradicted by a later walk are omitted: stf_lib fails if an
 * entry has two values at once. Start with `*at` = 0. Returns TL_EOF after the last one. The
 * record's entries are valid until the next tl_stf_walks_add().
 */
int tl_stf_walks_next(const struct tl_stf_walks *walks, size_t *at, struct tl_stf_record *record);

/* Save the state, or restore it into a new object. */
void tl_stf_walks_state(struct tl_stf_walks *walks, struct tl_state *state);

#endif
