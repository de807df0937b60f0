/* SPDX-License-Identifier: MIT */
/*
 * A socket on its loop: plain or TLS; detects the protocol, then serves HTTP/2 itself or hands the
 * connection to the HTTP/1.1 server. Everything runs on the loop's thread.
 */
#ifndef TL_NET_CONN_H
#define TL_NET_CONN_H

#include "net/caller.h"
#include "net/netint.h"

struct tl_bridge;
struct tl_tlsio;

enum tl_phase {
    TL_PHASE_SNIFF,     /* plain: detecting the protocol */
    TL_PHASE_HANDSHAKE, /* TLS */
    TL_PHASE_H2,
    TL_PHASE_BRIDGE, /* TLS here, HTTP/1.1 at the other end of a socket pair */
    TL_PHASE_LINGER, /* everything is sent; waiting until the peer has read it */
    TL_PHASE_CLOSED
};

struct tl_conn {
    struct tl_conn *next;
    struct tl_conn **link;
    struct tl_netloop *loop;
    uv_poll_t poll;
    uv_timer_t timer;
    struct tl_task again; /* continue reading decrypted bytes held by OpenSSL */
    uint64_t deadline;    /* for the first bytes, in loop time */
    unsigned handles;
    enum tl_phase phase;
    bool again_posted;
    int events; /* events currently polled */
    int fd;
    struct tl_tlsio *tls; /* NULL: plain */
    struct tl_h2 *h2;
    struct tl_bridge *bridge;
    struct tl_caller *caller;
};

/* Read: > 0 bytes, TL_EOF, TL_AGAIN, TL_IO. */
ssize_t tl_conn_read(struct tl_conn *conn, void *p, size_t n);
/* Write: > 0 bytes, TL_AGAIN, TL_IO. TLS: accepted bytes may be pending in encrypted form. */
ssize_t tl_conn_write(struct tl_conn *conn, const void *p, size_t n);
/*
 * Write as much as the socket accepts. 1: everything is written, 0: the socket is full, < 0: TL_IO.
 */
int tl_conn_flush(struct tl_conn *conn, struct tl_outq *q);
/* Are encrypted bytes pending? tl_conn_flush() sends them. */
bool tl_conn_blocked(const struct tl_conn *conn);
/* Are bytes read from the socket that tl_conn_read() has not returned yet? */
bool tl_conn_pending(const struct tl_conn *conn);
/* Set the polled events (UV_READABLE | UV_WRITABLE). */
void tl_conn_poll(struct tl_conn *conn, int events);
/* Close, or call tl_bridge_late(), in `ms` milliseconds, unless the timer is stopped before. */
void tl_conn_wait(struct tl_conn *conn, unsigned ms);
/* Run the read side again soon, since decrypted bytes are left. */
void tl_conn_again(struct tl_conn *conn);
/* Close. The object is freed in the next loop iteration. */
void tl_conn_close(struct tl_conn *conn);
/* Everything is sent: shut down, and close when the peer has closed, or after a timeout. */
void tl_conn_linger(struct tl_conn *conn);

/* ---- h2.c ------------------------------------------------------------------------------- */

/* All on the loop's thread. Begin HTTP/2 on a connection. TL_NOMEM. */
TL_MUST_USE int tl_h2_start(struct tl_conn *conn);
/* The socket is ready for `events` of uv_poll_t: read and send. */
void tl_h2_ready(struct tl_conn *conn, int events);
void tl_h2_tick(struct tl_conn *conn); /* every TL_H2_TICK_MS */
/* Take no new calls, and close when those under way have ended. */
void tl_h2_drain(struct tl_conn *conn);
void tl_h2_free(struct tl_h2 *h2);
/* Bytes of this stream, which are being sent, cannot be read. TL_IO: its end is on its way. */
TL_MUST_USE int tl_h2_cut_short(struct tl_h2 *h2, int32_t stream);
/* Send for all sessions in the flush list. */
void tl_h2_flush_all(struct tl_netloop *loop);

#define TL_H2_TICK_MS 5000

/* ---- bridge.c --------------------------------------------------------------------------- */

/* Begin HTTP/1.1 on a connection: pass its bytes on to libmicrohttpd. TL_NOMEM. */
TL_MUST_USE int tl_bridge_start(struct tl_conn *conn);
/* The socket is ready for `events` of uv_poll_t. */
void tl_bridge_ready(struct tl_conn *conn, int events);
/* A request's head has not arrived in time. */
void tl_bridge_late(struct tl_conn *conn);
void tl_bridge_close(struct tl_bridge *bridge); /* frees itself in the next loop iteration */

#endif
