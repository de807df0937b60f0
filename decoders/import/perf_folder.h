/* SPDX-License-Identifier: MIT */
/*
 * What `perf record` writes as a folder: `--kcore` beside a copy of the kernel's memory,
 * `--threads` with records in several files, is one perf.data again. Not thread-safe; reads files.
 *
 * Source: tools/perf/Documentation/perf.data-directory-format.txt.
 */
#ifndef TL_IMPORT_PERF_FOLDER_H
#define TL_IMPORT_PERF_FOLDER_H

#include "import/bundle.h"

/*
 * Pieces of the capture: `input`, or if it is such a folder its file `data`, with the records of
 * `data.0`, `data.1`, … behind its own. TL_NOMEM.
 */
TL_MUST_USE int tl_perf_folder_read(struct tl_bundle_capture *capture, const char *input);

#endif
