/* SPDX-License-Identifier: MIT */
/*
 * TLS on this side, HTTP/1.1 on the other: decrypted bytes go through a socket pair to
 * libmicrohttpd and back. One buffer each way; a full one stops reading, so neither side can
 * run ahead of the other.
 */
#include "net/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define BRIDGE 16384
#define ROUNDS 16 /* then other connections have their turn */

struct pipe {
    uint8_t p[BRIDGE];
    size_t at;
    size_t n;
    bool ended;  /* nothing more comes in */
    bool closed; /* … and that was passed on */
};

struct tl_bridge {
    struct tl_conn *conn;
    uv_poll_t poll; /* of our end of the pair */
    int fd;
    int events;
    struct pipe up;   /* client to server */
    struct pipe down; /* server to client */
};

static ssize_t local_result(ssize_t n)
{
    if (n >= 0)
        return n ? n : TL_EOF;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? TL_AGAIN : TL_IO;
}

/* Returns whether anything moved, or TL_IO. */
static int move_up(struct tl_bridge *b)
{
    struct pipe *const up = &b->up;
    int moved = 0;
    if (up->at == up->n && !up->ended) {
        const ssize_t n = tl_conn_read(b->conn, up->p, sizeof up->p);
        if (n == TL_IO)
            return TL_IO;
        if (n == TL_EOF)
            up->ended = true;
        if (n > 0) {
            up->at = 0;
            up->n = (size_t)n;
            moved = 1;
        }
    }
    if (up->at < up->n) {
        const ssize_t n = local_result(send(b->fd, up->p + up->at, up->n - up->at, MSG_NOSIGNAL));
        if (n == TL_IO)
            return TL_IO;
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

static void on_local(uv_poll_t *poll, int status, int events)
{
    struct tl_bridge *const b = poll->data;
    if (status < 0)
        tl_conn_close(b->conn);
    else
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
    conn->write_blocked = false;
    int up = 0;
    int down = 0;
    for (int i = 0; i < ROUNDS; i++) {
        up = move_up(b);
        down = up < 0 ? up : move_down(b);
        if (down < 0 || (!up && !down))
            break;
    }
    if (down < 0 || (b->down.ended && b->down.at == b->down.n)) {
        tl_conn_close(conn);
        return;
    }
    const bool up_full = b->up.at < b->up.n;
    const bool down_full = b->down.at < b->down.n;
    if (!up_full && !b->up.ended && SSL_pending(conn->ssl))
        tl_conn_again(conn);
    tl_conn_poll(conn, (up_full || b->up.ended ? 0 : UV_READABLE) |
                           (down_full || conn->write_blocked ? UV_WRITABLE : 0));
    poll_local(b, (down_full ? 0 : UV_READABLE) | (up_full ? UV_WRITABLE : 0));
}

int tl_bridge_start(struct tl_conn *conn)
{
    int pair[2];
    struct tl_bridge *const b = malloc(sizeof *b);
    if (!b)
        return TL_NOMEM;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) {
        free(b);
        return TL_IO;
    }
    b->conn = conn;
    b->fd = pair[0];
    b->events = 0;
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
    const struct sockaddr_un local = {.sun_family = AF_UNIX};
    tl_h1_add(conn->loop->net->h1, pair[1], (const struct sockaddr *)&local, sizeof local,
              &conn->peer);
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
