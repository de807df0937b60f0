/* SPDX-License-Identifier: MIT */
/*
 * Instructions that are looked for by what they are: by mnemonic or by encoding. What was looked at
 * once is remembered, so that disassembling costs once for each instruction of a program, however
 * often it runs.
 */
#ifndef TL_LAKE_OPCODES_H
#define TL_LAKE_OPCODES_H

#include "base/bytes.h"
#include "base/numbers.h"
#include "disasm/disasm.h"
#include "lake/lakeint.h"

struct tl_opcode_memo {
    struct tl_numbers numbers;
    uint8_t *matches; /* by number: bytes of the instruction << 1, and whether it fits */
    size_t cap;
};

#define TL_OPCODES_MANY 255

/* Not thread-safe: one for each thread. Zeroed but for the first two it is ready. */
struct tl_opcodes {
    const char *text;
    bool encoding; /* `text` is hex digits of the encoding; else a mnemonic, or assembly text */
    struct tl_disasm *disasm[TL_ISA_COUNT];
    bool tried[TL_ISA_COUNT];
    struct tl_opcode_memo words, places; /* by their bytes, and by their addresses in the image */
    struct tl_opcode_memo blocks;        /* how many a block has, at most TL_OPCODES_MANY */
};

void tl_opcodes_fini(struct tl_opcodes *o);
/* Does the text fit `pattern`, in which * stands for any letters and ? for one? Letters' case does
 * not matter. */
bool tl_text_fits(const char *pattern, const char *text);

/* Is it the wanted instruction? TL_UNSUPPORTED: there is no disassembler. */
TL_MUST_USE int tl_opcodes_match(struct tl_opcodes *o, enum tl_isa isa, uint64_t pc,
                                 struct tl_bytes code);
/* May the chunk have executed one? False only where the image tells that it has not. */
bool tl_opcodes_promising(struct tl_opcodes *o, const struct tl_image *image,
                          const struct tl_shard_index *index, const struct tl_chunk *chunk);

/* How many a block has, where its memory never changes: what was remembered of one that begins and
 * ends like it, < 0: nothing. */
int tl_opcodes_block(const struct tl_opcodes *o, const struct tl_block *block, uint32_t n);
void tl_opcodes_remember(struct tl_opcodes *o, const struct tl_block *block, uint32_t n,
                         uint32_t count);

/* As in flow text. */
void tl_encoding_text(enum tl_isa isa, struct tl_bytes code, char out[static 33]);

#endif
