/* SPDX-License-Identifier: MIT */
/*
 * Disassembly by LLVM. The library is loaded when the first disassembler is created, so that a
 * server that does not use it has no cost, and one without LLVM still runs.
 *
 * Objects are not thread-safe; different objects are independent.
 */
#ifndef TL_DISASM_H
#define TL_DISASM_H

#include "base/bytes.h"
#include "base/err.h"
#include "isa/isa.h"

struct tl_disasm;

/* TL_UNSUPPORTED: LLVM is not installed, or does not know the instruction set. */
TL_MUST_USE int tl_disasm_new(struct tl_disasm **out, enum tl_isa isa, struct tl_fail *fail);
void tl_disasm_free(struct tl_disasm *disasm);

/*
 * Format the instruction at `pc` whose bytes, in memory order, are `code`: mnemonic, one space,
 * operands; direct targets as absolute addresses. Returns its size in bytes, or TL_BAD if it is
 * invalid (`out` is then a .word or .hword directive).
 */
TL_MUST_USE int tl_disasm_text(struct tl_disasm *disasm, uint64_t pc, struct tl_bytes code,
                               char *out, size_t size);

#endif
