/* SPDX-License-Identifier: MIT */
/*
 * Bridges a connection to libmicrohttpd's HTTP/1.1 server: bytes, decrypted if it uses TLS, are
 * copied through a socket pair in both directions. Request heads are collected and validated here,
 * so that only complete and well-formed ones occupy a thread there, and each bad one gets one
 * answer. A full buffer stops reading, so that neither side can run ahead of the other.
 */
#include "net/conn.h"
#include "net/headscan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE  16384
#define ROUNDS 16 /* then other connections get their turn */

struct tl_bridge {
    struct tl_conn *conn;
    uv_poll_t poll; /* of our end of the pair, once it is there */
    int fd;         /* -1: no request is complete yet */
    int events;
    struct tl_headscan scan;
    bool blind;         /* what comes is a body, or what follows one */
    bool late;          /* the timer for the head runs */
    struct tl_buf in;   /* client to server */
    size_t good;        /* leading bytes of it that may be passed on */
    bool ended;         /* no more input */
    bool closed;        /* the end was passed on */
    uint8_t out[PIECE]; /* server to client */
    size_t out_at, out_n;
    bool out_ended;
};

static ssize_t local_result(ssize_t n)
{
    if (n >= 0)
        return n ? n : TL_EOF;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? TL_AGAIN : TL_IO;
}

/* ---- heads ------------------------------------------------------------------------------- */

/* The whole answer to a request that no handler sees. */
static void answer_here(struct tl_bridge *b, int status, const char *reason, const char *text)
{
    const bool head = b->in.n > 5 && !memcmp(b->in.p, "HEAD ", 5);
    char body[400];
    const int n = snprintf(body, sizeof body, "{\"error\":\"%s\",\"code\":\"%s\"}\n", text,
                           status == 503 ? "limit" : "bad request");
    const int all =
        snprintf((char *)b->out, sizeof b->out,
                 "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                 "Connection: close\r\nCache-Control: no-store\r\nRetry-After: 1\r\n"
                 "X-Content-Type-Options: nosniff\r\n\r\n%s",
                 status, reason, n, head ? "" : body);
    b->ended = b->closed = true;
    b->good = 0;
    b->out_at = 0;
    b->out_n = (size_t)all;
    b->out_ended = true;
    atomic_fetch_add(&b->conn->loop->net->stats.http_class[status / 100], 1);
}

/* There is no thread for the connection. */
static void refuse_share(struct tl_bridge *b)
{
    char why[256];
    atomic_fetch_add(&b->conn->loop->net->stats.refused, 1);
    tl_account_say(b->conn->caller->account, TL_USE_HTTP1, "HTTP/1.1 connections", why, sizeof why);
    answer_here(b, 503, "Service Unavailable", why);
}

/*
 * Answers to earlier requests come first: the server is sent a request for this refusal instead.
 * Its end is not passed on: that would mean that the client is gone.
 */
static int refuse(struct tl_bridge *b, int status)
{
    char text[80];
    if (b->fd < 0 && !b->good) {
        answer_here(b, status, tl_head_reason(status), tl_head_advice(status));
        return TL_OK;
    }
    b->ended = b->closed = true;
    b->in.n = b->good;
    snprintf(text, sizeof text, TL_H1_REFUSE " /%d HTTP/1.1\r\nHost: localhost\r\n\r\n", status);
    const int rc = tl_buf_add(&b->in, text, strlen(text));
    b->good = b->in.n;
    return rc;
}

static void stop_waiting(struct tl_bridge *b)
{
    if (b->late)
        uv_timer_stop(&b->conn->timer);
    b->late = false;
}

/* Validate what has arrived. */
static int examine(struct tl_bridge *b)
{
    while (!b->blind && b->good < b->in.n) {
        const size_t n = tl_headscan(&b->scan, b->in.p + b->good, b->in.n - b->good);
        if (b->scan.status)
            return refuse(b, b->scan.status);
        if (!n)
            break;
        b->good += n;
        b->blind = b->scan.body;
        b->scan = (struct tl_headscan){0};
        stop_waiting(b);
    }
    if (b->blind)
        b->good = b->in.n;
    if (b->good < b->in.n && !b->late)
        tl_conn_wait(b->conn, b->conn->loop->net->options.request_ms);
    b->late = b->good < b->in.n;
    return TL_OK;
}

void tl_bridge_late(struct tl_conn *conn)
{
    struct tl_bridge *const b = conn->bridge;
    b->late = false;
    if (!b->in.n || refuse(b, 408) < 0) /* nothing was asked */
        tl_conn_close(conn);
    else
        tl_bridge_ready(conn, UV_READABLE | UV_WRITABLE);
}

/* ---- bytes ------------------------------------------------------------------------------- */

static int receive(struct tl_bridge *b)
{
    if (tl_buf_reserve(&b->in, PIECE) < 0)
        return TL_IO;
    const ssize_t n = tl_conn_read(b->conn, b->in.p + b->in.n, PIECE);
    if (n == TL_IO)
        return TL_IO;
    b->ended = n == TL_EOF;
    if (n <= 0)
        return 0;
    b->in.n += (size_t)n;
    return examine(b) < 0 ? TL_IO : 1;
}

static void on_local(uv_poll_t *poll, int status, int events);

