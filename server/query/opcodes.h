/* SPDX-License-Identifier: MIT */
/*
 * Search for instructions by mnemonic or by encoding. Results are cached, so that each instruction
 * of a program is disassembled once, however often it is executed.
 */
#ifndef TL_QUERY_OPCODES_H
#define TL_QUERY_OPCODES_H

#include "base/bytes.h"
#include "base/numbers.h"
#include "disasm/disasm.h"
#include "lake/lakeint.h"

struct tl_opcode_memo {
    struct tl_numbers numbers;
    uint8_t *matches; /* by number: instruction length in bytes << 1 | whether it matches */
    size_t cap;
};

#define TL_OPCODES_MANY 255

/* Not thread-safe: use one per thread. Zero-initialise all but the first two members. */
struct tl_opcodes {
    const char *text;
    /* `text` is hex digits of the encoding; otherwise a mnemonic, or assembly text. */
    bool encoding;
    struct tl_disasm *disasm[TL_ISA_COUNT];
    bool tried[TL_ISA_COUNT];
    struct tl_opcode_memo words, places; /* by encoding, and by address in the image */
    struct tl_opcode_memo blocks;        /* number of matches in a block, at most TL_OPCODES_MANY */
};

void tl_opcodes_fini(struct tl_opcodes *o);

/* Is it the wanted instruction? TL_UNSUPPORTED: there is no disassembler. */
TL_MUST_USE int tl_opcodes_match(struct tl_opcodes *o, enum tl_isa isa, uint64_t pc,
                                 struct tl_bytes code);
/* Can the chunk have executed one? False only if the image proves that it has not. */
bool tl_opcodes_promising(struct tl_opcodes *o, const struct tl_image *image,
                          const struct tl_shard_index *index, const struct tl_chunk *chunk);

/* Cached number of matches in a block, if its memory never changes: of a block with the same begin
 * and end, < 0: not cached. */
int tl_opcodes_block(const struct tl_opcodes *o, const struct tl_block *block, uint32_t n);
void tl_opcodes_remember(struct tl_opcodes *o, const struct tl_block *block, uint32_t n,
                         uint32_t count);

/* Format an encoding as in flow text. */
void tl_encoding_text(enum tl_isa isa, struct tl_bytes code, char out[static 33]);

#endif
