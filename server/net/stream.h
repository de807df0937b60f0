/* SPDX-License-Identifier: MIT */
/*
 * One HTTP/2 stream between its connection's loop and the worker that answers it.
 *
 * The loop's thread owns the nghttp2 side; a worker reads and writes through the functions
 * below, which block while there is nothing to read or too much waits to be sent. When the
 * client goes away, or the deadline passes, everything returns TL_CANCELLED.
 */
#ifndef TL_NET_STREAM_H
#define TL_NET_STREAM_H

#include "net/body.h"
#include "net/caller.h"
#include "net/fields.h"
#include "net/netint.h"
#include "net/waiter.h"

#include <nghttp2/nghttp2.h>

/* A length-prefixed message of gRPC as it came in. */
struct tl_message {
    struct tl_message *next;
    size_t n;
    size_t held;   /* what it counts towards tl_net_stats.inbound … */
    uint8_t class; /* … of this enum tl_role_class */
    bool compressed;
    uint8_t p[];
};

struct tl_stream {
    struct tl_task task; /* posted while `dirty` */
    atomic_uint refs;
    struct tl_net *net;
    struct tl_netloop *loop;
    int32_t id;

    /* Written before the stream is dispatched, read-only from then on. */
    struct tl_fields request;       /* with ":method", ":path" … */
    const struct tl_method *method; /* NULL: not a gRPC call */
    unsigned roles;
    struct tl_scope *scope; /* of the token; NULL: everything */
    struct tl_caller *caller;
    bool tls;
    bool is_grpc;
    bool gzip_in;        /* compressed messages are gzip */
    bool gzip_out;       /* the client likes gzip, and uses it itself */
    int64_t deadline_ns; /* of the monotonic clock; INT64_MAX: none */

    /* Loop's thread only. */
    struct tl_h2 *h2; /* NULL once the stream is closed */
    struct tl_stream *next;
    struct tl_stream **link;
    bool dispatched;
    bool framed;         /* the body is gRPC frames; else it is dropped */
    bool too_large;      /* the header fields */
    bool submitted;      /* the response's head */
    bool deferred;       /* nghttp2 waits for data */
    bool half_closed;    /* the client has said all */
    size_t dropped;      /* bytes of the body that nobody wanted */
    struct tl_body body; /* of a request that is not gRPC; a worker's once `working` */
    bool working;        /* a worker was given the stream */
    size_t owed;         /* received, not yet given back as window */
    uint8_t prefix[5];
    unsigned prefix_n;
    struct tl_message *partial;
    size_t partial_n;
    struct tl_chunk *ready; /* taken from `out`, being sent */
    size_t ready_at;
    size_t ready_bytes;
    uv_timer_t timer; /* of the deadline */
    bool has_timer;

    struct tl_waiter waiter; /* its lock guards all below */
    bool dirty;
    bool has_head;
    bool ended;
    uint32_t reset; /* 1 + error code with which to reset it */
    struct tl_fields head;
    struct tl_fields trailers;
    struct tl_chunk *out;
    struct tl_chunk **out_tail;
    struct tl_chunk *out_last;
    size_t out_bytes; /* waiting, `ready` included */
    struct tl_message *in;
    struct tl_message **in_tail;
    size_t in_bytes;
    bool in_ended;
    int in_error; /* enum tl_err behind the messages that are whole */
};

/* Received messages wait up to here before the client's window is kept from it. */
#define TL_STREAM_IN_MARK (2u << 20)
/* tl_stream_write() blocks above this. */
#define TL_STREAM_OUT_MARK (256u << 10)

static inline struct tl_stream *tl_stream_get(struct tl_stream *stream)
{
    atomic_fetch_add(&stream->refs, 1);
    return stream;
}
void tl_stream_put(struct tl_stream *stream);

/* ---- any thread ------------------------------------------------------------------------- */

/* Has the deadline passed? */
bool tl_stream_expired(const struct tl_stream *stream);
/* Nobody waits for the response any more: the client went away, or the deadline has passed. The
 * argument is the stream: for struct tl_cancel. */
bool tl_stream_unwanted(void *stream);

