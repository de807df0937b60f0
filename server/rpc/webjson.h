/* SPDX-License-Identifier: MIT */
/*
 * JSON of the HTTP interface that is not made from messages (base/jsonout.h, docs/http.md): traces
 * and what a trace lacks. A writer remembers whether it ran out of memory; what follows returns
 * nothing.
 */
#ifndef TL_RPC_WEBJSON_H
#define TL_RPC_WEBJSON_H

#include "base/jsonout.h"
#include "lake_traces.h"
#include "net/http.h"

/* A member of an object. */
void tl_webjson_u64(struct tl_jsonout *j, const char *name, uint64_t value);
void tl_webjson_bool(struct tl_jsonout *j, const char *name, bool value);
void tl_webjson_address(struct tl_jsonout *j, const char *name, uint64_t value);
void tl_webjson_text(struct tl_jsonout *j, const char *name, const char *text);
/* One that has members or elements of its own, up to tl_jsonout_close(). */
void tl_webjson_open(struct tl_jsonout *j, const char *name, char bracket);

/* Objects. */
void tl_webjson_trace(struct tl_jsonout *j, const struct tl_trace_row *row);
void tl_webjson_traces(struct tl_jsonout *j, const struct tl_trace_list *list); /* an array */

/*
 * Send what was written as the body. Takes over the memory of j->out, which becomes empty, also if
 * the writer has failed: TL_NOMEM. Sets the content type and Cache-Control: no-store.
 */
TL_MUST_USE int tl_webjson_respond(struct tl_http_response *response, struct tl_jsonout *j);

#endif
