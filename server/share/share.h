/* SPDX-License-Identifier: MIT */
/*
 * Servers that share a store. Ownership of traces (share.c), the thread that maintains it and
 * receives changes by other servers (news.c), and the live edge of traces that another server
 * decodes (edge.c). Thread-safe.
 */
#ifndef TL_SHARE_SHARE_H
#define TL_SHARE_SHARE_H

#include "lake/lakeint.h"

/* ---- for the lake and the ingest ------------------------------------------------------------ */

#define TL_PIN_WAIT_NS INT64_C(2500000000)

/* Request sent to the server that holds a trace's lease: none; to release it if nobody pushes the
 * trace there; or the number of a push, which takes over from an older one there. */
#define TL_PIN_TRY 0
#define TL_PIN_ASK 1

/*
 * Hold the trace's lease until tl_trace_unpin(), which is called after a success; in an unshared
 * store both do nothing. Required for changing a trace. The trace is reloaded when the lease is
 * acquired, so no lock may be held. TL_AGAIN: another server works on it.
 */
TL_MUST_USE int tl_trace_pin(struct tl_trace *trace, uint64_t ask, struct tl_fail *fail);
void tl_trace_unpin(struct tl_trace *trace);
/* As tl_lake_find_content(), excluding a trace that another server has just deleted. */
struct tl_trace *tl_lake_find_now(struct tl_lake *lake, const char *id);
/* Acquire the lease of an unused name, and determine the first generation of its new trace.
 * TL_EXISTS, TL_AGAIN. */
TL_MUST_USE int tl_lake_claim_name(struct tl_lake *lake, const char *id, struct tl_lease **lease,
                                   uint64_t *generation, struct tl_fail *fail);
TL_MUST_USE int tl_share_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_share_stop(struct tl_lake *lake);

/* ---- between share.c and news.c: none of these waits for another server ---------------------- */

/* The trace's row has changed; NULL: it was deleted. The trace takes over its contents, except what
 * this server itself writes. */
TL_MUST_USE int tl_share_take_row(struct tl_trace *trace, const struct tl_catalog_trace *row);
/* Release a trace's lease if that is due; otherwise write the trace's progress to the catalog. */
void tl_share_look_after(struct tl_trace *trace);
/* Write to the catalog the progress of a trace of this server that is being pushed. */
void tl_share_report_progress(struct tl_trace *trace);
/* Try to acquire a trace that needs decoding or hashing, and may have no holder; `now` is
 * monotonic. Was it tried? */
bool tl_share_adopt(struct tl_trace *trace, int64_t now);

/* ---- edge.c --------------------------------------------------------------------------------- */

#endif
