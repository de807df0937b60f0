/* SPDX-License-Identifier: MIT */
/*
 * What a file is by its first bytes, for files that are given where trace or a program belongs.
 * Stateless, thread-safe.
 */
#ifndef TL_BASE_FILEKIND_H
#define TL_BASE_FILEKIND_H

#include "base/bytes.h"

enum tl_file_kind {
    TL_FILE_UNKNOWN, /* nothing that is known here: any trace */
    TL_FILE_ELF,
    TL_FILE_GZIP,
    TL_FILE_XZ,
    TL_FILE_ZSTD,
    TL_FILE_BZIP2,
    TL_FILE_ZIP,
    TL_FILE_SEVENZIP,
    TL_FILE_TAR,
    TL_FILE_AR,   /* a library or a Debian package */
    TL_FILE_TEXT, /* only characters, of which there are enough to tell */
};

enum { TL_FILE_KIND_BYTES = 512 }; /* as many first bytes are looked at, if there are so many */

enum tl_file_kind tl_file_kind(struct tl_bytes head);
/* What a file is that is no trace or no program, as tl_file_kind_packed(); NULL: it may be one. */
const char *tl_file_kind_no_trace(enum tl_file_kind kind);
const char *tl_file_kind_no_program(enum tl_file_kind kind);
/* What it is and what can be done with it, to follow the file's name: "is packed by gzip: unpack it
 * first (gzip -d)". NULL: UNKNOWN, ELF and TEXT. Static storage. */
const char *tl_file_kind_packed(enum tl_file_kind kind);

#endif
