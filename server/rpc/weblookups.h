/* SPDX-License-Identifier: MIT */
/*
 * Questions over HTTP: a route's `detail` says which request its arguments fill in, and what
 * answers it. The answer is JSON, or by `Accept` the message itself.
 */
#ifndef TL_RPC_WEBLOOKUPS_H
#define TL_RPC_WEBLOOKUPS_H

#include "base/jsonout.h"
#include "rpc/lookups.h"
#include "rpc/webapi.h"

#define TL_WEB_TRACE 128 /* bytes of a trace's name in an argument */

struct tl_web_question {
    const ProtobufCMessageDescriptor *request;
    tl_answer *answer;
    /* Fields that no argument fills by its name, but `take`, which is called last (NULL: none).
     * TL_EOF of it: nothing is asked. */
    const char *const *own;
    int (*take)(const struct tl_http_request *request, void *message, struct tl_fail *fail);
    bool by_time; /* `weight` is time unless the argument says otherwise */
    bool rows;    /* the answer is the array that the message consists of */
};

extern const struct tl_web_question tl_question_stats, tl_question_insns, tl_question_source,
    tl_question_call, tl_question_profile, tl_question_compare, tl_question_slices,
    tl_question_states, tl_question_counters, tl_question_hits, tl_question_log,
    tl_question_functions, tl_question_calls, tl_question_exceptions, tl_question_gaps,
    tl_question_extremes;

/* Handlers of routes with such a `detail`: of the stream or trace in the path, and of each in
 * `streams=NAME,NAME…`, as {"streams":{NAME:…}}. */
int tl_web_ask(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_ask_streams(struct tl_http_request *request, struct tl_http_response *response);

#endif
