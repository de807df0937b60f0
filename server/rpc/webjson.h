/* SPDX-License-Identifier: MIT */
/*
 * JSON of the HTTP interface. Integers are numbers below 2^53 and decimal strings from there on, so
 * that every reader gets them exactly; addresses are strings, "0x…". docs/http.md.
 */
#ifndef TL_RPC_WEBJSON_H
#define TL_RPC_WEBJSON_H

#include "lake.h"
#include "net/http.h"

#include <cjson/cJSON.h>

/* Functions that add members return false when out of memory. */
bool tl_webjson_u64(cJSON *object, const char *name, uint64_t value);
bool tl_webjson_i64(cJSON *object, const char *name, int64_t value);
bool tl_webjson_address(cJSON *object, const char *name, uint64_t value);
/* `text` may be any bytes; invalid UTF-8 is replaced. */
bool tl_webjson_text(cJSON *object, const char *name, const char *text);
/* The same for `n` bytes. */
bool tl_webjson_bytes(cJSON *object, const char *name, const char *text, size_t n);
/* A number as written by tl_webjson_u64(). NULL: out of memory. */
cJSON *tl_webjson_number(uint64_t value);

/* Append as compact text and delete it. NULL gives TL_NOMEM. */
TL_MUST_USE int tl_webjson_append(struct tl_buf *out, cJSON *json);
/* The same for element `row`, from 0, of an array that is written row by row, one per line. */
TL_MUST_USE int tl_webjson_row(struct tl_buf *out, size_t row, cJSON *json);

/* Create an object; the caller deletes it. NULL: out of memory. */
cJSON *tl_webjson_trace(const struct tl_trace_row *row);
cJSON *tl_webjson_traces(const struct tl_trace_list *list);
/* {"traces":…, "more":true}: there are more after them. */
cJSON *tl_webjson_some_traces(const struct tl_trace_list *list, bool more);
cJSON *tl_webjson_position(const struct tl_position *at);
/* `counted`: the request asked for counts. */
cJSON *tl_webjson_found(const struct tl_found *found, bool counted);
cJSON *tl_webjson_image(const struct tl_image_row *row);
/* With at most `functions` functions; the default number is given below. */
#define TL_WEBJSON_FUNCTIONS 50
cJSON *tl_webjson_stats(const struct tl_stats *stats, size_t functions);
cJSON *tl_webjson_call(const struct tl_call_info *call);
cJSON *tl_webjson_profile(const struct tl_profile *profile);
cJSON *tl_webjson_compare(const struct tl_compare_request *request,
                          const struct tl_compare *compare);
cJSON *tl_webjson_log(const struct tl_soft_log *log);
cJSON *tl_webjson_states(const struct tl_states *states);
cJSON *tl_webjson_counters(const struct tl_counters *counters);
cJSON *tl_webjson_slices(const struct tl_slices *slices);
cJSON *tl_webjson_insn(const struct tl_insn_row *row);
cJSON *tl_webjson_source(const struct tl_source_file *source);
cJSON *tl_webjson_function(size_t id, const struct tl_function *function);

/*
 * Send it as the body (compact) and delete it. NULL gives TL_NOMEM. Sets the content type and
 * Cache-Control: no-store.
 */
TL_MUST_USE int tl_webjson_respond(struct tl_http_response *response, cJSON *json);
/* The same for JSON text; takes over its memory. */
TL_MUST_USE int tl_webjson_respond_text(struct tl_http_response *response, struct tl_buf *text);

/* For building larger objects: add an item to an object or array, or delete it on failure. */
bool tl_webjson_add(cJSON *object, const char *name, cJSON *item);
bool tl_webjson_add_row(cJSON *array, cJSON *item);
/* Return `o`; if it is not complete, delete it and return NULL. */
cJSON *tl_webjson_complete(cJSON *o, bool complete);

#endif
