/* SPDX-License-Identifier: MIT */
/*
 * A running kernel as it describes itself: code from /proc/kcore or perf's copy of it, names from
 * the kallsyms beside it. Not thread-safe; the only I/O is reading the two files.
 *
 * Source: kcore.c and kallsyms.c of Linux 6.1; tools/perf/util/symbol-elf.c (kcore_copy).
 */
#ifndef TL_IMPORT_KERNEL_CORE_H
#define TL_IMPORT_KERNEL_CORE_H

#include "base/buf.h"

#include <stdbool.h>

/* Path of the symbols beside a kcore. False: there are none. */
bool tl_kernel_symbols_beside(const char *kcore, char out[static 4096]);

/*
 * Append an ELF file to `out`: the segments of `kcore` that are small enough to be code, and of
 * others what the functions of `kallsyms` cover, with those functions as symbols. Returns TL_BAD:
 * the core is no 64-bit little-endian one, or holds none of the functions (who may not know
 * addresses reads zeros); TL_LIMIT, TL_IO, TL_NOMEM. After an error `out` is undefined.
 */
TL_MUST_USE int tl_kernel_core_file(const char *kcore, const char *kallsyms, struct tl_buf *out);

#endif
