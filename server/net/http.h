/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests and responses from a handler's point of view, the same over HTTP/1.1 and HTTP/2. A
 * handler runs on a worker thread and may block.
 *
 * The surrounding layer handles routing, HEAD, roles, ETag and 304, gzip, errors as JSON, and the
 * common header fields.
 */
#ifndef TL_NET_HTTP_H
#define TL_NET_HTTP_H

#include "base/bytes.h"
#include "net/fields.h"
#include "net/net.h"
#include "net/waiter.h"

#include <protobuf-c/protobuf-c.h>

struct tl_account; /* net/shares.h */
struct tl_route;

#define TL_HTTP_PARTS 8

struct tl_http_request {
    void *context; /* the app's */
    struct tl_net *net;
    const char *method;
    char *path; /* decoded, without the query */
    const struct tl_route *route;
    const char *part[TL_HTTP_PARTS]; /* values of the pattern's {…}, in order */
    size_t n_parts;
    struct tl_fields query;
    const struct tl_fields *headers;
    struct tl_bytes body; /* for a route that accepts one */
    int body_error; /* TL_LIMIT, TL_NOMEM: the body was dropped; the surrounding layer answers */
    struct tl_waiter *waiter; /* for producers that wait for news; closed when the client is gone */
    unsigned roles;
    struct tl_scope *scope;         /* of the token; NULL: unrestricted. The request's reference */
    struct tl_holder *holder;       /* of the token, if it has a quota; borrowed */
    const char *denial;             /* what is wrong with the token, NULL: no token, or nothing */
    const struct tl_caller *caller; /* borrowed */
    bool tls;
    bool at_once; /* called to answer without blocking, see run_at_once */
};

struct tl_http_response {
    int status; /* 200 unless set */
    struct tl_fields headers;
    struct tl_buf body;    /* owned; or `fixed` is used */
    struct tl_bytes fixed; /* borrowed bytes that outlive the response */
    /* if set, called when `fixed` is not needed any more; only for run_at_once */
    void (*let_go)(void *owner);
    void *owner;
    bool gzipped;  /* body or fixed are already gzip'd */
    bool compress; /* body may be gzip'd for clients that accept it */
    /*
     * Alternatively, a producer of pieces: appends some to `out`, returns TL_OK, or TL_EOF after
     * the last (with or without bytes), or < 0: the response is cut off and the client notices.
     * Called from one thread at a time. `release` is called exactly once.
     */
    int (*produce)(void *producer, struct tl_buf *out);
    void (*release)(void *producer);
    void *producer;
    uint32_t holds;                /* bytes of memory that it takes, charged to the client */
    bool ranges;                   /* the body is reproducible: a client may request a part of it */
    int (*rewind)(void *producer); /* restart from the beginning. TL_OK, or < 0 */
    struct tl_fail fail;           /* where a handler describes a failure */
};

enum tl_verb { TL_GET, TL_PUT, TL_POST, TL_DELETE };

/* What a part of the path, "{trace}", or an argument, "from", is for. */
struct tl_route_arg {
    const char *name;  /* NULL ends a table */
    const char *field; /* of the route's message; NULL: of the same name */
    uint8_t how;       /* it fills that; the handler's */
};

/*
 * Several routes may have the same pattern, one per verb. Requests that change something are
 * rejected if they come from a page of another site, although the browser sends the user's
 * credentials.
 */
