/* SPDX-License-Identifier: MIT */
/*
 * A small gRPC server for tests of the client library: one thread, one connection at a time, which
 * breaks connections on demand. It stores pushed bytes like the real server: chunks must leave no
 * hole, and only durable bytes survive a broken connection.
 */
#ifndef CLIENT_FAKE_H
#define CLIENT_FAKE_H

#include "base/buf.h"
#include "base/crc32c.h"
#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fake {
    bool bound; /* `listener` has its port */
    int listener;
    char url[64];
    pthread_t thread;
    atomic_bool stop;
    atomic_bool kick; /* set: break the current connection */
    unsigned seed;    /* of the connections' budgets */
    int port;         /* port to listen on; 0: any */
    unsigned address; /* listen at 127.0.0.address; 0: 1 */

    /* what it has stored */
    struct tl_buf received;
    atomic_size_t durable;
    atomic_bool complete;
    atomic_uint violations; /* holes, wrong checksums, wrong lengths */
    atomic_uint connections;
    atomic_uint chunks;

    /* behaviour; set before fake_start() */
    size_t budget;   /* > 0: break a connection after a random number of bytes, 1..budget */
    unsigned breaks; /* at most this often */
    atomic_int refuse_status; /* > 0: answer every call with this status */
    unsigned refuse_calls;    /* only this many of them; 0: all */
    const char *refuse_message;
    bool silent;         /* answer no call */
    bool lose_finished;  /* once: receive the finish, then break the connection */
    bool forget;         /* lose all durable bytes at the second connection */
    struct tl_buf fetch; /* answer of Fetch, in messages of fetch_piece bytes */
    size_t fetch_piece;
    uint64_t fetch_count;
    size_t n_traces; /* in the answer of ListTraces */
    size_t page;     /* traces per page; 0: all */

    /* the current connection */
    int fd;
    size_t left; /* of its budget; SIZE_MAX: no limit */
    nghttp2_session *session;
    struct fake_stream *streams; /* of this connection */
    struct fake_stream *pushing; /* its push */
};

struct fake_stream {
    struct fake_stream *next;
    int32_t id;
    char path[64];
    struct tl_buf in;
    struct tl_buf out;
    size_t out_at;
    bool open_seen;
    bool finished; /* trailers come after the output */
    int status;
};

static unsigned fake_random(struct fake *fake)
{
    fake->seed = fake->seed * 1103515245u + 12345u;
    return fake->seed >> 8;
}

static void fake_reply(struct fake_stream *stream, const ProtobufCMessage *message)
{
    const size_t n = protobuf_c_message_get_packed_size(message);
    if (tl_buf_reserve(&stream->out, n + 5) < 0)
        abort();
    uint8_t *p = stream->out.p + stream->out.n;
    p[0] = 0;
    for (int i = 0; i < 4; i++)
        p[1 + i] = (uint8_t)(n >> (24 - 8 * i));
    protobuf_c_message_pack(message, p + 5);
    stream->out.n += n + 5;
}

static void fake_ack(struct fake *fake, struct fake_stream *stream)
{
    Tracelake__V1__Ack ack = TRACELAKE__V1__ACK__INIT;
    Tracelake__V1__PushReply reply = TRACELAKE__V1__PUSH_REPLY__INIT;
    ack.durable = fake->durable;
    reply.step_case = TRACELAKE__V1__PUSH_REPLY__STEP_ACK;
    reply.ack = &ack;
    fake_reply(stream, &reply.base);
}

static void fake_chunk(struct fake *fake, struct fake_stream *stream,
                       const Tracelake__V1__Chunk *chunk)
{
    fake->chunks++;
    if (chunk->offset > fake->received.n ||
        tl_crc32c(0, chunk->data.data, chunk->data.len) != chunk->crc32c) {
        fake->violations++;
        return;
    }
    const size_t skip = fake->received.n - chunk->offset;
    if (skip < chunk->data.len &&
        tl_buf_add(&fake->received, chunk->data.data + skip, chunk->data.len - skip) < 0)
        abort();
    if (fake_random(fake) % 3)
        return; /* acknowledgements are merged */
    fake->durable += fake_random(fake) % (fake->received.n - fake->durable + 1);
    fake_ack(fake, stream);
}

