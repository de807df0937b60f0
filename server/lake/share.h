/* SPDX-License-Identifier: MIT */
/*
 * Servers that share a store, within the lake: who has a trace (share.c), the thread that looks
 * after that and hears what others have changed (news.c), and the live edge of traces that another
 * server decodes (edge.c).
 */
#ifndef TL_LAKE_SHARE_H
#define TL_LAKE_SHARE_H

#include "lake/lakeint.h"

/* ---- share.c: none of these waits for another server ------------------------------------------
 */

/* The trace's row has been changed, NULL: it is gone. The trace shows what it says, but what this
 * server itself writes. */
TL_MUST_USE int tl_share_take_row(struct tl_trace *trace, const struct tl_catalog_trace *row);
/* Give back a trace's lease if that is due; else have the catalog say how far the trace is. */
void tl_share_look_after(struct tl_trace *trace);
/* Have the catalog say how far a trace of this server is that is being pushed. */
void tl_share_tell_progress(struct tl_trace *trace);
/* Try to have a trace that is to be decoded or hashed and that nobody may have; `now` is monotonic.
 * Was it tried? */
bool tl_share_adopt(struct tl_trace *trace, int64_t now);

/* ---- edge.c --------------------------------------------------------------------------------- */

/* The row of a trace of another server has changed. With trace->owning held. Is what serves the
 * live edge, which goes on? Otherwise it is to be loaded anew. */
bool tl_edge_goes_on(struct tl_trace *trace, const struct tl_catalog_trace *row);
/* The trace shows that row: decode what is new. */
void tl_edge_wake(struct tl_trace *trace);

#endif
