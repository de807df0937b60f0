/* SPDX-License-Identifier: MIT */
/*
 * Turns streams of HTTP/2 into calls with messages, and results into statuses. A message in two
 * parts and mapped files go out without a copy, as ranges of trace are far larger than anything
 * else.
 */
#include "net/grpc.h"

#include "base/cancel.h"
#include "base/pbfield.h"
#include "base/spelling.h"
#include "net/gzip.h"
#include "net/headscan.h"
#include "net/pool.h"
#include "net/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GZIP_FROM 1024 /* smaller replies are not worth compressing */

static const char expired_text[] = "the deadline has passed";
static const char cut_short_text[] =
    "stored bytes cannot be read any more: their file was cut short, or the disk fails; see "
    "\"tracelake check\"";

struct tl_call {
    struct tl_stream *stream;
    struct tl_fail fail;
    bool headed; /* the response's head is set */
};

/* ---- status ----------------------------------------------------------------------------- */

enum tl_grpc_status tl_grpc_status_of(int err)
{
    switch (err) {
    case TL_OK:
    case TL_EOF:
        return TL_GRPC_OK;
    case TL_BAD:
    case TL_USAGE:
        return TL_GRPC_INVALID_ARGUMENT;
    case TL_NOMEM:
    case TL_LIMIT:
    case TL_NOSPACE:
        return TL_GRPC_RESOURCE_EXHAUSTED;
    case TL_NOTFOUND:
        return TL_GRPC_NOT_FOUND;
    case TL_EXISTS:
        return TL_GRPC_ALREADY_EXISTS;
    case TL_UNSUPPORTED:
        return TL_GRPC_UNIMPLEMENTED;
    case TL_DENIED:
        return TL_GRPC_PERMISSION_DENIED;
    case TL_CANCELLED:
        return TL_GRPC_CANCELLED;
    case TL_UNREACHABLE:
    case TL_AGAIN:
        return TL_GRPC_UNAVAILABLE;
    case TL_IO:
        return TL_GRPC_INTERNAL;
    default:
        return TL_GRPC_UNKNOWN;
    }
}

/* grpc-message is percent-encoded except for printable ASCII. */
static void add_message(struct tl_fields *trailers, const char *text)
{
    char out[3 * sizeof(struct tl_fail) + 64];
    size_t n = 0;
    for (; *text && n + 4 < sizeof out; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c <= 0x7e && c != '%')
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, 4, "%%%02X", c);
    }
    (void)!tl_fields_add_n(trailers, "grpc-message", 12, out, n);
}

static void make_head(const struct tl_stream *stream, struct tl_fields *head)
{
    (void)!tl_fields_add(head, ":status", "200");
    (void)!tl_fields_add(head, "content-type", "application/grpc+proto");
    (void)!tl_fields_add(head, "grpc-accept-encoding", "identity,gzip");
    if (stream->gzip_out)
        (void)!tl_fields_add(head, "grpc-encoding", "gzip");
}

static void make_trailers(struct tl_stream *stream, enum tl_grpc_status status, const char *text,
                          struct tl_fields *trailers)
{
    (void)!tl_fields_addf(trailers, "grpc-status", "%d", (int)status);
    if (text && *text)
        add_message(trailers, text);
    atomic_fetch_add_explicit(&stream->net->stats.grpc_status[status], 1, memory_order_relaxed);
}

/* End the call, from a worker or from the loop. */
static void finish(struct tl_stream *stream, bool headed, enum tl_grpc_status status,
                   const char *text)
{
    struct tl_fields trailers = {0};
    if (!headed) {
        struct tl_fields head = {0};
        make_head(stream, &head);
        make_trailers(stream, status, text, &trailers);
        /* Both at once: an error is then sent as one HEADERS frame ("trailers-only"). */
        tl_stream_finish(stream, &head, &trailers);
        return;
    }
    make_trailers(stream, status, text, &trailers);
    tl_stream_end(stream, &trailers);
}

void tl_grpc_timed_out(struct tl_stream *stream)
{
    struct tl_fields head = {0};
    struct tl_fields trailers = {0};
    make_head(stream, &head);
    make_trailers(stream, TL_GRPC_DEADLINE_EXCEEDED, expired_text, &trailers);
    tl_stream_expire(stream, &head, &trailers);
}

