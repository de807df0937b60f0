/* SPDX-License-Identifier: MIT */
/*
 * The network layer of the server: listeners, TLS, HTTP/2 and HTTP/1.1 with the same handlers. It
 * is independent of traces: it serves a struct tl_app.
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

/* Permissions of a token: a bit set. */
enum tl_role {
    TL_ROLE_PUBLIC = 0,
    TL_ROLE_READ = 1,  /* view */
    TL_ROLE_PUSH = 2,  /* add traces and images */
    TL_ROLE_ADMIN = 4, /* modify and remove */
    TL_ROLE_ALL = 7,
    /* Needs no permission, like TL_ROLE_PUBLIC: for calls that tell whether the server is well,
     * which have threads and memory of their own. */
    TL_ROLE_HEALTH = 8
};

/* The permissions that a required role needs. */
static inline unsigned tl_role_needs(unsigned role)
{
    return role & TL_ROLE_ALL;
}

/* What a method or route accesses, for tokens with a scope. */
enum tl_reach {
    TL_REACH_TRACE, /* the trace named in the request's field or path part `trace` */
    TL_REACH_OWN,   /* checks the scope itself */
    TL_REACH_NONE,  /* no traces */
    TL_REACH_ALL    /* all traces: not permitted for tokens with a scope */
};

/* How long a call occupies a thread: each kind has its own threads. */
enum tl_effort {
    TL_SHORT,   /* a quick look-up */
    TL_LONG,    /* reads or computes a lot; calls tl_cancel_check() (base/cancel.h) */
    TL_LASTING, /* continues as long as the client wants */
    TL_EFFORTS
};

struct tl_app {
    void *context; /* passed to every handler */
    const struct tl_method *methods;
    size_t n_methods;
    const struct tl_route *routes;
    size_t n_routes;
    /* Is the trace in the scope? Called for methods and routes with TL_REACH_TRACE. TL_OK;
     * TL_NOTFOUND: no; otherwise an error. Described in `fail`. */
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
    const char *tls_cert; /* PEM files; required if a listener has tls; names are borrowed */
    const char *tls_key;
    const char *client_ca; /* PEM: CA of client certificates; NULL: none are requested */
    const char *tokens;    /* file as in net/tokens.h; NULL: everything is permitted */
    /*
     * Accept any Host. Otherwise, without tokens and with loopback addresses only, it must be an IP
     * address or localhost, against DNS rebinding: a foreign page could point its own name at this
     * machine, and read everything through the user's browser.
     */
    bool any_host;
    unsigned loops;           /* 0: one per processor */
    unsigned max_connections; /* 0: 4096 */
    unsigned max_per_address; /* limit per client address, 0: a quarter of them */
    unsigned max_http1;       /* HTTP/1.1 connections, shared (net/shares.h), 0: 512 */
    unsigned max_guests;      /* requests without permission, an eighth per address, 0: 1024 */
    unsigned hello_ms;        /* time for first bytes, TLS handshake and HTTP/2 preface, 0: 10000 */
    unsigned request_ms;      /* time for a complete request or message, 0: 20000 */
    unsigned answer_ms;       /* time for which a client may take nothing of an answer, 0: 60000 */
    unsigned max_streaming;   /* concurrent lasting calls of readers, and as many pushes, 0: 512 */
    size_t max_message;       /* bytes of a received message, 0: 4 MiB */
    /* Pending bytes of pushed messages, 0: 1 GiB; other classes get a fraction. */
    size_t max_inbound;
    size_t max_outbound; /* bytes of answers that clients have not taken, 0: 512 MiB */
    unsigned drain_ms;   /* grace period for calls at shutdown, 0: 3000 */
};

/* Bind, listen and serve. Errors: TL_USAGE (an address), TL_IO, TL_BAD (certificate, tokens). */
TL_MUST_USE int tl_net_new(struct tl_net **out, const struct tl_net_options *options,
                           struct tl_fail *fail);

/*
 * Read the files of tokens and of the certificate again, and apply the reloadable options of
 * `fresh`: the names of these files, and the limits max_…. Affects requests and connections that
 * begin afterwards; those in progress are unchanged. If a file is bad, nothing changes. Tokens or
 * TLS are neither added nor removed. Not from two threads at once. Errors: TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_net_reload(struct tl_net *net, const struct tl_net_options *fresh,
                              struct tl_fail *fail);
/* Check the files of these options. Errors as above. */
TL_MUST_USE int tl_net_check(const struct tl_net_options *options, struct tl_fail *fail);

/*
 * Wait until every event loop has completed an iteration: never returns if the server hangs. Any
 * thread.
 */
void tl_net_round(struct tl_net *net);

/* Address of listener `i`, with its actual port, as "http://127.0.0.1:7070". */
const char *tl_net_url(const struct tl_net *net, size_t i);
/* SHA-256 of the TLS certificate as "AB:CD:…", "" without TLS. Valid until the next reload. */
const char *tl_net_fingerprint(const struct tl_net *net);

/* True once tl_net_free() has been called. Any thread. */
bool tl_net_draining(const struct tl_net *net);

/*
 * Shut down: no new connections, GOAWAY in two steps; calls in progress get `drain_ms` to end, then
 * are cancelled. Returns when no handler is running. Accepts NULL.
 */
void tl_net_free(struct tl_net *net);

/* Append the network layer's metrics as Prometheus text. Any thread. */
TL_MUST_USE int tl_net_metrics(const struct tl_net *net, struct tl_buf *out);

/* Is the host part of ADDR:PORT a loopback address or "localhost"? TL_USAGE: not ADDR:PORT. */
TL_MUST_USE int tl_address_is_loopback(const char *address, struct tl_fail *fail);
/* Does who listens on `wide` have the connections to `narrow`, too? As for equal addresses, and for
 * one that is any address. Port 0 is another one each time. */
bool tl_address_covers(const char *wide, const char *narrow);

#endif
