/* SPDX-License-Identifier: MIT */
/* COMMENT records that hold a line of flow text. Private to the library; pure functions. */
#ifndef TL_STF_FLOW_COMMENT_H
#define TL_STF_FLOW_COMMENT_H

#include "flow/item.h"

/*
 * The item that a line stands for; its text or payload is put into `data`. False: none.
 * `*branch_flags` gets CALL and RETURN of the branch item that follows ("B call").
 */
bool tl_stf_comment_parse(struct tl_bytes text, struct tl_buf *data, struct tl_item *out,
                          uint8_t *branch_flags);
/* A foreign comment as a note. False: out of memory. */
bool tl_stf_comment_note(struct tl_bytes text, struct tl_buf *data, struct tl_item *out);

#endif
