/* SPDX-License-Identifier: MIT */
/* Flow text with the function of each instruction. One thread at a time. */
#ifndef TL_RANGE_NAMED_H
#define TL_RANGE_NAMED_H

#include "lake/function_text.h"

/* Zero-initialised, but for `image`. */
struct tl_range_named {
    const struct tl_image *image; /* the program, borrowed; NULL: nothing has a name */
    struct tl_flow_now now;       /* of the next item; set before the first one */
    bool begun;
    struct tl_buf text; /* of an item */
};

/*
 * Append the text of the next item to `out`: as tl_item_text(), with " <main+0x10>" behind each
 * instruction whose function is known. TL_NOMEM.
 */
TL_MUST_USE int tl_range_named_item(struct tl_range_named *named, const struct tl_item *item,
                                    struct tl_buf *out);
void tl_range_named_fini(struct tl_range_named *named);

#endif
