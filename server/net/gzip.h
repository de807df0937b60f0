/* SPDX-License-Identifier: MIT */
/* gzip in memory. Thread-safe. Source: RFC 1952. */
#ifndef TL_NET_GZIP_H
#define TL_NET_GZIP_H

#include "base/buf.h"
#include "base/bytes.h"

/* Append the compressed bytes to `out`. Level 1 (fast) to 9. TL_NOMEM. */
TL_MUST_USE int tl_gzip(struct tl_bytes in, int level, struct tl_buf *out);

/* Append the contents of one gzip member, at most `max` bytes. TL_BAD, TL_LIMIT, TL_NOMEM. */
TL_MUST_USE int tl_gunzip(struct tl_bytes in, size_t max, struct tl_buf *out);

#endif
