/* SPDX-License-Identifier: MIT */
#include "net/net.h"

#include "base/processors.h"
#include "base/prometheus.h"
#include "net/address.h"
#include "net/auth.h"
#include "net/conn.h"
#include "net/fields.h"
#include "net/stream.h"
#include "net/tls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* ---- loops ------------------------------------------------------------------------------ */

static void after_tasks(struct tl_loop *loop)
{
    tl_h2_flush_all((struct tl_netloop *)loop);
}

static int start_loops(struct tl_net *net, struct tl_fail *fail)
{
    const unsigned n = net->options.loops ? net->options.loops : tl_processors();
    net->loops = calloc(n, sizeof *net->loops);
    if (!net->loops)
        return TL_NOMEM;
    for (; net->n_loops < n; net->n_loops++) {
        struct tl_netloop *const l = &net->loops[net->n_loops];
        char name[16];
        snprintf(name, sizeof name, "net-%u", net->n_loops);
        l->net = net;
        l->scratch = malloc(TL_SCRATCH);
        l->loop.after = after_tasks;
        if (!l->scratch)
            return TL_NOMEM;
        const int rc = tl_loop_start(&l->loop, name, fail);
        if (rc < 0) {
            free(l->scratch);
            return rc;
        }
    }
    return TL_OK;
}

struct order {
    struct tl_task task;
    struct tl_netloop *loop;
    void (*act)(struct tl_netloop *loop);
    struct tl_waiter *done;
};

static void obey(struct tl_task *task)
{
    struct order *const order = (struct order *)task;
    order->act(order->loop);
    tl_waiter_poke(order->done);
}

/* Run `act` on every loop's thread, and wait until all have. */
static void on_all_loops(struct tl_net *net, void (*act)(struct tl_netloop *loop))
{
    for (unsigned i = 0; i < net->n_loops; i++) {
        struct tl_waiter done;
        tl_waiter_init(&done);
        struct order order = {.task.run = obey, .loop = &net->loops[i], .act = act, .done = &done};
        tl_loop_post(&net->loops[i].loop, &order.task);
        (void)!tl_waiter_wait(&done, -1);
        tl_waiter_fini(&done);
    }
}

/*
 * What a loop's thread has closed is really gone when the next task runs: from then on nothing
 * is handed over to HTTP/1.1 any more.
 */
static void settle(struct tl_netloop *loop)
{
}

/* ---- life ------------------------------------------------------------------------------- */

static void set_defaults(struct tl_net_options *o)
{
    if (!o->max_connections)
        o->max_connections = 4096;
    if (!o->max_per_address)
        o->max_per_address = (o->max_connections + 3) / 4;
    if (!o->max_http1)
        o->max_http1 = 512;
    if (!o->hello_ms)
        o->hello_ms = 10000;
    if (!o->request_ms)
        o->request_ms = 20000;
    if (!o->max_streaming)
        o->max_streaming = 512;
    if (!o->max_message)
        o->max_message = 4u << 20;
    if (!o->max_inbound)
        o->max_inbound = 1u << 30;
    if (!o->drain_ms)
        o->drain_ms = 3000;
}

/* Each connection is a file: let as many be open as the system allows us. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int tl_net_reload(struct tl_net *net, struct tl_fail *fail)
{
    const struct tl_net_options *const o = &net->options;
    struct tl_auth *auth = NULL;
    struct tl_tls *tls = NULL;
    int rc = o->tokens ? tl_auth_read(&auth, o->tokens, fail) : TL_OK;
    if (rc == TL_OK && o->tls_cert)
        rc = tl_tls_new(&tls, o->tls_cert, o->tls_key, fail);
    if (rc == TL_OK) {
        pthread_rwlock_wrlock(&net->credentials);
        struct tl_auth *const old_auth = net->auth;
        struct tl_tls *const old_tls = net->tls;
        net->auth = auth;
        net->tls = tls;
        pthread_rwlock_unlock(&net->credentials);
        auth = old_auth;
        tls = old_tls; /* connections hold OpenSSL's part of it themselves */
    }
    tl_tls_free(tls);
    tl_auth_free(auth);
    return rc;
}

static int start(struct tl_net *net, struct tl_fail *fail)
{
    const struct tl_net_options *const o = &net->options;
    int rc = tl_net_reload(net, fail);
    if (rc == TL_OK)
        rc = tl_workers_new(&net->workers, o->max_streaming);
    if (rc == TL_OK)
        rc = tl_h1_new(&net->h1, net, fail);
    if (rc == TL_OK)
        rc = start_loops(net, fail);
    if (rc == TL_OK)
        rc = tl_listeners_open(net, fail);
    return rc;
}

int tl_net_new(struct tl_net **out, const struct tl_net_options *options, struct tl_fail *fail)
{
    for (size_t i = 0; i < options->n_listen; i++)
        if (options->listen[i].tls && (!options->tls_cert || !options->tls_key))
            return tl_fail_set(fail, TL_USAGE, "a TLS listener needs a certificate and its key");
    struct tl_net *const net = calloc(1, sizeof *net);
    if (!net)
        return TL_NOMEM;
    pthread_rwlock_init(&net->credentials, NULL);
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
    raise_file_limit();
    net->options = *options;
    net->app = *options->app;
    set_defaults(&net->options);
    tl_peers_init(&net->peers, net->options.max_connections, net->options.max_per_address);
    const int rc = start(net, fail);
    if (rc < 0)
        tl_net_free(net);
    else
        *out = net;
    return rc;
}

