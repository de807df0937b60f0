/* SPDX-License-Identifier: MIT */
/*
 * Runs a connection from its first bytes to its last, plain or TLS. It closes by reading on for a
 * while: a socket with unread bytes is reset, and the peer would lose what was sent last.
 */
#include "net/conn.h"

#include "net/tlsio.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINGER_MS 1000
#define RETRY_MS  20
#define VECTORS   64

/* ---- life ------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct tl_conn *const conn = handle->data;
    if (--conn->handles || conn->again_posted)
        return;
    struct tl_net *const net = conn->loop->net;
    tl_tlsio_free(conn->tls);
    close(conn->fd);
    tl_conn_forget(net, tl_account_get(conn->caller->account));
    tl_caller_put(conn->caller);
    free(conn);
}

void tl_conn_forget(struct tl_net *net, struct tl_account *account)
{
    tl_account_release(account, TL_USE_CONNECTIONS, 1);
    tl_account_put(account);
    atomic_fetch_sub(&net->stats.connections_open, 1);
}

static void on_again(struct tl_task *task);
static void on_timer(uv_timer_t *timer);

static void close_protocol(struct tl_conn *conn)
{
    if (conn->h2)
        tl_h2_free(conn->h2);
    conn->h2 = NULL;
    if (conn->bridge)
        tl_bridge_close(conn->bridge);
    conn->bridge = NULL;
}

static void close_handles(struct tl_conn *conn)
{
    conn->phase = TL_PHASE_CLOSED;
    *conn->link = conn->next;
    if (conn->next)
        conn->next->link = conn->link;
    uv_close((uv_handle_t *)&conn->poll, on_closed);
    uv_close((uv_handle_t *)&conn->timer, on_closed);
}

void tl_conn_close(struct tl_conn *conn)
{
    if (conn->phase == TL_PHASE_CLOSED)
        return;
    close_protocol(conn);
    if (conn->tls && conn->phase != TL_PHASE_LINGER)
        tl_tlsio_shutdown(conn->tls);
    close_handles(conn);
}

/* ---- bytes ------------------------------------------------------------------------------ */

static bool is_full(int e)
{
    return e == EAGAIN || e == EWOULDBLOCK || e == EINTR;
}

ssize_t tl_conn_read(struct tl_conn *conn, void *p, size_t n)
{
    ssize_t got = conn->tls ? tl_tlsio_read(conn->tls, p, n) : recv(conn->fd, p, n, 0);
    if (!conn->tls && got == 0)
        return TL_EOF;
    if (!conn->tls && got < 0)
        return is_full(errno) ? TL_AGAIN : TL_IO;
    if (got > 0)
        atomic_fetch_add_explicit(&conn->loop->net->stats.bytes_in, (unsigned long long)got,
                                  memory_order_relaxed);
    return got;
}

static void count_out(struct tl_conn *conn, size_t n)
{
    atomic_fetch_add_explicit(&conn->loop->net->stats.bytes_out, (unsigned long long)n,
                              memory_order_relaxed);
}

ssize_t tl_conn_write(struct tl_conn *conn, const void *p, size_t n)
{
    ssize_t put = conn->tls ? tl_tlsio_write(conn->tls, p, n) : send(conn->fd, p, n, MSG_NOSIGNAL);
    if (!conn->tls && put < 0)
        put = is_full(errno) ? TL_AGAIN : TL_IO;
    if (put > 0)
        count_out(conn, (size_t)put);
    return put;
}

/* A slice of a mapped file cannot be read. Its length has been promised, so zeros take its place,
 * and its stream ends with an error. TL_IO: the connection cannot continue. */
static int cut_short(struct tl_conn *conn, struct tl_outq *q)
{
    const int32_t stream = tl_outq_blank(q);
    return stream > 0 && conn->h2 ? tl_h2_cut_short(conn->h2, stream) : TL_IO;
}

static int flush_plain(struct tl_conn *conn, struct tl_outq *q)
{
    int most = VECTORS;
    while (q->count) {
        struct iovec vectors[VECTORS];
        const struct msghdr message = {
            .msg_iov = vectors,
            .msg_iovlen = (size_t)tl_outq_peek(q, vectors, most),
        };
        const ssize_t n = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                return 0;
            if (errno == EFAULT && most == 1 && cut_short(conn, q) < 0)
                return TL_IO;
            if (errno != EINTR && errno != EFAULT)
                return TL_IO;
            most = 1; /* to find the slice */
            continue;
        }
        most = VECTORS;
        count_out(conn, (size_t)n);
        tl_outq_drop(q, (size_t)n);
    }
    return 1;
}