int tl_grpc_cut_short(struct tl_stream *stream)
{
    struct tl_fields trailers = {0};
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_ERROR, "stored file cut short");
    tl_journal_text(&line, "client", stream->caller->address);
    tl_journal_text(&line, "path", stream->method->path);
    tl_journal_end(&line);
    make_trailers(stream, TL_GRPC_INTERNAL, cut_short_text, &trailers);
    return tl_stream_cut_short(stream, &trailers);
}

/* ---- a handler's view ------------------------------------------------------------------- */

void *tl_call_context(struct tl_call *call)
{
    return call->stream->net->app.context;
}

const struct tl_scope *tl_call_scope(struct tl_call *call)
{
    return call->stream->scope;
}

struct tl_holder *tl_call_holder(struct tl_call *call)
{
    return call->stream->holder;
}

const char *tl_call_client(struct tl_call *call)
{
    return call->stream->caller->address;
}

struct tl_fail *tl_call_fail(struct tl_call *call)
{
    return &call->fail;
}

bool tl_call_may(struct tl_call *call, enum tl_role role)
{
    return (call->stream->roles & role) == role;
}

void tl_call_free_request(ProtobufCMessage *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}

static int decompress(struct tl_call *call, struct tl_call_bytes *bytes)
{
    if (!call->stream->gzip_in)
        return tl_fail_set(&call->fail, TL_IO,
                           "a compressed message without a grpc-encoding that says how");
    const int rc = tl_gunzip(bytes->bytes, tl_stream_max_message(call->stream), &bytes->plain);
    if (rc < 0)
        return tl_fail_set(&call->fail, rc == TL_BAD ? TL_IO : (enum tl_err)rc,
                           rc == TL_LIMIT ? "message too large when decompressed"
                                          : "message is not gzip");
    bytes->bytes = (struct tl_bytes){bytes->plain.p, bytes->plain.n};
    return TL_OK;
}

int tl_call_recv_bytes(struct tl_call *call, struct tl_call_bytes *out, int64_t timeout_ms)
{
    struct tl_message *message = NULL;
    *out = (struct tl_call_bytes){0};
    int rc = tl_stream_read(call->stream, &message, timeout_ms);
    if (rc == TL_LIMIT)
        return tl_fail_set(&call->fail, rc, "message larger than %zu bytes",
                           tl_stream_max_message(call->stream));
    if (rc == TL_NOMEM)
        return tl_fail_set(&call->fail, rc,
                           "too many bytes of messages wait to be processed, in total or of this "
                           "client; retry");
    if (rc == TL_UNREACHABLE)
        return tl_fail_set(&call->fail, rc, "the message did not arrive within %u s",
                           call->stream->net->options.request_ms / 1000);
    if (rc == TL_BAD)
        return tl_fail_set(&call->fail, TL_IO, "the body is no sequence of gRPC messages");
    if (rc < 0)
        return rc;
    out->held = message;
    out->bytes = (struct tl_bytes){message->p, message->n};
    rc = message->compressed ? decompress(call, out) : TL_OK;
    if (rc < 0)
        tl_call_free_bytes(call, out);
    return rc;
}

void tl_call_free_bytes(struct tl_call *call, struct tl_call_bytes *bytes)
{
    tl_buf_fini(&bytes->plain);
    tl_message_free(call->stream, bytes->held);
    *bytes = (struct tl_call_bytes){0};
}

void *tl_call_take_bytes(struct tl_call *call, struct tl_call_bytes *bytes)
{
    void *const plain = bytes->plain.p;
    struct tl_message *const held = bytes->held;
    *bytes = (struct tl_call_bytes){0};
    if (plain) {
        tl_message_free(call->stream, held);
        return plain;
    }
    tl_account_release(call->stream->account, held->use, held->held);
    return held;
}

int tl_call_unpack(struct tl_call *call, struct tl_bytes bytes, ProtobufCMessage **out)
{
    const ProtobufCMessageDescriptor *const type = call->stream->method->request;
    *out = protobuf_c_message_unpack(type, NULL, bytes.n, bytes.p);
    if (!*out)
        return tl_fail_set(&call->fail, TL_BAD, "the message is no %s", type->name);
    return TL_OK;
}

