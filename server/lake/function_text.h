/* SPDX-License-Identifier: MIT */
/* Names of functions at places of the flow. Thread-safe. */
#ifndef TL_LAKE_FUNCTION_TEXT_H
#define TL_LAKE_FUNCTION_TEXT_H

#include "image/image.h"
#include "shard/shard.h"

/*
 * Format "main+0x10", "main", or "" if no symbol covers it in state `now`, into `out`; returns it.
 */
char *tl_function_text(const struct tl_image *image, const struct tl_flow_now *now, uint64_t pc,
                       char *out, size_t size);

#endif
