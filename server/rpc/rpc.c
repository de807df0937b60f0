/* SPDX-License-Identifier: MIT */
/*
 * Joins the tables of methods and routes into one app, with what all of them share. Waiting for
 * changes has a minimum period, so that a lake that changes all the time does not keep its
 * listeners busy.
 */
#include "rpc/rpc.h"

#include "lake.h"
#include "rpc/lookups_service.h"
#include "rpc/reflection.h"
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/tilecache.h"

#include <stdlib.h>
#include <string.h>

static const struct tl_method *const tables[] = {
    tl_ingest_methods, tl_catalog_methods, tl_images_methods,
    tl_ranges_methods, tl_lookups_methods, tl_answering_methods,
    tl_raw_methods,    tl_health_methods,  tl_reflection_methods,
};

int tl_explain(struct tl_fail *fail, int rc, const char *trace, const char *stream)
{
    const bool one = stream && *stream;
    if (rc >= 0 || fail->text[0])
        return rc;
    return tl_fail_set(fail, (enum tl_err)rc, "%.63s%s%.31s: %s", trace, one ? "/" : "",
                       one ? stream : "", tl_err_name(rc));
}

int tl_web_explain(const struct tl_http_request *request, struct tl_http_response *response, int rc)
{
    return tl_explain(&response->fail, rc, request->part[0],
                      request->n_parts > 1 ? request->part[1] : NULL);
}

static int covers(void *context, const struct tl_scope *scope, const char *trace,
                  struct tl_fail *fail)
{
    return tl_scoped_covers(((struct tl_rpc *)context)->lake, scope, trace, fail);
}

static int join_tables(struct tl_rpc *rpc)
{
    size_t n = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct tl_method *m = tables[t]; m->path; m++)
            n++;
    rpc->methods = calloc(n, sizeof *rpc->methods);
    if (!rpc->methods)
        return TL_NOMEM;
    n = 0;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct tl_method *m = tables[t]; m->path; m++)
            rpc->methods[n++] = *m;
    rpc->app = (struct tl_app){
        .context = rpc,
        .methods = rpc->methods,
        .n_methods = n,
        .routes = tl_http_routes,
        .n_routes = tl_http_routes_n,
        .covers = covers,
    };
    return TL_OK;
}

int tl_rpc_new(struct tl_rpc **out, struct tl_lake *lake, const struct tl_asset *assets, size_t n,
               struct tl_fail *fail)
{
    struct tl_rpc *const rpc = calloc(1, sizeof *rpc);
    if (!rpc)
        return TL_NOMEM;
    rpc->lake = lake;
    tl_quotas_init(&rpc->quotas);
    rpc->assets = assets;
    rpc->n_assets = n;
    int rc = join_tables(rpc);
    if (rc == TL_OK)
        rc = tl_reflection_new(&rpc->reflection, fail);
    if (rc == TL_OK)
        rc = tl_tilecache_new(&rpc->tiles, TL_TILECACHE_BYTES);
    if (rc == TL_OK)
        rc = tl_hub_init(&rpc->hub, lake);
    if (rc == TL_OK) {
        *out = rpc;
        return TL_OK;
    }
    tl_quotas_fini(&rpc->quotas);
    tl_tilecache_free(rpc->tiles);
    tl_reflection_free(rpc->reflection);
    free(rpc->methods);
    free(rpc);
    return rc;
}

int tl_rpc_set_quotas(struct tl_rpc *rpc, const struct tl_quota_rule *rules, size_t n)
{
    return tl_quotas_set(&rpc->quotas, rules, n);
}

const struct tl_app *tl_rpc_app(const struct tl_rpc *rpc)
{
    return &rpc->app;
}

void tl_rpc_add_metrics(struct tl_rpc *rpc, int (*add)(void *context, struct tl_buf *out),
                        void *context)
{
    rpc->add_metrics = add;
    rpc->metrics_context = context;
}

void tl_rpc_free(struct tl_rpc *rpc)
{
    if (!rpc)
        return;
    tl_hub_fini(&rpc->hub);
    tl_quotas_fini(&rpc->quotas);
    tl_tilecache_free(rpc->tiles);
    tl_reflection_free(rpc->reflection);
    free(rpc->methods);
    free(rpc);
}

bool tl_name_ok(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = strlen(name);
    return n > 0 && n < 64 && strspn(name, allowed) == n && strspn(name, ".") < n;
}

bool tl_has_news(struct tl_lake *lake, uint64_t revision)
{
    return tl_lake_revision(lake) != revision && tl_lake_usable(lake, NULL) >= 0;
}

int tl_on_changes(struct tl_call *call, int (*step)(void *context), void *context)
{
    struct tl_hub_seat seat;
    int rc;
    tl_hub_join(&tl_call_rpc(call)->hub, &seat, tl_call_waiter(call));
    do {
        const int64_t now = tl_monotonic_ms();
        rc = step(context);
        if (rc == TL_OK && tl_call_draining(call))
            rc = tl_call_stop(call);
        if (rc == TL_OK)
            rc = tl_wait_change(tl_call_waiter(call), now, TL_HUB_PERIOD_MS, -1);
    } while (rc == TL_OK);
    tl_hub_leave(&tl_call_rpc(call)->hub, &seat);
    return rc;
}

int tl_wait_change(struct tl_waiter *waiter, int64_t last_ms, int64_t period_ms, int64_t timeout_ms)
{
    int rc = tl_waiter_wait(waiter, timeout_ms);
    if (rc != TL_OK)
        return rc;
    /* Changes during the rest of the period are reported together with this one. */
    const int64_t rest = last_ms + period_ms - tl_monotonic_ms();
    if (rest > 0)
        rc = tl_waiter_sleep(waiter, rest);
    return rc;
}
