/* SPDX-License-Identifier: MIT */
/*
 * What perf.data says beside the trace, as a setup: the memory of processes as images with contexts
 * and times, the code looked up in files; and what of the trace unit stands behind the records.
 *
 * A file has its records CPU by CPU, and those of before the start of the trace perhaps last: the
 * whole truth is known at the end. Of what comes live the setup can be asked for at any time, and
 * again when `number` has grown.
 *
 * Not thread-safe. Reads files of code, and nothing else.
 */
#ifndef TL_IMPORT_PERF_H
#define TL_IMPORT_PERF_H

#include "base/bytes.h"
#include "import/code_files.h"
#include "setup/setup.h"

struct tl_perf_import;

/* `places` is copied, but not its texts. `warn` (may be NULL) is told of code that is missing, with
 * its name and build ID, once. TL_NOMEM. */
TL_MUST_USE int tl_perf_import_new(struct tl_perf_import **out, const struct tl_code_places *places,
                                   void (*warn)(void *context, const char *text), void *context);
void tl_perf_import_free(struct tl_perf_import *import);

/* The bytes of the file, in chunks of any size. What is wrong with them the decoder tells.
 * TL_NOMEM. */
TL_MUST_USE int tl_perf_import_push(struct tl_perf_import *import, struct tl_bytes bytes);
TL_MUST_USE int tl_perf_import_finish(struct tl_perf_import *import);

/* Has a trace begun? What was there before it is known then. */
bool tl_perf_import_begun(const struct tl_perf_import *import);
/* Grows with each file that is mapped. */
uint64_t tl_perf_import_number(const struct tl_perf_import *import);

/* Append images and sources; set the clock, if it is not told. TL_NOMEM. */
TL_MUST_USE int tl_perf_import_setup(struct tl_perf_import *import, struct tl_setup *setup);

/* The first by name of the streams of Intel PT, or "". */
void tl_perf_import_first(const struct tl_perf_import *import, char *out, size_t size);

#endif
