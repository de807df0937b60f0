/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 by libmicrohttpd: one thread per connection, so that handlers may block, with sockets
 * from our own listeners. Handlers are the same as for HTTP/2. Long work waits for one of the
 * threads reserved for it.
 */
#include "net/auth.h"
#include "net/body.h"
#include "net/caller.h"
#include "net/headscan.h"
#include "net/http.h"
#include "net/netint.h"
#include "net/pool.h"

#include "base/cancel.h"
#include "base/spelling.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#define NO_LIMIT       (1u << 30) /* libmicrohttpd hangs at a limit of its own: ours is lower */
#define REQUEST_MEMORY (3 * TL_HEAD_BYTES) /* for a connection's header fields and buffers */
#define IDLE_S         60
#define STACK_BYTES    (512u << 10)
#define PIECE          65536
#define LOOK_MS        10           /* between two checks whether a client is still there */
#define GOODBYE_S      3            /* time for connections to end by themselves at shutdown */
#define LATE_MS        1000         /* maximum interval between checks for late connections */
#define BODY_STEP      (256u << 10) /* bytes of a body that extend the request's deadline */

struct tl_h1 {
    struct tl_net *net;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* guards the lists */
    struct exchange *exchanges;
    struct connection *connections;
    pthread_cond_t changed; /* no connection is left, or `ending` is set */
    pthread_t watch;        /* thread that ends late connections */
    bool watching;
    bool ending;
};

/* A socket handed over to MHD. */
struct connection {
    struct connection *next;
    struct connection **link;
    int fd;
    bool begun;       /* MHD has reported it */
    int64_t deadline; /* by tl_monotonic_ms(): its request must be complete; guarded by h1->lock */
    struct tl_caller *caller;
    struct tl_account *token; /* the connection is counted for its token, too; NULL: none */
};

/*
 * One request. Referenced by MHD's connection until completed, and by a response with a producer.
 */
struct exchange {
    struct exchange *next;
    struct exchange **link;
    struct tl_h1 *h1;
    unsigned refs; /* guarded by h1->lock */
    bool begun;
    bool announced;             /* has a body */
    int refusal;                /* its status; 0: none */
    char *why;                  /* the sentence of a refusal with 429 */
    bool lasts;                 /* counted as a lasting call */
    unsigned role;              /* required by the route */
    struct tl_account *account; /* who is charged */
    size_t held;                /* as TL_USE_ANSWERS */
    size_t holds;               /* the same, for what the answer takes in total */
    char *target;
    int fd;
    int64_t looked_ms; /* last check of the socket */
    struct tl_fields headers;
    struct tl_waiter waiter;
    struct tl_waiter done; /* poked when long work is done */
    struct tl_http_request request;
    struct tl_http_response response;
    struct tl_body body;
    size_t body_step;    /* bytes of it since the deadline was set */
    struct tl_buf piece; /* produced, not yet given to MHD */
    size_t piece_at;
    int last; /* last result of the producer */
};

/* Charge bytes of the answer, instead of those before. */
static void hold(struct exchange *x, size_t n)
{
    if (x->held)
        tl_account_release(x->account, TL_USE_ANSWERS, x->held);
    x->held = n;
    if (n)
        tl_account_charge(x->account, TL_USE_ANSWERS, n);
}

static void put_exchange(struct exchange *x)
{
    pthread_mutex_lock(&x->h1->lock);
    const bool last = --x->refs == 0;
    if (last) {
        *x->link = x->next;
        if (x->next)
            x->next->link = x->link;
    }
    pthread_mutex_unlock(&x->h1->lock);
    if (!last)
        return;
    tl_http_request_fini(&x->request);
    tl_http_response_fini(&x->response);
    tl_body_fini(&x->body);
    if (x->lasts)
        tl_account_release(x->account, tl_use_of_calls(x->role, TL_LASTING), 1);
    hold(x, 0);
    if (x->holds)
        tl_account_release(x->account, TL_USE_ANSWERS, x->holds);
    tl_account_put(x->account);
    tl_fields_fini(&x->headers);
    tl_buf_fini(&x->piece);
    tl_waiter_fini(&x->waiter);
    tl_waiter_fini(&x->done);
    tl_holder_put(x->request.holder);
    free(x->why);
    free(x->target);
    free(x);
}

