/* SPDX-License-Identifier: MIT */
/*
 * The server's interface: RPC services and HTTP paths over a lake, as a struct tl_app for the
 * network layer. Handlers are thread-safe.
 */
#ifndef TL_RPC_RPC_H
#define TL_RPC_RPC_H

#include "net/net.h"
#include "rpc/quotas.h"

struct tl_lake;

struct tl_asset; /* web/assets.h */
struct tl_rpc;

/* Create. `lake` and the web page's files (`n`, may be 0) are borrowed until tl_rpc_free(). */
TL_MUST_USE int tl_rpc_new(struct tl_rpc **out, struct tl_lake *lake, const struct tl_asset *assets,
                           size_t n, struct tl_fail *fail);
const struct tl_app *tl_rpc_app(const struct tl_rpc *rpc);
/* Add text to /metrics; `add` is called by any thread. Call before handlers run. */
void tl_rpc_add_metrics(struct tl_rpc *rpc, int (*add)(void *context, struct tl_buf *out),
                        void *context);
/* Free. Not while handlers run. Accepts NULL. */
/* Replace the quotas of rigs (rpc/quotas.h). TL_NOMEM. */
TL_MUST_USE int tl_rpc_set_quotas(struct tl_rpc *rpc, const struct tl_quota_rule *rules, size_t n);
void tl_rpc_free(struct tl_rpc *rpc);

/* Is it a valid name of a rig or trace: [A-Za-z0-9._-]{1,63}, and not only dots? */
bool tl_name_ok(const char *name);

#endif
