/* SPDX-License-Identifier: MIT */
/*
 * Address translation as far as a trace told of it: the last PAGE_TABLE_WALK of each page of each
 * address space. No I/O, not thread-safe. Private to the library.
 *
 * Memory: some 3 MiB at most. Of more than TL_STF_WALKS_MAX bytes of walks those told last are
 * kept: 12,000 pages of Sv39, as many as a group of records may have beside all else.
 */
#ifndef TL_STF_WALKS_H
#define TL_STF_WALKS_H

#include "base/state.h"
#include "stf/record.h"

#define TL_STF_WALKS_MAX ((size_t)1 << 20)

struct tl_stf_walks;

TL_MUST_USE int tl_stf_walks_new(struct tl_stf_walks **out);
void tl_stf_walks_free(struct tl_stf_walks *walks);

/* Take a PAGE_TABLE_WALK, in order. TL_NOMEM. */
TL_MUST_USE int tl_stf_walks_add(struct tl_stf_walks *walks, const struct tl_stf_record *record);

/*
 * Walk what is known, in the order in which it was told, as PAGE_TABLE_WALK records that hold from
 * before the first instruction on. Those with an entry that a later walk contradicts are left out:
 * stf_lib stops where an entry has two values at once. `*at` is 0 at the begin. TL_EOF behind the
 * last. The record's entries are valid until the next tl_stf_walks_add().
 */
int tl_stf_walks_next(const struct tl_stf_walks *walks, size_t *at, struct tl_stf_record *record);

/* Into bytes or, of a new one, from them. */
void tl_stf_walks_state(struct tl_stf_walks *walks, struct tl_state *state);

#endif
