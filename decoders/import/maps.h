/* SPDX-License-Identifier: MIT */
/*
 * The memory maps of processes while a trace ran, from the records that an operating system wrote
 * of it (perf.data: MMAP2, FORK, COMM with exec, EXIT), made into the images of a setup: what lay
 * where, in which context, from when until when.
 *
 * Records come in the order of their times, those that are made up of what was there before the
 * trace first, at time 0. A process is the context ID that the trace tells while it runs; where the
 * trace tells threads instead, they are other names of it: tl_maps_thread().
 *
 * What is mapped over something else is there from the time of its record on. What is mapped where
 * nothing is lies there from the moment that the place was free, since nothing could run there: the
 * view changes less often, and code that runs in front of the first timestamp behind its record is
 * found, too.
 *
 * Not thread-safe. Errors: TL_NOMEM, but where told.
 *
 * Source: Linux perf_event_open(2), PERF_RECORD_MMAP2, _FORK, _COMM, _EXIT.
 */
#ifndef TL_IMPORT_MAPS_H
#define TL_IMPORT_MAPS_H

#include "setup/setup.h"

#define TL_MAPS_KERNEL UINT64_MAX /* for `process`: whichever runs */

struct tl_maps;

struct tl_map {
    uint64_t process; /* context ID, or TL_MAPS_KERNEL */
    uint64_t time;    /* ticks of the trace's timestamps */
    uint64_t address;
    uint64_t length;  /* bytes; what would wrap the address space is cut off */
    uint64_t offset;  /* in the file, of the byte at `address` */
    const char *file; /* as tl_setup_image has it, copied; NULL: not known, nothing is there */
};

TL_MUST_USE int tl_maps_new(struct tl_maps **out);
void tl_maps_free(struct tl_maps *maps); /* NULL is fine */

/* A file is mapped, over whatever was there; without a file, it is unmapped. */
TL_MUST_USE int tl_maps_add(struct tl_maps *maps, const struct tl_map *map);

/* A process begins as a copy of its parent. */
TL_MUST_USE int tl_maps_fork(struct tl_maps *maps, uint64_t process, uint64_t parent,
                             uint64_t time);

/* A process has no maps any more: it begins another program, or has ended. */
TL_MUST_USE int tl_maps_clear(struct tl_maps *maps, uint64_t process, uint64_t time);

/* From now on `thread` is another context ID of the process, until it is one of another process. */
TL_MUST_USE int tl_maps_thread(struct tl_maps *maps, uint64_t process, uint64_t thread,
                               uint64_t time);

/* Append all that was told to the setup's images. */
TL_MUST_USE int tl_maps_images(const struct tl_maps *maps, struct tl_setup *setup);

#endif
