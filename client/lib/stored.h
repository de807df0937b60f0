/* SPDX-License-Identifier: MIT */
/* Hashes of what a server has of a capture, as it writes them. Thread-safe. */
#ifndef TL_CLIENT_STORED_H
#define TL_CLIENT_STORED_H

#include <stdbool.h>
#include <stdint.h>

/* Parse "crc32c:<8 hex>". */
bool tl_content_sum(const char *content, uint32_t *sum);

#endif
