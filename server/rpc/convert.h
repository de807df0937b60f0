/* SPDX-License-Identifier: MIT */
/* Rows of the lake as messages. Messages borrow the rows' strings. */
#ifndef TL_RPC_CONVERT_H
#define TL_RPC_CONVERT_H

#include "lake.h"

#include "tracelake/v1/catalog.pb-c.h"

/*
 * Rows of `list`, which is made UTF-8, from `*next` on: at most `most` (0: any number), and as many
 * as make a message that every client takes, one at least. Sets `*next` behind them, and the
 * reply's token where there are more, in the list or (`more`) behind it. Free by
 * tl_traces_pb_free() before the list. TL_NOMEM.
 */
TL_MUST_USE int tl_traces_pb(struct tl_trace_list *list, size_t *next, size_t most, bool more,
                             Tracelake__V1__ListTracesReply *out);
void tl_traces_pb_free(Tracelake__V1__ListTracesReply *reply);

/*
 * Take labels ("key=value\n"…) apart: calls `each` for every one, with texts that last for the
 * call. A result < 0 stops and is returned.
 */
TL_MUST_USE int tl_labels_each(const char *labels,
                               int (*each)(void *context, const char *key, const char *value),
                               void *context);

/*
 * Make the texts of rows UTF-8, in place: messages must have nothing else, and a text may quote
 * what a rig sent, or be cut in the middle of a character.
 */
void tl_traces_clean(struct tl_trace_list *list);

#endif
