/* SPDX-License-Identifier: MIT */
/* Helpers of the look-ups: instructions of blocks, names of functions and items. */
#ifndef TL_LAKE_QUERY_H
#define TL_LAKE_QUERY_H

#include "lake/scale.h"

/* Steps through a BLOCK item's instructions. */
struct tl_block_walk {
    const struct tl_block *block;
    uint32_t left;
    uint32_t at; /* byte of the next one */
    uint64_t pc; /* of the one returned last, and … */
    struct tl_bytes code;
};
void tl_block_walk_begin(struct tl_block_walk *walk, const struct tl_item *item);
/* The next instruction; false behind the last. */
bool tl_block_walk_next(struct tl_block_walk *walk);

/* "main+0x10", "main", or "" where no symbol is `now`, into `out`; returns it. */
char *tl_function_text(const struct tl_image *image, const struct tl_flow_now *now, uint64_t pc,
                       char *out, size_t size);
/* Name of a function by its symbol index, "" if there is none. */
const char *tl_function_name(const struct tl_image *image, uint32_t function);
/* "exception", "gap", …: what `find` and statistics call a kind of item; NULL for instructions. */
const char *tl_item_kind_name(unsigned kind);
/* An item as one line without its end and the letter in front. `line` is reused. */
TL_MUST_USE int tl_item_words(const struct tl_item *item, struct tl_buf *line);

#endif
