/* SPDX-License-Identifier: MIT */
/*
 * HTTP/1.1 by libmicrohttpd: a thread per connection, so that handlers may block, and sockets
 * that come from our own listeners. Handlers are those of HTTP/2. Long work waits for one of the
 * threads that it has there.
 */
#include "net/http.h"
#include "net/netint.h"

#include "base/cancel.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 512
#define REQUEST_MEMORY  65536 /* for a connection's header fields and buffers */
#define IDLE_S          60
#define STACK_BYTES     (512u << 10)
#define PIECE           65536
#define LOOK_MS         10 /* between two looks whether a client is still there */
#define GOODBYE_S       3  /* for connections to end by themselves at shutdown */

struct tl_h1 {
    struct tl_net *net;
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* guards the lists */
    struct exchange *exchanges;
    struct connection *connections;
    unsigned adding;     /* handed over, and not yet begun */
    pthread_cond_t none; /* of them and of connections are left */
};

/* A socket of MHD's. */
struct connection {
    struct connection *next;
    struct connection **link;
    int fd;
};

/* One request. Held by MHD's connection until completed, and by a response that is pulled. */
struct exchange {
    struct exchange *next;
    struct exchange **link;
    struct tl_h1 *h1;
    unsigned refs; /* guarded by h1->lock */
    bool begun;
    char *target;
    int fd;
    int64_t looked_ms; /* last, at the socket */
    struct tl_fields headers;
    struct tl_waiter waiter;
    struct tl_waiter done; /* poked when long work is */
    struct tl_http_request request;
    struct tl_http_response response;
    struct tl_buf piece; /* pulled, not yet given to MHD */
    size_t piece_at;
    int last; /* what the producer returned */
};

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
    tl_fields_fini(&x->headers);
    tl_buf_fini(&x->piece);
    tl_waiter_fini(&x->waiter);
    tl_waiter_fini(&x->done);
    free(x->target);
    free(x);
}

/* Called with the request line: the one place where MHD tells the target as it was sent. */
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
    put_exchange(x);
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    return tl_fields_add(context, name, value ? value : "") == TL_OK ? MHD_YES : MHD_NO;
}

/* ---- work ------------------------------------------------------------------------------- */

/* For struct tl_cancel: the client is gone. It has no more to say than a request: who closes its
 * half of the connection waits for nothing. */
