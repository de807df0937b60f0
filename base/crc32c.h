/* SPDX-License-Identifier: MIT */
/* CRC32C (Castagnoli), as in RFC 3720 appendix B.4. Thread-safe. */
#ifndef TL_BASE_CRC32C_H
#define TL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extend the checksum `crc` (0 at the start) by `n` bytes. */
uint32_t tl_crc32c(uint32_t crc, const void *p, size_t n);

/* The checksum of some bytes and `n_after` more, of their checksums. */
uint32_t tl_crc32c_join(uint32_t crc, uint32_t after, size_t n_after);

#endif