static void fake_push(struct fake *fake, struct fake_stream *stream, const uint8_t *p, size_t n)
{
    Tracelake__V1__PushRequest *request = tracelake__v1__push_request__unpack(NULL, n, p);
    Tracelake__V1__PushReply reply = TRACELAKE__V1__PUSH_REPLY__INIT;
    if (!request) {
        fake->violations++;
        return;
    }
    switch (request->step_case) {
    case TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN: {
        Tracelake__V1__Opened opened = TRACELAKE__V1__OPENED__INIT;
        opened.trace = request->open->trace[0] ? request->open->trace : (char *)"made-1";
        opened.durable = fake->durable;
        fake->violations += stream->open_seen;
        stream->open_seen = true;
        fake->pushing = stream;
        reply.step_case = TRACELAKE__V1__PUSH_REPLY__STEP_OPENED;
        reply.opened = &opened;
        fake_reply(stream, &reply.base);
        break;
    }
    case TRACELAKE__V1__PUSH_REQUEST__STEP_CHUNK:
        fake_chunk(fake, stream, request->chunk);
        break;
    case TRACELAKE__V1__PUSH_REQUEST__STEP_FINISH: {
        Tracelake__V1__Finished finished = TRACELAKE__V1__FINISHED__INIT;
        fake->violations += request->finish->length != fake->received.n;
        fake->durable = fake->received.n;
        fake->complete = true;
        finished.durable = fake->durable;
        reply.step_case = TRACELAKE__V1__PUSH_REPLY__STEP_FINISHED;
        reply.finished = &finished;
        fake_reply(stream, &reply.base);
        stream->finished = true;
        fake->pushing = NULL;
        if (fake->lose_finished)
            fake->left = 0;
        fake->lose_finished = false;
        break;
    }
    default:
        fake->violations++;
    }
    tracelake__v1__push_request__free_unpacked(request, NULL);
}

static void fake_list(struct fake *fake, struct fake_stream *stream, const uint8_t *p, size_t n)
{
    Tracelake__V1__ListTracesRequest *const request =
        tracelake__v1__list_traces_request__unpack(NULL, n, p);
    const size_t first = strtoull(request->page_token, NULL, 10);
    size_t end = fake->page ? first + fake->page : fake->n_traces;
    char token[24];
    Tracelake__V1__ListTracesReply reply = TRACELAKE__V1__LIST_TRACES_REPLY__INIT;
    Tracelake__V1__Trace trace = TRACELAKE__V1__TRACE__INIT;
    Tracelake__V1__Stream row = TRACELAKE__V1__STREAM__INIT;
    Tracelake__V1__Stream *rows[] = {&row};
    Tracelake__V1__Trace__LabelsEntry label = TRACELAKE__V1__TRACE__LABELS_ENTRY__INIT;
    Tracelake__V1__Trace__LabelsEntry *labels[] = {&label};
    Tracelake__V1__Trace **list = calloc(fake->n_traces + 1, sizeof(*list));
    trace.id = (char *)"board-7";
    trace.rig = (char *)"bench";
    trace.state = TRACELAKE__V1__TRACE_STATE__TRACE_STATE_LIVE;
    trace.raw_bytes = UINT64_C(5) << 40;
    label.key = (char *)"who";
    label.value = (char *)"me";
    trace.labels = labels;
    trace.n_labels = 1;
    row.name = (char *)"cs.10";
    row.insns = 12345;
    trace.streams = rows;
    trace.n_streams = 1;
    if (end > fake->n_traces)
        end = fake->n_traces;
    for (size_t i = first; i < end; i++)
        list[reply.n_traces++] = &trace;
    reply.traces = list;
    snprintf(token, sizeof(token), "%zu", end);
    if (end < fake->n_traces)
        reply.next_page_token = token;
    tracelake__v1__list_traces_request__free_unpacked(request, NULL);
    reply.revision = 77;
    fake_reply(stream, &reply.base);
    free(list);
    stream->finished = true;
}

static void fake_fetch(struct fake *fake, struct fake_stream *stream)
{
    for (size_t at = 0; at < fake->fetch.n || at == 0; at += fake->fetch_piece) {
        Tracelake__V1__FetchReply reply = TRACELAKE__V1__FETCH_REPLY__INIT;
        const size_t n = fake->fetch.n - at;
        reply.first = at ? 0 : 1000;
        reply.count = at ? 0 : fake->fetch_count;
        reply.data.data = fake->fetch.p + at;
        reply.data.len = n < fake->fetch_piece ? n : fake->fetch_piece;
        fake_reply(stream, &reply.base);
    }
    stream->finished = true;
}