int tl_call_recv(struct tl_call *call, ProtobufCMessage **out, int64_t timeout_ms)
{
    struct tl_call_bytes bytes;
    *out = NULL;
    int rc = tl_call_recv_bytes(call, &bytes, timeout_ms);
    if (rc == TL_OK) {
        rc = tl_call_unpack(call, bytes.bytes, out);
        tl_call_free_bytes(call, &bytes);
    }
    return rc;
}

static void send_head(struct tl_call *call)
{
    if (call->headed)
        return;
    struct tl_fields head = {0};
    make_head(call->stream, &head);
    tl_stream_head(call->stream, &head);
    call->headed = true;
}

static void put_prefix(uint8_t *p, bool compressed, size_t n)
{
    p[0] = compressed;
    p[1] = (uint8_t)(n >> 24);
    p[2] = (uint8_t)(n >> 16);
    p[3] = (uint8_t)(n >> 8);
    p[4] = (uint8_t)n;
}

/* Replace a plain message, including its prefix, by its compressed form if that is smaller. */
static struct tl_chunk *compress(struct tl_chunk *plain)
{
    static const uint8_t room[5];
    struct tl_buf out = {0};
    const struct tl_bytes in = {plain->p + 5, plain->n - 5};
    if (tl_buf_add(&out, room, sizeof room) == TL_OK && tl_gzip(in, 1, &out) == TL_OK &&
        out.n < plain->n) {
        put_prefix(out.p, true, out.n - 5);
        struct tl_chunk *const smaller = tl_chunk_of(&out);
        if (smaller) {
            tl_chunk_put(plain);
            return smaller;
        }
    }
    tl_buf_fini(&out);
    return plain;
}

static int send_message(struct tl_call *call, const ProtobufCMessage *reply, bool latest)
{
    const size_t n = protobuf_c_message_get_packed_size(reply);
    /* A pending message may be replaced by one with longer numbers: reserve space. */
    struct tl_chunk *chunk = n <= UINT32_MAX ? tl_chunk_new(n + 5 + (latest ? 64 : 0)) : NULL;
    if (!chunk)
        return TL_NOMEM;
    chunk->n = n + 5;
    chunk->latest = latest;
    put_prefix(chunk->p, false, n);
    protobuf_c_message_pack(reply, chunk->p + 5);
    if (call->stream->gzip_out && n >= GZIP_FROM)
        chunk = compress(chunk);
    send_head(call);
    return tl_stream_write(call->stream, chunk);
}

int tl_call_send(struct tl_call *call, const ProtobufCMessage *reply)
{
    return send_message(call, reply, false);
}

int tl_call_send_latest(struct tl_call *call, const ProtobufCMessage *reply)
{
    return send_message(call, reply, true);
}

/* Send a message in two parts, the first with the prefix; takes over both. */
static int send_parts(struct tl_call *call, struct tl_chunk *head, struct tl_chunk *body)
{
    if (call->stream->gzip_out && body->n >= GZIP_FROM) {
        struct tl_chunk *const whole = tl_chunk_new(head->n + body->n);
        if (whole) {
            memcpy(whole->p, head->p, head->n);
            memcpy(whole->p + head->n, body->p, body->n);
            tl_chunk_put(head);
            tl_chunk_put(body);
            send_head(call);
            return tl_stream_write(call->stream, compress(whole));
        }
    }
    send_head(call);
    head->next = body;
    return tl_stream_write(call->stream, head);
}

/* A reply without its last field's content: the prefix of the message, the packed `reply`, and the
 * field's tag and size. */
static int make_begin(const ProtobufCMessage *reply, uint32_t tag, size_t size,
                      struct tl_chunk **out)
{
    uint8_t field[20];
    size_t n = 0;
    if (size) {
        n = tl_pb_put_varint(field, (uint64_t)tag << 3 | 2);
        n += tl_pb_put_varint(field + n, size);
    }
    const size_t packed = protobuf_c_message_get_packed_size(reply);
    const size_t total = packed + n + size;
    if (total > UINT32_MAX)
        return TL_LIMIT;
    struct tl_chunk *const begin = tl_chunk_new(5 + packed + n);
    if (!begin)
        return TL_NOMEM;
    put_prefix(begin->p, false, total);
    protobuf_c_message_pack(reply, begin->p + 5);
    memcpy(begin->p + 5 + packed, field, n);
    *out = begin;
    return TL_OK;
}

