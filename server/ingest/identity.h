/* SPDX-License-Identifier: MIT */
/* Comparing a capture that a rig pushes with what is stored under its name. Thread-safe. */
#ifndef TL_INGEST_IDENTITY_H
#define TL_INGEST_IDENTITY_H

#include "base/bytes.h"
#include "base/err.h"
#include "lake_ingest.h"

struct tl_trace;

/* Set the hash of `identity` to a CRC32C. */
void tl_identity_set_sum(struct tl_identity *identity, uint32_t sum);
/* What is stored of a trace. Call without any lock held. */
void tl_trace_identify(struct tl_trace *trace, struct tl_identity *out);
/* Of a trace that is being pushed to this server: durable offset, and CRC32C up to it. False: it is
 * not, or that is not known. */
bool tl_trace_pushed_sum(struct tl_trace *trace, uint64_t *durable, uint32_t *sum);
/* Compare bytes at `offset` with the stored ones, which end at `end`. TL_EXISTS: they differ;
 * TL_DENIED: the stored ones were removed by retention; otherwise as for tl_spool_read(). */
TL_MUST_USE int tl_trace_compare(struct tl_trace *trace, uint64_t offset, struct tl_bytes bytes,
                                 uint64_t end, struct tl_fail *fail);

#endif