static void fake_offset(struct fake *fake, struct fake_stream *stream)
{
    Tracelake__V1__GetOffsetReply reply = TRACELAKE__V1__GET_OFFSET_REPLY__INIT;
    reply.durable = fake->durable;
    reply.complete = fake->complete;
    fake_reply(stream, &reply.base);
    stream->finished = true;
}

static void fake_message(struct fake *fake, struct fake_stream *stream, const uint8_t *p, size_t n)
{
    if (fake->silent) {
        return;
    } else if (fake->refuse_status) {
        stream->status = fake->refuse_status;
        stream->finished = true;
        if (fake->refuse_calls > 0 && --fake->refuse_calls == 0)
            fake->refuse_status = 0;
    } else if (strcmp(stream->path, "/tracelake.v1.Ingest/Push") == 0) {
        fake_push(fake, stream, p, n);
    } else if (strcmp(stream->path, "/tracelake.v1.Ingest/GetOffset") == 0) {
        fake_offset(fake, stream);
    } else if (strcmp(stream->path, "/tracelake.v1.Catalog/ListTraces") == 0) {
        fake_list(fake, stream, p, n);
    } else if (strcmp(stream->path, "/tracelake.v1.Ranges/Fetch") == 0) {
        fake_fetch(fake, stream);
    } else {
        stream->status = 12;
        stream->finished = true;
    }
}

/* ---- HTTP/2 ------------------------------------------------------------------------------- */

static ssize_t fake_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t n,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct fake *fake = context;
    struct fake_stream *stream = source->ptr;
    size_t now = stream->out.n - stream->out_at;
    if (now > n)
        now = n;
    if (now)
        memcpy(p, stream->out.p + stream->out_at, now);
    stream->out_at += now;
    if (stream->out_at < stream->out.n)
        return (ssize_t)now;
    tl_buf_reset(&stream->out);
    stream->out_at = 0;
    if (stream->finished) {
        char status[12];
        snprintf(status, sizeof(status), "%d", stream->status);
        const char *message = fake->refuse_message ? fake->refuse_message : "";
        const nghttp2_nv trailers[] = {
            {(uint8_t *)"grpc-status", (uint8_t *)status, 11, strlen(status), 0},
            {(uint8_t *)"grpc-message", (uint8_t *)message, 12, strlen(message), 0}};
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, id, trailers, 2))
            abort();
        return (ssize_t)now;
    }
    return now ? (ssize_t)now : NGHTTP2_ERR_DEFERRED;
}

static int fake_on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct fake *fake = context;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct fake_stream *stream = calloc(1, sizeof(*stream));
    stream->next = fake->streams;
    stream->id = frame->hd.stream_id;
    fake->streams = stream;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
}

static int fake_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                          size_t n_name, const uint8_t *value, size_t n, uint8_t flags,
                          void *context)
{
    struct fake_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (stream && n_name == 5 && memcmp(name, ":path", 5) == 0 && n < sizeof(stream->path))
        memcpy(stream->path, value, n);
    return 0;
}

static int fake_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct fake_stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_HEADERS && stream) {
        const nghttp2_nv headers[] = {
            {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0},
            {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, 0}};
        const nghttp2_data_provider provider = {{.ptr = stream}, fake_read};
        return nghttp2_submit_response(session, frame->hd.stream_id, headers, 2, &provider);
    }
    return 0;
}

