/* SPDX-License-Identifier: MIT */
/* Types of a program's variables, from its debug information. */
#ifndef TL_DEBUG_VARIABLE_TYPES_H
#define TL_DEBUG_VARIABLE_TYPES_H

#include "base/bytes.h"
#include "image/types.h"

/* Copies a text to where it lives as long as the types; NULL: out of memory. */
typedef const char *tl_types_keep(void *context, const char *text);

/*
 * Add the variables of an ELF file that have a fixed address, relocated by `bias`, with their
 * types. A file without debug information, or with too much of it, has none; damaged or endless
 * information is read as far as it goes. TL_NOMEM, TL_CANCELLED.
 */
TL_MUST_USE int tl_variable_types(struct tl_bytes elf, uint64_t bias, tl_types_keep *keep,
                                  void *context, struct tl_types *out);

#endif
