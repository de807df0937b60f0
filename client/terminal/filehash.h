/* SPDX-License-Identifier: MIT */
/* Content hash of a local file. */
#ifndef TL_TERMINAL_FILEHASH_H
#define TL_TERMINAL_FILEHASH_H

#include "base/err.h"

#define TL_FILE_HASH 72 /* "sha256:", 64 hex digits and a NUL */

/* Compute "sha256:…". TL_IO, with errno: the file cannot be read. */
TL_MUST_USE int tl_file_hash(const char *path, char out[static TL_FILE_HASH]);

#endif
