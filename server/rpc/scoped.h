/* SPDX-License-Identifier: MIT */
/* Access to the lake restricted to a token's scope. NULL means no restriction. */
#ifndef TL_RPC_SCOPED_H
#define TL_RPC_SCOPED_H

#include "lake_rows.h"
#include "lake_traces.h"
#include "net/scope.h"

struct tl_lake;

/* Check that the trace exists and is in the scope (NULL: TL_OK, whether or not it exists). TL_OK;
 * TL_NOTFOUND: no; otherwise the error of tl_lake_trace(). Described in `fail`. */
TL_MUST_USE int tl_scoped_covers(struct tl_lake *lake, const struct tl_scope *scope,
                                 const char *trace, struct tl_fail *fail);
/* tl_lake_page() restricted to the scope, into an empty list: at most `most` rows, fewer only at
 * the end of the list. Returns 1: there may be more. Free the list, also after an error. */
TL_MUST_USE int tl_scoped_page(struct tl_lake *lake, const struct tl_scope *scope,
                               const struct tl_trace_place *after, size_t most,
                               struct tl_trace_list *out);
#define TL_PAGE_MAX   10000 /* maximum traces per page */
#define TL_PLACE_TEXT 96
/* Format a place in the list as the token for the next page, into `out`. */
void tl_place_write(char out[static TL_PLACE_TEXT], const struct tl_trace_place *place);
/* Parse a token. TL_USAGE: invalid. */
TL_MUST_USE int tl_place_read(const char *text, struct tl_trace_place *place);
/* tl_lake_traces() restricted to the scope. */
TL_MUST_USE int tl_scoped_traces(struct tl_lake *lake, const struct tl_scope *scope,
                                 struct tl_trace_list *out);
/* Check that it may push to `trace` ("": a new one) as `rig`. TL_DENIED, described in `fail`. */
TL_MUST_USE int tl_scoped_push(struct tl_lake *lake, const struct tl_scope *scope, const char *rig,
                               const char *trace, struct tl_fail *fail);

#endif
