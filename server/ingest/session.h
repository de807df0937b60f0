/* SPDX-License-Identifier: MIT */
/*
 * Pushes and new traces, for other parts of the server. Thread-safe.
 */
#ifndef TL_INGEST_SESSION_H
#define TL_INGEST_SESSION_H

#include "base/err.h"

#include <stdint.h>

struct tl_lake;
struct tl_trace;

/* Mark the capture as complete with this many bytes. TL_IO. */
TL_MUST_USE int tl_trace_complete(struct tl_trace *trace, uint64_t bytes, struct tl_fail *fail);
/* Seal traces that have not been pushed for the time set by tl_lake_set_seal_after(). */
void tl_lake_seal_left(struct tl_lake *lake, int64_t now_ns);
/* Add a new trace to the table and the catalog, with `labels`: "key=value\n"…. TL_EXISTS. */
TL_MUST_USE int tl_lake_add_trace(struct tl_lake *lake, const char *id, const char *rig,
                                  const char *setup, const char *labels, struct tl_trace **out,
                                  struct tl_fail *fail);
/* End its push, if it has one; the client is expected to reconnect. */
void tl_ingest_evict(struct tl_trace *trace);

#endif
