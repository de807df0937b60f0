/* SPDX-License-Identifier: MIT */
/* Conversion of the lake's rows to messages. Messages borrow the rows' strings. */
#ifndef TL_RPC_CONVERT_H
#define TL_RPC_CONVERT_H

#include "lake_traces.h"
#include "tracelake/v1/catalog.pb-c.h"

/*
 * Convert rows of `list`, whose texts are made valid UTF-8, beginning at `*next`: at most `most`
 * (0: unlimited), at least one, and as many as fit a message that every client accepts. Advances
 * `*next`, and sets the reply's token if there are more, in the list or (`more`) after it. Free
 * with tl_traces_pb_free() before the list. TL_NOMEM.
 */
TL_MUST_USE int tl_traces_pb(struct tl_trace_list *list, size_t *next, size_t most, bool more,
                             Tracelake__V1__ListTracesReply *out);
void tl_traces_pb_free(Tracelake__V1__ListTracesReply *reply);

/*
 * Split labels ("key=value\n"…): calls `each` for every one, with texts valid for the call. A
 * result < 0 stops and is returned.
 */
TL_MUST_USE int tl_labels_each(const char *labels,
                               int (*each)(void *context, const char *key, const char *value),
                               void *context);

#endif
