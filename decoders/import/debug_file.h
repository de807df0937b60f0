/* SPDX-License-Identifier: MIT */
/*
 * Finds the separate debug file of a program whose symbols and debug information were stripped, and
 * recombines both, giving one file with the code and the names of its functions. 64-bit
 * little-endian ELF only; others are left alone. No side effects besides reading files;
 * thread-safe.
 *
 * Source: GDB manual, "Debugging Information in Separate Files"; tools/perf/util/dso.c.
 */
#ifndef TL_IMPORT_DEBUG_FILE_H
#define TL_IMPORT_DEBUG_FILE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "import/code_files.h"

#define TL_DEBUG_FILE_MAX ((size_t)512 << 20) /* maximum bytes of a file to recombine */

/*
 * Find the debug file of a program, by build ID (n == 0: unknown) in perf's cache and in
 * usr/lib/debug, or by name and checksum in its .gnu_debuglink. Returns false if the program has
 * its own symbols, or there is no such file.
 */
bool tl_debug_file_find(char out[static 4096], const struct tl_code_file *program,
                        const struct tl_code_places *places, const struct tl_build_id *id);

/* Append the file at path `program` to `out`, which must be empty, followed by the sections that
 * only the file at path `debug` contains. Returns TL_BAD: they cannot be read, or are not of the
 * same program; TL_NOMEM. */
TL_MUST_USE int tl_debug_file_join(const char *program, const char *debug, struct tl_buf *out);

#endif
