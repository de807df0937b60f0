/* SPDX-License-Identifier: MIT */
/*
 * Starts and ends the parts of the network layer in order, and replaces its files and limits while
 * it runs. A reload reads all files before it uses any, since a certificate and a key of another
 * one would serve nobody.
 */
#include "net/net.h"

#include "base/processors.h"
#include "net/address.h"
#include "net/auth.h"
#include "net/caller.h"
#include "net/conn.h"
#include "net/fields.h"
#include "net/stream.h"
#include "net/tls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define IDLE_DRAIN_MS 250 /* for the two steps of GOAWAY, over any usual network */

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

/* Run `act` on every loop's thread, and wait for all. */
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
 * What a loop's thread has closed is released when the next task runs: from then on nothing is
 * handed over to HTTP/1.1 any more.
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
    if (!o->max_guests)
        o->max_guests = 1024;
    if (!o->answer_ms)
        o->answer_ms = 60000;
    if (!o->max_outbound)
        o->max_outbound = 512u << 20;
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

/* Each connection is a file descriptor: raise the limit as far as the system permits. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* A new set of file contents; NULL if not configured. */
struct files {
    struct tl_auth *auth;
    struct tl_tls *tls;
};

static void free_files(struct files *files)
{
    tl_tls_free(files->tls); /* connections hold references to OpenSSL's part */
    tl_auth_free(files->auth);
}

static int read_files(struct files *out, const struct tl_net_options *o, struct tl_fail *fail)
{
    *out = (struct files){0};
    int rc = o->tokens ? tl_auth_read(&out->auth, o->tokens, fail) : TL_OK;
    if (rc == TL_OK && o->tls_cert)
        rc = tl_tls_new(&out->tls, o->tls_cert, o->tls_key, o->client_ca, fail);
    if (rc < 0)
        free_files(out);
    return rc;
}

int tl_net_check(const struct tl_net_options *options, struct tl_fail *fail)
{
    struct files files;
    const int rc = read_files(&files, options, fail);
    if (rc == TL_OK)
        free_files(&files);
    return rc;
}

static void take_files(struct tl_net *net, struct files *files)
{
    pthread_rwlock_wrlock(&net->credentials);
    const struct files old = {net->auth, net->tls};
    net->auth = files->auth;
    net->tls = files->tls;
    pthread_rwlock_unlock(&net->credentials);
    *files = old;
    free_files(files);
}

/* Apply files and limits; other options are unchanged. */
static void take_options(struct tl_net_options *o, const struct tl_net_options *fresh)
{
    if (o->tokens)
        o->tokens = fresh->tokens;
    if (o->tls_cert) {
        o->tls_cert = fresh->tls_cert;
        o->tls_key = fresh->tls_key;
        o->client_ca = fresh->client_ca;
    }
    o->max_connections = fresh->max_connections;
    o->max_per_address = fresh->max_per_address;
    o->max_http1 = fresh->max_http1;
    o->max_guests = fresh->max_guests;
    o->max_outbound = fresh->max_outbound;
    o->max_streaming = fresh->max_streaming;
    o->max_message = fresh->max_message;
    o->max_inbound = fresh->max_inbound;
    set_defaults(o);
}

#define GUESTS_EACH  8 /* share of an address, as a divisor */
#define HEADS_BYTES  (128u << 20)
#define HEALTH_BYTES (1u << 20)

static void apply_limits(struct tl_net *net)
{
    /* Fractions of the memory for pushes. */
    static const unsigned part[TL_ROLE_CLASSES] = {
        [TL_FOR_PUBLIC] = 64, [TL_FOR_READ] = 4, [TL_FOR_PUSH] = 1, [TL_FOR_ADMIN] = 4};
    const struct tl_net_options *const o = &net->options;
    struct tl_shares *const shares = &net->shares;
    tl_shares_limit(shares, TL_USE_CONNECTIONS, o->max_connections, o->max_per_address);
    tl_shares_limit(shares, TL_USE_HTTP1, o->max_http1, 0);
    tl_shares_limit(shares, TL_USE_GUESTS, o->max_guests,
                    (o->max_guests + GUESTS_EACH - 1) / GUESTS_EACH);
    tl_shares_limit(shares, TL_USE_HEADS, HEADS_BYTES, 0);
    tl_shares_limit(shares, TL_USE_ANSWERS, o->max_outbound, 0);
    for (unsigned i = 0; i < TL_ROLE_CLASSES; i++)
        tl_shares_limit(shares, TL_USE_INBOUND + i,
                        part[i] ? o->max_inbound / part[i] : HEALTH_BYTES, 0);
    if (net->workers)
        tl_workers_limit(net->workers, o->max_streaming);
    atomic_store(&net->max_message, o->max_message);
}

int tl_net_reload(struct tl_net *net, const struct tl_net_options *fresh, struct tl_fail *fail)
{
    struct tl_net_options next = net->options;
    struct files files;
    take_options(&next, fresh);
    const int rc = read_files(&files, &next, fail);
    if (rc < 0)
        return rc;
    take_files(net, &files);
    take_options(&net->options, fresh);
    apply_limits(net);
    return TL_OK;
}

void tl_net_round(struct tl_net *net)
{
    on_all_loops(net, settle);
}

