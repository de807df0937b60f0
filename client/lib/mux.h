/* SPDX-License-Identifier: MIT */
/*
 * One HTTP/2 connection and the calls (asks) on it.
 *
 * Nothing happens behind the caller's back: bytes move only inside tl_mux_step(), which serves
 * all calls of the connection. Each call's answers wait in its own buffer, bounded by the
 * stream's flow-control window; the connection's window is given back at once, so that one call
 * that nobody reads never holds up another. One thread.
 */
#ifndef TL_CLIENT_MUX_H
#define TL_CLIENT_MUX_H

#include "base/buf.h"
#include "base/bytes.h"
#include "wire.h"

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>

#define TL_ASK_WINDOW      (8 << 20)   /* bytes of answers that may wait per call */
#define TL_ASK_MESSAGE_MAX (256 << 20) /* larger messages are refused */

struct tl_mux;

/* One call's state on the wire. Kept by ask.c; the mux fills it. */
struct tl_ask_io {
    int32_t stream;
    struct tl_buf out; /* framed messages to send */
    size_t out_at;     /* of which sent */
    bool out_end;      /* no more will follow */
    bool deferred;     /* nghttp2 waits for more of them */
    struct tl_buf in;
    size_t unconsumed; /* received, not yet given back to the stream's window */
    bool ended;        /* the server has said all it will */
    bool closed;       /* the stream is over */
    uint32_t reset;    /* its HTTP/2 error code then */
    int http_status;   /* 0: none yet */
    int grpc_status;   /* -1: none yet */
    bool grpc;         /* content-type is gRPC's */
    bool overflow;     /* out of memory while receiving */
    char message[480]; /* grpc-message, decoded */
};

/* Connect to one of the server's addresses. `interrupted` and the wake descriptor are borrowed for
 * the connection's life. */
TL_MUST_USE int tl_mux_open(struct tl_mux **out, const struct tl_url *url,
                            const struct addrinfo *address, const struct tl_wire_options *options,
                            const atomic_bool *interrupted, struct tracelake_error *error);
struct tl_mux *tl_mux_get(struct tl_mux *mux);
/* Drop a reference (NULL is fine); the last one closes the connection. */
void tl_mux_put(struct tl_mux *mux);

/* The socket, and whether there are bytes for it to be written; it changes with each connection. */
int tl_mux_descriptor(const struct tl_mux *mux, bool *writing);

/* May new calls be begun? */
bool tl_mux_usable(const struct tl_mux *mux);

/* Begin a call; `io` must stay where it is until tl_mux_forget(). */
TL_MUST_USE int tl_mux_submit(struct tl_mux *mux, const nghttp2_nv *headers, size_t n,
                              struct tl_ask_io *io, struct tracelake_error *error);
/* There is more in io->out, or io->out_end was set. */
void tl_mux_wake(struct tl_mux *mux, struct tl_ask_io *io);
/* Give `io->unconsumed` back to the stream's window. */
void tl_mux_consume(struct tl_mux *mux, struct tl_ask_io *io);
/* The call is not wanted any more: reset it if it is not over. */
void tl_mux_forget(struct tl_mux *mux, struct tl_ask_io *io);

/*
 * Move bytes both ways, waiting up to `ms` (< 0: for ever) until any do. OK: some did; AGAIN: the
 * time is over; CANCELLED; UNREACHABLE: the connection is dead, and stays so.
 */
TL_MUST_USE int tl_mux_step(struct tl_mux *mux, int ms, struct tracelake_error *error);

#endif