static void set_deadline(struct tl_h1 *h1, struct MHD_Connection *connection, int64_t deadline)
{
    struct connection *const c =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    pthread_mutex_lock(&h1->lock);
    if (c)
        c->deadline = deadline;
    pthread_mutex_unlock(&h1->lock);
}

/* Called with the request line: the only place where MHD provides the original target. */
static void *on_request_line(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct tl_h1 *const h1 = context;
    struct exchange *const x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->target = strdup(uri);
    if (!x->target) {
        free(x);
        return NULL;
    }
    x->h1 = h1;
    x->refs = 1;
    tl_waiter_init(&x->waiter);
    tl_waiter_init(&x->done);
    pthread_mutex_lock(&h1->lock);
    x->next = h1->exchanges;
    x->link = &h1->exchanges;
    if (x->next)
        x->next->link = &x->next;
    h1->exchanges = x;
    pthread_mutex_unlock(&h1->lock);
    set_deadline(h1, connection, tl_monotonic_ms() + h1->net->options.request_ms);
    return x;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct exchange *const x = *state;
    *state = NULL;
    if (!x)
        return;
    tl_waiter_close(&x->waiter);
    set_deadline(x->h1, connection, tl_monotonic_ms() + IDLE_S * 1000);
    put_exchange(x);
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name,
                                 size_t name_n, const char *value, size_t value_n)
{
    struct exchange *const x = context;
    x->announced |= !strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) ||
                    !strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    return tl_fields_add(&x->headers, name, value ? value : "") == TL_OK ? MHD_YES : MHD_NO;
}

/* ---- work ------------------------------------------------------------------------------- */

/* For struct tl_cancel: the client is gone. It has nothing to send after its request: a client that
 * closes its half of the connection does not wait for the response. */
static bool unwanted(void *context)
{
    struct exchange *const x = context;
    const int64_t now = tl_monotonic_ms();
    tl_pool_tire();
    if (tl_waiter_closed(&x->waiter))
        return true;
    if (now - x->looked_ms < LOOK_MS)
        return false;
    x->looked_ms = now;
    struct pollfd look = {.fd = x->fd, .events = POLLRDHUP};
    return poll(&look, 1, 0) > 0 && look.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void refuse_share(struct exchange *x, unsigned use, const char *what)
{
    tl_http_refuse_share(x->h1->net, &x->response, x->account, use, what);
}

/* It does not wait for answers to be taken, as requests over HTTP/2 do: it has a thread. */
static void work(struct exchange *x)
{
    const struct tl_cancel cancel = {unwanted, x, tl_pool_rest};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    if (unwanted(x)) /* while it waited for this thread */
        x->response.status = 503;
    else if (!tl_account_within(x->account, TL_USE_ANSWERS))
        refuse_share(x, TL_USE_ANSWERS, "bytes of answers that were not taken");
    else
        tl_http_run(x->h1->net, &x->request, x->target, &x->response);
    tl_cancel_set(before);
}

static void work_long(void *argument)
{
    struct exchange *const x = argument;
    work(x);
    tl_waiter_poke(&x->done);
}

static void answer(struct exchange *x)
{
    struct tl_net *const net = x->h1->net;
    const enum tl_effort effort = tl_http_effort(net, x->request.method, x->target, &x->role);
    if (effort == TL_SHORT)
        work(x);
    else if (tl_workers_run(net->workers, x->account, x->role, TL_LONG, false, work_long, x) ==
             TL_OK)
        (void)!tl_waiter_wait(&x->done, -1);
    else
        refuse_share(x, tl_use_of_calls(x->role, TL_LONG), "requests of this kind");
    const unsigned lasting = tl_use_of_calls(x->role, TL_LASTING);
    if (!x->response.produce)
        return;
    x->lasts = tl_account_take(x->account, lasting, 1);
    if (!x->lasts)
        refuse_share(x, lasting, "answers of this kind");
    else if (tl_account_take(x->account, TL_USE_ANSWERS, x->response.holds))
        x->holds = x->response.holds;
    else
        refuse_share(x, TL_USE_ANSWERS, "bytes of memory for answers that are being read");
    if (x->holds) /* the thread ends with its connection */
        tl_thread_patient();
}

/* ---- responses -------------------------------------------------------------------------- */

static ssize_t pull(void *context, uint64_t position, char *out, size_t max)
{
    struct exchange *const x = context;
    while (x->piece_at == x->piece.n) {
        if (x->last == TL_EOF)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (x->last < 0)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        tl_buf_reset(&x->piece);
        x->piece_at = 0;
        const struct tl_cancel cancel = {unwanted, x, tl_pool_rest};
        const struct tl_cancel *const before = tl_cancel_set(&cancel);
        const bool spelled = tl_spelling_set_mangled(tl_names_mangled(&x->headers));
        x->last = x->response.produce(x->response.producer, &x->piece);
        tl_spelling_set_mangled(spelled);
        tl_cancel_set(before);
        hold(x, x->piece.cap);
    }
    size_t n = x->piece.n - x->piece_at;
    if (n > max)
        n = max;
    memcpy(out, x->piece.p + x->piece_at, n);
    x->piece_at += n;
    return (ssize_t)n;
}

static void pulled(void *context)
{
    put_exchange(context);
}

static struct MHD_Response *make_pulled(struct exchange *x)
{
    pthread_mutex_lock(&x->h1->lock);
    x->refs++;
    pthread_mutex_unlock(&x->h1->lock);
    struct MHD_Response *const response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, pull, x, pulled);
    if (!response)
        put_exchange(x);
    return response;
}

