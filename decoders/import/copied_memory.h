/* SPDX-License-Identifier: MIT */
/*
 * What a Linux machine had in memory, from copies of what it told: /proc/PID/maps with the files
 * that are named there, and pages of the kernel, as images of a setup. Not thread-safe. The only
 * I/O is reading files.
 */
#ifndef TL_IMPORT_COPIED_MEMORY_H
#define TL_IMPORT_COPIED_MEMORY_H

#include "setup/setup.h"

/* Where copies are, and whom to tell what is missing; all borrowed. */
struct tl_copied_memory {
    const char *folder; /* with a slash, "": the current one: files, also below their old paths */
    const char *symfs;  /* root with the machine's files, NULL: none */
    const char *vdso;   /* file with the vdso's bytes, "": none */
    bool by_process;    /* bind the code of a process to its number, as context ID */
    void (*warn)(void *context, const char *text); /* may be NULL */
    void *context;
};

/* Add the code of a process by `path`, a copy of its /proc/PID/maps. Returns TL_IO, TL_LIMIT,
 * TL_NOMEM. */
TL_MUST_USE int tl_copied_maps(struct tl_setup *setup, const struct tl_copied_memory *from,
                               uint64_t pid, const char *path, struct tl_fail *fail);

/* Add the pages in a folder; each file's name ends with its address: kmem.0xffffffff80005000.
 * Returns TL_NOMEM. */
TL_MUST_USE int tl_copied_pages(struct tl_setup *setup, const struct tl_copied_memory *from,
                                const char *folder);

#endif
