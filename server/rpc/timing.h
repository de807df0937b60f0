/* SPDX-License-Identifier: MIT */
/*
 * Whose time it was (lake_timing.h), as protobuf messages: what RPC sends, and HTTP as JSON. Each
 * function answers a request message of its kind.
 */
#ifndef TL_RPC_TIMING_H
#define TL_RPC_TIMING_H

#include "lake.h"

#include <protobuf-c/protobuf-c.h>

#define TL_TIMING_ROWS 20000 /* maximum number in an answer: it is one message */

/* An answer, with everything that its message points to. */
struct tl_timing_reply {
    ProtobufCMessage *message; /* in `memory` */
    void **memory;
    size_t n, cap;
};

typedef int tl_timing_answer(struct tl_lake *lake, const void *request,
                             struct tl_timing_reply *reply, struct tl_fail *fail);
/* FunctionsRequest, CallsRequest, ExceptionsRequest, GapsRequest. Free the reply also after an
 * error. */
tl_timing_answer tl_timing_functions, tl_timing_calls, tl_timing_exceptions, tl_timing_gaps;
void tl_timing_reply_free(struct tl_timing_reply *reply);

#endif
