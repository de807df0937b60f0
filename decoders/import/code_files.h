/* SPDX-License-Identifier: MIT */
/*
 * The files that hold the code which a Linux machine ran: by build ID in perf's cache, else by name
 * below a folder that stands for the machine's root. A file whose build ID is another one is never
 * taken. Not thread-safe; reads files, and nothing else.
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
    uint8_t n; /* bytes; 0: not known */
    uint8_t v[TL_BUILD_ID_MAX];
};

/* As hexadecimal digits; returns `out`. */
char *tl_build_id_text(const struct tl_build_id *id, char out[static 2 * TL_BUILD_ID_MAX + 1]);

/* Where to look; all borrowed, NULL: as told. */
struct tl_code_places {
    const char *symfs;       /* in front of names; NULL: the root of this machine */
    const char *buildid_dir; /* NULL: ~/.debug */
    const char *vmlinux;     /* the kernel's ELF file */
    const char *kcore;       /* a copy of /proc/kcore, or the folder that has it */
};

enum tl_code_kind {
    TL_CODE_FILE,   /* mapped as it lies in the file */
    TL_CODE_KERNEL, /* an ELF file with addresses of its own */
    TL_CODE_MODULE  /* of the kernel: what is mapped is its .text */
};

struct tl_code_file {
    char path[4096];
    uint64_t size;  /* bytes, unpacked */
    bool is_packed; /* MODULE: it is compressed; see tl_code_unpack() */
    bool is_elf;
    uint64_t text_offset; /* MODULE: of its .text in the file, … */
    uint64_t text_size;   /* … and its bytes */
    bool has_reference;   /* KERNEL: it has the symbol asked for … */
    uint64_t reference;   /* … at this address */
    bool is_core;         /* KERNEL: its addresses are those that ran */
};

/* Is that the name of something that is in no file? */
bool tl_code_is_anonymous(const char *name);

/*
 * Find the file. `symbol` (may be NULL): of the kernel, whose address is asked for. `release`: of
 * the kernel, "" if not known. A module may be compressed, and named so or not, or by "[name]".
 * TL_NOTFOUND: there is none, or only others with this name.
 */
TL_MUST_USE int tl_code_find(struct tl_code_file *out, const struct tl_code_places *places,
                             enum tl_code_kind kind, const char *name, const struct tl_build_id *id,
                             const char *symbol, const char *release);

/* The content of a file that was found, appended. TL_IO: it is not there any more; TL_NOMEM. */
TL_MUST_USE int tl_code_unpack(const struct tl_code_file *file, struct tl_buf *out);

#endif
