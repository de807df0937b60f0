/* SPDX-License-Identifier: MIT */
/*
 * The network half of the server: listeners, TLS, HTTP/2 and HTTP/1.1, one set of handlers for
 * both. It knows nothing of traces: what it serves is a struct tl_app.
 *
 * Threads: one event loop per processor owns the sockets and HTTP/2 sessions; handlers run on
 * worker threads and may block; HTTP/1.1 connections have a thread each.
 */
#ifndef TL_NET_NET_H
#define TL_NET_NET_H

#include "base/buf.h"

#include <stdatomic.h>

struct tl_net;
struct tl_method; /* net/grpc.h */
struct tl_route;  /* net/http.h */
struct tl_scope;  /* net/scope.h */

/* What a token allows: a set. */
enum tl_role {
    TL_ROLE_PUBLIC = 0,
    TL_ROLE_READ = 1,  /* look */
    TL_ROLE_PUSH = 2,  /* bring traces and images in */
    TL_ROLE_ADMIN = 4, /* change and remove */
    TL_ROLE_ALL = 7
};

/* What a method or route reaches, for tokens with a scope. */
enum tl_reach {
    TL_REACH_TRACE, /* the trace that the request names, in its field or path part `trace` */
    TL_REACH_OWN,   /* it looks at the scope itself */
    TL_REACH_NONE,  /* nothing of any trace */
    TL_REACH_ALL    /* all traces: not for tokens with a scope */
};

/* How long a call keeps a thread: each kind has threads of its own. */
enum tl_effort {
    TL_SHORT,   /* it looks something up, and ends */
    TL_LONG,    /* it reads or computes much; asks tl_cancel_check() (base/cancel.h) meanwhile */
    TL_LASTING, /* it goes on as long as the client likes */
    TL_EFFORTS
};

struct tl_app {
    void *context; /* handed to every handler */
    const struct tl_method *methods;
    size_t n_methods;
    const struct tl_route *routes;
    size_t n_routes;
    /* Is the trace one of the scope's? Asked for methods and routes of TL_REACH_TRACE. TL_OK;
     * TL_NOTFOUND: no; else why that is not known. Told in `fail`. */
    int (*covers)(void *context, const struct tl_scope *scope, const char *trace,
                  struct tl_fail *fail);
};

struct tl_listen {
    const char *address; /* "127.0.0.1:7070", "[::1]:0", "*:7070"; port 0: any free one */
    bool tls;
};

struct tl_net_options {
    const struct tl_app *app; /* borrowed until tl_net_free() */
    const struct tl_listen *listen;
    size_t n_listen;
    const char *tls_cert; /* PEM files; needed where a listener has tls; names are borrowed */
    const char *tls_key;
    const char *client_ca; /* PEM: who signs certificates of clients; NULL: none are asked for */
    const char *tokens;    /* file as of net/tokens.h; NULL: everyone may do everything */
    /*
     * Whatever name a request calls us by is fine. Else, without tokens and on loopback addresses
     * alone, it must be an address or localhost: a page from elsewhere could point a name of its
     * own at this machine, and read everything through the user's browser.
     */
    bool any_host;
    unsigned loops;           /* 0: one per processor */
    unsigned max_connections; /* 0: 4096 */
    unsigned max_per_address; /* of them, 0: a quarter */
    unsigned max_http1;       /* HTTP/1.1 connections, half of them of one address, 0: 512 */
    unsigned hello_ms;        /* for first bytes, TLS handshake and HTTP/2 preface, 0: 10000 */
    unsigned request_ms;      /* for an HTTP/1.1 request to be complete, 0: 20000 */
    unsigned max_streaming;   /* lasting calls of readers at a time, and as many pushes, 0: 512 */
    size_t max_message;       /* bytes of a received message, 0: 4 MiB */
    size_t max_inbound; /* bytes of pushed messages waiting, 0: 1 GiB; others get a part of it */
    unsigned drain_ms;  /* how long calls may go on at shutdown, 0: 3000 */
};

/* Bind, listen and serve. Errors: TL_USAGE (an address), TL_IO, TL_BAD (certificate, tokens). */
TL_MUST_USE int tl_net_new(struct tl_net **out, const struct tl_net_options *options,
                           struct tl_fail *fail);

/*
 * Read the files of tokens and of the certificate again, and take what else may change from
 * `fresh`: the names of these files, and the limits max_…. Requests and connections that begin from
 * now on go by them; those under way go on as they began. When a file is bad, all stays as it was.
 * What is there without tokens or TLS stays so. Not from two threads at once. Errors: TL_BAD,
 * TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_net_reload(struct tl_net *net, const struct tl_net_options *fresh,
                              struct tl_fail *fail);
/* Can the files of these options be used? Errors as above. */
TL_MUST_USE int tl_net_check(const struct tl_net_options *options, struct tl_fail *fail);

/* Returns when every event loop has come round: a server that hangs does not. Any thread. */
void tl_net_round(struct tl_net *net);

/* Where listener `i` listens, with its real port, as "http://127.0.0.1:7070". */
const char *tl_net_url(const struct tl_net *net, size_t i);
/* SHA-256 of the TLS certificate as "AB:CD:…", "" without TLS. Lasts until the next reload. */
const char *tl_net_fingerprint(const struct tl_net *net);

/* True from the moment that tl_net_free() was called. Any thread. */
bool tl_net_draining(const struct tl_net *net);

/*
 * End cleanly: no new connections, GOAWAY in two steps, calls in progress get `drain_ms` to
 * end, then are cancelled. Returns when no handler runs any more. NULL is fine.
 */
void tl_net_free(struct tl_net *net);

/* Append Prometheus text of what the network half counts. Any thread. */
TL_MUST_USE int tl_net_metrics(const struct tl_net *net, struct tl_buf *out);

/* The host part of ADDR:PORT is a loopback address or "localhost". TL_USAGE: not ADDR:PORT. */
TL_MUST_USE int tl_address_is_loopback(const char *address, struct tl_fail *fail);

#endif