int tl_call_send_data(struct tl_call *call, const ProtobufCMessage *reply, uint32_t tag,
                      struct tl_buf *data)
{
    struct tl_chunk *begin;
    const int rc = make_begin(reply, tag, data->n, &begin);
    if (rc < 0)
        return rc;
    struct tl_chunk *const body = tl_chunk_of(data);
    if (!body) {
        tl_chunk_put(begin);
        return TL_NOMEM;
    }
    return send_parts(call, begin, body);
}

bool tl_call_maps(const struct tl_call *call)
{
    return !call->stream->tls && !call->stream->gzip_out;
}

int tl_call_send_mapped(struct tl_call *call, const ProtobufCMessage *reply, uint32_t tag,
                        struct tl_buf *before, const struct tl_call_mapped *mapped)
{
    struct tl_chunk *begin = NULL;
    int rc = make_begin(reply, tag, before->n + mapped->bytes.n, &begin);
    struct tl_chunk *const data = rc < 0 ? NULL : tl_chunk_of(before);
    struct tl_chunk *const file =
        data ? tl_chunk_fixed(mapped->bytes, mapped->let_go, mapped->owner) : NULL;
    if (!file) {
        mapped->let_go(mapped->owner);
        tl_buf_fini(before);
        tl_chunk_put(begin);
        tl_chunk_put(data);
        return rc < 0 ? rc : TL_NOMEM;
    }
    file->mapped = call->stream->id;
    begin->next = data;
    data->next = file;
    send_head(call);
    return tl_stream_write(call->stream, begin);
}

void tl_call_poke(struct tl_call *call)
{
    tl_waiter_poke(&call->stream->waiter);
}

int tl_call_wait(struct tl_call *call, int64_t timeout_ms)
{
    return tl_waiter_wait(&call->stream->waiter, timeout_ms);
}

struct tl_waiter *tl_call_waiter(struct tl_call *call)
{
    return &call->stream->waiter;
}

int tl_call_hold(struct tl_call *call, size_t n)
{
    struct tl_stream *const stream = call->stream;
    char why[256];
    if (stream->holds)
        tl_account_release(stream->account, TL_USE_ANSWERS, stream->holds);
    stream->holds = 0;
    if (!n)
        return TL_OK;
    if (!tl_account_take(stream->account, TL_USE_ANSWERS, n))
        return tl_fail_set(&call->fail, TL_LIMIT, "%.230s",
                           tl_account_say(stream->account, TL_USE_ANSWERS,
                                          "bytes of answers being read", why, sizeof why));
    stream->holds = n;
    return TL_OK;
}

bool tl_call_draining(struct tl_call *call)
{
    return tl_net_draining(call->stream->net);
}

int tl_call_stop(struct tl_call *call)
{
    return tl_fail_set(&call->fail, TL_UNREACHABLE, "the server is stopping; connect again later");
}

/* ---- running ---------------------------------------------------------------------------- */

/* The request's field `trace`, "" if it has none. */
static const char *trace_of(const ProtobufCMessage *request)
{
    const ProtobufCFieldDescriptor *const field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, "trace");
    if (!field || field->type != PROTOBUF_C_TYPE_STRING ||
        field->label == PROTOBUF_C_LABEL_REPEATED)
        return "";
    const char *text;
    memcpy(&text, (const char *)request + field->offset, sizeof text);
    return text ? text : "";
}

/* Traces outside of the scope appear not to exist to callers that only read. */
static int reach_of(struct tl_call *call, const ProtobufCMessage *request)
{
    const struct tl_stream *const stream = call->stream;
    const struct tl_app *const app = &stream->net->app;
    const struct tl_method *const method = stream->method;
    if (!stream->scope || method->reach == TL_REACH_OWN || method->reach == TL_REACH_NONE)
        return TL_OK;
    const char *const trace = request ? trace_of(request) : "";
    if (method->reach == TL_REACH_ALL || !*trace)
        return tl_fail_set(&call->fail, TL_DENIED, "the token is not for all traces");
    const int rc = app->covers(app->context, stream->scope, trace, &call->fail);
    return rc == TL_NOTFOUND && method->role != TL_ROLE_READ
               ? tl_fail_set(&call->fail, TL_DENIED, "the token is not for trace %.64s", trace)
               : rc;
}

