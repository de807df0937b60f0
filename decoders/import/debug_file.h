/* SPDX-License-Identifier: MIT */
/*
 * Programs whose symbols and debug information were taken out into a file beside them: that is
 * found, and both are put together again, so that there is one file with the code and the names of
 * its functions. ELF of 64 bits, little-endian; others stay as they are. Pure but for the files
 * that they read; thread-safe.
 *
 * Source: GDB manual, "Debugging Information in Separate Files"; tools/perf/util/dso.c.
 */
#ifndef TL_IMPORT_DEBUG_FILE_H
#define TL_IMPORT_DEBUG_FILE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "import/code_files.h"

#define TL_DEBUG_FILE_MOST ((size_t)512 << 20) /* bytes of a file that is worth it */

/*
 * The path of the file for a program that was found, by its build ID (n == 0: not known) in perf's
 * cache and in usr/lib/debug, or by the name and checksum in its .gnu_debuglink. False: it has its
 * symbols itself, or there is none.
 */
bool tl_debug_file_find(char out[static 4096], const struct tl_code_file *program,
                        const struct tl_code_places *places, const struct tl_build_id *id);

/* The program, with what only the other file has behind it, appended to `out`, which is empty.
 * TL_BAD: they are not of one program; TL_NOMEM. */
TL_MUST_USE int tl_debug_file_join(struct tl_bytes program, struct tl_bytes debug,
                                   struct tl_buf *out);

#endif
