/* SPDX-License-Identifier: MIT */
/*
 * Several Intel PT streams, each in its own file, as one capture: the bytes that `perf record`
 * would write for them (docs/perf.md), with each file as an AUX area. Not thread-safe.
 */
#ifndef TL_IMPORT_SOURCES_H
#define TL_IMPORT_SOURCES_H

#include "import/bundle.h"

/* Create the pieces of a capture whose setup names files for its sources. Returns TL_IO, TL_BAD,
 * with the file's name; TL_NOMEM. */
TL_MUST_USE int tl_sources_read(struct tl_bundle_capture *capture, struct tl_fail *fail);

#endif
