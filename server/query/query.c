/* SPDX-License-Identifier: MIT */
/*
 * Iterates over instructions of blocks and names functions and items. Queries share it, so that the
 * same place has the same name in every answer.
 */
#include "query/query.h"

#include "image/names.h"

#include <stdio.h>
#include <string.h>

void tl_block_walk_begin(struct tl_block_walk *walk, const struct tl_item *item)
{
    *walk = (struct tl_block_walk){.block = item->block, .left = item->n};
}

static uint32_t insn_size(const struct tl_block *block, uint32_t at)
{
    if (block->isa == TL_ISA_A64 || block->isa == TL_ISA_A32)
        return 4;
    struct tl_insn insn;
    tl_block_insn(block, at, &insn);
    return insn.size;
}

bool tl_block_walk_next(struct tl_block_walk *walk)
{
    if (walk->left == 0 || walk->at >= walk->block->size)
        return false;
    const uint32_t left = walk->block->size - walk->at;
    uint32_t size = insn_size(walk->block, walk->at);
    if (size == 0 || size > left)
        size = left;
    walk->pc = walk->block->pc + walk->at;
    walk->code = (struct tl_bytes){walk->block->code + walk->at, size};
    walk->at += size;
    walk->left--;
    return true;
}

const char *tl_function_name(const struct tl_image *image, uint32_t function)
{
    size_t n = 0;
    if (image)
        tl_image_symbols(image, &n);
    return function < n ? tl_image_symbol_told(image, function) : "";
}

const char *tl_function_program(const struct tl_image *image, uint32_t function)
{
    size_t n = 0;
    if (image)
        tl_image_symbols(image, &n);
    return function < n ? tl_image_symbol_program(image, function) : "";
}

const char *tl_item_kind_name(unsigned kind)
{
    static const char *const names[TL_ITEM_KINDS] = {
        [TL_ITEM_BRANCH] = "branch",     [TL_ITEM_EXCEPTION] = "exception",
        [TL_ITEM_ERET] = "return",       [TL_ITEM_MODE] = "mode",
        [TL_ITEM_CONTEXT] = "context",   [TL_ITEM_TIME] = "time",
        [TL_ITEM_CYCLES] = "cycles",     [TL_ITEM_EVENT] = "event",
        [TL_ITEM_SOFTWARE] = "software", [TL_ITEM_GAP] = "gap",
        [TL_ITEM_TRACE_ON] = "trace-on", [TL_ITEM_NOTE] = "note",
        [TL_ITEM_UNKNOWN] = "unknown",   [TL_ITEM_PATH] = "path",
        [TL_ITEM_TARGET] = "target",     [TL_ITEM_HARDWARE] = "hardware",
    };
    return kind < TL_ITEM_KINDS ? names[kind] : NULL;
}

int tl_item_words(const struct tl_item *item, struct tl_buf *line)
{
    tl_buf_reset(line);
    int r = tl_item_text(line, item, 1);
    if (r < 0)
        return r;
    while (line->n > 0 && line->p[line->n - 1] == '\n')
        line->n--;
    return tl_buf_add(line, "", 1);
}
