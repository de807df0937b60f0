/* SPDX-License-Identifier: MIT */
/*
 * Internal to server/net: shared by its files.
 *
 * Locks, outermost first; a thread that holds one may only acquire those below it:
 *   tl_hub.lock (server/rpc), tl_h1.lock    lists of waiters
 *   tl_waiter.lock                          a stream's queues and flags, a pool's jobs
 *   tl_loop.lock                            a loop's mailbox
 *   tl_shares.lock                          who uses how much
 *
 * The lake is never called with one of them held; its callbacks acquire the first two.
 */
#ifndef TL_NET_NETINT_H
#define TL_NET_NETINT_H

#include "base/journal.h"
#include "base/prometheus.h"
#include "net/login.h"
#include "net/loop.h"
#include "net/net.h"
#include "net/outq.h"
#include "net/shares.h"
#include "net/workers.h"

#include <pthread.h>
#include <sys/socket.h>

struct tl_caller;
struct tl_conn;
struct tl_h2;
struct tl_h1;
struct tl_auth;
struct tl_tls;
struct tl_listener;
struct tl_fields;
struct tl_grant;

struct tl_net_stats {
    atomic_ullong connections;
    atomic_ullong connections_open;
    atomic_ullong refused;
    atomic_ullong bytes_in;
    atomic_ullong bytes_out;
    atomic_ullong streams;
    atomic_ullong streams_open; /* of HTTP/2, whose answers are not all sent */
    atomic_ullong floods;
    atomic_ullong stalled; /* answers that their clients did not take */
    atomic_ullong denied;  /* requests not permitted by their token */
    atomic_ullong grpc_status[17];
    atomic_ullong http_class[6]; /* by the first digit of the status */
};

/* A loop and its connections. Everything except `loop` belongs to its thread. */
struct tl_netloop {
    struct tl_loop loop;
    struct tl_net *net;
    struct tl_conn *conns;
    struct tl_h2 *flush;  /* sessions with pending output */
    uint8_t *scratch;     /* read buffer of TL_SCRATCH bytes */
    struct tl_buf gather; /* net/tlsio.h */
};

#define TL_SCRATCH 131072

struct tl_net {
    struct tl_net_options options;
    struct tl_app app;
    struct tl_netloop *loops;
    unsigned n_loops;
    atomic_uint next_loop;
    struct tl_listener *listeners;
    size_t n_listeners;
    struct tl_workers *workers;
    struct tl_h1 *h1;
    pthread_rwlock_t credentials; /* guards which `auth` and `tls` are in force */
    struct tl_auth *auth;
    struct tl_logins logins;
    struct tl_tls *tls;
    bool guard_host; /* see tl_net_options.any_host */
    /* Options in force, see tl_net_options; changed by a reload. */
    atomic_size_t max_message;
    struct tl_histogram *route_times;  /* latency of each route */
    struct tl_histogram *method_times; /* latency of each method with a single reply */
    struct tl_journal_limit denials;
    struct tl_net_stats stats;
    struct tl_shares shares;
    atomic_bool draining;
};

/* ---- listen.c --------------------------------------------------------------------------- */

/* Bind all addresses of the options and begin to accept. TL_USAGE, TL_IO, TL_NOMEM; free with
 * tl_listeners_free(), also after an error. */
TL_MUST_USE int tl_listeners_open(struct tl_net *net, struct tl_fail *fail);
/* Stop accepting. Any thread except the loops'; returns when no accept is in progress. */
void tl_listeners_stop(struct tl_net *net);
void tl_listeners_free(struct tl_net *net);

struct tl_listener {
    uv_poll_t poll;
    uv_timer_t pause; /* out of file descriptors: retry later */
    struct tl_net *net;
    struct tl_task task;
    int fd;
    bool tls;
    bool open; /* its handles are active */
    char url[96];
};

/* ---- conn.c ----------------------------------------------------------------------------- */

/* Serve a new socket on its loop's thread; takes ownership of `fd` and of the reference to
 * `account`, to which the connection is counted. */
void tl_conn_start(struct tl_netloop *loop, int fd, bool tls, const struct sockaddr_storage *peer,
                   socklen_t peer_n, struct tl_account *account);
/* Stop counting a connection, and drop the reference. Any thread. */
void tl_conn_forget(struct tl_net *net, struct tl_account *account);
/* Ask every connection of a loop to end (GOAWAY), or close it now. On the loop's thread. */
void tl_conns_drain(struct tl_netloop *loop);
void tl_conns_close(struct tl_netloop *loop);

/* ---- net.c ------------------------------------------------------------------------------ */

/*
 * Determine what a request may do by its token, by a browser login (only with `page`), or by the
 * client's certificate: net/auth.h. Any thread.
 */
struct tl_grant tl_net_grant(struct tl_net *net, const struct tl_fields *headers,
                             const struct tl_caller *caller, bool page);
/* Is it a request without any permission, of a server that has tokens? */
bool tl_net_is_guest(const struct tl_net *net, const struct tl_grant *grant);
/* Set the login cookie for this Authorization value; no cookie if the server has no tokens or none
 * was sent. TL_DENIED, TL_NOMEM. */
TL_MUST_USE int tl_net_login(struct tl_net *net, const char *authorization, bool tls,
                             struct tl_fields *headers);
/* Set the cookie that ends a login. */
TL_MUST_USE int tl_net_logout(struct tl_net *net, bool tls, struct tl_fields *headers);
/* Write a denied request and the reason to the journal. Any thread. */
void tl_net_denied(struct tl_net *net, const struct tl_caller *caller, const char *path,
                   const char *why);

/* Is the request's Host one of this server's names? See tl_net_options.any_host. */
bool tl_net_knows_host(const struct tl_net *net, const struct tl_fields *headers);
extern const char tl_foreign_host[]; /* error message if not */

/* ---- http/1.1 (h1.c) -------------------------------------------------------------------- */

/* The method of a request that net/bridge.c puts in place of one that it refuses; its path is the
 * status. */
#define TL_H1_REFUSE "REFUSE"

TL_MUST_USE int tl_h1_new(struct tl_h1 **out, struct tl_net *net, struct tl_fail *fail);
/* Hand over a socket of a pair, with the connection counted as TL_USE_HTTP1 of the caller's
 * account; takes ownership, also on failure. Any thread. */
void tl_h1_add(struct tl_h1 *h1, int fd, struct tl_caller *caller);
/* Wake and end handlers that wait for news. */
void tl_h1_drain(struct tl_h1 *h1);
void tl_h1_free(struct tl_h1 *h1);

#endif
