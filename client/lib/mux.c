/* SPDX-License-Identifier: MIT */
/*
 * Runs nghttp2 without a thread: each step writes what is queued and reads what has arrived. A
 * library that starts threads would impose locks and signal handling on the programs that use it.
 */
#include "mux.h"

#include "base/digits.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAME_HEAD = 9,
    FRAME_MAX = FRAME_HEAD + (16 << 10),
    OUT_MAX = 256 << 10, /* bytes gathered for one write */
    IN_MAX = 256 << 10,  /* bytes per read */
    CONNECTION_WINDOW = 64 << 20
};

struct tl_mux {
    unsigned refs;
    struct tl_wire *wire;
    nghttp2_session *session;
    const atomic_bool *interrupted;
    bool dead;
    bool draining;              /* GOAWAY: no new calls */
    bool greeted;               /* SETTINGS were received: the server speaks HTTP/2 */
    bool foreign;               /* something else was received */
    struct tracelake_error why; /* reason why it is dead */
    int quiet_ms;               /* tl_wire_options */
    bool news;                  /* something other than the answer to a PING was received */
    int64_t heard;              /* last sign of life of the peer: ms */
    int64_t looked;             /* when tl_mux_step() last waited */
    int64_t asked;              /* when a PING was sent since; 0: none */
    size_t unsent;              /* bytes not acknowledged by its system then */
    uint8_t *in;
    uint8_t *out;
    size_t out_n;
    size_t out_at;
};

/* ---- nghttp2 callbacks -------------------------------------------------------------------- */

static struct tl_ask_io *io_of(nghttp2_session *session, int32_t stream)
{
    return nghttp2_session_get_stream_user_data(session, stream);
}

