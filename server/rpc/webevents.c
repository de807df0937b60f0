/* SPDX-License-Identifier: MIT */
/* Server-sent events: the traces as they grow. Source: WHATWG HTML, section 9.2. */
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include <stdlib.h>

#define HEARTBEAT_MS 15000 /* keeps proxies awake, and notices clients that are gone */
#define RETRY_MS     1000  /* when the browser shall come back after a restart */

struct events {
    struct tl_rpc *rpc;
    struct tl_net *net;
    struct tl_waiter *waiter;
    struct tl_scope *scope;
    struct tl_hub_seat seat;
    uint64_t revision;
    int64_t told_ms;
    bool begun;
};

/* Append the rows, if there is news. */
static int tell(struct events *e, struct tl_buf *out)
{
    struct tl_trace_list list = {0};
    int rc = tl_scoped_traces(e->rpc->lake, e->scope, &list);
    if (rc < 0)
        return rc;
    if (!e->begun || list.revision != e->revision) {
        cJSON *const json = tl_webjson_traces(&list);
        char *const text = json ? cJSON_PrintUnformatted(json) : NULL;
        cJSON_Delete(json);
        rc = text ? tl_buf_printf(out, "event: traces\nid: %llu\ndata: %s\n\n",
                                  (unsigned long long)list.revision, text)
                  : TL_NOMEM;
        free(text);
        e->revision = list.revision;
        e->begun = true;
        e->told_ms = tl_now_ms();
    }
    tl_trace_list_free(&list);
    return rc;
}

static int produce(void *context, struct tl_buf *out)
{
    struct events *const e = context;
    if (!e->begun) {
        const int rc = tl_buf_printf(out, "retry: %d\n\n", RETRY_MS);
        return rc < 0 ? rc : tell(e, out);
    }
    while (!out->n) {
        int rc = tl_wait_change(e->waiter, e->told_ms, HEARTBEAT_MS);
        if (rc == TL_CANCELLED || tl_net_draining(e->net))
            return TL_EOF;
        rc = rc == TL_AGAIN ? tl_buf_printf(out, ": still here\n\n") : tell(e, out);
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
    free(e);
}

int tl_web_events(struct tl_http_request *request, struct tl_http_response *response)
{
    struct events *const e = calloc(1, sizeof *e);
    if (!e)
        return TL_NOMEM;
    e->rpc = request->context;
    e->net = request->net;
    e->waiter = request->waiter;
    e->scope = tl_scope_get(request->scope);
    tl_hub_join(&e->rpc->hub, &e->seat, e->waiter);
    response->producer = e;
    response->produce = produce;
    response->release = release;
    const int rc = tl_http_type(response, "text/event-stream");
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}
