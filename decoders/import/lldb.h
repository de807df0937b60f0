/* SPDX-License-Identifier: MIT */
/*
 * Trace bundles of LLDB for Intel PT: trace.json and the files that it names. Not thread-safe. The
 * only I/O is reading files.
 *
 * Source: LLDB, "trace schema intel-pt".
 */
#ifndef TL_IMPORT_LLDB_H
#define TL_IMPORT_LLDB_H

#include "import/bundle.h"

/* The description at `path`: itself, if it is a file of JSON, or trace.json in a folder; written to
 * `out`. `configured`: a configuration goes with it, and any trace may begin like JSON: then the
 * file's name must say what it is (.json). False: it is neither. */
bool tl_lldb_find(const char *path, bool configured, char out[static 4096]);

/*
 * Fill the setup by the description in file `path`, whose relative names are below its folder: its
 * clock, and a source for each thread or processor, with the files of trace and of context
 * switches. Processes, their names and code are appended to `records` (tl_sources_read()). The
 * kernel's ELF file is copied to `kernel`; "": not given. `warn` (may be NULL) is called for what
 * is left out. Returns TL_BAD, TL_IO, TL_NOMEM; `fail` names what is missing.
 */
TL_MUST_USE int tl_lldb_read(struct tl_setup *setup, struct tl_buf *records, char kernel[4096],
                             const char *path, void (*warn)(void *context, const char *text),
                             void *context, struct tl_fail *fail);

#endif