static struct MHD_Response *make_response(struct exchange *x)
{
    struct tl_http_response *const r = &x->response;
    struct MHD_Response *response;
    if (r->produce) {
        response = make_pulled(x);
    } else if (r->body.n) {
        hold(x, r->body.cap);
        response = MHD_create_response_from_buffer(r->body.n, r->body.p, MHD_RESPMEM_MUST_FREE);
        if (response)
            r->body = (struct tl_buf){0};
    } else {
        response = MHD_create_response_from_buffer(r->fixed.n, (void *)(uintptr_t)r->fixed.p,
                                                   MHD_RESPMEM_PERSISTENT);
    }
    for (size_t i = 0; response && i < r->headers.n; i++)
        (void)MHD_add_response_header(response, tl_fields_name(&r->headers, i),
                                      tl_fields_value(&r->headers, i));
    return response;
}

/* Count the connection for the token that it is used with. */
static bool count_for_token(struct connection *c, struct tl_account *account)
{
    if (c->token == account || !account->token)
        return true;
    if (c->token)
        tl_account_release_too(c->token, TL_USE_HTTP1);
    tl_account_put(c->token);
    c->token = NULL;
    if (!tl_account_take_too(account, TL_USE_HTTP1))
        return false;
    c->token = tl_account_get(account);
    return true;
}

static bool asks_health(const struct exchange *x)
{
    const struct tl_route *const route = tl_http_route(x->h1->net, x->request.method, x->target);
    return route && route->role == TL_ROLE_HEALTH;
}

static void identify(struct exchange *x, struct connection *from)
{
    struct tl_net *const net = x->h1->net;
    const struct tl_grant grant = tl_net_grant(net, &x->headers, from->caller, true);
    x->request.roles = grant.roles;
    x->request.scope = grant.scope;
    x->request.denial = grant.why;
    x->request.holder = grant.holder;
    x->account = tl_caller_account(from->caller, &grant);
    char why[256] = "";
    if (x->refusal || asks_health(x))
        return;
    if (!count_for_token(from, x->account))
        tl_account_say(x->account, TL_USE_HTTP1, "HTTP/1.1 connections", why, sizeof why);
    else if (tl_holder_call(grant.holder, why, sizeof why))
        return;
    x->refusal = 429;
    x->why = strdup(why);
}

