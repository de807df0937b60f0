/* SPDX-License-Identifier: MIT */
/*
 * Several Intel PT streams, each in its own file, as one capture: the bytes that `perf record`
 * would write for them (docs/perf.md), with each file as an AUX area, and the kernel's records
 * about who ran and what was mapped, from files or made up. Not thread-safe.
 */
#ifndef TL_IMPORT_SOURCES_H
#define TL_IMPORT_SOURCES_H

#include "import/bundle.h"

/* Code of a process in memory. */
struct tl_sources_map {
    int32_t pid; /* TL_PERF_KERNEL_PID: the kernel */
    uint64_t address, length, offset;
    const char *name; /* of the file */
};

/* Append a record for tl_sources_read(): a mapping; the name of a thread. Return TL_NOMEM. */
TL_MUST_USE int tl_sources_add_map(struct tl_buf *records, const struct tl_sources_map *map);
TL_MUST_USE int tl_sources_add_name(struct tl_buf *records, int32_t pid, int32_t tid,
                                    const char *name);

/*
 * Create the pieces of a capture whose setup names files for its sources; its clock relates their
 * timestamps to the times of sideband. `records` are in force before all others. `*has_sideband`:
 * the capture tells of memory or switches. Returns TL_IO, TL_BAD, with the file's name and the
 * offset; TL_NOMEM.
 */
TL_MUST_USE int tl_sources_read(struct tl_bundle_capture *capture, struct tl_bytes records,
                                bool *has_sideband, struct tl_fail *fail);

#endif
