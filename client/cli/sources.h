/* SPDX-License-Identifier: MIT */
/*
 * Source lines of instructions, by the debug information of ELF files that lie here. Not
 * thread-safe.
 */
#ifndef TL_CLI_SOURCES_H
#define TL_CLI_SOURCES_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_sources;

/* Of [n] files, each "FILE[@BIAS]" as --symbols takes it. One without debug information is named in
 * a warning. TL_BAD: no ELF file; TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_sources_new(struct tl_sources **out, const char *const *files, size_t n,
                               struct tl_fail *fail);
/* … and of one more that is `bias` above its own addresses. */
TL_MUST_USE int tl_sources_add(struct tl_sources *sources, const char *path, uint64_t bias,
                               struct tl_fail *fail);
void tl_sources_free(struct tl_sources *sources); /* NULL is fine */
/* Append " FILE:LINE", or nothing where no line belongs to `pc`. `sources` may be NULL. TL_NOMEM.
 */
TL_MUST_USE int tl_sources_place(struct tl_sources *sources, uint64_t pc, struct tl_buf *out);

#endif
