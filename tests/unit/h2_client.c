/* SPDX-License-Identifier: MIT */
#include "unit/h2_client.h"
#include "unit/patience.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stddef.h>

#include <cmocka.h>

#define PATIENCE_MS (PATIENCE_S * 1000)

int tcp_connect(const char *url)
{
    return tcp_connect_from(url, NULL);
}

int tcp_connect_from(const char *url, const char *source)
{
    const char *const colon = strrchr(url, ':');
    assert_non_null(colon);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct sockaddr_in from = {.sin_family = AF_INET};
    if (source) {
        inet_pton(AF_INET, source, &from.sin_addr);
        assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    }
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static struct h2_exchange *find(struct h2_client *c, int32_t id)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->exchanges[i]->id == id)
            return c->exchanges[i];
    return NULL;
}

/* ---- callbacks ---------------------------------------------------------------------------- */

static ssize_t on_send(nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *user)
{
    struct h2_client *const c = user;
    for (size_t done = 0; done < n;) {
        const ssize_t put = c->ssl ? SSL_write(c->ssl, p + done, (int)(n - done))
                                   : send(c->fd, p + done, n - done, MSG_NOSIGNAL);
        if (put <= 0) {
            c->eof = true;
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
        done += (size_t)put;
    }
    return (ssize_t)n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
    struct h2_exchange *const x = find(user, frame->hd.stream_id);
    if (!x)
        return 0;
    const bool trailer = frame->headers.cat == NGHTTP2_HCAT_HEADERS;
    return tl_fields_add_n(trailer ? &x->trailers : &x->head, (const char *)name, name_n,
                           (const char *)value, value_n);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2_client *const c = user;
    struct h2_exchange *const x = find(c, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        if (c->goaways < 4)
            c->goaway_last[c->goaways] = frame->goaway.last_stream_id;
        c->goaways++;
        c->goaway_code = frame->goaway.error_code;
    }
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK)
        c->pongs++;
    if (!x)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        x->frames++;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        x->reset = true;
        x->code = frame->rst_stream.error_code;
    }
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        x->ended = true;
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *user)
{
    struct h2_client *const c = user;
    struct h2_exchange *const x = find(c, id);
    if (!c->keeps_window)
        nghttp2_session_consume(session, id, n);
    return x ? tl_buf_add(&x->body, p, n) : 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    struct h2_exchange *const x = find(user, id);
    if (x)
        x->closed = true;
    return 0;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct h2_exchange *const x = source->ptr;
    const size_t left = x->out.n - x->out_at;
    const size_t n = left < length ? left : length;
    if (!n && !x->out_ended) {
        x->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n) {
        memcpy(buf, x->out.p + x->out_at, n);
        x->out_at += n;
    }
    if (n == left && x->out_ended)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* ---- connection --------------------------------------------------------------------------- */

static void start_tls(struct h2_client *c)
{
    static const unsigned char alpn[] = "\x02h2";
    c->ctx = SSL_CTX_new(TLS_client_method());
    c->ssl = SSL_new(c->ctx);
    SSL_set_alpn_protos(c->ssl, alpn, sizeof alpn - 1);
    SSL_set_fd(c->ssl, c->fd);
    assert_int_equal(SSL_connect(c->ssl), 1);
    const unsigned char *name;
    unsigned n;
    SSL_get0_alpn_selected(c->ssl, &name, &n);
    assert_int_equal(n, 2);
    assert_memory_equal(name, "h2", 2);
}

struct h2_client *h2_connect(const char *url)
{
    return h2_connect_from(url, NULL, 1 << 20);
}

struct h2_client *h2_connect_from(const char *url, const char *source, uint32_t window)
{
    struct h2_client *const c = calloc(1, sizeof *c);
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
    };
    c->fd = tcp_connect_from(url, source);
    if (!strncmp(url, "https", 5))
        start_tls(c);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_max_send_header_block_length(option, 1 << 20);
    assert_int_equal(nghttp2_session_client_new2(&c->session, callbacks, c, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(c->session, 0, settings, 1);
    nghttp2_session_set_local_window_size(c->session, 0, 0, 16 << 20);
    return c;
}

void h2_free(struct h2_client *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct h2_exchange *const x = c->exchanges[i];
        tl_fields_fini(&x->head);
        tl_fields_fini(&x->trailers);
        tl_buf_fini(&x->body);
        tl_buf_fini(&x->out);
        free(x);
    }
    nghttp2_session_del(c->session);
    SSL_free(c->ssl);
    SSL_CTX_free(c->ctx);
    close(c->fd);
    free(c);
}

bool h2_step(struct h2_client *c, int ms)
{
    uint8_t buf[65536];
    if (nghttp2_session_send(c->session))
        c->eof = true;
    if (!c->ssl || !SSL_pending(c->ssl)) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        if (poll(&p, 1, ms) <= 0)
            return false;
    }
    const ssize_t n = c->ssl ? SSL_read(c->ssl, buf, sizeof buf) : recv(c->fd, buf, sizeof buf, 0);
    if (n <= 0) {
        c->eof = true;
        return false;
    }
    if (nghttp2_session_mem_recv(c->session, buf, (size_t)n) < 0)
        c->eof = true;
    if (nghttp2_session_send(c->session))
        c->eof = true;
    return true;
}

