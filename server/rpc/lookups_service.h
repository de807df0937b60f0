/* SPDX-License-Identifier: MIT */
/* Methods that reply with the messages of rpc/lookups.h. */
#ifndef TL_RPC_LOOKUPS_SERVICE_H
#define TL_RPC_LOOKUPS_SERVICE_H

#include "rpc/reply.h"
#include "rpc/rpcint.h"

/* Answer a call with one message. */
TL_MUST_USE int tl_call_answer(struct tl_call *call, const void *request, tl_answer *answer);

extern const struct tl_method tl_lookups_methods[];   /* tracelake.v1.Lookups */
extern const struct tl_method tl_answering_methods[]; /* those of tracelake.v1.Ranges */

#endif