/* The first request is complete. */
static int hand_over(struct tl_bridge *b)
{
    struct tl_conn *const conn = b->conn;
    struct tl_account *const account = conn->caller->account;
    int pair[2];
    if (!tl_account_take(account, TL_USE_HTTP1, 1)) {
        refuse_share(b);
        return TL_LIMIT;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) {
        tl_account_release(account, TL_USE_HTTP1, 1);
        return TL_IO;
    }
    if (uv_poll_init(&conn->loop->loop.uv, &b->poll, pair[0])) {
        close(pair[0]);
        close(pair[1]);
        tl_account_release(account, TL_USE_HTTP1, 1);
        return TL_IO;
    }
    b->poll.data = b;
    b->fd = pair[0];
    tl_h1_add(conn->loop->net->h1, pair[1], conn->caller);
    return TL_OK;
}

static int pass_on(struct tl_bridge *b)
{
    if (b->fd < 0) {
        const int rc = hand_over(b);
        if (rc != TL_OK)
            return rc == TL_LIMIT ? 0 : rc;
    }
    const ssize_t n = local_result(send(b->fd, b->in.p, b->good, MSG_NOSIGNAL));
    if (n == TL_IO) { /* nobody reads it any more, but there may be an answer */
        b->good = b->in.n = 0;
        b->ended = b->closed = true;
    }
    if (n <= 0)
        return 0;
    tl_buf_drop(&b->in, (size_t)n);
    b->good -= (size_t)n;
    if (!b->in.n)
        tl_buf_fini(&b->in); /* idle connections hold no memory */
    return 1;
}

/* Returns whether anything was moved, or TL_IO. */
static int move_up(struct tl_bridge *b)
{
    int moved = 0;
    if (!b->good && !b->ended)
        moved = receive(b);
    if (moved >= 0 && b->good) {
        const int passed = pass_on(b);
        moved = passed < 0 ? passed : passed | moved;
    }
    if (moved >= 0 && b->ended && !b->good && !b->closed) {
        b->closed = true;
        if (b->fd >= 0)
            shutdown(b->fd, SHUT_WR);
        else
            b->out_ended = true;
    }
    return moved;
}

static int move_down(struct tl_bridge *b)
{
    int moved = 0;
    if (b->out_at == b->out_n && !b->out_ended && b->fd >= 0) {
        const ssize_t n = local_result(recv(b->fd, b->out, sizeof b->out, 0));
        if (n == TL_IO || n == TL_EOF)
            b->out_ended = true;
        if (n > 0) {
            b->out_at = 0;
            b->out_n = (size_t)n;
            moved = 1;
        }
    }
    if (b->out_at < b->out_n) {
        const ssize_t n = tl_conn_write(b->conn, b->out + b->out_at, b->out_n - b->out_at);
        if (n == TL_IO)
            return TL_IO;
        if (n > 0) {
            b->out_at += (size_t)n;
            moved = 1;
        }
    }
    return moved;
}

/*
 * Our end has an error if the other one was closed with unread bytes, such as an ignored body.
 * libuv stops the handle then, but an answer sent before can still be read.
 */
static void on_local(uv_poll_t *poll, int status, int events)
{
    struct tl_bridge *const b = poll->data;
    if (status < 0)
        b->events = 0;
    tl_bridge_ready(b->conn, events);
}

static void poll_local(struct tl_bridge *b, int events)
{
    if (b->fd < 0 || b->events == events)
        return;
    b->events = events;
    if (events)
        uv_poll_start(&b->poll, events, on_local);
    else
        uv_poll_stop(&b->poll);
}

void tl_bridge_ready(struct tl_conn *conn, int events)
{
    struct tl_bridge *const b = conn->bridge;
    struct tl_outq none = {0};
    int up = 0;
    int down = tl_conn_flush(conn, &none); /* pending encrypted bytes first */
    for (int i = 0; i < ROUNDS && down >= 0; i++) {
        up = move_up(b);
        down = up < 0 ? up : move_down(b);
        if (down < 0 || (!up && !down))
            break;
    }
    if (down < 0) {
        tl_conn_close(conn);
        return;
    }
    const bool out_full = b->out_at < b->out_n;
    if (b->out_ended && !out_full && !tl_conn_blocked(conn)) {
        tl_conn_linger(conn);
        return;
    }
    if (!b->good && !b->ended && tl_conn_pending(conn))
        tl_conn_again(conn);
    tl_conn_poll(conn, (b->good || b->ended ? 0 : UV_READABLE) |
                           (out_full || tl_conn_blocked(conn) ? UV_WRITABLE : 0));
    /* An ended socket stays readable. */
    poll_local(b, (out_full || b->out_ended ? 0 : UV_READABLE) | (b->good ? UV_WRITABLE : 0));
}

/* ---- life -------------------------------------------------------------------------------- */

int tl_bridge_start(struct tl_conn *conn)
{
    struct tl_bridge *const b = malloc(sizeof *b); /* its buffer need not be zeroed */
    if (!b)
        return TL_NOMEM;
    b->conn = conn;
    b->fd = -1;
    b->events = 0;
    b->scan = (struct tl_headscan){0};
    b->in = (struct tl_buf){0};
    b->good = b->out_at = b->out_n = 0;
    b->blind = b->ended = b->closed = b->out_ended = false;
    b->late = true; /* the first head is waited for */
    conn->bridge = b;
    tl_conn_wait(conn, conn->loop->net->options.request_ms);
    return TL_OK;
}

static void free_bridge(struct tl_bridge *b)
{
    tl_buf_fini(&b->in);
    free(b);
}

static void on_closed(uv_handle_t *handle)
{
    struct tl_bridge *const b = handle->data;
    close(b->fd);
    free_bridge(b);
}

void tl_bridge_close(struct tl_bridge *b)
{
    if (b->fd < 0)
        free_bridge(b);
    else
        uv_close((uv_handle_t *)&b->poll, on_closed);
}
