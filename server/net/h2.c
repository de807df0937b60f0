/* SPDX-License-Identifier: MIT */
/*
 * Drives nghttp2 on a connection's loop and passes its streams to calls and requests. Frames that
 * cost work but carry nothing are rationed, because a client can send them faster than they can be
 * answered.
 */
#include "net/h2.h"

#include "net/auth.h"
#include "net/quota.h"

#include <stdlib.h>
#include <string.h>

#define OUT_MARK     (256u << 10) /* nghttp2 waits while more is queued for the socket */
#define DATA_FRAME   65536 /* larger frames cost less; even larger ones would delay other streams */
#define TURN_BYTES   (1u << 20) /* sent by a connection; then others get their turn */
#define READ_ROUNDS  8          /* then other connections get their turn */
#define QUIET_MS     30000      /* silence with open streams: send PING */
#define DEAD_MS      60000      /* no answer: the connection is dead */
#define IDLE_MS      600000     /* no stream for this long: close */
#define CREDIT_BURST 2000.0     /* burst of cheap frames (PING, SETTINGS, PRIORITY, empty DATA) */
#define CREDIT_PER_S 500.0
#define MAX_DROPPED  (1u << 20) /* of an unwanted request body */
#define HEAD_BYTES   4096       /* memory of a request with few header fields */
#define HEAD_STEP    16384      /* counted at a time for more of them */

