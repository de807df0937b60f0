/* SPDX-License-Identifier: MIT */
/* Source lines of instructions, from the debug information of local ELF files. Not thread-safe. */
#ifndef TL_OUT_SOURCES_H
#define TL_OUT_SOURCES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_sources;

/* Open [n] files, each "FILE[@BIAS]" as for --symbols. Warns about a file without debug
 * information. TL_BAD: not an ELF file; TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_sources_new(struct tl_sources **out, const char *const *files, size_t n,
                               struct tl_fail *fail);
/* Add a file that is loaded `bias` above its own addresses. */
TL_MUST_USE int tl_sources_add(struct tl_sources *sources, const char *path, uint64_t bias,
                               struct tl_fail *fail);
/* Is it "A=B"? */
bool tl_sources_is_map(const char *map);
/* Of paths below a folder A, print B instead; of several that fit the longest. The texts are
 * borrowed until `sources` is freed; it may be NULL. */
void tl_sources_map(struct tl_sources *sources, const char *const *maps, size_t n);
void tl_sources_free(struct tl_sources *sources); /* accepts NULL */
/* Append " FILE:LINE", or nothing if no line is known for `pc`. `sources` may be NULL. TL_NOMEM. */
TL_MUST_USE int tl_sources_place(struct tl_sources *sources, uint64_t pc, struct tl_buf *out);

#endif
