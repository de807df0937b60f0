/* SPDX-License-Identifier: MIT */
/*
 * Frames the messages of a call, waits for answers, and maps every way in which a call can end to
 * one result. A call that is safe to repeat is made again elsewhere, since a server that restarts
 * or leaves ends connections that callers need not know of.
 */
#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 5, COMPACT = 1 << 20 };

static nghttp2_nv header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* Source: gRPC, PROTOCOL-HTTP2, "Requests". */
static int submit(struct tl_ask *ask, struct tracelake_error *error)
{
    nghttp2_nv headers[] = {
        header(":method", "POST"),
        header(":scheme", tl_client_url(ask->lake)->tls ? "https" : "http"),
        header(":path", ask->method),
        header(":authority", tl_client_url(ask->lake)->authority),
        header("te", "trailers"),
        header("content-type", "application/grpc+proto"),
        header("user-agent", "tracelake/" TL_VERSION),
        {0},
        {0},
    };
    size_t n = sizeof headers / sizeof headers[0] - 2;
    if (ask->lake->mangled)
        headers[n++] = header("tracelake-names", "mangled");
    if (ask->lake->authorization) {
        headers[n] = header("authorization", ask->lake->authorization);
        headers[n++].flags = NGHTTP2_NV_FLAG_NO_INDEX;
    }
    return tl_mux_submit(ask->mux, headers, n, &ask->io, error);
}

int tl_ask_open(struct tl_ask **out, struct tracelake *lake, const char *method, int timeout_ms,
                struct tracelake_error *error)
{
    const int connected = tl_client_connect(lake, error);
    if (connected < 0)
        return connected;
    struct tl_ask *ask = calloc(1, sizeof *ask);
    if (!ask)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    ask->lake = lake;
    ask->mux = tl_mux_get(lake->mux);
    ask->method = method;
    ask->timeout_ms = timeout_ms ? timeout_ms : lake->timeout_ms;
    ask->io.grpc_status = -1;
    const int submitted = submit(ask, error);
    if (submitted < 0) {
        tl_ask_close(ask);
        return submitted;
    }
    *out = ask;
    return TRACELAKE_OK;
}

void tl_ask_close(struct tl_ask *ask)
{
    if (!ask)
        return;
    tl_mux_forget(ask->mux, &ask->io);
    tl_mux_put(ask->mux);
    tl_buf_fini(&ask->io.in);
    tl_buf_fini(&ask->io.held);
    tl_buf_fini(&ask->io.out);
    free(ask);
}

/*
 * Reserve space for `n` bytes of a message of `all` bytes after the pending ones, and write its
 * header. NULL: `*result` is set.
 */
static uint8_t *make_room(struct tl_ask *ask, size_t n, size_t all, int *result,
                          struct tracelake_error *error)
{
    struct tl_buf *const out = &ask->io.out;
    struct tl_bytes *const tail = &ask->io.tail;
    if (ask->io.out_at >= COMPACT) {
        tl_buf_drop(out, ask->io.out_at);
        ask->io.out_at = 0;
    }
    if (all > UINT32_MAX)
        *result = tl_client_fail(error, TRACELAKE_LIMIT, "message too large");
    else if (tl_buf_reserve(out, tail->n + PREFIX + n) < 0)
        *result = tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    else
        *result = TRACELAKE_OK;
    if (*result < 0)
        return NULL;
    (void)!tl_buf_add(out, tail->p, tail->n);
    *tail = (struct tl_bytes){0};
    uint8_t *const p = out->p + out->n;
    p[0] = 0; /* not compressed */
    for (int i = 0; i < 4; i++)
        p[1 + i] = (uint8_t)(all >> (24 - 8 * i));
    out->n += PREFIX + n;
    return p + PREFIX;
}

int tl_ask_send(struct tl_ask *ask, const ProtobufCMessage *message, struct tracelake_error *error)
{
    int result;
    const size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *const p = make_room(ask, n, n, &result, error);
    if (!p)
        return result;
    protobuf_c_message_pack(message, p);
    tl_mux_wake(ask->mux, &ask->io);
    return TRACELAKE_OK;
}

int tl_ask_send_parts(struct tl_ask *ask, struct tl_bytes head, struct tl_bytes tail,
                      struct tracelake_error *error)
{
    int result;
    uint8_t *const p = make_room(ask, head.n, head.n + tail.n, &result, error);
    if (!p)
        return result;
    if (head.n)
        memcpy(p, head.p, head.n);
    ask->io.tail = tail;
    tl_mux_wake(ask->mux, &ask->io);
    return TRACELAKE_OK;
}

int tl_ask_send_bytes(struct tl_ask *ask, struct tl_bytes message, struct tracelake_error *error)
{
    return tl_ask_send_parts(ask, message, (struct tl_bytes){0}, error);
}

void tl_ask_end(struct tl_ask *ask)
{
    ask->io.out_end = true;
    tl_mux_wake(ask->mux, &ask->io);
}

size_t tl_ask_unsent(const struct tl_ask *ask)
{
    return ask->io.out.n - ask->io.out_at + ask->io.tail.n;
}

