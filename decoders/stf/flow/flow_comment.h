/* SPDX-License-Identifier: MIT */
/* COMMENT records that contain a line of flow text. Private to the library; pure functions. */
#ifndef TL_STF_FLOW_COMMENT_H
#define TL_STF_FLOW_COMMENT_H

#include "flow/item.h"

/* What a comment of ours says, apart from an item. */
struct tl_stf_told {
    uint8_t branch_flags; /* "B call": CALL and RETURN of the branch item that follows */
    bool leaves;          /* "L": the group's instruction changed the flow, but is no branch */
    bool points;          /* "J n": what the following FORCE_PC records are: */
    uint8_t how;          /* enum tl_stf_points */
    bool again;           /* "m": the item is repeated at the beginning of a shard */
};

/*
 * Parse a line into the item it represents; text or payload is stored in `data`. Returns false if
 * there is none. All members of `*told` are set.
 */
bool tl_stf_comment_parse(struct tl_bytes text, struct tl_buf *data, struct tl_item *out,
                          struct tl_stf_told *told);
/* Make a NOTE of any other comment. Returns false: out of memory. */
bool tl_stf_comment_note(struct tl_bytes text, struct tl_buf *data, struct tl_item *out);

#endif
