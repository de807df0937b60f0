/* SPDX-License-Identifier: MIT */
/* An HTTP/2 session on a connection. Everything runs on the loop's thread. Source: RFC 9113. */
#ifndef TL_NET_H2_H
#define TL_NET_H2_H

#include "net/conn.h"
#include "net/stream.h"

/* Advertised settings. */
#define TL_H2_MAX_STREAMS   128
#define TL_H2_STREAM_WINDOW (4 << 20)
#define TL_H2_CONN_WINDOW   (16 << 20)
/* Limits for a request's header fields, names and values. */
#define TL_H2_MAX_HEADER_BYTES 65536
#define TL_H2_MAX_HEADERS      128

struct tl_h2 {
    struct tl_conn *conn;
    nghttp2_session *session;
    struct tl_outq out;
    struct tl_stream *streams;
    struct tl_h2 *flush_next;
    bool flush_queued;
    bool draining;
    bool greeted;      /* the client's preface is complete */
    bool last_goaway;  /* the second GOAWAY is sent */
    bool ping_pending; /* a keep-alive PING is unanswered */
    uint64_t heard_at; /* loop time of the last received bytes */
    uint64_t moved_at; /* loop time when the socket last took bytes, or nothing was left for it */
    uint64_t busy_at;  /* loop time when there last was a stream */
    uint64_t credit_at;
    double credit; /* tokens left for frames that cost work and carry nothing (flood protection) */
};

/*
 * Answer a request that is not gRPC; does nothing if it is or if that was done. Such requests are
 * answered when they are complete, even if their body is unwanted: clients such as curl treat an
 * early answer as a failure.
 */
void tl_h2_begin_http(struct tl_stream *stream);

/*
 * End the requests that have not arrived in time, and the answers of which the client has taken
 * nothing for some time. `now`: loop time. Returns false if the connection must be closed, since
 * its socket takes nothing, not even a reset (overdue.c).
 */
bool tl_h2_end_overdue(struct tl_h2 *h2, uint64_t now);

#endif