/* Wait until the handlers are done, or the time is over. */
static void wait_for_calls(struct tl_net *net)
{
    const int64_t until = tl_now_ms() + net->options.drain_ms;
    while (tl_now_ms() < until &&
           (tl_workers_busy(net->workers) || atomic_load(&net->stats.connections_open)))
        usleep(10000);
}

void tl_net_free(struct tl_net *net)
{
    if (!net)
        return;
    atomic_store(&net->draining, true);
    if (net->listeners && net->n_loops)
        tl_listeners_stop(net);
    if (net->h1)
        tl_h1_drain(net->h1);
    on_all_loops(net, tl_conns_drain);
    if (net->n_loops && net->workers)
        wait_for_calls(net);
    on_all_loops(net, tl_conns_close);
    on_all_loops(net, settle);
    tl_h1_free(net->h1);
    tl_workers_free(net->workers);
    for (unsigned i = 0; i < net->n_loops; i++) {
        tl_loop_stop(&net->loops[i].loop);
        free(net->loops[i].scratch);
    }
    tl_listeners_free(net);
    tl_tls_free(net->tls);
    tl_auth_free(net->auth);
    tl_peers_fini(&net->peers);
    pthread_rwlock_destroy(&net->credentials);
    free(net->loops);
    free(net);
}

const char *tl_net_url(const struct tl_net *net, size_t i)
{
    return i < net->n_listeners ? net->listeners[i].url : "";
}

const char *tl_net_fingerprint(const struct tl_net *net)
{
    return net->tls ? tl_tls_fingerprint(net->tls) : "";
}

bool tl_net_draining(const struct tl_net *net)
{
    return atomic_load_explicit(&net->draining, memory_order_relaxed);
}

unsigned tl_net_roles(struct tl_net *net, const char *authorization, struct tl_scope **scope)
{
    *scope = NULL;
    pthread_rwlock_rdlock(&net->credentials);
    const unsigned roles = net->auth ? tl_auth_roles(net->auth, authorization, scope) : TL_ROLE_ALL;
    pthread_rwlock_unlock(&net->credentials);
    return roles;
}

const char tl_foreign_host[] =
    "this server is for its own machine and knows no names; use its address or localhost, or "
    "start it with --tokens or --insecure";

bool tl_net_knows_host(const struct tl_net *net, const struct tl_fields *headers)
{
    return !net->guard_host || (tl_host_is_local(tl_fields_get(headers, ":authority")) &&
                                tl_host_is_local(tl_fields_get(headers, "host")));
}

#define PART_OF_PUBLIC 64 /* of the memory that pushes may take … */
#define PART_OF_OTHERS 4

bool tl_net_hold(struct tl_net *net, enum tl_role_class class, size_t n)
{
    const size_t all = net->options.max_inbound;
    const size_t most =
        class == TL_FOR_PUSH ? all : all / (class ? PART_OF_OTHERS : PART_OF_PUBLIC);
    if (atomic_fetch_add(&net->stats.inbound[class], n) + n <= most)
        return true;
    tl_net_release(net, class, n);
    return false;
}

void tl_net_release(struct tl_net *net, enum tl_role_class class, size_t n)
{
    atomic_fetch_sub_explicit(&net->stats.inbound[class], n, memory_order_relaxed);
}

/* ---- metrics ---------------------------------------------------------------------------- */

int tl_net_metrics(const struct tl_net *net, struct tl_buf *out)
{
    const struct tl_net_stats *const s = &net->stats;
    uint64_t inbound = 0;
    for (size_t i = 0; i < TL_ROLE_CLASSES; i++)
        inbound += atomic_load(&s->inbound[i]);
    const struct tl_metric rows[] = {
        {"connections_total", "Connections accepted.", atomic_load(&s->connections)},
        {"connections_open", "HTTP/2 and unidentified connections.",
         atomic_load(&s->connections_open)},
        {"connections_refused_total", "Connections closed for want of room.",
         atomic_load(&s->refused)},
        {"network_received_bytes_total", "Bytes read, HTTP/2 and TLS.", atomic_load(&s->bytes_in)},
        {"network_sent_bytes_total", "Bytes written, HTTP/2 and TLS.", atomic_load(&s->bytes_out)},
        {"http2_streams_total", "HTTP/2 requests begun.", atomic_load(&s->streams)},
        {"http2_floods_total", "Connections closed for a flood of empty frames.",
         atomic_load(&s->floods)},
        {"grpc_inbound_bytes", "Received messages that wait for a handler.", inbound},
    };
    int rc = tl_metrics_add(out, rows, sizeof rows / sizeof *rows);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "grpc_calls_total", "Calls ended, by status code.");
    for (int i = 0; i < 17 && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "grpc_calls_total", atomic_load(&s->grpc_status[i]),
                              "code=\"%d\"", i);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "http_responses_total", "Responses, by class.");
    for (int i = 1; i < 6 && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "http_responses_total", atomic_load(&s->http_class[i]),
                              "class=\"%dxx\"", i);
    return rc;
}
