/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests over an HTTP/2 stream. A request becomes the same struct as over HTTP/1.1, so that
 * handlers do not know which it was.
 */
#include "base/cancel.h"
#include "base/spelling.h"
#include "net/grpc.h"
#include "net/http.h"
#include "net/pool.h"
#include "net/scope.h"
#include "net/stream.h"

#include <stdlib.h>
#include <string.h>

struct exchange {
    struct tl_stream *stream;
    unsigned role; /* required by the route */
    struct tl_http_request request;
    struct tl_http_response response;
};

static void free_exchange(struct exchange *x)
{
    tl_http_request_fini(&x->request);
    tl_http_response_fini(&x->response);
    tl_stream_put(x->stream);
    free(x);
}

static void make_head(struct exchange *x, struct tl_fields *head, size_t length, bool known)
{
    const struct tl_fields *const from = &x->response.headers;
    (void)!tl_fields_addf(head, ":status", "%d", x->response.status);
    if (known && x->response.status != 304)
        (void)!tl_fields_addf(head, "content-length", "%zu", length);
    for (size_t i = 0; i < from->n; i++)
        (void)!tl_fields_add_n(head, tl_fields_name(from, i), from->at[i].name_n,
                               tl_fields_value(from, i), from->at[i].value_n);
}

/* Send pieces as fast as the client accepts them. */
static void produce(void *argument)
{
    struct exchange *const x = argument;
    const struct tl_cancel cancel = {tl_stream_unwanted, x->stream, tl_pool_rest};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    const bool spelled = tl_spelling_set_mangled(tl_names_mangled(&x->stream->request));
    struct tl_fields head = {0};
    int rc;
    make_head(x, &head, 0, false);
    atomic_store(&x->stream->lasting, true);
    tl_stream_head(x->stream, &head);
    do {
        struct tl_buf piece = {0};
        rc = x->response.produce(x->response.producer, &piece);
        if ((rc == TL_OK || rc == TL_EOF) && piece.n) {
            struct tl_chunk *const chunk = tl_chunk_of(&piece);
            const int written = chunk ? tl_stream_write(x->stream, chunk) : TL_NOMEM;
            if (written < 0)
                rc = written;
        }
        tl_buf_fini(&piece);
    } while (rc == TL_OK);
    tl_spelling_set_mangled(spelled);
    tl_cancel_set(before);
    if (rc == TL_EOF)
        tl_stream_end(x->stream, NULL);
    else
        tl_stream_reset(x->stream, NGHTTP2_INTERNAL_ERROR);
    free_exchange(x);
}

static void send_whole(struct exchange *x, bool body)
{
    struct tl_fields head = {0};
    struct tl_http_response *const r = &x->response;
    const size_t n = r->body.n ? r->body.n : r->fixed.n;
    struct tl_chunk *chunk = NULL;
    make_head(x, &head, n, !r->produce);
    if (body && n) {
        chunk = r->body.n ? tl_chunk_of(&r->body) : tl_chunk_fixed(r->fixed, r->let_go, r->owner);
        if (chunk && !r->body.n && n == r->fixed.n)
            r->let_go = NULL; /* the chunk owns it */
        if (!chunk) {
            tl_fields_fini(&head);
            tl_stream_reset(x->stream, NGHTTP2_INTERNAL_ERROR);
            return;
        }
    }
    struct tl_fields none = {0};
    if (!chunk) {
        tl_stream_finish(x->stream, &head, &none);
        return;
    }
    tl_stream_head(x->stream, &head);
    if (tl_stream_write(x->stream, chunk) == TL_OK)
        tl_stream_end(x->stream, NULL);
}