/* The head is complete: identify the client, and decide whether the body is wanted. */
static enum MHD_Result on_head(struct exchange *x, struct MHD_Connection *connection,
                               const char *method)
{
    struct tl_net *const net = x->h1->net;
    struct connection *const from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    if (!from)
        return MHD_NO;
    if (MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_header, x) < 0)
        return MHD_NO;
    if (!strcmp(method, TL_H1_REFUSE)) /* from a client itself it is a bad one, too */
        x->refusal = tl_head_is_refusal(atoi(x->target + 1)) ? atoi(x->target + 1) : 400;
    x->request.method = method;
    x->request.headers = &x->headers;
    x->request.waiter = &x->waiter;
    x->request.caller = from->caller;
    identify(x, from);
    x->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (x->announced)
        tl_body_expect(net, method, x->target, &x->headers, x->request.roles, x->account, &x->body);
    return MHD_YES;
}

static void on_body(struct exchange *x, struct MHD_Connection *connection, const char *p, size_t n)
{
    struct tl_net *const net = x->h1->net;
    if (!tl_body_add(&x->body, (const uint8_t *)p, n) || (x->body_step += n) < BODY_STEP)
        return;
    x->body_step = 0;
    set_deadline(x->h1, connection, tl_monotonic_ms() + net->options.request_ms);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_n, void **state)
{
    struct exchange *const x = *state;
    if (!x)
        return MHD_NO;
    if (!x->begun) {
        x->begun = true;
        if (on_head(x, connection, method) == MHD_NO)
            return MHD_NO;
        /* An answer in this first call ends the connection, which avoids receiving an unwanted
         * body. */
        if (!x->announced || x->body.most)
            return MHD_YES;
    }
    if (*upload_n) {
        on_body(x, connection, upload, *upload_n);
        *upload_n = 0;
        return MHD_YES;
    }
    set_deadline(x->h1, connection, INT64_MAX);
    x->request.body = (struct tl_bytes){x->body.data.p, x->body.data.n};
    x->request.body_error = x->body.error;
    if (x->refusal == 429)
        tl_http_refuse_for(x->h1->net, &x->response, x->why ? x->why : "limit");
    else if (x->refusal)
        tl_http_refuse(x->h1->net, &x->response, x->refusal);
    else
        answer(x);
    /* What follows a body is not validated: see net/headscan.h. */
    if (x->refusal || x->announced)
        (void)!tl_fields_add(&x->response.headers, "connection", "close");
    struct MHD_Response *const response = make_response(x);
    if (!response)
        return MHD_NO;
    const enum MHD_Result rc =
        MHD_queue_response(connection, (unsigned)x->response.status, response);
    MHD_destroy_response(response);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------- */

/* Lock held. */
static struct connection *find_connection(struct tl_h1 *h1, int fd)
{
    struct connection *c = h1->connections;
    while (c && c->fd != fd)
        c = c->next;
    return c;
}

/* Lock held. */
static void end_connection(struct tl_h1 *h1, struct connection *c)
{
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    tl_account_release(c->caller->account, TL_USE_HTTP1, 1);
    if (c->token)
        tl_account_release_too(c->token, TL_USE_HTTP1);
    tl_account_put(c->token);
    tl_caller_put(c->caller);
    free(c);
    if (!h1->connections)
        pthread_cond_broadcast(&h1->changed);
}

/* MHD closes the socket after reporting the end. */
static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tl_h1 *const h1 = context;
    pthread_mutex_lock(&h1->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *const c = find_connection(
            h1, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
        if (c)
            c->begun = true;
        *state = c;
    } else if (*state) {
        end_connection(h1, *state);
        *state = NULL;
    }
    pthread_mutex_unlock(&h1->lock);
}

/*
 * End connections whose request is not complete in time. MHD's own limit is measured from the last
 * byte: a client that sends one from time to time would occupy a thread forever.
 */
static void *watch(void *context)
{
    struct tl_h1 *const h1 = context;
    const unsigned quarter = h1->net->options.request_ms / 4 + 1;
    const unsigned step = quarter < LATE_MS ? quarter : LATE_MS;
    pthread_mutex_lock(&h1->lock);
    while (!h1->ending) {
        (void)tl_cond_wait_until(&h1->changed, &h1->lock, tl_monotonic_ns() + step * TL_NS_PER_MS);
        const int64_t now = tl_monotonic_ms();
        for (struct connection *c = h1->connections; c; c = c->next)
            if (c->begun && now >= c->deadline)
                (void)shutdown(c->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&h1->lock);
    return NULL;
}

int tl_h1_new(struct tl_h1 **out, struct tl_net *net, struct tl_fail *fail)
{
    struct tl_h1 *const h1 = calloc(1, sizeof *h1);
    if (!h1)
        return TL_NOMEM;
    h1->net = net;
    pthread_mutex_init(&h1->lock, NULL);
    pthread_cond_init(&h1->changed, NULL);
    h1->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC,
        0, NULL, NULL, on_request, h1, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, h1,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h1, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        h1, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT, NO_LIMIT,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)REQUEST_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_END);
    h1->watching = h1->daemon && !pthread_create(&h1->watch, NULL, watch, h1);
    if (!h1->watching) {
        tl_h1_free(h1);
        return tl_fail_set(fail, TL_IO, "the HTTP/1.1 server does not start");
    }
    *out = h1;
    return TL_OK;
}