static int check_reach(struct tl_call *call, const ProtobufCMessage *request)
{
    const struct tl_stream *const stream = call->stream;
    const int rc = reach_of(call, request);
    if (rc == TL_DENIED)
        tl_net_denied(stream->net, stream->caller, stream->method->path, call->fail.text);
    return rc;
}

static int run(struct tl_call *call)
{
    const struct tl_method *const method = call->stream->method;
    if (method->shape == TL_CLIENT_STREAM || method->shape == TL_BIDI) {
        const int reach = check_reach(call, NULL);
        return reach < 0 ? reach : method->run(call, NULL);
    }
    ProtobufCMessage *request;
    int rc = tl_call_recv(call, &request, -1);
    if (rc == TL_EOF)
        return tl_fail_set(&call->fail, TL_IO, "the call has no request message");
    if (rc == TL_AGAIN)
        return tl_call_stop(call);
    if (rc < 0)
        return rc;
    rc = check_reach(call, request);
    if (rc == TL_OK)
        rc = method->run(call, request);
    tl_call_free_request(request);
    return rc;
}

static void work(void *argument)
{
    struct tl_stream *const stream = argument;
    struct tl_call call = {.stream = stream, .fail.offset = TL_NO_OFFSET};
    const struct tl_cancel cancel = {tl_stream_unwanted, stream, tl_pool_rest};
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    const bool spelled = tl_spelling_set_mangled(tl_names_mangled(&stream->request));
    /* It may have waited for this thread until it was no longer wanted. */
    const int64_t begin = tl_monotonic_ns();
    const int rc = tl_stream_unwanted(stream) ? TL_CANCELLED : run(&call);
    if (stream->method->shape == TL_UNARY)
        tl_histogram_add(&stream->net->method_times[stream->method - stream->net->app.methods],
                         (uint64_t)(tl_monotonic_ns() - begin));
    const char *text = NULL;
    char located[sizeof call.fail.text + 48];
    tl_cancel_set(before);
    tl_spelling_set_mangled(spelled);
    if (tl_stream_expired(stream)) {
        finish(stream, call.headed, TL_GRPC_DEADLINE_EXCEEDED, expired_text);
        tl_stream_put(stream);
        return;
    }
    if (rc < 0 && rc != TL_EOF) {
        text = call.fail.text[0] ? call.fail.text : tl_err_name(rc);
        if (call.fail.text[0] && call.fail.offset != TL_NO_OFFSET) {
            snprintf(located, sizeof located, "offset %llu: %s",
                     (unsigned long long)call.fail.offset, text);
            text = located;
        }
    }
    finish(stream, call.headed, tl_grpc_status_of(rc), text);
    tl_stream_put(stream);
}

static void start(struct tl_stream *stream)
{
    const struct tl_method *const method = stream->method;
    const enum tl_effort effort = method->shape == TL_UNARY ? method->effort : TL_LASTING;
    if (stream->working)
        return;
    stream->working = true;
    if (method->shape == TL_SERVER_STREAM || method->shape == TL_BIDI)
        atomic_store(&stream->lasting, true);
    if (method->at_once) { /* its message is there, or there will be none */
        work(tl_stream_get(stream));
        return;
    }
    char why[256];
    if (tl_workers_run(stream->net->workers, stream->account, method->role, effort, true, work,
                       tl_stream_get(stream)) == TL_OK)
        return;
    tl_stream_put(stream);
    finish(stream, false, TL_GRPC_RESOURCE_EXHAUSTED,
           tl_account_say(stream->account, tl_use_of_calls(method->role, effort),
                          "calls of this kind", why, sizeof why));
}

void tl_grpc_received(struct tl_stream *stream)
{
    if (stream->method)
        start(stream);
}

/* ---- starting a call -------------------------------------------------------------------- */

bool tl_grpc_is(const char *type)
{
    if (!type || strncmp(type, "application/grpc", 16))
        return false;
    type += strncmp(type + 16, "+proto", 6) ? 16 : 22;
    return !*type || *type == ';' || *type == ' ';
}

