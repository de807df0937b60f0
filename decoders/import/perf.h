/* SPDX-License-Identifier: MIT */
/*
 * Setup from the non-trace contents of perf.data: process memory as images with contexts and times,
 * with the code found in files; and the trace unit's parameters from the information records.
 *
 * A file has its records CPU by CPU, and those from before the start of the trace may come last:
 * the information is complete only at the end. For live input the setup can be requested at any
 * time, and again when tl_perf_import_number() has increased.
 *
 * Not thread-safe. The only I/O is reading code files.
 */
#ifndef TL_IMPORT_PERF_H
#define TL_IMPORT_PERF_H

#include "base/bytes.h"
#include "import/code_files.h"
#include "setup/setup.h"

struct tl_perf_import;

/* Create an importer. `places` is copied, but not its texts. `warn` (may be NULL) is called once
 * for each missing code file, with its name and build ID. Returns TL_NOMEM. */
TL_MUST_USE int tl_perf_import_new(struct tl_perf_import **out, const struct tl_code_places *places,
                                   void (*warn)(void *context, const char *text), void *context);
void tl_perf_import_free(struct tl_perf_import *import);

/* Process the file's bytes, in chunks of any size. Errors in them are left for the decoder to
 * report. Returns TL_NOMEM. */
TL_MUST_USE int tl_perf_import_push(struct tl_perf_import *import, struct tl_bytes bytes);
TL_MUST_USE int tl_perf_import_finish(struct tl_perf_import *import);

/* Has a trace begun? Everything that existed before it is then known. */
bool tl_perf_import_begun(const struct tl_perf_import *import);
/* Was a limit met, so that names or code are left out? */
bool tl_perf_import_is_limited(const struct tl_perf_import *import);
/* Increases with each file mapped. */
uint64_t tl_perf_import_number(const struct tl_perf_import *import);

/* Append images and sources; set the clock, unless the setup has one. Returns TL_NOMEM. */
TL_MUST_USE int tl_perf_import_setup(struct tl_perf_import *import, struct tl_setup *setup);

/* From now on, setups refer to the file found at path `file` by `stored`, its name in the server's
 * storage, and it is not read again. */
void tl_perf_import_stored(struct tl_perf_import *import, const char *file, const char *stored);

/* First Intel PT stream in order of name, or "". */
void tl_perf_import_first(const struct tl_perf_import *import, char *out, size_t size);

#endif