/* ---- requests ----------------------------------------------------------------------------- */

static nghttp2_nv pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static struct h2_exchange *submit(struct h2_client *c, const nghttp2_nv *nv, size_t n, bool end)
{
    struct h2_exchange *const x = calloc(1, sizeof *x);
    assert_true(c->n < sizeof c->exchanges / sizeof *c->exchanges);
    const nghttp2_data_provider provider = {.source.ptr = x, .read_callback = on_read};
    x->id = nghttp2_submit_request(c->session, NULL, nv, n, end ? NULL : &provider, NULL);
    assert_true(x->id > 0);
    c->exchanges[c->n++] = x;
    return x;
}

struct h2_exchange *h2_request(struct h2_client *c, const char *method, const char *path, bool end,
                               ...)
{
    nghttp2_nv nv[32] = {pair(":method", method), pair(":scheme", c->ssl ? "https" : "http"),
                         pair(":authority", "localhost"), pair(":path", path)};
    size_t n = 4;
    va_list args;
    va_start(args, end);
    for (const char *name; n < 32 && (name = va_arg(args, const char *)); n++)
        nv[n] = pair(name, va_arg(args, const char *));
    va_end(args);
    return submit(c, nv, n, end);
}

struct h2_exchange *h2_request_long(struct h2_client *c, const char *method, const char *path,
                                    size_t more, const char *type)
{
    nghttp2_nv *const nv = calloc(more + 5, sizeof *nv);
    assert_non_null(nv);
    nv[0] = pair(":method", method);
    nv[1] = pair(":scheme", c->ssl ? "https" : "http");
    nv[2] = pair(":authority", "localhost");
    nv[3] = pair(":path", path);
    nv[4] = pair("content-type", type);
    for (size_t i = 0; i < more; i++)
        nv[5 + i] = pair("x", "y");
    struct h2_exchange *const x = submit(c, nv, more + 5, true);
    free(nv);
    return x;
}

struct h2_exchange *h2_call(struct h2_client *c, const char *path)
{
    return h2_request(c, "POST", path, false, "content-type", "application/grpc", "te", "trailers",
                      NULL);
}

void h2_send(struct h2_client *c, struct h2_exchange *x, const void *p, size_t n, bool end)
{
    assert_int_equal(tl_buf_add(&x->out, p, n), TL_OK);
    x->out_ended = end;
    if (x->deferred) {
        x->deferred = false;
        nghttp2_session_resume_data(c->session, x->id);
    }
    if (nghttp2_session_send(c->session))
        c->eof = true;
}

void h2_send_message(struct h2_client *c, struct h2_exchange *x, const ProtobufCMessage *message,
                     bool end)
{
    const size_t n = protobuf_c_message_get_packed_size(message);
    uint8_t *const p = malloc(n + 5);
    p[0] = 0;
    p[1] = (uint8_t)(n >> 24);
    p[2] = (uint8_t)(n >> 16);
    p[3] = (uint8_t)(n >> 8);
    p[4] = (uint8_t)n;
    protobuf_c_message_pack(message, p + 5);
    h2_send(c, x, p, n + 5, end);
    free(p);
}

void h2_finish(struct h2_client *c, struct h2_exchange *x)
{
    while (!x->closed && !c->eof)
        if (!h2_step(c, PATIENCE_MS) && !c->eof)
            fail_msg("no answer for %d s", PATIENCE_MS / 1000);
}

ProtobufCMessage *h2_message(struct h2_client *c, struct h2_exchange *x,
                             const ProtobufCMessageDescriptor *type)
{
    for (;;) {
        const uint8_t *const p = x->body.p + x->at;
        const size_t left = x->body.n - x->at;
        const size_t n =
            left < 5 ? 0 : (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (left >= 5 && left - 5 >= n) {
            assert_int_equal(p[0], 0);
            x->at += n + 5;
            ProtobufCMessage *const message = protobuf_c_message_unpack(type, NULL, n, p + 5);
            assert_non_null(message);
            return message;
        }
        if (x->closed || c->eof)
            return NULL;
        if (!h2_step(c, PATIENCE_MS) && !c->eof)
            fail_msg("no answer for %d s", PATIENCE_MS / 1000);
    }
}

int h2_grpc_status(const struct h2_exchange *x)
{
    const char *text = tl_fields_get(&x->trailers, "grpc-status");
    if (!text)
        text = tl_fields_get(&x->head, "grpc-status");
    return text ? atoi(text) : -1;
}

const char *h2_grpc_text(const struct h2_exchange *x)
{
    const char *const text = tl_fields_get(&x->trailers, "grpc-message");
    const char *const head = tl_fields_get(&x->head, "grpc-message");
    return text ? text : head ? head : "";
}

int h2_status(const struct h2_exchange *x)
{
    const char *const text = tl_fields_get(&x->head, ":status");
    return text ? atoi(text) : -1;
}