static bool unwanted(void *context)
{
    struct exchange *const x = context;
    const int64_t now = tl_now_ms();
    if (tl_waiter_closed(&x->waiter))
        return true;
    if (now - x->looked_ms < LOOK_MS)
        return false;
    x->looked_ms = now;
    struct pollfd look = {.fd = x->fd, .events = POLLRDHUP};
    return poll(&look, 1, 0) > 0 && look.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void work(struct exchange *x)
{
    const struct tl_cancel cancel = {unwanted, x};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    if (unwanted(x)) /* since it waits for this thread */
        x->response.status = 503;
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
    unsigned role;
    struct tl_net *const net = x->h1->net;
    if (tl_http_effort(net, x->target, &role) == TL_SHORT)
        work(x);
    else if (tl_workers_run(net->workers, role, TL_LONG, work_long, x) == TL_OK)
        (void)!tl_waiter_wait(&x->done, -1);
    else
        x->response.status = 503; /* too many at a time */
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
        const struct tl_cancel cancel = {unwanted, x};
        const struct tl_cancel *const before = tl_cancel_set(&cancel);
        x->last = x->response.produce(x->response.producer, &x->piece);
        tl_cancel_set(before);
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

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_n, void **state)
{
    struct exchange *const x = *state;
    if (!x)
        return MHD_NO;
    const bool bodyless = !strcmp(method, "GET") || !strcmp(method, "HEAD");
    if (!x->begun && bodyless) {
        x->begun = true; /* answering in this first call would end the connection */
        return MHD_YES;
    }
    if (*upload_n) {
        *upload_n = 0;
        return MHD_YES;
    }
    if (MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &x->headers) < 0)
        return MHD_NO;
    struct tl_net *const net = x->h1->net;
    x->request.method = method;
    x->request.headers = &x->headers;
    x->request.waiter = &x->waiter;
    x->request.roles = tl_net_roles(net, tl_fields_get(&x->headers, "authorization"));
    x->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    answer(x);
    struct MHD_Response *const response = make_response(x);
    if (!response)
        return MHD_NO;
    const enum MHD_Result rc =
        MHD_queue_response(connection, (unsigned)x->response.status, response);
    MHD_destroy_response(response);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------- */

/* MHD closes the socket after it has told of its end. */
static void on_connection(void *context, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    struct tl_h1 *const h1 = context;
    struct connection *c = *state;
    pthread_mutex_lock(&h1->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && (c = calloc(1, sizeof *c))) {
        c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        c->next = h1->connections;
        c->link = &h1->connections;
        if (c->next)
            c->next->link = &c->next;
        h1->connections = c;
        *state = c;
        h1->adding--;
        pthread_cond_signal(&h1->none);
    } else if (code == MHD_CONNECTION_NOTIFY_CLOSED && c) {
        *c->link = c->next;
        if (c->next)
            c->next->link = c->link;
        free(c);
        *state = NULL;
        if (!h1->connections)
            pthread_cond_signal(&h1->none);
    }
    pthread_mutex_unlock(&h1->lock);
}

int tl_h1_new(struct tl_h1 **out, struct tl_net *net, struct tl_fail *fail)
{
    struct tl_h1 *const h1 = calloc(1, sizeof *h1);
    if (!h1)
        return TL_NOMEM;
    h1->net = net;
    pthread_mutex_init(&h1->lock, NULL);
    pthread_cond_init(&h1->none, NULL);
    h1->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET |
            MHD_USE_ITC,
        0, NULL, NULL, on_request, h1, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, h1,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, h1, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        h1, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_MEMORY,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_END);
    if (!h1->daemon) {
        pthread_cond_destroy(&h1->none);
        pthread_mutex_destroy(&h1->lock);
        free(h1);
        return tl_fail_set(fail, TL_IO, "the HTTP/1.1 server does not start");
    }
    *out = h1;
    return TL_OK;
}

void tl_h1_add(struct tl_h1 *h1, int fd, const struct sockaddr *peer, socklen_t peer_n)
{
    pthread_mutex_lock(&h1->lock);
    h1->adding++;
    pthread_mutex_unlock(&h1->lock);
    if (MHD_add_connection(h1->daemon, fd, peer, peer_n) == MHD_YES)
        return;
    pthread_mutex_lock(&h1->lock); /* the socket is closed */
    h1->adding--;
    pthread_mutex_unlock(&h1->lock);
}

void tl_h1_drain(struct tl_h1 *h1)
{
    pthread_mutex_lock(&h1->lock);
    for (struct exchange *x = h1->exchanges; x; x = x->next)
        tl_waiter_poke(&x->waiter);
    pthread_mutex_unlock(&h1->lock);
}

/*
 * End all connections before the daemon is stopped: libmicrohttpd up to 0.9.75 at least crashes
 * where it refuses a malformed request at the very moment that it is stopped (MHD_queue_response()
 * then succeeds without a response).
 */
static void say_goodbye(struct tl_h1 *h1)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += GOODBYE_S;
    pthread_mutex_lock(&h1->lock);
    for (struct exchange *x = h1->exchanges; x; x = x->next)
        tl_waiter_close(&x->waiter);
    int rc = 0;
    while ((h1->connections || h1->adding) && rc == 0) {
        for (struct connection *c = h1->connections; c; c = c->next)
            (void)shutdown(c->fd, SHUT_RDWR); /* those that have just begun, too */
        rc = pthread_cond_timedwait(&h1->none, &h1->lock, &until);
    }
    pthread_mutex_unlock(&h1->lock);
}

void tl_h1_free(struct tl_h1 *h1)
{
    if (!h1)
        return;
    say_goodbye(h1);
    MHD_stop_daemon(h1->daemon);
    pthread_cond_destroy(&h1->none);
    pthread_mutex_destroy(&h1->lock);
    free(h1);
}

#ifdef __SANITIZE_THREAD__
/*
 * For ThreadSanitizer: libmicrohttpd is not built with it, so the flag by which its thread learns
 * that it shall end, and frees what was handed over, is not seen as the order that it is.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libmicrohttpd.so\n";
}
#endif
