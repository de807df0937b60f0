/* SPDX-License-Identifier: MIT */
/*
 * Presents folders written by `perf record` as one perf.data: `--kcore` (with a copy of the
 * kernel's memory), `--threads` (with records in several files). Not thread-safe; reads files.
 *
 * Source: tools/perf/Documentation/perf.data-directory-format.txt.
 */
#ifndef TL_IMPORT_PERF_FOLDER_H
#define TL_IMPORT_PERF_FOLDER_H

#include "import/bundle.h"

/*
 * Set the pieces of the capture: `input`, or if that is such a folder its file `data`, followed by
 * the records of `data.0`, `data.1`, … Returns TL_NOMEM.
 */
TL_MUST_USE int tl_perf_folder_read(struct tl_bundle_capture *capture, const char *input);

#endif
