/* SPDX-License-Identifier: MIT */
/* Human-readable instructions: assembly text, and the function they belong to. */
#ifndef TL_OUT_CODETEXT_H
#define TL_OUT_CODETEXT_H

#include "base/buf.h"
#include "disasm/disasm.h"
#include "image/image.h"

#include <stdbool.h>

/* Disassemblers, created on demand. Zero-initialise. Not thread-safe. */
struct tl_codetext {
    struct tl_disasm *disasm[TL_ISA_COUNT];
    bool tried[TL_ISA_COUNT];
};

void tl_codetext_fini(struct tl_codetext *t);
/* Format the assembly text of an instruction's bytes, in memory order; "-" if there is none. */
void tl_codetext_insn(struct tl_codetext *t, enum tl_isa isa, uint64_t pc, struct tl_bytes code,
                      char *out, size_t size);
/* Append "0 0000000080000000 00150513 addi a0, a0, 1": number, address, encoding (of x86 in memory
 * order, otherwise the value) and assembly text of at most 16 bytes. TL_NOMEM. */
TL_MUST_USE int tl_codetext_row(struct tl_codetext *t, uint64_t number, enum tl_isa isa,
                                uint64_t pc, struct tl_bytes code, struct tl_buf *out);
/* Append " <main+0x10>", or nothing if no symbol covers `pc`. `image` may be NULL. TL_NOMEM. */
TL_MUST_USE int tl_codetext_place(const struct tl_image *image, uint64_t pc, struct tl_buf *out);

#define TL_CODETEXT_PATH 4096

/* Split "FILE[@BIAS]". */
void tl_codetext_file(const char *text, char path[static TL_CODETEXT_PATH], uint64_t *bias);
/* Create an image with the symbols of ELF files, "FILE[@BIAS]"; NULL if there are no files. TL_BAD,
 * TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_codetext_symbols(const char *const *files, size_t n, struct tl_image **out,
                                    struct tl_fail *fail);

#endif