const struct tl_method *tl_grpc_find(const struct tl_app *app, const char *path)
{
    for (size_t i = 0; i < app->n_methods; i++)
        if (!strcmp(app->methods[i].path, path))
            return &app->methods[i];
    return NULL;
}

/* "1S", "250m": at most 8 digits and a unit. Source: PROTOCOL-HTTP2, "Timeout". */
int64_t tl_grpc_timeout_ns(const char *text)
{
    static const char units[] = "HMSmun";
    static const int64_t ns[] = {3600000000000, 60000000000, 1000000000, 1000000, 1000, 1};
    int64_t value = 0;
    size_t digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9'; digits++) {
        if (digits == 8)
            return TL_BAD;
        value = value * 10 + (text[digits] - '0');
    }
    const char *const unit = text[digits] ? strchr(units, text[digits]) : NULL;
    if (!digits || !unit || text[digits + 1])
        return TL_BAD;
    const int64_t scale = ns[unit - units];
    return value > INT64_MAX / scale ? INT64_MAX : value * scale;
}

static const char *header(const struct tl_stream *stream, const char *name)
{
    return tl_fields_get(&stream->request, name);
}

/* Determine the client's compression; false: an unknown one. */
static bool read_encoding(struct tl_stream *stream)
{
    const char *const encoding = header(stream, "grpc-encoding");
    stream->gzip_in = encoding && !strcmp(encoding, "gzip");
    stream->gzip_out =
        stream->gzip_in && tl_list_has(header(stream, "grpc-accept-encoding"), "gzip");
    return !encoding || stream->gzip_in || !strcmp(encoding, "identity");
}

static void refuse(struct tl_stream *stream, enum tl_grpc_status status, const char *text)
{
    finish(stream, false, status, text);
}

void tl_grpc_begin(struct tl_stream *stream)
{
    const char *const path = header(stream, ":path");
    const char *const timeout = header(stream, "grpc-timeout");
    const char *const verb = header(stream, ":method");
    const int64_t ns = timeout ? tl_grpc_timeout_ns(timeout) : -1;
    if (stream->too_large) {
        refuse(stream, TL_GRPC_RESOURCE_EXHAUSTED, tl_head_advice(431));
        return;
    }
    if (!path || !verb || strcmp(verb, "POST")) {
        refuse(stream, TL_GRPC_INTERNAL, "a gRPC call is a POST");
        return;
    }
    const struct tl_method *const method = tl_grpc_find(&stream->net->app, path);
    if (!method) {
        refuse(stream, TL_GRPC_UNIMPLEMENTED, "no such method");
        return;
    }
    if (tl_role_needs(method->role) && !tl_net_knows_host(stream->net, &stream->request)) {
        refuse(stream, TL_GRPC_PERMISSION_DENIED, tl_foreign_host);
        return;
    }
    if (!read_encoding(stream)) {
        refuse(stream, TL_GRPC_UNIMPLEMENTED, "messages may be compressed by gzip, nothing else");
        return;
    }
    if (timeout && ns < 0) {
        refuse(stream, TL_GRPC_INTERNAL, "grpc-timeout is 1 to 8 digits and one of H M S m u n");
        return;
    }
    if (stream->refused) {
        refuse(stream, TL_GRPC_RESOURCE_EXHAUSTED, stream->why);
        return;
    }
    const char *why = stream->denial;
    const unsigned needs = tl_role_needs(method->role);
    if ((stream->roles & needs) != needs) {
        if (stream->roles)
            why = "the token does not allow this";
        if (why)
            tl_net_denied(stream->net, stream->caller, path, why);
        refuse(stream, stream->roles ? TL_GRPC_PERMISSION_DENIED : TL_GRPC_UNAUTHENTICATED,
               why ? why : "a token is needed: --token FILE, or as authorization: Bearer …");
        return;
    }
    stream->method = method;
    stream->framed = true;
    if (timeout)
        tl_stream_deadline(stream, ns);
    if (tl_stream_expired(stream))
        tl_grpc_timed_out(stream);
    else if (method->shape == TL_CLIENT_STREAM || method->shape == TL_BIDI)
        start(stream);
}
