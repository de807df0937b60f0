/* SPDX-License-Identifier: MIT */
/*
 * Internal to the lake: servers that share a store. Ownership of traces (share.c), the thread that
 * maintains it and receives changes by other servers (news.c), and the live edge of traces that
 * another server decodes (edge.c).
 */
#ifndef TL_LAKE_SHARE_H
#define TL_LAKE_SHARE_H

#include "lake/lakeint.h"

/* ---- share.c: none of these waits for another server
 * ------------------------------------------ */

/* The trace's row has changed; NULL: it was deleted. The trace takes over its contents, except what
 * this server itself writes. */
TL_MUST_USE int tl_share_take_row(struct tl_trace *trace, const struct tl_catalog_trace *row);
/* Release a trace's lease if that is due; otherwise write the trace's progress to the catalog. */
void tl_share_look_after(struct tl_trace *trace);
/* Write to the catalog the progress of a trace of this server that is being pushed. */
void tl_share_tell_progress(struct tl_trace *trace);
/* Try to acquire a trace that needs decoding or hashing, and may have no holder; `now` is
 * monotonic. Was it tried? */
bool tl_share_adopt(struct tl_trace *trace, int64_t now);

/* ---- edge.c --------------------------------------------------------------------------------- */

/* The row of another server's trace has changed. Called with trace->owning held. Is the served
 * generation the live edge, and does it continue? Otherwise the trace must be reloaded. */
bool tl_edge_goes_on(struct tl_trace *trace, const struct tl_catalog_trace *row);
/* The trace has taken over that row: decode what is new. */
void tl_edge_wake(struct tl_trace *trace);

#endif
