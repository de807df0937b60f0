/* SPDX-License-Identifier: MIT */
/* What of the lake a token with a scope may see. A scope of NULL is everything. */
#ifndef TL_RPC_SCOPED_H
#define TL_RPC_SCOPED_H

#include "lake.h"
#include "net/scope.h"

/* Is the trace there, and one of the scope's (NULL: TL_OK, whether it is there or not)? TL_OK;
 * TL_NOTFOUND: no; else what tl_lake_trace() fails with. Told in `fail`. */
TL_MUST_USE int tl_scoped_covers(struct tl_lake *lake, const struct tl_scope *scope,
                                 const char *trace, struct tl_fail *fail);
/* tl_lake_page() without those of others, into an empty list: at most `most` rows, fewer only where
 * that was all. Returns 1: there may be more. Free the list, also after an error. */
TL_MUST_USE int tl_scoped_page(struct tl_lake *lake, const struct tl_scope *scope,
                               const struct tl_trace_place *behind, size_t most,
                               struct tl_trace_list *out);
#define TL_PAGE_MOST  10000 /* traces that one page may have */
#define TL_PLACE_TEXT 96
/* A place of the list as text, for whoever asks for the next page, in `out`. */
void tl_place_write(char out[static TL_PLACE_TEXT], const struct tl_trace_place *place);
/* TL_USAGE: it is none. */
TL_MUST_USE int tl_place_read(const char *text, struct tl_trace_place *place);
/* tl_lake_traces() without those of others. */
TL_MUST_USE int tl_scoped_traces(struct tl_lake *lake, const struct tl_scope *scope,
                                 struct tl_trace_list *out);
/* May it push to `trace` ("": a new one) as `rig`? TL_DENIED, told in `fail`. */
TL_MUST_USE int tl_scoped_push(struct tl_lake *lake, const struct tl_scope *scope, const char *rig,
                               const char *trace, struct tl_fail *fail);

#endif
