/* SPDX-License-Identifier: MIT */
/* Handlers of the HTTP paths, for struct tl_route (net/http.h). */
#ifndef TL_RPC_WEBAPI_H
#define TL_RPC_WEBAPI_H

#include "net/http.h"

#include <protobuf-c/protobuf-c.h>

/* webapi.c */
int tl_web_traces(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_trace(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_range(struct tl_http_request *request, struct tl_http_response *response);

/* sql.c */
int tl_web_sql(struct tl_http_request *request, struct tl_http_response *response);

/* webimages.c */
int tl_web_put_image(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_remove_image(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_trace_images(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_bind_image(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_setup(struct tl_http_request *request, struct tl_http_response *response);

/* webchange.c */
int tl_web_set_labels(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_delete(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_begin(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_append(struct tl_http_request *request, struct tl_http_response *response);

/* webtile.c */
int tl_web_tile(struct tl_http_request *request, struct tl_http_response *response);
/* Answer from the cache only; TL_AGAIN: not cached. */
int tl_web_tile_kept(struct tl_http_request *request, struct tl_http_response *response);

/* webevents.c */
int tl_web_events(struct tl_http_request *request, struct tl_http_response *response);

/* weblog.c */
int tl_web_log(struct tl_http_request *request, struct tl_http_response *response);

/* weblookups.c: call `each` for each stream in `streams=NAME,NAME…`, until a result < 0, which is
 * returned. TL_USAGE: none, or too many. */
typedef int tl_web_stream_call(const char *stream, void *context, struct tl_fail *fail);
TL_MUST_USE int tl_web_streams(const struct tl_http_request *request, tl_web_stream_call *each,
                               void *context, struct tl_fail *fail);
/* Answer with a message: itself, if the client prefers that, else as JSON; `rows`: the array that
 * it consists of. */
TL_MUST_USE int tl_web_respond(const struct tl_http_request *request,
                               struct tl_http_response *response, const ProtobufCMessage *message,
                               bool rows);
/* Answer {}. */
TL_MUST_USE int tl_web_respond_nothing(struct tl_http_response *response);
/* Does the client prefer messages to JSON? */
bool tl_web_wants_protobuf(const struct tl_http_request *request);
/* Append the message to the body. TL_NOMEM. */
TL_MUST_USE int tl_web_pack(struct tl_http_response *response, const ProtobufCMessage *message);

#endif
