/* SPDX-License-Identifier: MIT */
/*
 * The server's side of TLS on a socket, whose other end sends records cut anywhere, with arbitrary
 * bytes between them, before and after the handshake. The bytes read are those the client wrote,
 * from the first one on, and the server never reports readiness when there is nothing to read.
 */
#include "net/tlsio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WRITE, PASS, INJECT, READ, OPERATIONS };

static struct tl_tls *tls;
static SSL_CTX *client_ctx;

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_tls: %s\n", what);
    abort();
}

static void free_contexts(void)
{
    SSL_CTX_free(client_ctx);
    tl_tls_free(tls);
}

static void make_contexts(void)
{
    char dir[] = "/tmp/tl-fuzz-tls-XXXXXX", cert[64], key[64];
    struct tl_fail fail = {0};
    need(mkdtemp(dir) != NULL, "no folder");
    snprintf(cert, sizeof cert, "%s/c.pem", dir);
    snprintf(key, sizeof key, "%s/k.pem", dir);
    need(tl_tls_make_certificate(cert, key, &fail) == 1 &&
             tl_tls_new(&tls, cert, key, NULL, &fail) == TL_OK,
         fail.text);
    unlink(cert);
    unlink(key);
    rmdir(dir);
    client_ctx = SSL_CTX_new(TLS_client_method());
    need(client_ctx != NULL, "no memory");
    atexit(free_contexts);
}

/* A connection and the data on it. */
struct talk {
    struct tl_tlsio *io;
    struct tl_buf gather, wrote; /* wrote: by the client, unencrypted */
    SSL *client;
    int fd; /* the client's */
    size_t got;
    bool over; /* the server has given up */
};

static void send_bytes(struct talk *t, const void *p, size_t n)
{
    if (n > 0)
        (void)!send(t->fd, p, n, MSG_NOSIGNAL); /* a full socket loses bytes: equivalent to a cut */
}

/* Send at most this many bytes of the client's pending TLS output. */
static void pass(struct talk *t, size_t most)
{
    uint8_t bytes[4096];
    const int n =
        BIO_read(SSL_get_wbio(t->client), bytes, (int)(most < sizeof bytes ? most : sizeof bytes));
    send_bytes(t, bytes, n > 0 ? (size_t)n : 0);
}

/* Deliver the server's output to the client. */
static void answer(struct talk *t)
{
    uint8_t bytes[16384];
    const ssize_t n = recv(t->fd, bytes, sizeof bytes, 0);
    if (n > 0)
        BIO_write(SSL_get_rbio(t->client), bytes, (int)n);
}

static void shake_hands(struct talk *t)
{
    int rc = TL_AGAIN;
    for (int i = 0; rc == TL_AGAIN; i++) {
        need(i < 10, "the handshake does not end");
        SSL_do_handshake(t->client);
        pass(t, SIZE_MAX);
        rc = tl_tlsio_handshake(t->io);
        answer(t);
    }
    need(rc == TL_OK && SSL_do_handshake(t->client) == 1, "the handshake failed");
}

static void write_record(struct talk *t, size_t n)
{
    uint8_t text[256];
    for (size_t i = 0; i < n; i++)
        text[i] = (uint8_t)(t->wrote.n + i);
    if (!SSL_is_init_finished(t->client))
        SSL_do_handshake(t->client);
    else if (n > 0 && SSL_write(t->client, text, (int)n) == (int)n)
        need(tl_buf_add(&t->wrote, text, n) >= 0, "no memory");
}

/* Read as a connection does: until no more is available, or the end. */
static void read_some(struct talk *t, size_t most)
{
    uint8_t bytes[300];
    if (!SSL_is_init_finished(tl_tlsio_session(t->io))) {
        const int rc = tl_tlsio_handshake(t->io);
        t->over = rc < 0 && rc != TL_AGAIN;
        return;
    }
    do {
        const ssize_t n = tl_tlsio_read(t->io, bytes, most);
        need(n != 0 && n <= (ssize_t)most, "a read of nothing");
        t->over = n < 0 && n != TL_AGAIN;
        need(n != TL_AGAIN || !tl_tlsio_pending(t->io), "nothing came, and yet something waits");
        if (n < 0)
            return;
        need(t->got + (size_t)n <= t->wrote.n && !memcmp(bytes, t->wrote.p + t->got, (size_t)n),
             "what was read is not what was written");
        t->got += (size_t)n;
    } while (tl_tlsio_pending(t->io));
}

static void say_all(struct talk *t, const uint8_t *p, size_t n)
{
    while (n >= 2 && !t->over) {
        const unsigned operation = p[0] % OPERATIONS;
        const size_t amount = p[1];
        p += 2;
        n -= 2;
        if (operation == WRITE)
            write_record(t, amount);
        else if (operation == PASS)
            pass(t, amount);
        else if (operation == READ)
            read_some(t, 1 + amount);
        if (operation != INJECT)
            continue;
        const size_t some = amount < n ? amount : n;
        send_bytes(t, p, some);
        p += some;
        n -= some;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct talk t = {0};
    int pair[2];
    if (size == 0)
        return 0;
    if (!tls)
        make_contexts();
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0, "no sockets");
    t.fd = pair[1];
    t.io = tl_tlsio_new(tls, pair[0], &t.gather);
    t.client = SSL_new(client_ctx);
    need(t.io && t.client, "no memory");
    SSL_set_bio(t.client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(t.client);
    if (data[0] & 1)
        shake_hands(&t);
    say_all(&t, data + 1, size - 1);
    for (int i = 0; i < 3 && !t.over; i++) { /* process whatever is left */
        answer(&t);
        pass(&t, SIZE_MAX);
        read_some(&t, 300);
    }
    tl_tlsio_shutdown(t.io);
    tl_tlsio_free(t.io);
    SSL_free(t.client);
    tl_buf_fini(&t.gather);
    tl_buf_fini(&t.wrote);
    close(pair[0]);
    close(pair[1]);
    return 0;
}