/* grpc-message is percent-encoded; malformed text is kept as it is. */
static void decode_message(char *out, size_t cap, const uint8_t *p, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n && used + 1 < cap; i++) {
        uint8_t c = p[i];
        const int high = n - i > 2 ? tl_hex_digit((char)p[i + 1]) : -1;
        const int low = n - i > 2 ? tl_hex_digit((char)p[i + 2]) : -1;
        if (c == '%' && high >= 0 && low >= 0) {
            c = (uint8_t)(high << 4 | low);
            i += 2;
        }
        out[used++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    out[used] = 0;
}

/* Parse a small decimal number, or -1. */
static int small_number(const uint8_t *p, size_t n)
{
    int value = 0;
    if (n == 0 || n > 4)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

static bool is(const uint8_t *name, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(name, text, n) == 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                     void *context)
{
    struct tl_ask_io *io = io_of(session, frame->hd.stream_id);
    if (!io)
        return 0;
    if (is(name, n_name, ":status"))
        io->http_status = small_number(value, n_value);
    else if (is(name, n_name, "content-type"))
        io->grpc = n_value >= 16 && memcmp(value, "application/grpc", 16) == 0;
    else if (is(name, n_name, "grpc-status"))
        io->grpc_status = small_number(value, n_value);
    else if (is(name, n_name, "grpc-message"))
        decode_message(io->message, sizeof io->message, value, n_value);
    return 0;
}

/* Append what was received. A message that is in use stays where it is. */
static int append(struct tl_ask_io *io, const uint8_t *p, size_t n)
{
    if (io->lent && !io->held.p && n > io->in.cap - io->in.n) {
        struct tl_buf rest = {0};
        if (tl_buf_reserve(&rest, io->in.n - io->in_at + n) < 0)
            return TL_NOMEM;
        (void)!tl_buf_add(&rest, io->in.p + io->in_at, io->in.n - io->in_at);
        io->held = io->in;
        io->in = rest;
        io->in_at = 0;
    }
    return tl_buf_add(&io->in, p, n);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *p,
                   size_t n, void *context)
{
    struct tl_ask_io *io = io_of(session, stream);
    ((struct tl_mux *)context)->news = true;
    if (nghttp2_session_consume_connection(session, n) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (!io)
        return 0;
    if (append(io, p, n) < 0) {
        io->overflow = true;
        return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL)
                   ? NGHTTP2_ERR_CALLBACK_FAILURE
                   : 0;
    }
    io->unconsumed += n;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct tl_mux *mux = context;
    if (frame->hd.type != NGHTTP2_PING)
        mux->news = true;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        mux->draining = true;
    if (frame->hd.type == NGHTTP2_SETTINGS)
        mux->greeted = true;
    const bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
                      (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
    struct tl_ask_io *io = ends ? io_of(session, frame->hd.stream_id) : NULL;
    if (io)
        io->ended = true;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
    ((struct tl_mux *)context)->news = true;
    struct tl_ask_io *io = io_of(session, stream);
    if (io) {
        io->ended = io->closed = true;
        io->reset = code;
    }
    return 0;
}

static ssize_t read_out(nghttp2_session *session, int32_t stream, uint8_t *p, size_t n,
                        uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct tl_ask_io *io = io_of(session, stream);
    if (!io) /* abandoned while sending: its reset is pending */
        return NGHTTP2_ERR_DEFERRED;
    const size_t left = io->out.n - io->out_at + io->tail.n;
    if (left == 0 && !io->out_end) {
        io->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (left <= n && io->out_end)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)(left < n ? left : n);
}

/* Take the next `n` bytes off what is to be sent. */
static void take_out(struct tl_ask_io *io, uint8_t *p, size_t n)
{
    const size_t left = io->out.n - io->out_at;
    const size_t now = left < n ? left : n;
    if (now)
        memcpy(p, io->out.p + io->out_at, now);
    io->out_at += now;
    if (io->out_at == io->out.n) {
        tl_buf_reset(&io->out);
        io->out_at = 0;
    }
    if (n > now) {
        memcpy(p + now, io->tail.p, n - now);
        io->tail.p += n - now;
        io->tail.n -= n - now;
    }
}

/* Append the DATA frame of the bytes that read_out() has told. */
static int send_out(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                    nghttp2_data_source *source, void *context)
{
    struct tl_mux *const mux = context;
    struct tl_ask_io *const io = io_of(session, frame->hd.stream_id);
    (void)source;
    if (!io) /* abandoned */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (mux->out_n + FRAME_HEAD + n + FRAME_MAX > OUT_MAX)
        return NGHTTP2_ERR_WOULDBLOCK; /* until some was written */
    memcpy(mux->out + mux->out_n, head, FRAME_HEAD);
    take_out(io, mux->out + mux->out_n + FRAME_HEAD, n);
    mux->out_n += FRAME_HEAD + n;
    return 0;
}

static int new_session(struct tl_mux *mux)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return TRACELAKE_NOMEM;
    if (nghttp2_option_new(&option) != 0) {
        nghttp2_session_callbacks_del(callbacks);
        return TRACELAKE_NOMEM;
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_out);
    nghttp2_option_set_no_auto_window_update(option, 1);
    int failed = nghttp2_session_client_new2(&mux->session, callbacks, mux, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, TL_ASK_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, IN_MAX},
    };
    if (!failed)
        failed = nghttp2_submit_settings(mux->session, NGHTTP2_FLAG_NONE, settings,
                                         sizeof settings / sizeof *settings);
    if (!failed)
        failed = nghttp2_session_set_local_window_size(mux->session, NGHTTP2_FLAG_NONE, 0,
                                                       CONNECTION_WINDOW);
    return failed ? TRACELAKE_NOMEM : TRACELAKE_OK;
}

/* ---- life --------------------------------------------------------------------------------- */

/* Wait for the server's first bytes: anything else than SETTINGS is not a tracelake server. If none
 * come, it has accepted the connection while it was ending; no call has been made. */
static int greet(struct tl_mux *mux, const struct tl_url *url, int ms,
                 struct tracelake_error *error)
{
    const int64_t until = tl_monotonic_ms() + ms;
    while (!mux->greeted) {
        const int64_t left = until - tl_monotonic_ms();
        const int result = left > 0 ? tl_mux_step(mux, (int)left, error) : TRACELAKE_AGAIN;
        if (result == TRACELAKE_AGAIN)
            return tl_client_fail(error, TRACELAKE_TIMEOUT,
                                  "no word of HTTP/2 from %s within the time limit; is it a "
                                  "tracelake server?",
                                  url->authority);
        if (result == TRACELAKE_UNREACHABLE && !mux->foreign)
            return tl_client_lost(error, url->authority, url->tls);
        if (result < 0)
            return result;
    }
    return TRACELAKE_OK;
}

int tl_mux_open(struct tl_mux **out, const struct tl_url *url, const struct addrinfo *address,
                const struct tl_wire_options *options, const atomic_bool *interrupted,
                struct tracelake_error *error)
{
    struct tl_mux *mux = calloc(1, sizeof *mux);
    if (!mux)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    mux->refs = 1;
    mux->interrupted = interrupted;
    mux->quiet_ms = options->quiet_ms;
    mux->in = malloc(IN_MAX);
    mux->out = malloc(OUT_MAX);
    int result = TRACELAKE_NOMEM;
    if (!mux->in || !mux->out || new_session(mux) < 0)
        tl_client_fail(error, result, "out of memory");
    else
        result = tl_wire_open(&mux->wire, url, address, options, error);
    if (result == TRACELAKE_OK)
        result = greet(mux, url, options->connect_ms, error);
    if (result < 0) {
        tl_mux_put(mux);
        return result;
    }
    *out = mux;
    return TRACELAKE_OK;
}

struct tl_mux *tl_mux_get(struct tl_mux *mux)
{
    mux->refs++;
    return mux;
}

void tl_mux_put(struct tl_mux *mux)
{
    if (!mux || --mux->refs)
        return;
    if (mux->wire && !mux->dead) {
        /* Send GOAWAY if it does not block; the server does not depend on it. */
        nghttp2_session_terminate_session(mux->session, NGHTTP2_NO_ERROR);
        if (tl_mux_step(mux, 0, NULL) < 0)
            mux->dead = true;
    }
    nghttp2_session_del(mux->session);
    tl_wire_close(mux->wire);
    free(mux->in);
    free(mux->out);
    free(mux);
}

int tl_mux_descriptor(const struct tl_mux *mux, bool *writing)
{
    *writing = mux->out_n > mux->out_at || nghttp2_session_want_write(mux->session);
    return tl_wire_descriptor(mux->wire);
}

bool tl_mux_usable(const struct tl_mux *mux)
{
    return !mux->dead && !mux->draining && nghttp2_session_check_request_allowed(mux->session);
}

static int die(struct tl_mux *mux, int result, const struct tracelake_error *why)
{
    mux->dead = true;
    if (why)
        mux->why = *why;
    return result;
}

static int die_of(struct tl_mux *mux, int code)
{
    return die(mux,
               tl_client_fail(&mux->why,
                              code == NGHTTP2_ERR_NOMEM ? TRACELAKE_NOMEM : TRACELAKE_UNREACHABLE,
                              "the server does not speak HTTP/2 as agreed: %s; is it a tracelake "
                              "server?",
                              nghttp2_strerror(code)),
               NULL);
}

/* ---- calls -------------------------------------------------------------------------------- */

int tl_mux_submit(struct tl_mux *mux, const nghttp2_nv *headers, size_t n, struct tl_ask_io *io,
                  struct tracelake_error *error)
{
    const nghttp2_data_provider provider = {.read_callback = read_out};
    io->stream = nghttp2_submit_request(mux->session, NULL, headers, n, &provider, io);
    if (io->stream < 0)
        return tl_client_fail(error, TRACELAKE_UNREACHABLE, "cannot begin a call: %s",
                              nghttp2_strerror(io->stream));
    return TRACELAKE_OK;
}

void tl_mux_wake(struct tl_mux *mux, struct tl_ask_io *io)
{
    if (!io->deferred || mux->dead || io->closed)
        return;
    io->deferred = false;
    const int failed = nghttp2_session_resume_data(mux->session, io->stream);
    if (failed == NGHTTP2_ERR_NOMEM)
        die_of(mux, failed);
}

void tl_mux_consume(struct tl_mux *mux, struct tl_ask_io *io)
{
    if (!io->unconsumed)
        return;
    if (!mux->dead && !io->closed) {
        const int failed = nghttp2_session_consume_stream(mux->session, io->stream, io->unconsumed);
        if (failed)
            die_of(mux, failed);
    }
    io->unconsumed = 0;
}

void tl_mux_forget(struct tl_mux *mux, struct tl_ask_io *io)
{
    if (io->stream <= 0 || mux->dead || io->closed)
        return;
    nghttp2_session_set_stream_user_data(mux->session, io->stream, NULL);
    if (nghttp2_submit_rst_stream(mux->session, NGHTTP2_FLAG_NONE, io->stream, NGHTTP2_CANCEL) ||
        tl_mux_step(mux, 0, NULL) == TRACELAKE_NOMEM)
        mux->dead = true;
}

/* ---- moving bytes ------------------------------------------------------------------------- */

/* Gather frames and write them until the socket is full or nothing is left. */
static int flush_out(struct tl_mux *mux, bool *moved)
{
    for (;;) {
        while (mux->out_n + FRAME_MAX <= OUT_MAX) {
            const uint8_t *p;
            const ssize_t n = nghttp2_session_mem_send(mux->session, &p);
            if (n < 0)
                return die_of(mux, (int)n);
            if (n == 0)
                break;
            if ((size_t)n > OUT_MAX - mux->out_n)
                return die_of(mux, NGHTTP2_ERR_FRAME_SIZE_ERROR);
            memcpy(mux->out + mux->out_n, p, (size_t)n);
            mux->out_n += (size_t)n;
        }
        if (mux->out_at == mux->out_n) {
            mux->out_at = mux->out_n = 0;
            return TRACELAKE_OK;
        }
        struct tracelake_error error;
        const long n =
            tl_wire_write(mux->wire, mux->out + mux->out_at, mux->out_n - mux->out_at, &error);
        if (n == TRACELAKE_AGAIN)
            return TRACELAKE_OK;
        if (n < 0)
            return die(mux, (int)n, &error);
        mux->out_at += (size_t)n;
        *moved = true;
        if (mux->out_at == mux->out_n)
            mux->out_at = mux->out_n = 0;
    }
}

/* One read: callers use what it brought while it is in the processor's cache. */
static int take_in(struct tl_mux *mux, bool *moved)
{
    struct tracelake_error error;
    const long n = tl_wire_read(mux->wire, mux->in, IN_MAX, &error);
    if (n == TRACELAKE_AGAIN)
        return TRACELAKE_OK;
    if (n < 0)
        return die(mux, (int)n, &error);
    const ssize_t taken = nghttp2_session_mem_recv(mux->session, mux->in, (size_t)n);
    /* nghttp2 answers what is not HTTP/2 with a GOAWAY: from then on it allows no request. */
    mux->foreign =
        !mux->greeted && (taken < 0 || !nghttp2_session_check_request_allowed(mux->session));
    if (taken < 0)
        return die_of(mux, (int)taken);
    if (mux->foreign)
        return die(mux,
                   tl_client_fail(&mux->why, TRACELAKE_UNREACHABLE,
                                  "what answers there does not speak HTTP/2; is it a tracelake "
                                  "server?"),
                   NULL);
    *moved |= mux->news;
    mux->news = false;
    mux->heard = tl_monotonic_ms();
    mux->asked = 0;
    return TRACELAKE_OK;
}

/*
 * Check that the link is alive. A link that swallows bytes looks like a server that has nothing to
 * send, so a PING is sent after some silence: its answer needs nothing but the server's event loop.
 * A long send queue that gets shorter is also a sign of life, since the PING waits after it.
 * False: the link is dead.
 */
static bool alive(struct tl_mux *mux, int64_t now)
{
    if (mux->quiet_ms <= 0)
        return true;
    const size_t unsent = tl_wire_unsent(mux->wire);
    if (mux->asked && unsent < mux->unsent)
        mux->asked = now;
    mux->unsent = unsent;
    if (now < (mux->asked ? mux->asked : mux->heard) + mux->quiet_ms)
        return true;
    if (!mux->asked) {
        bool moved;
        if (nghttp2_submit_ping(mux->session, NGHTTP2_FLAG_NONE, NULL) != 0)
            return true; /* out of memory: retry next time */
        mux->asked = now;
        mux->dead = flush_out(mux, &moved) < 0;
        return !mux->dead;
    }
    tl_client_fail(&mux->why, TRACELAKE_UNREACHABLE,
                   "the server has not answered for %.1f s; the link to it is dead",
                   (double)(now - mux->heard) / 1000);
    mux->dead = true;
    return false;
}

/* Time until alive() must be called again, at most `ms` (< 0: forever). */
static int next_look(const struct tl_mux *mux, int64_t now, int ms)
{
    const int64_t left = (mux->asked ? mux->asked : mux->heard) + mux->quiet_ms - now;
    if (mux->quiet_ms <= 0 || (ms >= 0 && ms < left))
        return ms;
    return left > 0 ? (int)left : 1;
}

/* Read and write once. A write that fails because the peer has gone may leave data to read. */
static int move(struct tl_mux *mux, bool *moved)
{
    const int sent = flush_out(mux, moved);
    if (sent < 0 && sent != TRACELAKE_UNREACHABLE)
        return sent;
    const int taken = take_in(mux, moved);
    return sent < 0 ? sent : taken;
}

int tl_mux_step(struct tl_mux *mux, int ms, struct tracelake_error *error)
{
    const int64_t begun = tl_monotonic_ms();
    const int64_t deadline = begun + ms;
    /* Time during which nobody waited on the connection does not count as silence. */
    if (!mux->asked && begun - mux->looked > mux->quiet_ms)
        mux->heard = begun;
    mux->looked = begun;
    for (;;) {
        if (atomic_load(mux->interrupted))
            return tl_client_fail(error, TRACELAKE_CANCELLED, "interrupted");
        bool moved = false;
        if (!mux->dead && move(mux, &moved) < 0)
            mux->dead = true;
        if (moved)
            return TRACELAKE_OK;
        if (mux->dead)
            break;
        if (!nghttp2_session_want_read(mux->session) && !nghttp2_session_want_write(mux->session)) {
            tl_client_fail(&mux->why, TRACELAKE_UNREACHABLE, "the server ended the connection");
            mux->dead = true;
            break;
        }
        const int64_t now = mux->looked = tl_monotonic_ms();
        const int64_t left = ms < 0 ? -1 : deadline - now;
        if (!alive(mux, now))
            break;
        if (ms >= 0 && left <= 0)
            return TRACELAKE_AGAIN;
        const int ready = tl_wire_wait(mux->wire, mux->out_n > mux->out_at,
                                       next_look(mux, now, (int)left), error);
        if (ready == TRACELAKE_CANCELLED)
            return ready;
    }
    if (error)
        *error = mux->why;
    return mux->why.code < 0 ? mux->why.code : TRACELAKE_UNREACHABLE;
}
