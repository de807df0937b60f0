/* SPDX-License-Identifier: MIT */
/* COMMENT records that contain a line of flow text. Private to the library; pure functions. */
#ifndef TL_STF_FLOW_COMMENT_H
#define TL_STF_FLOW_COMMENT_H

#include "flow/item.h"

/*
 * Parse a line into the item it represents; text or payload is stored in `data`. Returns false if
 * it is not flow text. `*branch_flags` is set to CALL and RETURN for the branch item that follows
 * ("B call").
 */
bool tl_stf_comment_parse(struct tl_bytes text, struct tl_buf *data, struct tl_item *out,
                          uint8_t *branch_flags);
/* Make a NOTE of any other comment. Returns false: out of memory. */
bool tl_stf_comment_note(struct tl_bytes text, struct tl_buf *data, struct tl_item *out);

#endif
