/* SPDX-License-Identifier: MIT */
/*
 * Several Intel PT streams that lie in a file each, as one capture: the bytes that `perf record`
 * would write of them (docs/perf.md), with each file as an AUX area. Not thread-safe.
 */
#ifndef TL_IMPORT_SOURCES_H
#define TL_IMPORT_SOURCES_H

#include "import/bundle.h"

/* Make the pieces of a capture whose setup names files of its sources. TL_IO, TL_BAD, with the
 * file's name; TL_NOMEM. */
TL_MUST_USE int tl_sources_read(struct tl_bundle_capture *capture, struct tl_fail *fail);

#endif
