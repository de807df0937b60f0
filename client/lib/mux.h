/* SPDX-License-Identifier: MIT */
/*
 * One HTTP/2 connection and the calls (asks) on it.
 *
 * There is no background activity: bytes move only inside tl_mux_step(), which serves all calls of
 * the connection. The answers of each call are buffered per call, bounded by the stream's
 * flow-control window; the connection's window is returned immediately, so that a call nobody reads
 * never blocks another. Single-threaded.
 */
#ifndef TL_CLIENT_MUX_H
#define TL_CLIENT_MUX_H

#include "base/buf.h"
#include "base/bytes.h"
#include "wire.h"

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>

#define TL_ASK_WINDOW      (8 << 20)   /* unread answer bytes per call */
#define TL_ASK_MESSAGE_MAX (256 << 20) /* larger messages are rejected */

struct tl_mux;

/* A call's state on the wire. Owned by ask.c, filled by the mux. */
struct tl_ask_io {
    int32_t stream;
    struct tl_buf out;    /* framed messages to send */
    size_t out_at;        /* bytes of `out` already sent */
    struct tl_bytes tail; /* to be sent after `out`: the rest of the last message, borrowed */
    bool out_end;         /* no more messages will follow */
    bool deferred;        /* nghttp2 waits until more is queued */
    struct tl_buf in;
    size_t in_at;       /* bytes of `in` already handed out */
    bool lent;          /* the last of them are in use until the next message is asked for */
    struct tl_buf held; /* where they are, if not in `in` any more */
    size_t unconsumed;  /* bytes received but not yet returned to the stream's window */
    bool ended;         /* the server has half-closed the stream */
    bool closed;        /* the stream is closed */
    uint32_t reset;     /* its HTTP/2 error code when it was closed */
    int http_status;    /* 0: none yet */
    int grpc_status;    /* -1: none yet */
    bool grpc;          /* content-type is gRPC's */
    bool overflow;      /* ran out of memory while receiving */
    char message[480];  /* grpc-message, decoded */
};

/* Connect to one of the server's addresses. `interrupted` and the wake descriptor are borrowed for
 * the lifetime of the connection. */
TL_MUST_USE int tl_mux_open(struct tl_mux **out, const struct tl_url *url,
                            const struct addrinfo *address, const struct tl_wire_options *options,
                            const atomic_bool *interrupted, struct tracelake_error *error);
struct tl_mux *tl_mux_get(struct tl_mux *mux);
/* Drop a reference (accepts NULL); the last one closes the connection. */
void tl_mux_put(struct tl_mux *mux);

/* The socket, and whether there are bytes to write to it; differs for each connection. */
int tl_mux_descriptor(const struct tl_mux *mux, bool *writing);

/* May new calls be started? */
bool tl_mux_usable(const struct tl_mux *mux);

/* Start a call; `io` must stay at its address until tl_mux_forget(). */
TL_MUST_USE int tl_mux_submit(struct tl_mux *mux, const nghttp2_nv *headers, size_t n,
                              struct tl_ask_io *io, struct tracelake_error *error);
/* More was queued in `io`, or io->out_end was set. */
void tl_mux_wake(struct tl_mux *mux, struct tl_ask_io *io);
/* Return `io->unconsumed` bytes to the stream's window. */
void tl_mux_consume(struct tl_mux *mux, struct tl_ask_io *io);
/* Abandon a call: reset the stream if it is not closed. */
void tl_mux_forget(struct tl_mux *mux, struct tl_ask_io *io);

/*
 * Transfer bytes in both directions, waiting up to `ms` milliseconds (< 0: forever) for any. OK:
 * some were transferred; AGAIN: the time is over; CANCELLED; UNREACHABLE: the connection is dead,
 * and stays so.
 */
TL_MUST_USE int tl_mux_step(struct tl_mux *mux, int ms, struct tracelake_error *error);

#endif
