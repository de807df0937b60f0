/* SPDX-License-Identifier: MIT */
/*
 * Bridges a connection to libmicrohttpd's HTTP/1.1 server: bytes, decrypted if it uses TLS, are
 * copied through a socket pair in both directions, and request heads are validated on the way. One
 * buffer per direction; a full one stops reading, so that neither side can run ahead of the other.
 */
#include "net/conn.h"
#include "net/headscan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BRIDGE 16384
#define ROUNDS 16 /* then other connections get their turn */

/*
 * Sent in place of the rest of a malformed head: whatever part of a head precedes it, the result is
 * rejected with 400, after the answers to earlier requests.
 */
static const char malformed[] = "\r\nHost: a\r\nHost: b\r\n\r\n";

struct pipe {
    uint8_t p[1 + BRIDGE + sizeof malformed];
    size_t at;
    size_t n;
    bool ended;  /* no more input */
    bool closed; /* the end was passed on */
};

struct tl_bridge {
    struct tl_conn *conn;
    uv_poll_t poll; /* of our end of the pair */
    int fd;
    int events;
    struct tl_headscan scan;
    bool cr;          /* a CR was read that waits for what follows */
    struct pipe up;   /* client to server */
    struct pipe down; /* server to client */
};

static ssize_t local_result(ssize_t n)
{
    if (n >= 0)
        return n ? n : TL_EOF;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? TL_AGAIN : TL_IO;
}

/* Validate new bytes, the first `n` in `up`. */
static void scan_heads(struct tl_bridge *b, size_t n)
{
    struct pipe *const up = &b->up;
    const size_t good = tl_headscan(&b->scan, up->p, n);
    up->at = 0;
    up->n = good;
    b->cr = good < n;
    if (!b->scan.bad)
        return;
    /* An empty line would end the head before the fields that invalidate it. */
    const size_t skip = b->scan.line_n ? 0 : 2;
    memcpy(up->p + good, malformed + skip, sizeof malformed - 1 - skip);
    up->n += sizeof malformed - 1 - skip;
    up->ended = true;
    up->closed = true; /* not shut down: that would mean that the client is gone */
}

/* Returns whether anything was moved, or TL_IO. */
static int move_up(struct tl_bridge *b)
{
    struct pipe *const up = &b->up;
    int moved = 0;
    if (up->at == up->n && !up->ended) {
        up->p[0] = '\r';
        const ssize_t n = tl_conn_read(b->conn, up->p + b->cr, BRIDGE);
        if (n == TL_IO)
            return TL_IO;
        if (n == TL_EOF)
            up->ended = true;
        if (n > 0) {
            scan_heads(b, (size_t)n + b->cr);
            moved = 1;
        }
    }
    if (up->at < up->n) {
        const ssize_t n = local_result(send(b->fd, up->p + up->at, up->n - up->at, MSG_NOSIGNAL));
        if (n == TL_IO) { /* nobody reads it any more, but there may be an answer */
            up->at = up->n;
            up->ended = true;
            up->closed = true;
        }
        if (n > 0) {
            up->at += (size_t)n;
            moved = 1;
        }
    }
    if (up->ended && up->at == up->n && !up->closed) {
        up->closed = true;
        shutdown(b->fd, SHUT_WR);
    }
    return moved;
}

static int move_down(struct tl_bridge *b)
{
    struct pipe *const down = &b->down;
    int moved = 0;
    if (down->at == down->n && !down->ended) {
        const ssize_t n = local_result(recv(b->fd, down->p, sizeof down->p, 0));
        if (n == TL_IO || n == TL_EOF)
            down->ended = true;
        if (n > 0) {
            down->at = 0;
            down->n = (size_t)n;
            moved = 1;
        }
    }
    if (down->at < down->n) {
        const ssize_t n = tl_conn_write(b->conn, down->p + down->at, down->n - down->at);
        if (n == TL_IO)
            return TL_IO;
        if (n > 0) {
            down->at += (size_t)n;
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
    if (b->events == events)
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
    if (b->down.ended && b->down.at == b->down.n && !tl_conn_blocked(conn)) {
        tl_conn_linger(conn);
        return;
    }
    const bool up_full = b->up.at < b->up.n;
    const bool down_full = b->down.at < b->down.n;
    if (!up_full && !b->up.ended && tl_conn_pending(conn))
        tl_conn_again(conn);
    tl_conn_poll(conn, (up_full || b->up.ended ? 0 : UV_READABLE) |
                           (down_full || tl_conn_blocked(conn) ? UV_WRITABLE : 0));
    /* An ended socket stays readable. */
    poll_local(b, (down_full || b->down.ended ? 0 : UV_READABLE) | (up_full ? UV_WRITABLE : 0));
}

int tl_bridge_start(struct tl_conn *conn)
{
    int pair[2];
    struct tl_bridge *const b = malloc(sizeof *b); /* its buffers need not be zeroed */
    if (!b)
        return TL_NOMEM;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) {
        free(b);
        return TL_IO;
    }
    b->conn = conn;
    b->fd = pair[0];
    b->events = 0;
    b->cr = false;
    b->scan = (struct tl_headscan){0};
    b->up.at = b->up.n = b->down.at = b->down.n = 0;
    b->up.ended = b->up.closed = b->down.ended = b->down.closed = false;
    if (uv_poll_init(&conn->loop->loop.uv, &b->poll, b->fd)) {
        close(pair[0]);
        close(pair[1]);
        free(b);
        return TL_IO;
    }
    b->poll.data = b;
    conn->bridge = b;
    tl_h1_add(conn->loop->net->h1, pair[1], &conn->peer, conn->caller);
    return TL_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct tl_bridge *const b = handle->data;
    close(b->fd);
    free(b);
}

void tl_bridge_close(struct tl_bridge *b)
{
    uv_close((uv_handle_t *)&b->poll, on_closed);
}
