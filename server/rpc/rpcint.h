/* SPDX-License-Identifier: MIT */
/* Internal to server/rpc: shared by its files. */
#ifndef TL_RPC_RPCINT_H
#define TL_RPC_RPCINT_H

#include "net/grpc.h"
#include "net/http.h"
#include "rpc/hub.h"
#include "rpc/quotas.h"
#include "rpc/rpc.h"

/* Unary replies are cut at about this size: most clients reject more than 4 MiB. */
#define TL_REPLY_BYTES (3u << 20)

struct tl_rpc {
    struct tl_lake *lake;
    struct tl_hub hub;
    struct tl_quotas quotas;
    const struct tl_asset *assets;
    size_t n_assets;
    struct tl_app app;
    struct tl_method *methods;
    struct tl_reflection *reflection;
    struct tl_tilecache *tiles;
    atomic_ullong image_bytes;                             /* of images being transferred */
    int (*add_metrics)(void *context, struct tl_buf *out); /* NULL: none */
    void *metrics_context;
};

/* The services' methods; tables end with a NULL path. */
extern const struct tl_method tl_ingest_methods[];
extern const struct tl_method tl_catalog_methods[];
extern const struct tl_method tl_images_methods[];
extern const struct tl_method tl_ranges_methods[];
int tl_run_code(struct tl_call *call, const void *message);     /* code.c */
int tl_run_coverage(struct tl_call *call, const void *message); /* code.c */
int tl_run_sql(struct tl_call *call, const void *message);      /* sql.c */
int tl_run_insn_columns(struct tl_call *call, const void *message);
extern const struct tl_method tl_raw_methods[];
extern const struct tl_method tl_health_methods[];
extern const struct tl_method tl_reflection_methods[];

extern const struct tl_route tl_http_routes[];
extern const size_t tl_http_routes_n;

static inline struct tl_rpc *tl_call_rpc(struct tl_call *call)
{
    return tl_call_context(call);
}

/* Complete the error of a query on a trace, or its stream (NULL: the whole trace): if the lake set
 * no message, `fail` receives one. Returns `rc`. */
int tl_explain(struct tl_fail *fail, int rc, const char *trace, const char *stream);
/* The same for the trace and stream in a request's path. */
int tl_web_explain(const struct tl_http_request *request, struct tl_http_response *response,
                   int rc);

static inline struct tl_lake *tl_web_lake(const struct tl_http_request *request)
{
    return ((const struct tl_rpc *)request->context)->lake;
}

/* The trace's current generation. TL_NOTFOUND. */
TL_MUST_USE int tl_generation_of(struct tl_lake *lake, const char *trace, uint64_t *out);

/* Has anything changed since the list of this revision was sent? False while the store does not
 * respond: a list of only what is in memory would suggest that all other traces are gone. */
bool tl_has_news(struct tl_lake *lake, uint64_t revision);

/*
 * Call `step` now and after changes in the lake, at most every TL_HUB_PERIOD_MS, until it returns
 * something other than TL_OK, the call is cancelled or the server stops. Returns the reason.
 */
TL_MUST_USE int tl_on_changes(struct tl_call *call, int (*step)(void *context), void *context);
/*
 * Wait for a change, for reporting changes at most every `period_ms`; `last_ms` is the time of the
 * last report (tl_monotonic_ms). TL_OK: look again; TL_AGAIN: `timeout_ms` passed without a change;
 * TL_CANCELLED.
 */
TL_MUST_USE int tl_wait_change(struct tl_waiter *waiter, int64_t last_ms, int64_t period_ms,
                               int64_t timeout_ms);

#endif
