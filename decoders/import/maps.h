/* SPDX-License-Identifier: MIT */
/*
 * Memory maps of processes over time, from the operating system's records (perf.data: MMAP2, FORK,
 * COMM with exec, EXIT), converted to the images of a setup: what was mapped where, in which
 * context, from when until when.
 *
 * Records must come in order of time; synthesised ones for what existed before the trace come
 * first, at time 0. A process is identified by the context ID that the trace reports while it runs.
 * If the trace reports thread IDs instead, those are aliases of it: tl_maps_thread().
 *
 * A mapping that replaces another one is valid from the time of its record on. A mapping of a free
 * range is valid from the time the range became free, since nothing could run there before: so
 * views change less often, and code that runs before the first timestamp after the record is found
 * too.
 *
 * Not thread-safe. Each record takes time with the logarithm of the number of processes and maps;
 * a fork takes as long as its parent has maps. Functions return TL_NOMEM, and TL_LIMIT beyond
 * TL_MAPS_MOST pieces of memory, or images made of them: processes times maps may be any number.
 *
 * Source: Linux perf_event_open(2), PERF_RECORD_MMAP2, _FORK, _COMM, _EXIT.
 */
#ifndef TL_IMPORT_MAPS_H
#define TL_IMPORT_MAPS_H

#include "setup/setup.h"

#define TL_MAPS_KERNEL UINT64_MAX /* for `process`: all processes */
#define TL_MAPS_MOST   ((size_t)2 << 20)

struct tl_maps;

struct tl_map {
    uint64_t process; /* context ID, or TL_MAPS_KERNEL */
    uint64_t time;    /* ticks of the trace's timestamps */
    uint64_t address;
    uint64_t length;  /* bytes; truncated at the end of the address space */
    uint64_t offset;  /* file offset of the byte at `address` */
    const char *file; /* as in tl_setup_image, copied; NULL: unknown, nothing is mapped */
};

TL_MUST_USE int tl_maps_new(struct tl_maps **out);
void tl_maps_free(struct tl_maps *maps); /* accepts NULL */

/* Map a file, replacing whatever was there; without a file: unmap. */
TL_MUST_USE int tl_maps_add(struct tl_maps *maps, const struct tl_map *map);

/* Start a process as a copy of its parent. */
TL_MUST_USE int tl_maps_fork(struct tl_maps *maps, uint64_t process, uint64_t parent,
                             uint64_t time);

/* Drop all maps of a process: it executes another program, or has ended. */
TL_MUST_USE int tl_maps_clear(struct tl_maps *maps, uint64_t process, uint64_t time);

/*
 * From now on `thread` is an additional context ID of the process, until assigned to another one.
 */
TL_MUST_USE int tl_maps_thread(struct tl_maps *maps, uint64_t process, uint64_t thread,
                               uint64_t time);

/* Append everything recorded to the setup's images, as far as the limit. */
TL_MUST_USE int tl_maps_images(const struct tl_maps *maps, struct tl_setup *setup);

#endif
