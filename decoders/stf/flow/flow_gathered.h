/* SPDX-License-Identifier: MIT */
/*
 * The group that is being read from another producer's trace: its records, unchanged but in the
 * layout of the trace's first header, and without what current readers could not read. Memory is
 * bounded: of a group that is too long only the way through the program is kept. Not thread-safe.
 */
#ifndef TL_STF_FLOW_GATHERED_H
#define TL_STF_FLOW_GATHERED_H

#include "stf/flow/flow_groups.h"

/* All zero: nothing was read. */
struct tl_stf_gathered {
    struct tl_stf_groups groups; /* header and layout of the trace; filled and saved by the owner */
    struct tl_buf records;       /* of the group, so far */
    size_t bare;                 /* offset in `records` of an access without content so far */
    uint8_t last;                /* type of the last one that is subject to group order; 0: none */
    bool overfull;               /* they became too many */
};

void tl_stf_gathered_fini(struct tl_stf_gathered *gathered);

/* Begin a group. */
void tl_stf_gathered_begin(struct tl_stf_gathered *gathered);
/* Add a record. `event`: the group has an EVENT, without which an EVENT_PC_TARGET is unreadable.
 * TL_NOMEM. */
TL_MUST_USE int tl_stf_gathered_add(struct tl_stf_gathered *gathered,
                                    const struct tl_stf_record *record, bool event);
/* Add what a further header of the trace changes. TL_NOMEM. */
TL_MUST_USE int tl_stf_gathered_add_header(struct tl_stf_gathered *gathered,
                                           const struct tl_stf_header *header);
/* Replace a group that is overfull by its instruction at `pc`, with its closing record, and where
 * it goes, NULL: to the next one. TL_NOMEM. */
TL_MUST_USE int tl_stf_gathered_shorten(struct tl_stf_gathered *gathered, uint64_t pc,
                                        const uint64_t *target,
                                        const struct tl_stf_record *closing);

/* Save or restore, behind `groups`. */
void tl_stf_gathered_state(struct tl_stf_gathered *gathered, struct tl_state *state);

#endif