/* ---- sending ---------------------------------------------------------------------------- */

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t length, int flags,
                       void *user)
{
    struct tl_h2 *const h2 = user;
    if (h2->out.bytes > OUT_MARK)
        return NGHTTP2_ERR_WOULDBLOCK;
    return tl_outq_copy(&h2->out, data, length) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE
                                                    : (ssize_t)length;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                        size_t length, nghttp2_data_source *source, void *user)
{
    struct tl_h2 *const h2 = user;
    if (h2->out.bytes > OUT_MARK)
        return NGHTTP2_ERR_WOULDBLOCK;
    struct tl_stream *const stream = source->ptr;
    /* We never pad (no select_padding_callback), so a frame is its header and the slice. */
    if (tl_outq_copy(&h2->out, head, 9) < 0 || tl_stream_emit(stream, &h2->out, length) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    stream->promised = 0;
    return 0;
}

static ssize_t on_frame_size(nghttp2_session *session, uint8_t frame_type, int32_t stream_id,
                             int32_t session_window, int32_t stream_window, uint32_t max_frame,
                             void *user)
{
    ssize_t n = DATA_FRAME;
    if (n > session_window)
        n = session_window;
    if (n > stream_window)
        n = stream_window;
    return n > (ssize_t)max_frame ? (ssize_t)max_frame : n;
}

static size_t put_fields(nghttp2_nv *out, const struct tl_fields *fields, size_t max)
{
    size_t n = 0;
    for (; n < fields->n && n < max; n++)
        out[n] = (nghttp2_nv){
            .name = (uint8_t *)fields->text.p + fields->at[n].name,
            .namelen = fields->at[n].name_n,
            .value = (uint8_t *)fields->text.p + fields->at[n].value,
            .valuelen = fields->at[n].value_n,
            .flags = NGHTTP2_NV_FLAG_NONE,
        };
    return n;
}

static ssize_t on_read(nghttp2_session *session, int32_t stream_id, uint8_t *buf, size_t length,
                       uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct tl_stream *const stream = source->ptr;
    const bool ended = tl_stream_collect(stream);
    const size_t n = stream->ready_bytes < length ? stream->ready_bytes : length;
    if (n == 0 && !ended) {
        stream->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    stream->promised = n;
    if (ended && n == stream->ready_bytes) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        stream->finished = true;
        if (stream->trailers.n) {
            nghttp2_nv nv[TL_H2_MAX_HEADERS];
            const size_t count = put_fields(nv, &stream->trailers, TL_H2_MAX_HEADERS);
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (nghttp2_submit_trailer(session, stream_id, nv, count))
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)n;
}

static void submit(struct tl_h2 *h2, struct tl_stream *stream)
{
    nghttp2_nv nv[TL_H2_MAX_HEADERS];
    const bool ended = tl_stream_collect(stream);
    size_t n = put_fields(nv, &stream->head, TL_H2_MAX_HEADERS);
    const nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = on_read};
    const bool body = !ended || stream->ready_bytes;
    if (!body)
        n += put_fields(nv + n, &stream->trailers, TL_H2_MAX_HEADERS - n);
    stream->submitted = true;
    stream->moved_at = uv_now(&h2->conn->loop->loop.uv);
    if (nghttp2_submit_response(h2->session, stream->id, nv, n, body ? &provider : NULL))
        nghttp2_submit_rst_stream(h2->session, 0, stream->id, NGHTTP2_INTERNAL_ERROR);
}

/* Send the session's pending output soon. */
static void flush_soon(struct tl_h2 *h2)
{
    if (h2->flush_queued)
        return;
    h2->flush_queued = true;
    h2->flush_next = h2->conn->loop->flush;
    h2->conn->loop->flush = h2;
}

/* A worker has changed its stream. */
void tl_h2_stream_task(struct tl_task *task);
void tl_h2_stream_task(struct tl_task *task)
{
    struct tl_stream *const stream = (struct tl_stream *)task;
    pthread_mutex_lock(&stream->waiter.lock);
    stream->dirty = false;
    const bool has_head = stream->has_head;
    const bool more = stream->out || stream->ended;
    const uint32_t reset = stream->reset;
    const bool room = stream->in_bytes <= TL_STREAM_IN_MARK;
    pthread_mutex_unlock(&stream->waiter.lock);
    struct tl_h2 *const h2 = stream->h2;
    if (h2) {
        if (room && stream->owed) {
            nghttp2_session_consume_stream(h2->session, stream->id, stream->owed);
            stream->owed = 0;
        }
        if (reset) {
            nghttp2_submit_rst_stream(h2->session, 0, stream->id, reset - 1);
        } else if (has_head && !stream->submitted) {
            submit(h2, stream);
        } else if (more && stream->deferred) {
            stream->deferred = false;
            nghttp2_session_resume_data(h2->session, stream->id);
        }
        flush_soon(h2);
    }
    tl_stream_put(stream);
}

int tl_h2_cut_short(struct tl_h2 *h2, int32_t id)
{
    struct tl_stream *const stream = nghttp2_session_get_stream_user_data(h2->session, id);
    return !stream || stream->finished ? TL_IO : tl_grpc_cut_short(stream);
}

/*
 * Write until the socket is full or nothing is left. Returns false when the connection is over. The
 * loop is required: when flushing has freed space, no event will trigger another call.
 */
static bool flush(struct tl_h2 *h2)
{
    struct tl_conn *const conn = h2->conn;
    size_t sent = 0; /* roughly */
    bool some;
    int rc;
    do {
        if (nghttp2_session_send(h2->session))
            return false;
        const size_t before = h2->out.bytes;
        some = h2->out.count > 0;
        sent += before;
        rc = tl_conn_flush(conn, &h2->out);
        if (rc < 0)
            return false;
        if (rc || h2->out.bytes < before)
            h2->moved_at = uv_now(&conn->loop->loop.uv);
        if (sent > TURN_BYTES)
            rc = 0; /* continue when the socket is reported to be writable, which it is */
    } while (rc && some && nghttp2_session_want_write(h2->session));
    /* Stop reading from a client that does not read our answers: otherwise acks would
     * accumulate. */
    const bool read = h2->out.bytes <= 2 * OUT_MARK;
    tl_conn_poll(conn, (read ? UV_READABLE : 0) | (rc ? 0 : UV_WRITABLE));
    return !rc || nghttp2_session_want_read(h2->session) || nghttp2_session_want_write(h2->session);
}

void tl_h2_flush_all(struct tl_netloop *loop)
{
    while (loop->flush) {
        struct tl_h2 *const h2 = loop->flush;
        loop->flush = h2->flush_next;
        h2->flush_queued = false;
        if (!flush(h2))
            tl_conn_linger(h2->conn);
    }
}

/* ---- receiving -------------------------------------------------------------------------- */

/* Frames that cause work without content are rate-limited. */
static bool take_credit(struct tl_h2 *h2)
{
    const uint64_t now = uv_now(&h2->conn->loop->loop.uv);
    h2->credit += (double)(now - h2->credit_at) * (CREDIT_PER_S / 1000);
    if (h2->credit > CREDIT_BURST)
        h2->credit = CREDIT_BURST;
    h2->credit_at = now;
    h2->credit -= 1;
    if (h2->credit >= 0)
        return true;
    atomic_fetch_add(&h2->conn->loop->net->stats.floods, 1);
    nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
    return false;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *user)
{
    const bool cheap = head->type == NGHTTP2_PING || head->type == NGHTTP2_SETTINGS ||
                       head->type == NGHTTP2_PRIORITY ||
                       (head->type == NGHTTP2_DATA && head->length == 0 &&
                        !(head->flags & NGHTTP2_FLAG_END_STREAM));
    if (cheap)
        take_credit(user);
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct tl_h2 *const h2 = user;
    struct tl_netloop *const loop = h2->conn->loop;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct tl_account *const account = h2->conn->caller->account;
    if (!tl_account_take(account, TL_USE_HEADS, HEAD_BYTES))
        return nghttp2_submit_rst_stream(session, 0, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
    struct tl_stream *const stream = tl_stream_new(loop, frame->hd.stream_id, h2->conn->caller);
    if (!stream) {
        tl_account_release(account, TL_USE_HEADS, HEAD_BYTES);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    stream->head_held = HEAD_BYTES;
    stream->h2 = h2;
    tl_stream_await(stream);
    stream->tls = h2->conn->tls != NULL;
    stream->next = h2->streams;
    stream->link = &h2->streams;
    if (stream->next)
        stream->next->link = &stream->next;
    h2->streams = stream;
    atomic_fetch_add_explicit(&loop->net->stats.streams, 1, memory_order_relaxed);
    atomic_fetch_add(&loop->net->stats.streams_open, 1);
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

/* A request takes about HEAD_BYTES with up to half as many bytes of header fields. */
static bool hold_head(struct tl_stream *stream, size_t n)
{
    const size_t need = stream->request.text.n + n + HEAD_BYTES / 2;
    if (need <= stream->head_held)
        return true;
    const size_t more = (need - stream->head_held + HEAD_STEP - 1) / HEAD_STEP * HEAD_STEP;
    if (!tl_account_take(stream->caller->account, TL_USE_HEADS, more))
        return false;
    stream->head_held += more;
    return true;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
    struct tl_stream *const stream =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!stream || stream->dispatched)
        return 0; /* trailers: not used */
    if (stream->request.n >= TL_H2_MAX_HEADERS ||
        stream->request.text.n + name_n + value_n > TL_H2_MAX_HEADER_BYTES ||
        !hold_head(stream, name_n + value_n)) {
        stream->too_large = true; /* the rest is dropped; nghttp2 limits its frames */
        return 0;
    }
    if (tl_fields_add_n(&stream->request, (const char *)name, name_n, (const char *)value,
                        value_n) < 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return 0;
}

/* Who asks, and who is charged? */
static void identify(struct tl_stream *stream)
{
    struct tl_grant grant =
        tl_net_grant(stream->net, &stream->request, stream->caller, !stream->is_grpc);
    stream->roles = grant.roles;
    stream->scope = grant.scope;
    stream->denial = grant.why;
    stream->holder = grant.holder;
    if (grant.known) {
        tl_account_put(stream->account);
        stream->account = tl_caller_account(stream->caller, &grant);
    }
    const bool counted = stream->holder && stream->holder->quota.calls;
    if ((!counted && !tl_net_is_guest(stream->net, &grant)) || tl_asks_health(stream))
        return;
    char why[256];
    stream->refused = !tl_holder_call(stream->holder, why, sizeof why);
    if (tl_net_is_guest(stream->net, &grant)) {
        stream->guest = tl_account_take(stream->caller->account, TL_USE_GUESTS, 1);
        stream->refused = !stream->guest;
        tl_account_say(stream->account, TL_USE_GUESTS, "requests without a valid token", why,
                       sizeof why);
    }
    if (stream->refused)
        stream->why = strdup(why);
}

static void dispatch(struct tl_stream *stream)
{
    stream->dispatched = true;
    stream->is_grpc = tl_grpc_is(tl_fields_get(&stream->request, "content-type"));
    identify(stream);
    if (stream->is_grpc)
        tl_grpc_begin(stream);
    else if (!stream->too_large && !stream->refused)
        tl_body_expect(stream->net, tl_fields_get(&stream->request, ":method"),
                       tl_fields_get(&stream->request, ":path"), &stream->request, stream->roles,
                       stream->account, &stream->body);
}

void tl_h2_begin_http(struct tl_stream *stream)
{
    if (stream->is_grpc || stream->working)
        return;
    stream->working = true;
    stream->due = 0;
    tl_http2_begin(stream);
}

static void on_ping(struct tl_h2 *h2, const nghttp2_frame *frame)
{
    if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
        return;
    h2->ping_pending = false;
    if (h2->draining && !h2->last_goaway) {
        /* Everything that the client sent before it saw the first GOAWAY has arrived. */
        h2->last_goaway = true;
        nghttp2_submit_goaway(h2->session, 0, nghttp2_session_get_last_proc_stream_id(h2->session),
                              NGHTTP2_NO_ERROR, NULL, 0);
    }
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct tl_h2 *const h2 = user;
    h2->greeted = true; /* its first SETTINGS belong to the preface. Source: RFC 9113, 3.4 */
    if (frame->hd.type == NGHTTP2_PING)
        on_ping(h2, frame);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct tl_stream *const stream =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !stream->dispatched)
        dispatch(stream);
    if (stream->refused)
        tl_h2_begin_http(stream);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        tl_stream_receive_end(stream);
        tl_h2_begin_http(stream);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id, const uint8_t *data,
                   size_t length, void *user)
{
    struct tl_stream *const stream = nghttp2_session_get_stream_user_data(session, stream_id);
    /* The connection's window is returned at once, so that a stream that waits for the disk does
     * not block others; the stream's own window when a worker has consumed the bytes. */
    nghttp2_session_consume_connection(session, length);
    const ssize_t free_now = stream ? tl_stream_receive(stream, data, length) : (ssize_t)length;
    if (stream && !stream->is_grpc && !tl_body_add(&stream->body, data, length) &&
        (stream->dropped += length) > MAX_DROPPED)
        tl_h2_begin_http(stream);
    if (free_now > 0)
        nghttp2_session_consume_stream(session, stream_id, (size_t)free_now);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    /* A stream that ends in an error was wasted work. */
    if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
        take_credit(user);
    if ((frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    const struct tl_stream *const stream =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (stream && !stream->half_closed)
        nghttp2_submit_rst_stream(session, 0, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code, void *user)
{
    struct tl_h2 *const h2 = user;
    struct tl_stream *const stream = nghttp2_session_get_stream_user_data(session, stream_id);
    if (stream) {
        nghttp2_session_set_stream_user_data(session, stream_id, NULL);
        tl_stream_detach(stream);
    }
    h2->busy_at = uv_now(&h2->conn->loop->loop.uv);
    return 0;
}

void tl_h2_ready(struct tl_conn *conn, int events)
{
    struct tl_h2 *const h2 = conn->h2;
    uint8_t *const scratch = conn->loop->scratch;
    ssize_t n = TL_AGAIN;
    for (int i = 0; (events & UV_READABLE) && i < READ_ROUNDS; i++) {
        n = tl_conn_read(conn, scratch, TL_SCRATCH);
        if (n == TL_AGAIN)
            break;
        if (n < 0) {
            tl_conn_close(conn);
            return;
        }
        h2->heard_at = uv_now(&conn->loop->loop.uv);
        if (nghttp2_session_mem_recv(h2->session, scratch, (size_t)n) < 0) {
            /* An invalid preface or the like; what was queued (GOAWAY) is still sent. */
            nghttp2_session_terminate_session(h2->session, NGHTTP2_PROTOCOL_ERROR);
            break;
        }
        if (!conn->tls && n < TL_SCRATCH)
            break; /* the socket is most likely empty */
        if (h2->out.bytes > 2 * OUT_MARK)
            break;
    }
    if (n > 0 && tl_conn_pending(conn))
        tl_conn_again(conn);
    if (!flush(h2))
        tl_conn_linger(conn);
}

/* ---- life ------------------------------------------------------------------------------- */

static nghttp2_session *new_session(struct tl_h2 *h2)
{
    nghttp2_session *session = NULL;
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option))
        goto done;
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, on_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, on_frame_size);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_stream_reset_rate_limit(option, 1000, 100);
    nghttp2_option_set_max_outbound_ack(option, 1000);
    nghttp2_option_set_max_settings(option, 32);
    nghttp2_session_server_new2(&session, callbacks, h2, option);
done:
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return session;
}

int tl_h2_start(struct tl_conn *conn)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, TL_H2_MAX_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, TL_H2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, TL_H2_MAX_HEADER_BYTES},
    };
    struct tl_h2 *const h2 = calloc(1, sizeof *h2);
    if (!h2)
        return TL_NOMEM;
    conn->h2 = h2;
    h2->conn = conn;
    h2->heard_at = h2->moved_at = h2->busy_at = h2->credit_at = uv_now(&conn->loop->loop.uv);
    h2->credit = CREDIT_BURST;
    h2->session = new_session(h2);
    if (!h2->session)
        return TL_NOMEM;
    if (nghttp2_submit_settings(h2->session, 0, settings, sizeof settings / sizeof *settings) ||
        nghttp2_session_set_local_window_size(h2->session, 0, 0, TL_H2_CONN_WINDOW))
        return TL_NOMEM;
    return TL_OK;
}

