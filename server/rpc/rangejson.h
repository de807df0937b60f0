/* SPDX-License-Identifier: MIT */
/* Calls of tracelake.v1.Ranges whose answers are JSON, as over HTTP. */
#ifndef TL_RPC_RANGEJSON_H
#define TL_RPC_RANGEJSON_H

#include "rpc/rpcint.h"

int tl_run_stats(struct tl_call *call, const void *message);
int tl_run_call(struct tl_call *call, const void *message);
int tl_run_profile(struct tl_call *call, const void *message);
int tl_run_compare(struct tl_call *call, const void *message);

#endif
