/* SPDX-License-Identifier: MIT */
/*
 * What the server offers: the RPC services and HTTP paths over a lake, as a struct tl_app for
 * the network half. Handlers are thread-safe.
 */
#ifndef TL_RPC_RPC_H
#define TL_RPC_RPC_H

#include "lake.h"
#include "net/net.h"

struct tl_asset; /* web/assets.h */
struct tl_rpc;

/* `lake` and the page's files (`n` of them, may be none) are borrowed until tl_rpc_free(). */
TL_MUST_USE int tl_rpc_new(struct tl_rpc **out, struct tl_lake *lake, const struct tl_asset *assets,
                           size_t n, struct tl_fail *fail);
const struct tl_app *tl_rpc_app(const struct tl_rpc *rpc);
/* Have more text in /metrics, by any thread. Before handlers run. */
void tl_rpc_add_metrics(struct tl_rpc *rpc, int (*add)(void *context, struct tl_buf *out),
                        void *context);
/* Not while handlers run. NULL is fine. */
void tl_rpc_free(struct tl_rpc *rpc);

/* [A-Za-z0-9._-]{1,63}, and not only dots: what a rig or trace may be called. */
bool tl_name_ok(const char *name);

#endif