void tl_h2_free(struct tl_h2 *h2)
{
    for (struct tl_h2 **p = &h2->conn->loop->flush; *p; p = &(*p)->flush_next) {
        if (*p == h2) {
            *p = h2->flush_next;
            break;
        }
    }
    while (h2->streams)
        tl_stream_detach(h2->streams);
    nghttp2_session_del(h2->session);
    tl_outq_fini(&h2->out);
    free(h2);
}

void tl_h2_tick(struct tl_conn *conn)
{
    struct tl_h2 *const h2 = conn->h2;
    const uint64_t now = uv_now(&conn->loop->loop.uv);
    const uint64_t quiet = now - h2->heard_at;
    if (!h2->greeted && now >= conn->deadline) {
        tl_conn_close(conn);
        return;
    }
    if (quiet > DEAD_MS && h2->streams) {
        tl_conn_close(conn);
        return;
    }
    if (quiet > QUIET_MS && h2->streams && !h2->ping_pending) {
        h2->ping_pending = true;
        nghttp2_submit_ping(h2->session, 0, NULL);
    }
    if (!tl_h2_end_overdue(h2, now)) {
        tl_conn_close(conn);
        return;
    }
    if (h2->streams)
        h2->busy_at = now;
    else if (now - h2->busy_at > IDLE_MS)
        nghttp2_session_terminate_session(h2->session, NGHTTP2_NO_ERROR);
    if (!flush(h2))
        tl_conn_linger(conn);
}

void tl_h2_drain(struct tl_conn *conn)
{
    struct tl_h2 *const h2 = conn->h2;
    h2->draining = true;
    nghttp2_submit_shutdown_notice(h2->session);
    nghttp2_submit_ping(h2->session, 0, NULL);
    for (struct tl_stream *s = h2->streams; s; s = s->next)
        tl_waiter_poke(&s->waiter);
    if (!flush(h2))
        tl_conn_linger(conn);
}
