/* SPDX-License-Identifier: MIT */
/* Helpers for queries: instructions of blocks, names of functions and items. */
#ifndef TL_QUERY_QUERY_H
#define TL_QUERY_QUERY_H

#include "lake/function_text.h"
#include "lake/scale.h"

/* Iterates over the instructions of a BLOCK item. */
struct tl_block_walk {
    const struct tl_block *block;
    uint32_t left;
    uint32_t at; /* byte of the next instruction */
    uint64_t pc; /* of the last returned instruction, like `code` */
    struct tl_bytes code;
};
void tl_block_walk_begin(struct tl_block_walk *walk, const struct tl_item *item);
/* Advance to the next instruction; false after the last. */
bool tl_block_walk_next(struct tl_block_walk *walk);

/* Name of a function by its symbol index, told apart from those of other programs, and the program
 * that it is of; "" if there is none. */
const char *tl_function_name(const struct tl_image *image, uint32_t function);
const char *tl_function_program(const struct tl_image *image, uint32_t function);
/* "exception", "gap", …: name of a kind of item in `find` and statistics; NULL for instructions. */
const char *tl_item_kind_name(unsigned kind);
/* Format an item as one line without its line end and kind letter. `line` is reused. */
TL_MUST_USE int tl_item_words(const struct tl_item *item, struct tl_buf *line);

#endif
