/* SPDX-License-Identifier: MIT */
/*
 * Comparing a capture that a rig pushes with what is stored under its name: by length and hash
 * (struct tl_identity), or byte by byte. Thread-safe.
 */
#ifndef TL_INGEST_IDENTITY_H
#define TL_INGEST_IDENTITY_H

#include "base/bytes.h"
#include "base/err.h"
#include "lake_ingest.h"

struct tl_trace;

/* Set the hash of `identity` to a CRC32C. */
void tl_identity_set_sum(struct tl_identity *identity, uint32_t sum);
/* What is stored of a trace. May read all of its bytes, and locks the trace: call without any lock
 * held. */
void tl_trace_identify(struct tl_trace *trace, struct tl_identity *out);
/* Of a trace that is being pushed to this server: how many bytes are durable, and their CRC32C.
 * False: it is not being pushed here, or they are not known. Locks the trace. */
bool tl_trace_pushed_sum(struct tl_trace *trace, uint64_t *durable, uint32_t *sum);
/* Compare bytes at `offset` with the stored ones, which end at `end`; what is behind that is not
 * compared. TL_EXISTS: they differ, and `fail` has the offset at which;
 * TL_DENIED: the stored ones were removed by retention; otherwise as for tl_spool_read(). */
TL_MUST_USE int tl_trace_compare(struct tl_trace *trace, uint64_t offset, struct tl_bytes bytes,
                                 uint64_t end, struct tl_fail *fail);

#endif
