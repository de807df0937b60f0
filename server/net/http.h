/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests and responses as a handler sees them, the same over HTTP/1.1 and HTTP/2.
 * A handler runs on a worker thread and may block.
 *
 * The layer around it does: routing, HEAD, roles, ETag and 304, gzip, errors as JSON, and the
 * header fields that every answer has.
 */
#ifndef TL_NET_HTTP_H
#define TL_NET_HTTP_H

#include "base/bytes.h"
#include "net/fields.h"
#include "net/net.h"
#include "net/waiter.h"

#define TL_HTTP_PARTS 8

struct tl_http_request {
    void *context; /* the app's */
    struct tl_net *net;
    const char *method;
    char *path;                      /* decoded, without the query */
    const char *part[TL_HTTP_PARTS]; /* what the pattern's {…} stand for, in order */
    size_t n_parts;
    struct tl_fields query;
    const struct tl_fields *headers;
    struct tl_bytes body;     /* of a route that takes one */
    int body_error;           /* TL_LIMIT, TL_NOMEM: it was not kept; the layer around answers */
    struct tl_waiter *waiter; /* for producers that wait for news; closed when nobody listens */
    unsigned roles;
    struct tl_scope *scope; /* of the token; NULL: everything. The request's reference */
    const char *denial;     /* what is wrong with the token, NULL: there is none, or nothing */
    const struct tl_caller *caller; /* borrowed */
    bool tls;
    bool at_once; /* it is asked whether it can be answered at once */
};

struct tl_http_response {
    int status; /* 200 unless set */
    struct tl_fields headers;
    struct tl_buf body;    /* owned; or … */
    struct tl_bytes fixed; /* … bytes that outlive everything, or, of an answer at once, … */
    void (*let_go)(void *owner); /* … that live until this is called, if it is set */
    void *owner;
    bool gzipped;          /* body or fixed are gzip already */
    bool compress;         /* body may be gzip'd for clients that take it */
    /*
     * Or pieces: append some to `out`, return TL_OK, or TL_EOF behind the last (with or without
     * bytes), or < 0: the response is cut off and the client notices. Called from one thread
     * at a time. `release` is called once in any case.
     */
    int (*produce)(void *producer, struct tl_buf *out);
    void (*release)(void *producer);
    void *producer;
    bool ranges; /* the body is the same each time: a client may ask for a part of it … */
    int (*rewind)(void *producer); /* … and this begins it anew. TL_OK, or < 0 */
    struct tl_fail fail;           /* where a handler writes what went wrong */
};

enum tl_verb { TL_GET, TL_PUT, TL_POST, TL_DELETE };

/*
 * Several routes may have a pattern, one for each verb. What changes something is not done for a
 * page of another site, though the user's browser sends it with the user's password.
 */
struct tl_route {
    const char *pattern; /* "/api/v1/traces/{t}"; a last "{*}" takes the rest, slashes and all */
    uint8_t role;        /* enum tl_role that a token must have */
    /* TL_OK, or an enum tl_err that becomes a JSON error with response->fail's text. */
    int (*run)(struct tl_http_request *request, struct tl_http_response *response);
    uint8_t effort;     /* enum tl_effort of `run`; what a response's `produce` does lasts */
    uint8_t reach;      /* enum tl_reach; the first {…} of TL_REACH_TRACE is the trace */
    uint8_t verb;       /* enum tl_verb; HEAD is asked of TL_GET */
    uint32_t body_most; /* the largest body that it takes, 0: it takes none */
    /* As `run`, from what lies in memory alone: never waits, for it runs on a loop's thread.
     * TL_AGAIN: that does not do, and `run` is to answer. NULL: it never does. */
    int (*run_at_once)(struct tl_http_request *request, struct tl_http_response *response);
};

/* The value of a query argument or header field, NULL where there is none. */
const char *tl_http_query(const struct tl_http_request *request, const char *name);
const char *tl_http_header(const struct tl_http_request *request, const char *name);

/*
 * An argument as an unsigned number, decimal or 0x…, `otherwise` where there is none. TL_USAGE
 * (told in `fail`) where it is no number.
 */
TL_MUST_USE int tl_http_number(const struct tl_http_request *request, const char *name,
                               uint64_t otherwise, uint64_t *out, struct tl_fail *fail);
/* The same for any text; `what` names it in the message. */
TL_MUST_USE int tl_http_parse_number(const char *text, const char *what, uint64_t *out,
                                     struct tl_fail *fail);

/* Does the client want this content type rather than the usual one? */
bool tl_http_accepts(const struct tl_http_request *request, const char *type);

/* Set the content type. */
TL_MUST_USE int tl_http_type(struct tl_http_response *response, const char *type);

/* Handlers of routes of TL_POST: log a browser in by the token that comes with the request, so that
 * a cookie stands for it from then on, and out. */
int tl_http_login(struct tl_http_request *request, struct tl_http_response *response);
int tl_http_logout(struct tl_http_request *request, struct tl_http_response *response);

/* ---- for the adapters (h1.c, http2.c) ----------------------------------------------------- */

/* Set what the request may do, by its headers and its client. */
void tl_http_identify(struct tl_net *net, struct tl_http_request *request);

/*
 * Answer a request whose method, headers, waiter, client and tls are set, and which is identified.
 * `target` is the request target (path and query as sent). Fills `response` completely, :status
 * included.
 */
void tl_http_run(struct tl_net *net, struct tl_http_request *request, const char *target,
                 struct tl_http_response *response);
/*
 * The same if it can be answered at once, on a loop's thread. False: it cannot, and both are as they
 * were.
 */
bool tl_http_run_at_once(struct tl_net *net, struct tl_http_request *request, const char *target,
                         struct tl_http_response *response);
/* The route of a request, NULL: there is none. */
const struct tl_route *tl_http_route(const struct tl_net *net, const char *method,
                                     const char *target);
/* What a request takes, and the role that it needs. */
enum tl_effort tl_http_effort(const struct tl_net *net, const char *method, const char *target,
                              unsigned *role);
/* False: a page of another site made a browser send it. */
bool tl_http_same_origin(const struct tl_fields *headers);
void tl_http_request_fini(struct tl_http_request *request);
/* Free all but what the adapter took out. Calls `release`. */
void tl_http_response_fini(struct tl_http_response *response);

/* The HTTP status of an enum tl_err. */
int tl_http_status_of(int err);

#endif
