/* SPDX-License-Identifier: MIT */
/*
 * Software trace of a range of a stream as entries for people: the lines that programs print,
 * records that are numbers, and events of hardware.
 */
#ifndef TL_QUERY_SOFTLINES_H
#define TL_QUERY_SOFTLINES_H

#include "lake_analysis.h"
#include "query/query.h"

/* Which entries. */
struct tl_softlines {
    uint64_t from, to; /* those that begin in this range of positions; UINT64_MAX: and behind it */
    bool one_channel;  /* only those of `channel` (of an STM: of any master) */
    uint32_t channel;
};

/* Receive an entry, whose own `text` is NULL, and its text, which is borrowed. A result < 0 ends
 * the walk. */
typedef int tl_softline_sink(void *context, const struct tl_soft_entry *entry,
                             struct tl_bytes text);

/* Does the record's channel print: is each value a character? */
bool tl_soft_prints(const struct tl_item *item);

/*
 * Deliver the entries, in the order in which they end. Chunks without software trace are not read.
 * Returns the sink's result < 0, TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_softlines_walk(const struct tl_softlines *wanted, const struct tl_cut *cut,
                                  tl_softline_sink *sink, void *context, struct tl_fail *fail);

#endif