struct tl_route {
    /* "/api/v1/traces/{t}"; a final "{*}" matches the rest, including slashes. */
    const char *pattern;
    uint8_t role; /* enum tl_role required of the token */
    /* Returns TL_OK, or an enum tl_err that becomes a JSON error with response->fail's text. */
    int (*run)(struct tl_http_request *request, struct tl_http_response *response);
    uint8_t effort;    /* enum tl_effort of `run`; a response with `produce` is TL_LASTING */
    uint8_t reach;     /* enum tl_reach; for TL_REACH_TRACE the first {…} is the trace */
    uint8_t verb;      /* enum tl_verb; HEAD is handled as TL_GET */
    uint32_t body_max; /* maximum body size, 0: no body accepted */
    const struct tl_route_arg *takes; /* arguments; others are refused. NULL: it takes any */
    const ProtobufCMessageDescriptor *message; /* the request that they describe. NULL: none */
    const void *detail;                        /* for `run`, which other routes have too */
    /* As `run`, but only from memory and without blocking, since it runs on a loop's thread.
     * TL_AGAIN: not possible, use `run`. NULL: never possible. */
    int (*run_at_once)(struct tl_http_request *request, struct tl_http_response *response);
};

/* The value of a query argument or header field, NULL if absent. */
const char *tl_http_query(const struct tl_http_request *request, const char *name);
const char *tl_http_header(const struct tl_http_request *request, const char *name);

/* A query argument that is an unsigned number, decimal or 0x…, and where its value goes. */
struct tl_http_arg {
    const char *name;
    enum {
        TL_HTTP_U64, /* uint64_t */
        TL_HTTP_U32, /* uint32_t; a larger number becomes UINT32_MAX */
        TL_HTTP_FLAG /* bool: is it not 0? */
    } kind;
    void *value; /* unchanged if the argument is absent */
};
/* Read the arguments of a table terminated by an entry without a name. TL_USAGE (described in
 * `fail`) if one is not a number. */
TL_MUST_USE int tl_http_args(const struct tl_http_request *request, const struct tl_http_arg *args,
                             struct tl_fail *fail);
/* Read a number from any text; `what` names it in the message. */
TL_MUST_USE int tl_http_parse_number(const char *text, const char *what, uint64_t *out,
                                     struct tl_fail *fail);

/* Does the client prefer this content type to the default? */
bool tl_http_accepts(const struct tl_http_request *request, const char *type);

/* Set the content type. */
TL_MUST_USE int tl_http_type(struct tl_http_response *response, const char *type);

/* Handlers for TL_POST routes: log a browser in with the token in the request, which a cookie then
 * stands for, and out. */
int tl_http_login(struct tl_http_request *request, struct tl_http_response *response);
int tl_http_logout(struct tl_http_request *request, struct tl_http_response *response);

/* ---- for the adapters (h1.c, http2.c) ----------------------------------------------------- */

/*
 * Answer an identified request whose method, headers, waiter, client and tls are set. `target` is
 * the request target (path and query as sent). Fills `response` completely, including :status.
 */
void tl_http_run(struct tl_net *net, struct tl_http_request *request, const char *target,
                 struct tl_http_response *response);
/*
 * The same if it is possible without blocking, on a loop's thread. False: it is not, and both
 * arguments are unchanged.
 */
bool tl_http_run_at_once(struct tl_net *net, struct tl_http_request *request, const char *target,
                         struct tl_http_response *response);
/* Fill the response to a request that no handler sees: `status` is one of net/headscan.h. */
void tl_http_refuse(struct tl_net *net, struct tl_http_response *response, int status);
/* The same with 429 and this sentence. */
void tl_http_refuse_for(struct tl_net *net, struct tl_http_response *response, const char *why);
/* The same: this client has its share of `use`, which `what` names. */
void tl_http_refuse_share(struct tl_net *net, struct tl_http_response *response,
                          const struct tl_account *account, unsigned use, const char *what);
/* The route of a request, NULL: none. */
const struct tl_route *tl_http_route(const struct tl_net *net, const char *method,
                                     const char *target);
/* The effort of a request, and the role that it requires. */
enum tl_effort tl_http_effort(const struct tl_net *net, const char *method, const char *target,
                              unsigned *role);
/* False: the request was caused by a page of another site. */
bool tl_http_same_origin(const struct tl_fields *headers);
void tl_http_request_fini(struct tl_http_request *request);
/* Free everything that the adapter did not take. Calls `release`. */
void tl_http_response_fini(struct tl_http_response *response);

#endif
