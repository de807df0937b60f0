/* SPDX-License-Identifier: MIT */
/* The rig's bytes, as they were pushed. Threads and errors as in lake.h. */
#ifndef TL_LAKE_RAW_H
#define TL_LAKE_RAW_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_lake;

/*
 * Sequential reader for a range of a trace's raw bytes. Not thread-safe; the trace may grow
 * meanwhile.
 */
struct tl_raw_range;

/*
 * Open [from, to) of the bytes that are durable now; a larger `to` is clipped. TL_NOTFOUND;
 * TL_USAGE: `from` is after the end; TL_DENIED: retention has removed the bytes; TL_NOMEM.
 */
TL_MUST_USE int tl_raw_open(struct tl_lake *lake, const char *trace, uint64_t from, uint64_t to,
                            struct tl_raw_range **out, struct tl_fail *fail);
/*
 * Append the next piece, at most 1 MiB, to `out`; `*offset` is that of its first byte. TL_EOF after
 * the last; TL_IO, with the offset, if bytes are damaged or missing; TL_NOMEM.
 */
TL_MUST_USE int tl_raw_next(struct tl_raw_range *range, uint64_t *offset, struct tl_buf *out,
                            struct tl_fail *fail);
/*
 * When the bytes of the last piece had arrived, in ns since 1970; 0: unknown. `*lost`: the rig's
 * connection was lost in front of them, and bytes may be missing.
 */
uint64_t tl_raw_arrival(const struct tl_raw_range *range, bool *lost);
void tl_raw_close(struct tl_raw_range *range); /* accepts NULL */

#endif
