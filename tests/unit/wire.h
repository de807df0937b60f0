/* SPDX-License-Identifier: MIT */
/* Raw bytes to and from a server, with or without TLS. */
#ifndef TL_TESTS_WIRE_H
#define TL_TESTS_WIRE_H

#include "unit/h2_client.h"

#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct wire {
    int fd;
    SSL_CTX *ctx;
    SSL *ssl;
};

static inline struct wire wire_open(const char *url)
{
    struct wire w = {.fd = tcp_connect(url)};
    if (!strncmp(url, "https", 5)) {
        w.ctx = SSL_CTX_new(TLS_client_method());
        w.ssl = SSL_new(w.ctx);
        SSL_set_fd(w.ssl, w.fd);
        assert_int_equal(SSL_connect(w.ssl), 1);
    }
    return w;
}

static inline void wire_close(struct wire *w)
{
    SSL_free(w->ssl);
    SSL_CTX_free(w->ctx);
    close(w->fd);
}

static inline void wire_send_n(struct wire *w, const char *text, size_t n)
{
    if (w->ssl)
        assert_int_equal(SSL_write(w->ssl, text, (int)n), (int)n);
    else
        assert_int_equal(send(w->fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* The same to a server that may close the connection in between. */
static inline void wire_try_n(struct wire *w, const char *text, size_t n)
{
    if (w->ssl)
        (void)!SSL_write(w->ssl, text, (int)n);
    else
        (void)!send(w->fd, text, n, MSG_NOSIGNAL);
}

static inline void wire_send(struct wire *w, const char *text)
{
    wire_send_n(w, text, strlen(text));
}

static inline ssize_t wire_read(struct wire *w, void *p, size_t n)
{
    return w->ssl ? SSL_read(w->ssl, p, (int)n) : recv(w->fd, p, n, 0);
}

#endif