void tl_h1_add(struct tl_h1 *h1, int fd, struct tl_caller *caller)
{
    struct connection *const c = calloc(1, sizeof *c);
    if (!c) {
        tl_account_release(caller->account, TL_USE_HTTP1, 1);
        close(fd);
        return;
    }
    c->fd = fd;
    c->deadline = tl_monotonic_ms() + h1->net->options.request_ms;
    c->caller = tl_caller_get(caller);
    pthread_mutex_lock(&h1->lock);
    struct connection *const stale = find_connection(h1, fd);
    if (stale) /* MHD closed it without notice, because of lack of memory */
        end_connection(h1, stale);
    c->next = h1->connections;
    c->link = &h1->connections;
    if (c->next)
        c->next->link = &c->next;
    h1->connections = c;
    pthread_mutex_unlock(&h1->lock);
    /* On failure, the socket is closed, and `c` is stale. */
    const struct sockaddr_un local = {.sun_family = AF_UNIX};
    (void)!MHD_add_connection(h1->daemon, fd, (const struct sockaddr *)&local, sizeof local);
}

void tl_h1_drain(struct tl_h1 *h1)
{
    pthread_mutex_lock(&h1->lock);
    for (struct exchange *x = h1->exchanges; x; x = x->next)
        tl_waiter_poke(&x->waiter);
    pthread_mutex_unlock(&h1->lock);
}

/*
 * End all connections before the daemon is stopped: libmicrohttpd up to 0.9.75 at least crashes if
 * it rejects a malformed request at the very moment that it is stopped (MHD_queue_response() then
 * succeeds without a response).
 */
static void say_goodbye(struct tl_h1 *h1)
{
    const int64_t until = tl_monotonic_ns() + GOODBYE_S * TL_NS_PER_S;
    pthread_mutex_lock(&h1->lock);
    for (struct exchange *x = h1->exchanges; x; x = x->next)
        tl_waiter_close(&x->waiter);
    int rc = 0;
    while (h1->connections && rc == 0) {
        for (struct connection *c = h1->connections; c; c = c->next)
            (void)shutdown(c->fd, SHUT_RDWR); /* including those that have just begun */
        rc = tl_cond_wait_until(&h1->changed, &h1->lock, until);
    }
    pthread_mutex_unlock(&h1->lock);
}

void tl_h1_free(struct tl_h1 *h1)
{
    if (!h1)
        return;
    if (h1->watching) {
        pthread_mutex_lock(&h1->lock);
        h1->ending = true;
        pthread_cond_broadcast(&h1->changed);
        pthread_mutex_unlock(&h1->lock);
        pthread_join(h1->watch, NULL);
    }
    if (h1->daemon) {
        say_goodbye(h1);
        MHD_stop_daemon(h1->daemon);
    }
    while (h1->connections)
        end_connection(h1, h1->connections);
    pthread_cond_destroy(&h1->changed);
    pthread_mutex_destroy(&h1->lock);
    free(h1);
}

#ifdef __SANITIZE_THREAD__
/*
 * For ThreadSanitizer: libmicrohttpd is not instrumented, so the ordering by the flag that ends its
 * thread, which then frees what was handed over, is not visible.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libmicrohttpd.so\n";
}
#endif
