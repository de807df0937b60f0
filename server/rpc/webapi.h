/* SPDX-License-Identifier: MIT */
/* Handlers of the HTTP paths, for struct tl_route (net/http.h). */
#ifndef TL_RPC_WEBAPI_H
#define TL_RPC_WEBAPI_H

#include "lake.h"
#include "net/http.h"

#include <cjson/cJSON.h>
#include <protobuf-c/protobuf-c.h>

/* webapi.c */
int tl_web_traces(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_trace(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_functions(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_locate(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_stats(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_trace_stats(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_trace_slices(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_slices(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_insns(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_range(struct tl_http_request *request, struct tl_http_response *response);

/* webfind.c */
int tl_web_find(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_trace_find(struct tl_http_request *request, struct tl_http_response *response);

/* webcalls.c */
int tl_web_call(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_profile(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_compare(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_source(struct tl_http_request *request, struct tl_http_response *response);

/* timing_doors.c */
int tl_web_function_times(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_calls_of(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_interrupts(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_gaps(struct tl_http_request *request, struct tl_http_response *response);

/* sql.c */
int tl_web_sql(struct tl_http_request *request, struct tl_http_response *response);

/* webimages.c */
int tl_web_images(struct tl_http_request *request, struct tl_http_response *response);
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

/* regions.c */
int tl_web_simpoints(struct tl_http_request *request, struct tl_http_response *response);

/* webtile.c */
int tl_web_tile(struct tl_http_request *request, struct tl_http_response *response);
/* Answer from the cache only; TL_AGAIN: not cached. */
int tl_web_tile_kept(struct tl_http_request *request, struct tl_http_response *response);

/* webevents.c */
int tl_web_events(struct tl_http_request *request, struct tl_http_response *response);

/* weblog.c */
int tl_web_log(struct tl_http_request *request, struct tl_http_response *response);

/* weblanes.c */
int tl_web_at(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_states(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_counters(struct tl_http_request *request, struct tl_http_response *response);

/* The range of a lane: from, to, and axis, insn or time. TL_USAGE. */
TL_MUST_USE int tl_web_lane_span(const struct tl_http_request *request, enum tl_range_unit *axis,
                                 uint64_t *from, uint64_t *to, struct tl_fail *fail);

/* Call `each` for each stream in `streams=NAME,NAME…`, until a result < 0, which is returned.
 * TL_USAGE: none, or too many. */
typedef int tl_web_stream_call(const struct tl_http_request *request, const char *stream,
                               void *context, struct tl_fail *fail);
TL_MUST_USE int tl_web_streams(const struct tl_http_request *request, tl_web_stream_call *each,
                               void *context, struct tl_fail *fail);

/*
 * Answer for each stream in `streams=NAME,NAME…`: an object with the result of `each` for every
 * stream, which the caller of `each` deletes.
 */
typedef int tl_web_stream(const struct tl_http_request *request, const char *stream, void *context,
                          cJSON **out, struct tl_fail *fail);
int tl_web_each_stream(struct tl_http_request *request, struct tl_http_response *response,
                       tl_web_stream *each, void *context);

/* Pack the message as the body. TL_NOMEM. */
TL_MUST_USE int tl_web_pack(struct tl_http_response *response, const ProtobufCMessage *message);
/* Parse "insn", "time", "byte" or "ns". TL_USAGE. */
TL_MUST_USE int tl_unit_parse(const char *text, enum tl_range_unit *out);
/* The arguments `unit`, `from` and `to`: everything if they are missing. Times may have units
 * (base/timearg.h), and `to` may be a length; with units `*unit` is TL_UNIT_NS. TL_USAGE. */
TL_MUST_USE int tl_web_span(const struct tl_http_request *request, enum tl_range_unit *unit,
                            uint64_t *from, uint64_t *to, struct tl_fail *fail);
/* The argument `name` in a unit: likewise; unchanged if it is missing. TL_USAGE. */
TL_MUST_USE int tl_web_place(const struct tl_http_request *request, const char *name,
                             enum tl_range_unit *unit, uint64_t *at, struct tl_fail *fail);
/* The argument `weight`, insns or time; unchanged if it is missing. TL_USAGE. */
TL_MUST_USE int tl_web_weight(const struct tl_http_request *request, enum tl_weight *out,
                              struct tl_fail *fail);
/* The same as positions of the path's stream. TL_USAGE, or what tl_lake_locate() returns. */
TL_MUST_USE int tl_web_insns_span(const struct tl_http_request *request, uint64_t *from,
                                  uint64_t *to, struct tl_fail *fail);

#endif
