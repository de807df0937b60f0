/* SPDX-License-Identifier: MIT */
/* A server with a fake lake, for one test. */
#ifndef TL_TESTS_SERVING_H
#define TL_TESTS_SERVING_H

#include "net/net.h"
#include "rpc/rpc.h"
#include "unit/fake_lake.h"
#include "unit/h2_client.h"
#include "web/assets.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct serving {
    struct tl_lake *lake;
    struct tl_rpc *rpc;
    struct tl_net *net;
    const char *url;
    const char *tls_url;
};

/* `options` may be NULL; listeners and app are set here. */
static inline void serve(struct serving *s, const struct tl_net_options *given)
{
    const struct tl_lake_options lake = {.dir = "unused"};
    static const struct tl_asset page[] = {
        {"/", "text/html; charset=utf-8", (const unsigned char *)"<!doctype html>", 15, NULL, 0,
         "\"page-1\""},
        {"/app.js", "text/javascript; charset=utf-8", (const unsigned char *)"let a = 1;", 10, NULL,
         0, "\"app-1\""},
    };
    const struct tl_listen plain[] = {{"127.0.0.1:0", false}, {"127.0.0.1:0", true}};
    struct tl_net_options options = given ? *given : (struct tl_net_options){0};
    struct tl_fail fail = {0};
    *s = (struct serving){0};
    assert_int_equal(tl_lake_open(&s->lake, &lake, &fail), TL_OK);
    assert_int_equal(tl_rpc_new(&s->rpc, s->lake, page, 2, &fail), TL_OK);
    options.app = tl_rpc_app(s->rpc);
    options.listen = plain;
    options.n_listen = options.tls_cert ? 2 : 1;
    if (!options.drain_ms)
        options.drain_ms = 500;
    if (tl_net_new(&s->net, &options, &fail) < 0)
        fail_msg("%s", fail.text);
    s->url = tl_net_url(s->net, 0);
    s->tls_url = tl_net_url(s->net, 1);
}

static inline void stop_serving(struct serving *s)
{
    tl_net_free(s->net);
    tl_rpc_free(s->rpc);
    tl_lake_close(s->lake);
}

#endif
