/* SPDX-License-Identifier: MIT */
/*
 * An HTTP/2 stream, shared by its connection's loop and the worker that answers it.
 *
 * The loop's thread owns the nghttp2 side; a worker reads and writes through the functions below,
 * which block while there is nothing to read or too much is pending. When the client goes away, or
 * the deadline passes, all of them return TL_CANCELLED.
 */
#ifndef TL_NET_STREAM_H
#define TL_NET_STREAM_H

#include "net/body.h"
#include "net/caller.h"
#include "net/fields.h"
#include "net/netint.h"
#include "net/waiter.h"

#include <nghttp2/nghttp2.h>

/* A received gRPC length-prefixed message. */
struct tl_message {
    struct tl_message *next;
    size_t n;
    size_t held; /* charged to its stream's account */
    uint8_t use; /* as this: enum tl_use */
    bool compressed;
    uint8_t p[];
};

struct tl_stream {
    struct tl_task task; /* posted while `dirty` */
    atomic_uint refs;
    struct tl_net *net;
    struct tl_netloop *loop;
    int32_t id;

    /* Set before the stream is dispatched, read-only afterwards. */
    struct tl_fields request;       /* including ":method", ":path" … */
    const struct tl_method *method; /* NULL: not a gRPC call */
    unsigned roles;
    struct tl_scope *scope; /* of the token; NULL: unrestricted */
    struct tl_caller *caller;
    struct tl_holder *holder;   /* of the token, if it has a quota; NULL: none */
    const char *denial;         /* what is wrong with the token, NULL: none, or nothing */
    struct tl_account *account; /* who is charged */
    bool guest;                 /* counted as TL_USE_GUESTS of the caller's account */
    bool refused;               /* there are too many guests, or too many calls a second: */
    char *why;                  /* the sentence; NULL: out of memory */
    bool tls;
    bool is_grpc;
    bool gzip_in;        /* compressed messages are gzip */
    bool gzip_out;       /* the client accepts gzip, and uses it itself */
    int64_t deadline_ns; /* on the monotonic clock; INT64_MAX: none */

    /* Loop's thread only. */
    struct tl_h2 *h2; /* NULL once the stream is closed */
    struct tl_stream *next;
    struct tl_stream **link;
    bool dispatched;
    bool framed;         /* the body is gRPC frames; otherwise it is dropped */
    bool too_large;      /* header fields exceed the limit */
    size_t head_held;    /* charged to the caller's account for the request's head */
    uint64_t due;        /* loop time by which more must have arrived; 0: nothing is waited for */
    size_t step;         /* bytes of it since `due` was set */
    uint64_t moved_at;   /* loop time when something was sent last, or nothing was there for it */
    bool stalls;         /* reset because its client does not take it */
    bool submitted;      /* the response's head was submitted */
    bool deferred;       /* nghttp2 waits for data */
    bool finished;       /* nghttp2 has got the last of the body, and the trailers */
    bool half_closed;    /* the client has sent everything */
    size_t dropped;      /* ignored bytes of the body */
    struct tl_body body; /* of a request that is not gRPC; owned by the worker once `working` */
    bool working;        /* dispatched to a worker */
    bool late;           /* has not arrived in time */
    size_t owed;         /* received bytes not yet returned to the window */
    uint8_t prefix[5];
    unsigned prefix_n;
    struct tl_message *partial;
    size_t partial_n;
    struct tl_chunk *ready; /* taken from `out`, being sent */
    size_t ready_at;
    size_t ready_bytes;
    size_t promised;  /* of `ready`: the next DATA frame's, whose size nghttp2 knows */
    uv_timer_t timer; /* for the deadline */
    bool has_timer;

    size_t holds;        /* charged as TL_USE_ANSWERS for what its call takes */
    atomic_bool lasting; /* the answer is produced while it is sent, for as long as it takes */

    struct tl_waiter waiter; /* its lock guards everything below */
    bool dirty;
    bool has_head;
    bool ended;
    uint32_t reset; /* 1 + error code for RST_STREAM */
    struct tl_fields head;
    struct tl_fields trailers;
    struct tl_chunk *out;
    struct tl_chunk **out_tail;
    struct tl_chunk *out_last;
    size_t out_bytes;  /* pending, including `ready` */
    size_t out_mapped; /* of it, bytes of mapped files */
    bool stalled;      /* a worker waits until less is pending */
    struct tl_message *in;
    struct tl_message **in_tail;
    size_t in_bytes;
    bool in_ended;
    int in_error; /* enum tl_err that follows the complete messages */
};

/* Pending received messages up to which the client's window is replenished. */
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
/* Is the response no longer wanted: the client went away, or the deadline has passed? The argument
 * is the stream: for struct tl_cancel. */
bool tl_stream_unwanted(void *stream);

/* ---- worker side ------------------------------------------------------------------------ */