/* ---- worker side ------------------------------------------------------------------------ */

/* Set the response's head; the fields are taken over (`head` is empty then). Once. */
void tl_stream_head(struct tl_stream *stream, struct tl_fields *head);

/*
 * Queue bytes of the body, one chunk or a few linked by `next`; takes them over, also when it
 * fails. Blocks while too much
 * waits. `chunk->latest`: replaces a chunk that is `latest` too and waits at the queue's end.
 * TL_CANCELLED.
 */
TL_MUST_USE int tl_stream_write(struct tl_stream *stream, struct tl_chunk *chunk);
/* The response is complete; `trailers` (may be NULL) are taken over. */
void tl_stream_end(struct tl_stream *stream, struct tl_fields *trailers);
/* Head and trailers at once, without a body; both are taken over. Nothing if it has ended. */
void tl_stream_finish(struct tl_stream *stream, struct tl_fields *head, struct tl_fields *trailers);
/* End the stream with an HTTP/2 error code. */
void tl_stream_reset(struct tl_stream *stream, uint32_t code);

/*
 * Take the next message, which the caller frees by tl_message_free(). TL_EOF: the client has
 * sent all; TL_AGAIN: poked, or `timeout_ms` (negative: none) is over; TL_CANCELLED; TL_LIMIT,
 * TL_BAD: what came is too large or not gRPC.
 */
TL_MUST_USE int tl_stream_read(struct tl_stream *stream, struct tl_message **out,
                               int64_t timeout_ms);
void tl_message_free(struct tl_net *net, struct tl_message *message);

/* ---- loop side (h2.c) ------------------------------------------------------------------- */

/* Keeps a reference to `client`. NULL: out of memory. */
struct tl_stream *tl_stream_new(struct tl_netloop *loop, int32_t id, struct tl_caller *caller);
/* The stream is closed: wake the worker, let go. */
void tl_stream_detach(struct tl_stream *stream);
/* Bytes of the body. Returns how many may be given back as window now; < 0: enum tl_err. */
ssize_t tl_stream_receive(struct tl_stream *stream, const uint8_t *p, size_t n);
/* The largest message that the stream's method takes. */
size_t tl_stream_max_message(const struct tl_stream *stream);
/* The client half-closed. */
void tl_stream_receive_end(struct tl_stream *stream);
/* Make `ready` hold what can be sent. Returns whether the response ends behind it. */
bool tl_stream_collect(struct tl_stream *stream);
/* `n` bytes of `ready` go to `q`. TL_NOMEM. */
TL_MUST_USE int tl_stream_emit(struct tl_stream *stream, struct tl_outq *q, size_t n);
/*
 * The deadline has passed; the worker's functions return TL_CANCELLED from now on. If no head is
 * sent yet that ends the stream at once, by head and trailers (taken over). Else the worker ends
 * it, and the second call, if it still lasts then, by RST_STREAM CANCEL.
 */
void tl_stream_expire(struct tl_stream *stream, struct tl_fields *head, struct tl_fields *trailers);
/* The call has `ns` nanoseconds: then, and a little later again, it is tl_grpc_timed_out(). */
void tl_stream_deadline(struct tl_stream *stream, int64_t ns);

/* ---- by protocol ------------------------------------------------------------------------ */

/* The method of that path, or NULL. */
const struct tl_method *tl_grpc_find(const struct tl_app *app, const char *path);
/* A grpc-timeout's value in ns, at most INT64_MAX, or TL_BAD. */
int64_t tl_grpc_timeout_ns(const char *text);
/* A content type that we speak: application/grpc, application/grpc+proto. NULL is not. */
bool tl_grpc_is(const char *content_type);
/* The header fields are complete: begin the call, or answer at once. On the loop's thread. */
void tl_grpc_begin(struct tl_stream *stream);
void tl_http2_begin(struct tl_stream *stream);
/* A whole message, or the end, has come in: start what waits for it. On the loop's thread. */
void tl_grpc_received(struct tl_stream *stream);
/* The deadline has passed. On the loop's thread. */
void tl_grpc_timed_out(struct tl_stream *stream);

#endif