static int fake_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                        size_t n, void *context)
{
    struct fake *fake = context;
    struct fake_stream *stream = nghttp2_session_get_stream_user_data(session, id);
    if (!stream || tl_buf_add(&stream->in, p, n) < 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    size_t at = 0;
    while (stream->in.n - at >= 5) {
        const uint8_t *q = stream->in.p + at;
        const size_t size =
            (size_t)q[1] << 24 | (size_t)q[2] << 16 | (size_t)q[3] << 8 | (size_t)q[4];
        if (stream->in.n - at - 5 < size)
            break;
        if (!stream->finished)
            fake_message(fake, stream, q + 5, size);
        at += 5 + size;
    }
    tl_buf_drop(&stream->in, at);
    nghttp2_session_resume_data(session, id);
    return 0;
}

static void fake_free_streams(struct fake *fake)
{
    fake->pushing = NULL;
    while (fake->streams) {
        struct fake_stream *stream = fake->streams;
        fake->streams = stream->next;
        tl_buf_fini(&stream->in);
        tl_buf_fini(&stream->out);
        free(stream);
    }
}

static ssize_t fake_send(nghttp2_session *session, const uint8_t *p, size_t n, int flags,
                         void *context)
{
    struct fake *fake = context;
    const ssize_t done = send(fake->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    return done < 0 ? NGHTTP2_ERR_WOULDBLOCK : done;
}

/* While nothing arrives, everything becomes durable. */
static void fake_idle(struct fake *fake)
{
    if (!fake->pushing || fake->durable == fake->received.n)
        return;
    fake->durable = fake->received.n;
    fake_ack(fake, fake->pushing);
    nghttp2_session_resume_data(fake->session, fake->pushing->id);
}

static void fake_serve(struct fake *fake)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, fake_on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, fake_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, fake_on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, fake_on_data);
    nghttp2_session_callbacks_set_send_callback(callbacks, fake_send);
    nghttp2_session_server_new(&fake->session, callbacks, fake);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(fake->session, 0, NULL, 0);
    static uint8_t in[65536];
    while (!fake->stop && !fake->kick) {
        if (nghttp2_session_send(fake->session) < 0)
            break;
        struct pollfd fd = {fake->fd, POLLIN, 0};
        if (nghttp2_session_want_write(fake->session))
            fd.events |= POLLOUT;
        if (poll(&fd, 1, 5) <= 0) {
            fake_idle(fake);
            continue;
        }
        size_t most = sizeof(in);
        if (most > fake->left)
            most = fake->left;
        const ssize_t n = recv(fake->fd, in, most, MSG_DONTWAIT);
        if (n == 0)
            break;
        if (n > 0 && nghttp2_session_mem_recv(fake->session, in, (size_t)n) < 0)
            break;
        if (fake->left != SIZE_MAX && n > 0 && fake->left)
            fake->left -= (size_t)n;
        if (fake->left == 0) /* break it here */
            break;
    }
    fake->kick = false;
    nghttp2_session_del(fake->session);
    fake_free_streams(fake);
}

static void *fake_main(void *context)
{
    struct fake *fake = context;
    while (!fake->stop) {
        struct pollfd fd = {fake->listener, POLLIN, 0};
        if (poll(&fd, 1, 20) <= 0)
            continue;
        fake->fd = accept(fake->listener, NULL, NULL);
        const int on = 1;
        setsockopt(fake->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        fake->connections++;
        fake->left = SIZE_MAX;
        if (fake->budget && fake->breaks) {
            fake->breaks--;
            fake->left = 1 + fake_random(fake) % fake->budget;
        }
        if (fake->forget && fake->connections == 2)
            fake->durable = 0;
        /* Only durable bytes survived the connection. */
        fake->received.n = fake->durable;
        fake_serve(fake);
        if (fake->left == 0 && fake_random(fake) % 2) {
            const struct linger now = {1, 0}; /* a reset instead of an orderly close */
            setsockopt(fake->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        }
        close(fake->fd);
    }
    return NULL;
}

/* Take its port, at which nothing listens until it is started. False: it is in use. */
static bool fake_bind(struct fake *fake)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)fake->port),
                                  .sin_addr.s_addr =
                                      htonl(0x7f000000 + (fake->address ? fake->address : 1))};
    socklen_t n = sizeof(address);
    fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fake->bound = bind(fake->listener, (struct sockaddr *)&address, n) == 0 &&
                  getsockname(fake->listener, (struct sockaddr *)&address, &n) == 0;
    if (!fake->bound)
        close(fake->listener);
    fake->port = ntohs(address.sin_port);
    snprintf(fake->url, sizeof(fake->url), "http://127.0.0.%u:%d",
             fake->address ? fake->address : 1, fake->port);
    return fake->bound;
}

static void fake_start(struct fake *fake)
{
    if (!(fake->bound || fake_bind(fake)) || listen(fake->listener, 8))
        abort();
    if (pthread_create(&fake->thread, NULL, fake_main, fake))
        abort();
}

static void fake_stop(struct fake *fake)
{
    fake->stop = true;
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    fake->bound = false;
    tl_buf_fini(&fake->received);
    tl_buf_fini(&fake->fetch);
}

#endif