int tl_conn_flush(struct tl_conn *conn, struct tl_outq *q)
{
    size_t taken;
    if (!conn->tls)
        return flush_plain(conn, q);
    const int rc = tl_tlsio_flush(conn->tls, q, &taken);
    count_out(conn, taken);
    return rc;
}

bool tl_conn_blocked(const struct tl_conn *conn)
{
    return conn->tls && tl_tlsio_blocked(conn->tls);
}

bool tl_conn_pending(const struct tl_conn *conn)
{
    return conn->tls && tl_tlsio_pending(conn->tls);
}

/* ---- first bytes ------------------------------------------------------------------------ */

static void on_events(uv_poll_t *poll, int status, int events);

void tl_conn_poll(struct tl_conn *conn, int events)
{
    if (conn->phase == TL_PHASE_CLOSED || conn->events == events)
        return;
    conn->events = events;
    if (events)
        uv_poll_start(&conn->poll, events, on_events);
    else
        uv_poll_stop(&conn->poll);
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void start_h2(struct tl_conn *conn)
{
    conn->phase = TL_PHASE_H2;
    const struct tl_net_options *const o = &conn->loop->net->options;
    const unsigned least = o->request_ms < o->answer_ms ? o->request_ms : o->answer_ms;
    const unsigned tick_ms = smaller(TL_H2_TICK_MS, smaller(o->hello_ms, least / 4 + 1));
    uv_timer_start(&conn->timer, on_timer, tick_ms, tick_ms);
    if (tl_h2_start(conn) < 0) {
        tl_conn_close(conn);
        return;
    }
    tl_h2_ready(conn, UV_READABLE);
}

void tl_conn_wait(struct tl_conn *conn, unsigned ms)
{
    uv_timer_start(&conn->timer, on_timer, ms, 0);
}

static void start_http1(struct tl_conn *conn)
{
    conn->phase = TL_PHASE_BRIDGE;
    if (tl_bridge_start(conn) < 0)
        tl_conn_close(conn);
    else
        tl_bridge_ready(conn, UV_READABLE | UV_WRITABLE);
}

static void sniff(struct tl_conn *conn)
{
    char first[3];
    const ssize_t n = recv(conn->fd, first, sizeof first, MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        tl_conn_close(conn);
        return;
    }
    if (!memcmp(first, "PRI", (size_t)n)) {
        if (n == sizeof first) {
            start_h2(conn);
            return;
        }
        /* Too few bytes to decide. They stay in the socket, so polling would spin: check again
         * soon. */
        tl_conn_poll(conn, 0);
        uv_timer_start(&conn->timer, on_timer, RETRY_MS, 0);
        return;
    }
    start_http1(conn);
}

static void handshake(struct tl_conn *conn)
{
    const int rc = tl_tlsio_handshake(conn->tls);
    if (rc == TL_AGAIN) {
        tl_conn_poll(conn, UV_READABLE | (tl_conn_blocked(conn) ? UV_WRITABLE : 0));
        return;
    }
    if (rc < 0 || tl_tls_client_names(tl_tlsio_session(conn->tls), &conn->caller->names) < 0)
        tl_conn_close(conn);
    else if (tl_tls_is_h2(tl_tlsio_session(conn->tls)))
        start_h2(conn);
    else
        start_http1(conn);
}

/*
 * Closing a socket with unread bytes resets it, and a reset discards what the peer has not read
 * yet, such as our GOAWAY. So further input is read and dropped for a while.
 */
void tl_conn_linger(struct tl_conn *conn)
{
    if (conn->phase == TL_PHASE_CLOSED)
        return;
    close_protocol(conn);
    conn->phase = TL_PHASE_LINGER;
    if (conn->tls)
        tl_tlsio_shutdown(conn->tls);
    shutdown(conn->fd, SHUT_WR);
    conn->deadline = uv_now(&conn->loop->loop.uv) + LINGER_MS;
    uv_timer_start(&conn->timer, on_timer, LINGER_MS, 0);
    tl_conn_poll(conn, UV_READABLE);
}

static void linger(struct tl_conn *conn)
{
    ssize_t n;
    for (int i = 0; i < 16; i++) {
        n = recv(conn->fd, conn->loop->scratch, TL_SCRATCH, 0);
        if (n <= 0)
            break;
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        tl_conn_close(conn);
}

static void ready(struct tl_conn *conn, int events)
{
    switch (conn->phase) {
    case TL_PHASE_SNIFF:
        sniff(conn);
        break;
    case TL_PHASE_HANDSHAKE:
        handshake(conn);
        break;
    case TL_PHASE_H2:
        tl_h2_ready(conn, events);
        break;
    case TL_PHASE_BRIDGE:
        tl_bridge_ready(conn, events);
        break;
    case TL_PHASE_LINGER:
        linger(conn);
        break;
    case TL_PHASE_CLOSED:
        break;
    }
}

/* libuv stops the handle of a socket with an error, such as a reset: nothing more will come. */
static void on_events(uv_poll_t *poll, int status, int events)
{
    struct tl_conn *const conn = poll->data;
    struct tl_loop *const loop = &conn->loop->loop;
    tl_loop_enter(loop);
    if (status < 0)
        tl_conn_close(conn);
    else
        ready(conn, events);
    tl_loop_leave(loop);
}

static void on_timer(uv_timer_t *timer)
{
    struct tl_conn *const conn = timer->data;
    if (conn->phase == TL_PHASE_H2) {
        tl_h2_tick(conn);
        return;
    }
    if (conn->phase == TL_PHASE_BRIDGE) {
        tl_bridge_late(conn);
        return;
    }
    const uint64_t now = uv_now(timer->loop);
    if (conn->phase != TL_PHASE_SNIFF || now >= conn->deadline) {
        tl_conn_close(conn);
        return;
    }
    uv_timer_start(timer, on_timer, conn->deadline - now, 0);
    tl_conn_poll(conn, UV_READABLE);
    sniff(conn);
}

static void on_again(struct tl_task *task)
{
    struct tl_conn *const conn = (struct tl_conn *)((char *)task - offsetof(struct tl_conn, again));
    conn->again_posted = false;
    if (!conn->handles) { /* closed meanwhile; on_closed left freeing to us */
        conn->handles = 1;
        on_closed((uv_handle_t *)&conn->timer);
        return;
    }
    ready(conn, UV_READABLE);
}

void tl_conn_again(struct tl_conn *conn)
{
    if (conn->again_posted)
        return;
    conn->again_posted = true;
    tl_loop_post(&conn->loop->loop, &conn->again);
}

void tl_conn_start(struct tl_netloop *loop, int fd, bool tls, const struct sockaddr_storage *peer,
                   socklen_t peer_n, struct tl_account *account)
{
    struct tl_conn *const conn = calloc(1, sizeof *conn);
    if (!conn)
        goto fail;
    conn->loop = loop;
    conn->fd = fd;
    conn->caller = tl_caller_new(peer, peer_n, tl_account_get(account));
    if (!conn->caller)
        goto fail;
    conn->again.run = on_again;
    conn->phase = tls ? TL_PHASE_HANDSHAKE : TL_PHASE_SNIFF;
    if (tls) {
        pthread_rwlock_rdlock(&loop->net->credentials);
        conn->tls = tl_tlsio_new(loop->net->tls, fd, &loop->gather);
        pthread_rwlock_unlock(&loop->net->credentials);
        if (!conn->tls)
            goto fail;
    }
    if (uv_poll_init(&loop->loop.uv, &conn->poll, fd))
        goto fail;
    uv_timer_init(&loop->loop.uv, &conn->timer);
    conn->poll.data = conn;
    conn->timer.data = conn;
    conn->handles = 2;
    conn->next = loop->conns;
    conn->link = &loop->conns;
    if (conn->next)
        conn->next->link = &conn->next;
    loop->conns = conn;
    const unsigned hello_ms = loop->net->options.hello_ms;
    conn->deadline = uv_now(&loop->loop.uv) + hello_ms;
    uv_timer_start(&conn->timer, on_timer, hello_ms, 0);
    tl_conn_poll(conn, UV_READABLE);
    tl_account_put(account); /* the caller has it */
    return;
fail:
    if (conn) {
        tl_tlsio_free(conn->tls);
        tl_caller_put(conn->caller);
        free(conn);
    }
    close(fd);
    tl_conn_forget(loop->net, account);
}

void tl_conns_drain(struct tl_netloop *loop)
{
    for (struct tl_conn *conn = loop->conns, *next; conn; conn = next) {
        next = conn->next;
        if (conn->phase == TL_PHASE_H2)
            tl_h2_drain(conn);
        else if (conn->phase != TL_PHASE_BRIDGE && conn->phase != TL_PHASE_LINGER)
            tl_conn_close(conn);
    }
}

void tl_conns_close(struct tl_netloop *loop)
{
    while (loop->conns)
        tl_conn_close(loop->conns);
}
