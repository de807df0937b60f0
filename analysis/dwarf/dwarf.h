/* SPDX-License-Identifier: MIT */
/*
 * Debug information of an ELF file: the source line of each instruction, and the functions inlined
 * there (DWARF 2 to 5, read by elfutils' libdw).
 *
 * The file may be malicious. The amount read is limited: larger tables count as missing, deeper
 * nesting is ignored. No other file is opened: split units (.dwo) and common files (dwz) are not
 * searched for.
 *
 * Thread-safe: libdw is called by one thread at a time.
 */
#ifndef TL_DWARF_DWARF_H
#define TL_DWARF_DWARF_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

struct tl_dwarf;

#define TL_DWARF_INLINED 16 /* maximum returned, the innermost ones */

/* A function inlined at its call. Texts belong to the file's debug information. */
struct tl_dwarf_inlined {
    const char *function;  /* "" if it has no name */
    const char *call_file; /* file of the call; "" if unknown */
    uint32_t call_line;
    uint64_t low, high; /* the piece [low, high) of its code that contains the address */
};

struct tl_dwarf_place {
    const char *file;                                  /* "" if no line is known for the address */
    uint32_t line;                                     /* from 1; 0: none */
    uint32_t column;                                   /* from 1; 0: unknown */
    struct tl_dwarf_inlined inlined[TL_DWARF_INLINED]; /* outermost first */
    size_t n_inlined;
};

/*
 * Read the debug information of a file in memory, which is copied. A file without debug information
 * is not an error: tl_dwarf_lacks() describes what is missing. TL_BAD: not an ELF file; TL_NOMEM.
 */
TL_MUST_USE int tl_dwarf_open(struct tl_dwarf **out, struct tl_bytes elf, struct tl_fail *fail);
void tl_dwarf_close(struct tl_dwarf *dwarf); /* accepts NULL */

/* What is missing, and why: "no debug information: …"; "" if nothing is. */
const char *tl_dwarf_lacks(const struct tl_dwarf *dwarf);
/* Approximate memory use in bytes. */
size_t tl_dwarf_size(const struct tl_dwarf *dwarf);

/* Is the address in an executable segment of the file? */
bool tl_dwarf_covers(const struct tl_dwarf *dwarf, uint64_t address);
/* Get the address of the byte at file offset `offset`, if it is in an executable segment.
 * TL_NOTFOUND. */
TL_MUST_USE int tl_dwarf_address(const struct tl_dwarf *dwarf, uint64_t offset, uint64_t *address);

/*
 * Get the source location of the instruction at an address, as in the file (without bias). The
 * first request for an address in a compilation unit reads the whole unit; this ends with
 * TL_CANCELLED if the calling thread's work is cancelled. TL_NOTFOUND: nothing is known, `out` is
 * empty; TL_NOMEM.
 */
TL_MUST_USE int tl_dwarf_at(struct tl_dwarf *dwarf, uint64_t address, struct tl_dwarf_place *out);

#endif