/* ---- the end of a call -------------------------------------------------------------------- */

/* Source: gRPC, "HTTP to gRPC Status Code Mapping". */
static int status_of_http(int http)
{
    switch (http) {
    case 400:
        return 13;
    case 401:
        return 16;
    case 403:
        return 7;
    case 404:
        return 12;
    case 429:
    case 502:
    case 503:
    case 504:
        return 14;
    default:
        return 2;
    }
}

/* Source: gRPC, PROTOCOL-HTTP2, "HTTP2 Transport Mapping", "Errors". */
static int status_of_reset(uint32_t code)
{
    switch (code) {
    case NGHTTP2_REFUSED_STREAM:
        return 14;
    case NGHTTP2_CANCEL:
        return 1;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return 8;
    case NGHTTP2_INADEQUATE_SECURITY:
        return 7;
    default:
        return 13;
    }
}

/* The server cannot serve this call now: try another one. */
static void leave(const struct tl_ask *ask)
{
    if (ask->mux == ask->lake->mux)
        tl_client_leave(ask->lake);
}

/* Result of a closed call: EOF for status OK. */
static int ending(const struct tl_ask *ask, struct tracelake_error *error)
{
    const struct tl_ask_io *io = &ask->io;
    if (io->overflow)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    if (io->grpc_status == 0)
        return TRACELAKE_EOF;
    if (io->grpc_status > 0) {
        if (io->grpc_status == TL_GRPC_UNAVAILABLE)
            leave(ask);
        return tl_client_refused(error, io->grpc_status, io->message, ask->method);
    }
    char text[384] = "";
    int status = status_of_reset(io->reset);
    if (io->http_status && (io->http_status != 200 || !io->grpc)) {
        status = status_of_http(io->http_status);
        snprintf(text, sizeof text, "%s answered HTTP %d; is it a tracelake server?",
                 tl_client_url(ask->lake)->authority, io->http_status);
    } else if (io->reset == NGHTTP2_NO_ERROR) {
        status = 13;
        snprintf(text, sizeof text, "%s ended a call without a status",
                 tl_client_url(ask->lake)->authority);
    }
    return tl_client_refused(error, status, text, ask->method);
}

/* ---- receiving ---------------------------------------------------------------------------- */

int tl_ask_take(struct tl_ask *ask, struct tl_bytes *out, struct tracelake_error *error)
{
    struct tl_ask_io *io = &ask->io;
    tl_buf_fini(&io->held);
    io->lent = false;
    if (ask->mux == ask->lake->mux && (io->in.n > 0 || io->ended))
        ask->lake->heard = true;
    const uint8_t *p = io->in.p + io->in_at;
    const size_t have = io->in.n - io->in_at;
    if (have >= PREFIX) {
        const size_t n = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (p[0] != 0)
            return tl_client_fail(error, TRACELAKE_BAD,
                                  "the server sent a compressed message "
                                  "that was not asked for");
        if (n > TL_ASK_MESSAGE_MAX)
            return tl_client_fail(error, TRACELAKE_LIMIT, "the server sent a message of %zu bytes",
                                  n);
        if (have - PREFIX >= n) {
            *out = (struct tl_bytes){p + PREFIX, n};
            io->in_at += PREFIX + n;
            io->lent = true;
            return TRACELAKE_OK;
        }
    }
    if (!io->ended) {
        tl_buf_drop(&io->in, io->in_at);
        io->in_at = 0;
        return TRACELAKE_AGAIN;
    }
    const int end = ending(ask, error);
    if (end == TRACELAKE_EOF && have)
        return tl_client_fail(error, TRACELAKE_BAD, "the server ended %s inside a message",
                              ask->method);
    return end;
}

/* Perform one step; TIMEOUT if nothing has moved for too long since `*since`. */
static int step(struct tl_ask *ask, int64_t *since, struct tracelake_error *error)
{
    /* What was handed out, and what an incomplete message needs, opens the window for more. */
    tl_mux_consume(ask->mux, &ask->io);
    int ms = -1;
    if (ask->timeout_ms >= 0) {
        const int64_t left = *since + ask->timeout_ms - tl_monotonic_ms();
        ms = left > 0 ? (int)left : 0;
    }
    const int result = tl_mux_step(ask->mux, ms, error);
    if (result == TRACELAKE_OK)
        *since = tl_monotonic_ms();
    if (result != TRACELAKE_AGAIN)
        return result;
    leave(ask);
    return tl_client_fail(error, TRACELAKE_TIMEOUT, "no answer from %s for %d s",
                          tl_client_url(ask->lake)->authority, ask->timeout_ms / 1000);
}

int tl_ask_recv(struct tl_ask *ask, struct tl_bytes *out, struct tracelake_error *error)
{
    int64_t since = tl_monotonic_ms();
    for (;;) {
        int result = tl_ask_take(ask, out, error);
        if (result != TRACELAKE_AGAIN)
            return result;
        result = step(ask, &since, error);
        if (result < 0 && !ask->io.ended)
            return result;
    }
}