static void on_room(void *context)
{
    struct tl_net *const net = context;
    tl_workers_wake(net->workers);
}

static int start(struct tl_net *net, struct tl_fail *fail)
{
    const struct tl_net_options *const o = &net->options;
    struct files files;
    int rc = read_files(&files, o, fail);
    if (rc < 0)
        return rc;
    take_files(net, &files);
    rc = tl_logins_init(&net->logins, fail);
    net->route_times = calloc(net->app.n_routes + 1, sizeof *net->route_times);
    net->method_times = calloc(net->app.n_methods + 1, sizeof *net->method_times);
    if (rc == TL_OK && (!net->route_times || !net->method_times))
        rc = TL_NOMEM;
    if (rc == TL_OK)
        rc = tl_workers_new(&net->workers, &net->shares, o->max_streaming);
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
    tl_shares_init(&net->shares);
    net->shares.on_room = on_room;
    net->shares.context = net;
    apply_limits(net);
    const int rc = start(net, fail);
    if (rc < 0)
        tl_net_free(net);
    else
        *out = net;
    return rc;
}

/*
 * Wait until the answers are sent, or the time is over. A connection without a request is only
 * waited for until its client has most likely seen that no more are taken: it may never answer.
 */
static void wait_for_calls(struct tl_net *net)
{
    const struct tl_net_stats *const stats = &net->stats;
    const int64_t begun = tl_monotonic_ms();
    int64_t past = 0;
    while (past < net->options.drain_ms &&
           (tl_workers_busy(net->workers) || atomic_load(&stats->streams_open) ||
            (past < IDLE_DRAIN_MS && atomic_load(&stats->connections_open)))) {
        usleep(10000);
        past = tl_monotonic_ms() - begun;
    }
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
        tl_buf_fini(&net->loops[i].gather);
    }
    tl_listeners_free(net);
    tl_tls_free(net->tls);
    tl_auth_free(net->auth);
    tl_shares_fini(&net->shares);
    pthread_rwlock_destroy(&net->credentials);
    free(net->route_times);
    free(net->method_times);
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

/* With the credentials' lock held. */
static struct tl_grant grant_of(const struct tl_net *net, const struct tl_fields *headers,
                                const struct tl_caller *caller, bool page)
{
    const char *const authorization = tl_fields_get(headers, "authorization");
    uint8_t digest[TL_TOKEN_DIGEST];
    if (!net->auth)
        return (struct tl_grant){.roles = TL_ROLE_ALL};
    if (authorization)
        return tl_auth_by_token(net->auth, authorization);
    if (page && tl_login_find(&net->logins, headers, digest))
        return tl_auth_by_digest(net->auth, digest);
    if (caller->names.n)
        return tl_auth_by_names(net->auth, (struct tl_bytes){caller->names.p, caller->names.n});
    return (struct tl_grant){0};
}

struct tl_grant tl_net_grant(struct tl_net *net, const struct tl_fields *headers,
                             const struct tl_caller *caller, bool page)
{
    pthread_rwlock_rdlock(&net->credentials);
    const struct tl_grant grant = grant_of(net, headers, caller, page);
    pthread_rwlock_unlock(&net->credentials);
    return grant;
}

bool tl_net_is_guest(const struct tl_net *net, const struct tl_grant *grant)
{
    return !grant->roles; /* without tokens everyone has all */
}

int tl_net_login(struct tl_net *net, const char *authorization, bool tls, struct tl_fields *headers)
{
    int rc = TL_OK;
    pthread_rwlock_rdlock(&net->credentials);
    if (net->auth && authorization) {
        const struct tl_grant grant = tl_auth_by_token(net->auth, authorization);
        rc = grant.roles ? tl_login_cookie(&net->logins, &grant, tls, headers) : TL_DENIED;
        tl_scope_put(grant.scope);
        tl_holder_put(grant.holder);
    }
    pthread_rwlock_unlock(&net->credentials);
    return rc;
}

int tl_net_logout(struct tl_net *net, bool tls, struct tl_fields *headers)
{
    return tl_login_cookie(&net->logins, NULL, tls, headers);
}

void tl_net_denied(struct tl_net *net, const struct tl_caller *caller, const char *path,
                   const char *why)
{
    struct tl_journal_line line;
    unsigned left_out;
    atomic_fetch_add_explicit(&net->stats.denied, 1, memory_order_relaxed);
    if (!tl_journal_may(&net->denials, &left_out))
        return;
    tl_journal_begin(&line, TL_JOURNAL_WARNING, "request refused");
    tl_journal_text(&line, "client", caller->address);
    tl_journal_text(&line, "path", path);
    tl_journal_text(&line, "why", why);
    if (left_out)
        tl_journal_number(&line, "left_out", left_out);
    tl_journal_end(&line);
}

const char tl_foreign_host[] =
    "this server accepts only its own addresses and localhost; use one of these, or "
    "start it with --tokens or --insecure";

bool tl_net_knows_host(const struct tl_net *net, const struct tl_fields *headers)
{
    return !net->guard_host || (tl_host_is_local(tl_fields_get(headers, ":authority")) &&
                                tl_host_is_local(tl_fields_get(headers, "host")));
}
