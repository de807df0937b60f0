/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events: the traces as they change. Only differences to what a client has are sent.
 * Source: WHATWG HTML, section 9.2.
 */
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webapi.h"
#include "rpc/webargs.h"
#include "rpc/webjson.h"

#include "tracelake/v1/catalog.pb-c.h"

#include <stdlib.h>
#include <string.h>

#define HEARTBEAT_MS 15000 /* keeps proxies awake, and detects clients that are gone */
#define RETRY_MS     1000  /* delay before the browser reconnects after a restart */

/* A trace as it was last sent. */
struct reported {
    char id[64];
    int64_t created_ns;
    uint64_t revision;
};

struct events {
    struct tl_rpc *rpc;
    struct tl_net *net;
    struct tl_waiter *waiter;
    struct tl_scope *scope;
    struct tl_hub_seat seat;
    uint64_t revision;
    int64_t reported_ms;
    int64_t period_ms;
    bool changes_only; /* after the first event */
    size_t limit;      /* only this many traces, the newest; 0: all */
    bool begun;
    struct reported *reported; /* [n_reported], newest first */
    size_t n_reported;
};

/* ---- changes --------------------------------------------------------------------------------- */

/*
 * The differences to what was sent. Both lists have the newest first: an entry in only one of them
 * is new or gone; a replaced one is both.
 */
static void write_changes(struct tl_jsonout *j, const struct events *e,
                          const struct tl_trace_list *list, struct tl_jsonout *gone)
{
    size_t k = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct tl_trace_row *const row = &list->rows[i];
        while (k < e->n_reported && e->reported[k].created_ns > row->created_ns)
            tl_jsonout_text(gone, e->reported[k++].id);
        const bool same = k < e->n_reported && strcmp(e->reported[k].id, row->id) == 0 &&
                          e->reported[k].created_ns == row->created_ns;
        if (!same || e->reported[k].revision != row->revision)
            tl_webjson_trace(j, row);
        k += same;
    }
    while (k < e->n_reported)
        tl_jsonout_text(gone, e->reported[k++].id);
}

static void write_all(struct tl_jsonout *j, const struct events *e,
                      const struct tl_trace_list *list, bool more)
{
    if (!e->limit) {
        tl_webjson_traces(j, list);
        return;
    }
    tl_jsonout_open(j, '{');
    tl_jsonout_name(j, "traces");
    tl_webjson_traces(j, list);
    tl_webjson_bool(j, "more", more);
    tl_jsonout_close(j, '}');
}

static int write_difference(struct tl_buf *out, const struct events *e,
                            const struct tl_trace_list *list, bool more)
{
    struct tl_buf ids = {0};
    struct tl_jsonout j = {.out = out}, gone = {.out = &ids};
    tl_jsonout_open(&j, '{');
    tl_webjson_open(&j, "traces", '[');
    write_changes(&j, e, list, &gone);
    tl_jsonout_close(&j, ']');
    tl_webjson_open(&j, "gone", '[');
    if (ids.n > 0)
        tl_jsonout_raw(&j, (const char *)ids.p, ids.n);
    tl_jsonout_close(&j, ']');
    if (e->limit)
        tl_webjson_bool(&j, "more", more);
    tl_jsonout_close(&j, '}');
    tl_buf_fini(&ids);
    return gone.rc < 0 ? gone.rc : j.rc;
}

static int remember(struct events *e, const struct tl_trace_list *list)
{
    struct reported *const now = calloc(list->n + 1, sizeof *now);
    if (!now)
        return TL_NOMEM;
    for (size_t i = 0; i < list->n; i++) {
        const struct tl_trace_row *const row = &list->rows[i];
        memcpy(now[i].id, row->id, sizeof now[i].id);
        now[i].created_ns = row->created_ns;
        now[i].revision = row->revision;
    }
    free(e->reported);
    e->reported = now;
    e->n_reported = list->n;
    return TL_OK;
}

/* Append the rows, if there are changes. */
static int report(struct events *e, struct tl_buf *out)
{
    struct tl_trace_list list = {0};
    if (e->begun && !tl_has_news(e->rpc->lake, e->revision))
        return TL_OK;
    int rc = e->limit ? tl_scoped_page(e->rpc->lake, e->scope, NULL, e->limit, &list)
                      : tl_scoped_traces(e->rpc->lake, e->scope, &list);
    const bool more = rc > 0;
    if (rc < 0) {
        tl_trace_list_free(&list);
        return rc;
    }
    if (!e->begun || list.revision != e->revision) {
        const bool all = !e->begun || !e->changes_only;
        struct tl_jsonout json = {.out = out};
        rc = tl_buf_printf(out, "event: %s\nid: %llu\ndata: ", all ? "traces" : "changes",
                           (unsigned long long)list.revision);
        if (rc >= 0 && all)
            write_all(&json, e, &list, more);
        if (rc >= 0)
            rc = all ? json.rc : write_difference(out, e, &list, more);
        if (rc >= 0)
            rc = tl_buf_add(out, "\n\n", 2);
        if (rc >= 0 && e->changes_only)
            rc = remember(e, &list);
        e->revision = list.revision;
        e->begun = true;
        e->reported_ms = tl_monotonic_ms();
    }
    tl_trace_list_free(&list);
    return rc;
}

static int produce(void *context, struct tl_buf *out)
{
    struct events *const e = context;
    if (!e->begun) {
        const int rc = tl_buf_printf(out, "retry: %d\n\n", RETRY_MS);
        return rc < 0 ? rc : report(e, out);
    }
    while (!out->n) {
        int rc = tl_wait_change(e->waiter, e->reported_ms, e->period_ms, HEARTBEAT_MS);
        if (rc == TL_CANCELLED || tl_net_draining(e->net))
            return TL_EOF;
        rc = rc == TL_AGAIN ? tl_buf_printf(out, ": still here\n\n") : report(e, out);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

static void release(void *context)
{
    struct events *const e = context;
    tl_hub_leave(&e->rpc->hub, &e->seat);
    tl_scope_put(e->scope);
    free(e->reported);
    free(e);
}

int tl_web_events(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__WatchTracesRequest r = TRACELAKE__V1__WATCH_TRACES_REQUEST__INIT;
    uint64_t every = TL_HUB_PERIOD_MS;
    bool changes = false;
    const struct tl_http_arg args[] = {
        {"every", TL_HTTP_U64, &every}, {"changes", TL_HTTP_FLAG, &changes}, {0}};
    int rc = tl_web_fill(request, &r, &response->fail);
    if (rc >= 0)
        rc = tl_http_args(request, args, &response->fail);
    if (rc >= 0 && r.limit > TL_PAGE_MAX)
        rc = tl_fail_set(&response->fail, TL_USAGE, "limit is at most %d", TL_PAGE_MAX);
    if (rc >= 0 && (every < TL_HUB_PERIOD_MS || every > HEARTBEAT_MS))
        rc = tl_fail_set(&response->fail, TL_USAGE, "every is from %d to %d ms", TL_HUB_PERIOD_MS,
                         HEARTBEAT_MS);
    if (rc < 0)
        return rc;
    struct events *const e = calloc(1, sizeof *e);
    if (!e)
        return TL_NOMEM;
    e->period_ms = (int64_t)every;
    e->changes_only = changes;
    e->limit = r.limit;
    e->rpc = request->context;
    e->net = request->net;
    e->waiter = request->waiter;
    e->scope = tl_scope_get(request->scope);
    tl_hub_join(&e->rpc->hub, &e->seat, e->waiter);
    response->producer = e;
    response->produce = produce;
    response->release = release;
    rc = tl_http_type(response, "text/event-stream");
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}
