/* SPDX-License-Identifier: MIT */
/*
 * Finds the files containing the code that a Linux machine ran: by build ID in perf's cache, or by
 * name below a folder that represents the machine's root. A file with a different build ID is never
 * used. Not thread-safe; the only I/O is reading files.
 *
 * Source: tools/perf/Documentation/perf-buildid-cache.txt; tools/perf/util/build-id.c, dso.c.
 */
#ifndef TL_IMPORT_CODE_FILES_H
#define TL_IMPORT_CODE_FILES_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_BUILD_ID_MAX 20

struct tl_build_id {
    uint8_t n; /* bytes; 0: unknown */
    uint8_t v[TL_BUILD_ID_MAX];
};

/* Write the ID as hexadecimal digits; returns `out`. */
char *tl_build_id_text(const struct tl_build_id *id, char out[static 2 * TL_BUILD_ID_MAX + 1]);

/* Where to search; all borrowed. NULL: default as noted, or none. */
struct tl_code_places {
    const char *symfs;       /* prefix for file names; NULL: this machine's root */
    const char *buildid_dir; /* NULL: ~/.debug */
    const char *vmlinux;     /* the kernel's ELF file */
    const char *kcore;       /* a copy of /proc/kcore, or the folder that contains it */
    /* Of virtual machines: a folder with the root of each, DIR/PID by the number of its process;
     * their kernel's ELF file; copies of their /proc/kallsyms and /proc/modules. */
    const char *guestmount, *guestvmlinux, *guestkallsyms, *guestmodules;
};

enum tl_code_kind {
    TL_CODE_FILE,   /* mapped as in the file */
    TL_CODE_KERNEL, /* an ELF file with its own addresses */
    TL_CODE_MODULE  /* kernel module: its .text is mapped */
};

struct tl_code_file {
    char path[4096];
    uint64_t size;  /* uncompressed bytes */
    bool is_packed; /* MODULE: the file is compressed; see tl_code_unpack() */
    bool is_elf;
    uint64_t text_offset; /* MODULE: offset of its .text in the file */
    uint64_t text_size;   /* MODULE: bytes of its .text */
    bool has_reference;   /* KERNEL: it has the requested symbol */
    uint64_t reference;   /* KERNEL: address of that symbol */
    bool is_core;         /* KERNEL: its addresses are those at run time */
};

/* Is this the name of a mapping without a file? */
bool tl_code_is_anonymous(const char *name);

/*
 * Find a file. `symbol` (may be NULL): kernel symbol whose address is wanted. `release`: kernel
 * release, "" if unknown. A module may be compressed, and be named with or without the suffix, or
 * as "[name]". Returns TL_NOTFOUND: there is none, or only different ones with this name.
 */
TL_MUST_USE int tl_code_find(struct tl_code_file *out, const struct tl_code_places *places,
                             enum tl_code_kind kind, const char *name, const struct tl_build_id *id,
                             const char *symbol, const char *release);

/* Append the content of a file that was found. Returns TL_IO: it no longer exists; TL_NOMEM. */
TL_MUST_USE int tl_code_unpack(const struct tl_code_file *file, struct tl_buf *out);

#endif
