/* SPDX-License-Identifier: MIT */
/*
 * Debug information of an ELF file: the source line of each instruction, and the functions that
 * were inlined there (DWARF 2 to 5, read by elfutils' libdw).
 *
 * The file may hold anything. What is read of it is bounded: larger tables count as not there, and
 * deeper nesting is not followed. No other file is opened: what was split off (.dwo) or moved into
 * a common file (dwz) is not looked for.
 *
 * Thread-safe: libdw is called by one thread at a time.
 */
#ifndef TL_DWARF_DWARF_H
#define TL_DWARF_DWARF_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

struct tl_dwarf;

#define TL_DWARF_INLINED 16 /* at most, the innermost ones */

/* A function whose body stands where it was called. Texts are owned by the file's information. */
struct tl_dwarf_inlined {
    const char *function;  /* "" if it has no name */
    const char *call_file; /* where it was called; "" if that is not told */
    uint32_t call_line;
    uint64_t low, high; /* the piece [low, high) of it that the address is in */
};

struct tl_dwarf_place {
    const char *file;                                  /* "" if no line belongs to the address */
    uint32_t line;                                     /* from 1, 0: of no line */
    uint32_t column;                                   /* from 1, 0: not told */
    struct tl_dwarf_inlined inlined[TL_DWARF_INLINED]; /* outermost first */
    size_t n_inlined;
};

/*
 * Read the debug information of a file in memory, which is copied. A file without any is fine:
 * tl_dwarf_lacks() says so. TL_BAD: it is no ELF file; TL_NOMEM.
 */
TL_MUST_USE int tl_dwarf_open(struct tl_dwarf **out, struct tl_bytes elf, struct tl_fail *fail);
void tl_dwarf_close(struct tl_dwarf *dwarf); /* NULL is fine */

/* What it does not have, and why: "no debug information: …"; "" if nothing lacks. */
const char *tl_dwarf_lacks(const struct tl_dwarf *dwarf);
/* Bytes that it holds, about. */
size_t tl_dwarf_size(const struct tl_dwarf *dwarf);

/* Is an executable segment of the file at this address? */
bool tl_dwarf_covers(const struct tl_dwarf *dwarf, uint64_t address);
/* The address of the byte at `offset` of the file in its executable segments. TL_NOTFOUND. */
TL_MUST_USE int tl_dwarf_address(const struct tl_dwarf *dwarf, uint64_t offset, uint64_t *address);

/*
 * The source of the instruction at an address, as the file has it (without a bias). The first time
 * that something is asked of a compilation unit all of it is read; that ends with TL_CANCELLED when
 * the calling thread's work is not wanted any more. TL_NOTFOUND: nothing is known of it, and
 * `out` is empty; TL_NOMEM.
 */
TL_MUST_USE int tl_dwarf_at(struct tl_dwarf *dwarf, uint64_t address, struct tl_dwarf_place *out);

#endif