static void work(void *argument)
{
    struct exchange *const x = argument;
    const struct tl_cancel cancel = {tl_stream_unwanted, x->stream, tl_pool_rest};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    if (tl_stream_unwanted(x->stream)) /* while it waited for this thread */
        x->response.status = 503;
    else
        tl_http_run(x->stream->net, &x->request, tl_fields_get(&x->stream->request, ":path"),
                    &x->response);
    tl_cancel_set(before);
    const bool body = strcmp(x->request.method, "HEAD");
    if (!x->response.produce || !body) {
        send_whole(x, body);
        free_exchange(x);
        return;
    }
    struct tl_stream *const stream = x->stream;
    if (!tl_account_take(stream->account, TL_USE_ANSWERS, x->response.holds)) {
        tl_http_refuse_share(stream->net, &x->response, stream->account, TL_USE_ANSWERS,
                             "bytes of memory for answers that are being read");
        send_whole(x, true);
        free_exchange(x);
        return;
    }
    stream->holds = x->response.holds;
    if (tl_workers_run(stream->net->workers, stream->account, x->role, TL_LASTING, true, produce,
                       x) < 0) {
        tl_http_refuse_share(stream->net, &x->response, stream->account,
                             tl_use_of_calls(x->role, TL_LASTING), "answers of this kind");
        send_whole(x, true);
        free_exchange(x);
    }
}

/* Answer without a handler. */
static void refuse(struct tl_stream *stream, int status)
{
    struct exchange x = {.stream = stream};
    tl_http_refuse(stream->net, &x.response, status);
    send_whole(&x, true);
    tl_http_response_fini(&x.response);
}

static void refuse_share(struct tl_stream *stream, unsigned use, const char *what)
{
    struct exchange x = {.stream = stream};
    tl_http_refuse_share(stream->net, &x.response, stream->account, use, what);
    send_whole(&x, true);
    tl_http_response_fini(&x.response);
}

bool tl_asks_health(const struct tl_stream *stream)
{
    const char *const path = tl_fields_get(&stream->request, ":path");
    const char *const verb = tl_fields_get(&stream->request, ":method");
    const struct tl_method *const method =
        stream->is_grpc && path ? tl_grpc_find(&stream->net->app, path) : NULL;
    const struct tl_route *const route =
        !stream->is_grpc && path && verb ? tl_http_route(stream->net, verb, path) : NULL;
    return (method && method->role == TL_ROLE_HEALTH) || (route && route->role == TL_ROLE_HEALTH);
}

void tl_http2_begin(struct tl_stream *stream)
{
    const char *const path = tl_fields_get(&stream->request, ":path");
    const char *const verb = tl_fields_get(&stream->request, ":method");
    if (stream->too_large || stream->late || !path || !verb) {
        refuse(stream, stream->too_large ? 431 : stream->late ? 408 : 400);
        return;
    }
    if (stream->refused) {
        struct exchange refused = {.stream = stream};
        tl_http_refuse_for(stream->net, &refused.response, stream->why ? stream->why : "limit");
        send_whole(&refused, true);
        tl_http_response_fini(&refused.response);
        return;
    }
    if (!strcmp(verb, "POST") && tl_grpc_find(&stream->net->app, path)) {
        refuse(stream, 415);
        return;
    }
    struct exchange *const x = calloc(1, sizeof *x);
    if (!x) {
        refuse(stream, 500);
        return;
    }
    x->stream = tl_stream_get(stream);
    x->request.method = verb;
    x->request.headers = &stream->request;
    x->request.waiter = &stream->waiter;
    x->request.body = (struct tl_bytes){stream->body.data.p, stream->body.data.n};
    x->request.body_error = stream->body.error;
    x->request.tls = stream->tls;
    x->request.caller = stream->caller;
    x->request.roles = stream->roles;
    x->request.scope = tl_scope_get(stream->scope);
    x->request.denial = stream->denial;
    x->request.holder = stream->holder;
    if (tl_account_within(stream->account, TL_USE_ANSWERS) &&
        tl_http_run_at_once(stream->net, &x->request, path, &x->response)) {
        send_whole(x, strcmp(verb, "HEAD") != 0);
        free_exchange(x);
        return;
    }
    const enum tl_effort effort = tl_http_effort(stream->net, verb, path, &x->role);
    const unsigned role = x->role;
    if (tl_workers_run(stream->net->workers, stream->account, role, effort, true, work, x) < 0) {
        free_exchange(x);
        refuse_share(stream, tl_use_of_calls(role, effort), "requests of this kind");
    }
}