/* Set the response's head, once; takes over the fields (`head` is empty afterwards). */
void tl_stream_head(struct tl_stream *stream, struct tl_fields *head);

/*
 * Queue bytes of the body, one chunk or a few linked by `next`; takes ownership, also on failure.
 * Blocks while too much is pending. `chunk->latest`: replaces a `latest` chunk at the end of the
 * queue. TL_CANCELLED.
 */
TL_MUST_USE int tl_stream_write(struct tl_stream *stream, struct tl_chunk *chunk);
/* End the response; takes over `trailers` (may be NULL). */
void tl_stream_end(struct tl_stream *stream, struct tl_fields *trailers);
/* Send head and trailers without a body; takes over both. Does nothing if it has ended. */
void tl_stream_finish(struct tl_stream *stream, struct tl_fields *head, struct tl_fields *trailers);
/* Reset the stream with an HTTP/2 error code. */
void tl_stream_reset(struct tl_stream *stream, uint32_t code);

/*
 * Receive the next message, which the caller frees with tl_message_free(). TL_EOF: the client has
 * sent everything; TL_AGAIN: poked, or `timeout_ms` (negative: none) elapsed; TL_CANCELLED;
 * TL_LIMIT, TL_BAD: the input is too large or not gRPC; TL_UNREACHABLE: it does not arrive.
 */
TL_MUST_USE int tl_stream_read(struct tl_stream *stream, struct tl_message **out,
                               int64_t timeout_ms);
void tl_message_free(struct tl_stream *stream, struct tl_message *message);

/* ---- loop side (h2.c) ------------------------------------------------------------------- */

/* Create. Keeps a reference to `caller`. NULL: out of memory. */
struct tl_stream *tl_stream_new(struct tl_netloop *loop, int32_t id, struct tl_caller *caller);
/* The stream is closed: wake the worker, release the loop's reference. */
void tl_stream_detach(struct tl_stream *stream);
/*
 * Process bytes of the body. Returns how many may be returned to the window now; < 0: enum tl_err.
 */
ssize_t tl_stream_receive(struct tl_stream *stream, const uint8_t *p, size_t n);
/* Maximum message size of the stream's method. */
size_t tl_stream_max_message(const struct tl_stream *stream);
/* More must arrive within the time for requests. */
void tl_stream_await(struct tl_stream *stream);
/* It has not: what waits for it fails. */
void tl_stream_give_up(struct tl_stream *stream);
/* The client half-closed the stream. */
void tl_stream_receive_end(struct tl_stream *stream);
/* Is there more of the answer to be sent, at least its end? */
bool tl_stream_pending(struct tl_stream *stream);
/* Fill `ready` with what can be sent. Returns whether the response ends after it. */
bool tl_stream_collect(struct tl_stream *stream);
/* Move `n` bytes of `ready` to `q`. TL_NOMEM. */
TL_MUST_USE int tl_stream_emit(struct tl_stream *stream, struct tl_outq *q, size_t n);
/* Bytes that were handed over for sending cannot be read: end the stream with these trailers
 * (taken over). TL_NOMEM. */
TL_MUST_USE int tl_stream_cut_short(struct tl_stream *stream, struct tl_fields *trailers);
/*
 * The deadline has passed; from now on the worker's functions return TL_CANCELLED. If no head has
 * been sent, this ends the stream at once, with head and trailers (taken over). Otherwise the
 * worker ends it, or if it has not by then, the second call with RST_STREAM CANCEL.
 */
void tl_stream_expire(struct tl_stream *stream, struct tl_fields *head, struct tl_fields *trailers);
/*
 * Set a deadline in `ns` nanoseconds: then, and again a little later, tl_grpc_timed_out() is
 * called.
 */
void tl_stream_deadline(struct tl_stream *stream, int64_t ns);

/* Does it ask whether the server is well? */
bool tl_asks_health(const struct tl_stream *stream);

/* ---- by protocol ------------------------------------------------------------------------ */

/* Find the method with this path, or NULL. */
const struct tl_method *tl_grpc_find(const struct tl_app *app, const char *path);
/* Parse a grpc-timeout value: ns, at most INT64_MAX, or TL_BAD. */
int64_t tl_grpc_timeout_ns(const char *text);
/* Is it a supported content type: application/grpc, application/grpc+proto? NULL is not. */
bool tl_grpc_is(const char *content_type);
/* The header fields are complete: begin the call, or answer at once. On the loop's thread. */
void tl_grpc_begin(struct tl_stream *stream);
void tl_http2_begin(struct tl_stream *stream);
/* A complete message, or the end, was received: start what waits for it. On the loop's thread. */
void tl_grpc_received(struct tl_stream *stream);
/* As tl_stream_cut_short(). On the loop's thread. */
TL_MUST_USE int tl_grpc_cut_short(struct tl_stream *stream);
/* The deadline has passed. On the loop's thread. */
void tl_grpc_timed_out(struct tl_stream *stream);

#endif