int tl_ask_drain(struct tl_ask *ask, size_t most, struct tracelake_error *error)
{
    int64_t since = tl_monotonic_ms();
    while (tl_ask_unsent(ask) > most && !ask->io.ended) {
        const int result = step(ask, &since, error);
        if (result < 0 && !ask->io.ended)
            return result;
    }
    return TRACELAKE_OK;
}

int tl_ask_unpack(const struct tl_ask *ask, const ProtobufCMessageDescriptor *kind,
                  struct tl_bytes bytes, void *out, struct tracelake_error *error)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(kind, NULL, bytes.n, bytes.p);
    if (!message)
        return tl_client_fail(error, TRACELAKE_BAD, "the answer to %s is not a %s", ask->method,
                              kind->short_name);
    *(ProtobufCMessage **)out = message;
    return TRACELAKE_OK;
}

/* May the call be repeated although the first attempt may have taken effect? */
static bool repeats(const char *method)
{
    static const char *const once[] = {"BindImage", "DeleteNote", "DeleteTrace",
                                       "PutNote",   "Redecode",   "RemoveImage"};
    const char *const name = strrchr(method, '/') + 1;
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        if (strcmp(name, once[i]) == 0)
            return false;
    return true;
}

static int ask_once(struct tracelake *lake, const char *method, int timeout_ms,
                    const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                    void *reply, struct tracelake_error *error)
{
    struct tl_ask *ask;
    int result = tl_ask_open(&ask, lake, method, timeout_ms, error);
    if (result < 0)
        return result;
    struct tl_bytes bytes = {0};
    ProtobufCMessage *message = NULL;
    result = tl_ask_send(ask, request, error);
    if (result == TRACELAKE_OK) {
        tl_ask_end(ask);
        result = tl_ask_recv(ask, &bytes, error);
    }
    if (result == TRACELAKE_EOF)
        result = tl_client_fail(error, TRACELAKE_BAD, "the server gave no answer to %s", method);
    if (result == TRACELAKE_OK)
        result = tl_ask_unpack(ask, kind, bytes, &message, error);
    /* A reply counts only if the status after it is OK. */
    if (result == TRACELAKE_OK) {
        result = tl_ask_recv(ask, &bytes, error);
        if (result == TRACELAKE_EOF)
            result = TRACELAKE_OK;
        else if (result == TRACELAKE_OK)
            result =
                tl_client_fail(error, TRACELAKE_BAD, "the server gave two answers to %s", method);
    }
    tl_ask_close(ask);
    if (result < 0 && message)
        protobuf_c_message_free_unpacked(message, NULL);
    else if (result == TRACELAKE_OK)
        *(ProtobufCMessage **)reply = message;
    return result;
}

int tl_ask_once(struct tracelake *lake, const char *method, int timeout_ms,
                const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                void *reply, struct tracelake_error *error)
{
    struct tracelake_error why = {0};
    struct tl_again again = {0};
    int result;
    do {
        why.grpc_status = 0;
        result = ask_once(lake, method, timeout_ms, request, kind, reply, &why);
    } while (result < 0 && (why.grpc_status == TL_GRPC_UNAVAILABLE || repeats(method)) &&
             tl_client_again(lake, &again, result));
    if (result < 0 && error)
        *error = why;
    return result;
}

int tl_ask_done(struct tracelake *lake, const char *method, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *kind, struct tracelake_error *error)
{
    ProtobufCMessage *reply;
    const int result = tl_ask_once(lake, method, 0, request, kind, &reply, error);
    if (result == TRACELAKE_OK)
        protobuf_c_message_free_unpacked(reply, NULL);
    return result;
}

static int ask_each(struct tracelake *lake, const char *method, int timeout_ms,
                    const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                    tl_ask_take_reply *take, void *context, bool *taken,
                    struct tracelake_error *error)
{
    struct tl_ask *ask;
    int r = tl_ask_open(&ask, lake, method, timeout_ms, error);
    if (r < 0)
        return r;
    r = tl_ask_send(ask, request, error);
    tl_ask_end(ask);
    while (r == TRACELAKE_OK) {
        struct tl_bytes bytes;
        ProtobufCMessage *reply = NULL;
        r = tl_ask_recv(ask, &bytes, error);
        if (r == TRACELAKE_OK)
            r = tl_ask_unpack(ask, kind, bytes, &reply, error);
        if (r < 0)
            break;
        *taken = true;
        r = take(context, reply);
        if (r == TRACELAKE_NOMEM)
            r = tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
        protobuf_c_message_free_unpacked(reply, NULL);
    }
    tl_ask_close(ask);
    return r == TRACELAKE_EOF ? TRACELAKE_OK : r;
}

int tl_ask_each(struct tracelake *lake, const char *method, int timeout_ms,
                const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                tl_ask_take_reply *take, void *context, struct tracelake_error *error)
{
    struct tl_again again = {0};
    bool taken = false;
    int result;
    do
        result = ask_each(lake, method, timeout_ms, request, kind, take, context, &taken, error);
    while (result < 0 && !taken && tl_client_again(lake, &again, result));
    return result;
}
