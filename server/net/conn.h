/* SPDX-License-Identifier: MIT */
/*
 * One socket on its loop: plain or TLS, first bytes looked at, then spoken to in HTTP/2, or
 * handed to the HTTP/1.1 server. All on the loop's thread.
 */
#ifndef TL_NET_CONN_H
#define TL_NET_CONN_H

#include "net/caller.h"
#include "net/netint.h"

struct tl_bridge;
struct tl_tlsio;

enum tl_phase {
    TL_PHASE_SNIFF,     /* plain: which protocol is it? */
    TL_PHASE_HANDSHAKE, /* TLS */
    TL_PHASE_H2,
    TL_PHASE_BRIDGE, /* TLS here, HTTP/1.1 at the other end of a socket pair */
    TL_PHASE_LINGER, /* all is said; wait until the peer has read it */
    TL_PHASE_CLOSED
};

struct tl_conn {
    struct tl_conn *next;
    struct tl_conn **link;
    struct tl_netloop *loop;
    uv_poll_t poll;
    uv_timer_t timer;
    struct tl_task again; /* go on reading what OpenSSL holds decrypted */
    uint64_t deadline;    /* of the first bytes, in the loop's time */
    unsigned handles;
    enum tl_phase phase;
    bool again_posted;
    int events; /* as polled */
    int fd;
    struct tl_tlsio *tls; /* NULL: plain */
    struct tl_h2 *h2;
    struct tl_bridge *bridge;
    struct sockaddr_storage peer;
    struct tl_caller *caller;
};

/* Read: > 0 bytes, TL_EOF, TL_AGAIN, TL_IO. */
ssize_t tl_conn_read(struct tl_conn *conn, void *p, size_t n);
/* Write: > 0 bytes, TL_AGAIN, TL_IO. TLS: what was taken may wait for the socket, encrypted. */
ssize_t tl_conn_write(struct tl_conn *conn, const void *p, size_t n);
/* Write what the socket takes. 1: all is written, 0: the socket is full, < 0: TL_IO. */
int tl_conn_flush(struct tl_conn *conn, struct tl_outq *q);
/* Do encrypted bytes wait for the socket? tl_conn_flush() sends them. */
bool tl_conn_blocked(const struct tl_conn *conn);
/* Were bytes taken from the socket that tl_conn_read() has not given yet? */
bool tl_conn_pending(const struct tl_conn *conn);
/* Be called for these events (UV_READABLE | UV_WRITABLE). */
void tl_conn_poll(struct tl_conn *conn, int events);
/* Decrypted bytes are left: run the read side again soon. */
void tl_conn_again(struct tl_conn *conn);
/* End it. The object is freed when the loop comes round. */
void tl_conn_close(struct tl_conn *conn);
/* All is sent: say so to the peer, and close when it has closed, or after a moment. */
void tl_conn_linger(struct tl_conn *conn);

/* ---- h2.c ------------------------------------------------------------------------------- */

TL_MUST_USE int tl_h2_start(struct tl_conn *conn);
void tl_h2_ready(struct tl_conn *conn, int events);
void tl_h2_tick(struct tl_conn *conn); /* every TL_H2_TICK_MS */
void tl_h2_drain(struct tl_conn *conn);
void tl_h2_free(struct tl_h2 *h2);
/* Send for all sessions that asked for it. */
void tl_h2_flush_all(struct tl_netloop *loop);

#define TL_H2_TICK_MS 5000

/* ---- bridge.c --------------------------------------------------------------------------- */

TL_MUST_USE int tl_bridge_start(struct tl_conn *conn);
void tl_bridge_ready(struct tl_conn *conn, int events);
void tl_bridge_close(struct tl_bridge *bridge); /* frees itself when the loop comes round */

#endif
