/* SPDX-License-Identifier: MIT */
/*
 * Questions over HTTP: a route's message is filled from its arguments (rpc/webargs.h), and its
 * `detail` says what answers that. The answer is JSON, or by `Accept` the message itself.
 */
#ifndef TL_RPC_WEBLOOKUPS_H
#define TL_RPC_WEBLOOKUPS_H

#include "rpc/lookups.h"
#include "rpc/webapi.h"

struct tl_web_question {
    tl_answer *answer;
    /* Write defaults other than 0 before the arguments; `memory` is the request's. NULL: none. */
    void (*begin)(const struct tl_http_request *request, struct tl_reply *memory, void *message);
    /* Read arguments that mean more than a field, behind the others. NULL: there are none. */
    int (*take)(const struct tl_http_request *request, void *message, struct tl_fail *fail);
    bool rows; /* the answer is the array that the message consists of */
    /* The answer of several streams, a map of messages by their names. */
    const ProtobufCMessageDescriptor *by_stream;
};

extern const struct tl_web_question tl_question_stats, tl_question_insns, tl_question_source,
    tl_question_call, tl_question_profile, tl_question_compare, tl_question_slices,
    tl_question_states, tl_question_counters, tl_question_hits, tl_question_log,
    tl_question_functions, tl_question_calls, tl_question_exceptions, tl_question_gaps,
    tl_question_extremes, tl_question_moments, tl_question_regions, tl_question_locate,
    tl_question_names, tl_question_images, tl_question_notes;
extern const struct tl_web_question tl_question_find, tl_question_find_all; /* webfind.c */

/* Handlers of routes with such a `detail`: of the stream or trace in the path, and of each in
 * `streams=NAME,NAME…`, as {"streams":{NAME:…}}. */
int tl_web_ask(struct tl_http_request *request, struct tl_http_response *response);
int tl_web_ask_streams(struct tl_http_request *request, struct tl_http_response *response);

#endif
