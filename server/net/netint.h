/* SPDX-License-Identifier: MIT */
/*
 * Internal to server/net: shared by its files.
 *
 * Locks, outermost first; a thread that holds one may only acquire those below it:
 *   tl_hub.lock (server/rpc), tl_h1.lock    lists of waiters
 *   tl_waiter.lock                          a stream's queues and flags, a pool's jobs
 *   tl_loop.lock                            a loop's mailbox
 *   tl_peers.lock                           connections per address
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
#include "net/peers.h"
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

struct tl_net_stats {
    atomic_ullong connections;
    atomic_ullong connections_open;
    atomic_ullong refused;
    atomic_ullong bytes_in;
    atomic_ullong bytes_out;
    atomic_ullong streams;
    atomic_ullong floods;
    atomic_ullong denied; /* requests not permitted by their token */
    atomic_ullong grpc_status[17];
    atomic_ullong http_class[6]; /* by the first digit of the status */
    /* Size of received messages that handlers have not finished with. */
    atomic_ullong inbound[TL_ROLE_CLASSES];
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
    atomic_size_t max_inbound;
    struct tl_histogram *route_times;  /* latency of each route */
    struct tl_histogram *method_times; /* latency of each method with a single reply */
    struct tl_journal_limit denials;
    struct tl_net_stats stats;
    struct tl_peers peers; /* addresses of connections_open */
    atomic_bool draining;
};

/* ---- listen.c --------------------------------------------------------------------------- */

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

/* Serve a new socket on its loop's thread; takes ownership of `fd`. */
void tl_conn_start(struct tl_netloop *loop, int fd, bool tls, const struct sockaddr_storage *peer,
                   socklen_t peer_n);
/* Stop counting a connection from `peer`. Any thread. */
void tl_conn_forget(struct tl_net *net, const struct sockaddr_storage *peer);
/* Ask every connection of a loop to end (GOAWAY), or close it now. On the loop's thread. */
void tl_conns_drain(struct tl_netloop *loop);
void tl_conns_close(struct tl_netloop *loop);

/* ---- net.c ------------------------------------------------------------------------------ */

/*
 * Determine the roles of a request by its token, by a browser login (only with `page`), or by the
 * client's certificate, with a reference to their scope (NULL: unrestricted). If there are none,
 * `*why` is what is wrong with the presented credentials, NULL if there are none. Any thread.
 */
unsigned tl_net_roles(struct tl_net *net, const struct tl_fields *headers,
                      const struct tl_caller *caller, bool page, struct tl_scope **scope,
                      const char **why);
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
/* Count `n` bytes of a received message that is kept. False: the limit is reached. */
TL_MUST_USE bool tl_net_hold(struct tl_net *net, enum tl_role_class class, size_t n);
void tl_net_release(struct tl_net *net, enum tl_role_class class, size_t n);

/* ---- http/1.1 (h1.c) -------------------------------------------------------------------- */

/* The method of a request that net/bridge.c puts in place of one that it refuses; its path is the
 * status. */
#define TL_H1_REFUSE "REFUSE"

TL_MUST_USE int tl_h1_new(struct tl_h1 **out, struct tl_net *net, struct tl_fail *fail);
/*
 * Hand over a socket of a pair; takes ownership also on failure: a connection above the limit gets
 * an error response and is closed. `client` is its caller, from `peer`. Any thread.
 */
void tl_h1_add(struct tl_h1 *h1, int fd, const struct sockaddr_storage *peer,
               struct tl_caller *caller);
/* Change the maximum number of connections. Any thread. */
void tl_h1_limit(struct tl_h1 *h1, unsigned max_connections);
/* Wake and end handlers that wait for news. */
void tl_h1_drain(struct tl_h1 *h1);
void tl_h1_free(struct tl_h1 *h1);

#endif
