/* SPDX-License-Identifier: MIT */
/* gRPC on the wire: what PROTOCOL-HTTP2 requires of a server, and what a server must not allow. */
#include "net/gzip.h"
#include "unit/serving.h"

#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"
#include "unit/patience.h"
#include "unit/seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIST  "/tracelake.v1.Catalog/ListTraces"
#define WATCH "/tracelake.v1.Catalog/WatchTraces"
#define CHECK "/grpc.health.v1.Health/Check"

static const uint8_t empty_message[5];

static int setup(void **state)
{
    struct serving *const s = malloc(sizeof *s);
    serve(s, NULL);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    stop_serving(*state);
    free(*state);
    return 0;
}

static void expect_list(struct h2_client *c, struct h2_exchange *x)
{
    Tracelake__V1__ListTracesReply *const reply = (Tracelake__V1__ListTracesReply *)h2_message(
        c, x, &tracelake__v1__list_traces_reply__descriptor);
    assert_non_null(reply);
    assert_int_equal(reply->n_traces, 0);
    protobuf_c_message_free_unpacked(&reply->base, NULL);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
}

static void test_unary(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *const x = h2_call(c, LIST);
    h2_send(c, x, empty_message, 5, true);
    expect_list(c, x);
    assert_int_equal(h2_status(x), 200);
    assert_int_equal(x->frames, 2); /* head and trailers */
    assert_string_equal(tl_fields_get(&x->head, "content-type"), "application/grpc+proto");
    assert_string_equal(tl_fields_get(&x->trailers, "grpc-status"), "0");
    assert_false(x->reset);
    h2_free(c);
}

static void test_many_at_once(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *x[100];
    for (int i = 0; i < 100; i++) {
        x[i] = h2_call(c, LIST);
        h2_send(c, x[i], empty_message, 5, true);
    }
    for (int i = 0; i < 100; i++)
        expect_list(c, x[i]);
    h2_free(c);
}

static void expect_refused(struct h2_client *c, struct h2_exchange *x, int status,
                           const char *words)
{
    h2_finish(c, x);
    assert_int_equal(h2_status(x), 200);
    assert_int_equal(h2_grpc_status(x), status);
    assert_int_equal(x->frames, 1);
    assert_int_equal(x->body.n, 0);
    if (!strstr(h2_grpc_text(x), words))
        fail_msg("\"%s\" lacks \"%s\"", h2_grpc_text(x), words);
}

static void test_unknown_method(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *x = h2_call(c, "/tracelake.v1.Catalog/Nonsense");
    expect_refused(c, x, 12, "no such method");
    assert_true(x->reset); /* the client had not finished: it is reset */
    assert_int_equal(x->code, NGHTTP2_NO_ERROR);
    x = h2_call(c, "/");
    h2_send(c, x, empty_message, 5, true);
    expect_refused(c, x, 12, "no such method");
    h2_free(c);
}

static void test_content_type(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *x =
        h2_request(c, "POST", LIST, true, "content-type", "application/json", NULL);
    h2_finish(c, x);
    assert_int_equal(h2_status(x), 415);
    x = h2_request(c, "POST", LIST, true, "content-type", "application/grpc+json", NULL);
    h2_finish(c, x);
    assert_int_equal(h2_status(x), 415);
    h2_free(c);
}

static void test_encodings(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *x = h2_request(c, "POST", LIST, false, "content-type", "application/grpc",
                                       "grpc-encoding", "snappy", NULL);
    expect_refused(c, x, 12, "gzip");
    assert_string_equal(tl_fields_get(&x->head, "grpc-accept-encoding"), "identity,gzip");

    /* A compressed message without an encoding. */
    x = h2_call(c, LIST);
    h2_send(c, x, (uint8_t[]){1, 0, 0, 0, 0}, 5, true);
    expect_refused(c, x, 13, "grpc-encoding");
    h2_free(c);
}

static struct h2_exchange *gzip_call(struct h2_client *c, const ProtobufCMessage *message)
{
    struct tl_buf plain = {0};
    struct tl_buf out = {0};
    assert_int_equal(tl_buf_reserve(&plain, protobuf_c_message_get_packed_size(message) + 1), 0);
    plain.n = protobuf_c_message_pack(message, plain.p);
    assert_int_equal(tl_buf_add(&out, empty_message, 5), TL_OK);
    assert_int_equal(tl_gzip((struct tl_bytes){plain.p, plain.n}, 6, &out), TL_OK);
    out.p[0] = 1;
    out.p[3] = (uint8_t)((out.n - 5) >> 8);
    out.p[4] = (uint8_t)(out.n - 5);
    struct h2_exchange *const x =
        h2_request(c, "POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", false,
                   "content-type", "application/grpc", "grpc-encoding", "gzip",
                   "grpc-accept-encoding", "identity,deflate,gzip", NULL);
    h2_send(c, x, out.p, out.n, true);
    h2_finish(c, x);
    tl_buf_fini(&plain);
    tl_buf_fini(&out);
    return x;
}

static void test_gzip(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    Grpc__Reflection__V1__ServerReflectionRequest request =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    request.message_request_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL;
    request.file_containing_symbol = (char *)"tracelake.v1.Ranges.Fetch";
    struct h2_exchange *const x = gzip_call(c, &request.base);
    assert_int_equal(h2_grpc_status(x), 0);
    assert_string_equal(tl_fields_get(&x->head, "grpc-encoding"), "gzip");
    assert_true(x->body.n > 5);
    assert_int_equal(x->body.p[0], 1);
    struct tl_buf plain = {0};
    assert_int_equal(tl_gunzip((struct tl_bytes){x->body.p + 5, x->body.n - 5}, 1 << 20, &plain),
                     TL_OK);
    Grpc__Reflection__V1__ServerReflectionResponse *const reply =
        grpc__reflection__v1__server_reflection_response__unpack(NULL, plain.n, plain.p);
    assert_non_null(reply);
    assert_int_equal(reply->file_descriptor_response->n_file_descriptor_proto, 1);
    grpc__reflection__v1__server_reflection_response__free_unpacked(reply, NULL);
    tl_buf_fini(&plain);

    /* A decompression bomb: 8 MiB of zeros in 8 KiB. */
    struct tl_buf zeros = {0};
    assert_int_equal(tl_buf_reserve(&zeros, 8 << 20), TL_OK);
    memset(zeros.p, 0, 8 << 20);
    struct tl_buf out = {0};
    assert_int_equal(tl_buf_add(&out, empty_message, 5), TL_OK);
    assert_int_equal(tl_gzip((struct tl_bytes){zeros.p, 8 << 20}, 9, &out), TL_OK);
    out.p[0] = 1;
    out.p[3] = (uint8_t)((out.n - 5) >> 8);
    out.p[4] = (uint8_t)(out.n - 5);
    struct h2_exchange *const bomb = h2_request(c, "POST", LIST, false, "content-type",
                                                "application/grpc", "grpc-encoding", "gzip", NULL);
    h2_send(c, bomb, out.p, out.n, true);
    expect_refused(c, bomb, 8, "too large");
    tl_buf_fini(&zeros);
    tl_buf_fini(&out);
    h2_free(c);
}

static void test_bad_bodies(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *x = h2_call(c, LIST);
    h2_send(c, x, empty_message, 0, true);
    expect_refused(c, x, 13, "no request");

    x = h2_call(c, LIST);
    h2_send(c, x, empty_message, 3, true); /* half a prefix */
    expect_refused(c, x, 13, "no sequence");

    x = h2_call(c, LIST);
    h2_send(c, x, (uint8_t[]){0, 0, 0, 0, 9, 1, 2}, 7, true); /* less than announced */
    expect_refused(c, x, 13, "no sequence");

    x = h2_call(c, LIST);
    h2_send(c, x, (uint8_t[]){7, 0, 0, 0, 0}, 5, true); /* undefined flags */
    expect_refused(c, x, 13, "no sequence");

    x = h2_call(c, LIST);
    h2_send(c, x, (uint8_t[]){0, 0xff, 0xff, 0xff, 0xff}, 5, false); /* 4 GiB */
    expect_refused(c, x, 8, "larger than 4194304");

    x = h2_call(c, "/tracelake.v1.Catalog/GetTrace");
    h2_send(c, x, (uint8_t[]){0, 0, 0, 0, 2, 0x0a, 0x7f}, 7,
            true); /* a field that exceeds the message */
    expect_refused(c, x, 3, "GetTraceRequest");
    h2_free(c);
}

static void test_error_text_is_encoded(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    Tracelake__V1__GetTraceRequest request = TRACELAKE__V1__GET_TRACE_REQUEST__INIT;
    request.trace = (char *)"50%\xc3\xa4\n";
    struct h2_exchange *const x = h2_call(c, "/tracelake.v1.Catalog/GetTrace");
    h2_send_message(c, x, &request.base, true);
    expect_refused(c, x, 5, "50%25%C3%A4%0A");
    h2_free(c);
}

/* A watch that is longer than its deadline, which is long enough for its first answer to be made
 * and taken; `reset`: it cannot be taken, and the stream is reset. */
static struct h2_exchange *watch_past_deadline(struct h2_client *c, bool reset)
{
    for (unsigned ms = 100;; ms *= 2) {
        char timeout[16];
        snprintf(timeout, sizeof timeout, "%um", ms);
        struct h2_exchange *const x = h2_request(c, "POST", WATCH, false, "content-type",
                                                 "application/grpc", "grpc-timeout", timeout, NULL);
        h2_send(c, x, empty_message, 5, true);
        h2_finish(c, x);
        if (x->reset == reset && (reset || x->body.n > 0))
            return x;
        assert_true(ms < PATIENCE_S * 1000); /* a busy machine was not as quick */
    }
}

static void test_deadline(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    /* Before any answer was sent, a status. */
    atomic_store(&fake.slow_ms, 300);
    struct h2_exchange *x = h2_request(c, "POST", LIST, false, "content-type", "application/grpc",
                                       "grpc-timeout", "20m", NULL);
    h2_send(c, x, empty_message, 5, true);
    expect_refused(c, x, 4, "deadline");
    atomic_store(&fake.slow_ms, 0);
    /* A client that never sends its request. */
    x = h2_request(c, "POST", LIST, false, "content-type", "application/grpc", "grpc-timeout",
                   "20m", NULL);
    expect_refused(c, x, 4, "deadline");
    /* In the middle of an answer, a status after what was already sent. */
    x = watch_past_deadline(c, false);
    assert_true(x->body.n > 0);
    assert_false(x->reset);
    assert_int_equal(x->frames, 2);
    assert_int_equal(h2_grpc_status(x), 4);
    x = h2_request(c, "POST", LIST, false, "content-type", "application/grpc", "grpc-timeout", "1x",
                   NULL);
    expect_refused(c, x, 13, "grpc-timeout");
    h2_free(c);
}

/* An answer that the client does not read before the deadline: the stream is reset. */
static void test_deadline_of_what_is_not_taken(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    const nghttp2_settings_entry closed = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    assert_int_equal(nghttp2_submit_settings(c->session, 0, &closed, 1), 0);
    const struct h2_exchange *const x = watch_past_deadline(c, true);
    assert_int_equal(x->frames, 1);
    assert_int_equal(x->body.n, 0);
    assert_true(x->reset);
    assert_int_equal(x->code, NGHTTP2_CANCEL);
    h2_free(c);
}

/* A client that disconnects in the middle of calls leaves nothing running. */
static void test_cancel(void **state)
{
    struct serving *const s = *state;
    struct h2_client *c = h2_connect(s->url);
    for (int i = 0; i < 20; i++) {
        struct h2_exchange *const x = h2_call(c, WATCH);
        h2_send(c, x, empty_message, 5, true);
        ProtobufCMessage *const first =
            h2_message(c, x, &tracelake__v1__list_traces_reply__descriptor);
        assert_non_null(first);
        protobuf_c_message_free_unpacked(first, NULL);
        if (i & 1)
            nghttp2_submit_rst_stream(c->session, 0, x->id, NGHTTP2_CANCEL);
    }
    h2_step(c, 0);
    h2_free(c);
    c = h2_connect(s->url);
    struct h2_exchange *const x = h2_call(c, LIST);
    h2_send(c, x, empty_message, 5, true);
    expect_list(c, x);
    h2_free(c);
    /* teardown waits for all handlers */
}

static void test_health(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    static const char *const known[] = {"", "tracelake.v1.Ingest", "grpc.health.v1.Health"};
    for (size_t i = 0; i < 3; i++) {
        request.service = (char *)(uintptr_t)known[i];
        struct h2_exchange *const x = h2_call(c, CHECK);
        h2_send_message(c, x, &request.base, true);
        Grpc__Health__V1__HealthCheckResponse *const reply =
            (Grpc__Health__V1__HealthCheckResponse *)h2_message(
                c, x, &grpc__health__v1__health_check_response__descriptor);
        assert_non_null(reply);
        assert_int_equal(reply->status, 1);
        protobuf_c_message_free_unpacked(&reply->base, NULL);
    }
    request.service = (char *)"nobody";
    struct h2_exchange *x = h2_call(c, CHECK);
    h2_send_message(c, x, &request.base, true);
    expect_refused(c, x, 5, "nobody");
    x = h2_call(c, "/grpc.health.v1.Health/Watch");
    h2_send_message(c, x, &request.base, true);
    Grpc__Health__V1__HealthCheckResponse *const reply =
        (Grpc__Health__V1__HealthCheckResponse *)h2_message(
            c, x, &grpc__health__v1__health_check_response__descriptor);
    assert_int_equal(reply->status, 3); /* and the call continues */
    assert_false(x->closed);
    protobuf_c_message_free_unpacked(&reply->base, NULL);
    h2_free(c);
}

typedef Grpc__Reflection__V1__ServerReflectionRequest Ask;
typedef Grpc__Reflection__V1__ServerReflectionResponse Reported;

static Reported *ask(struct h2_client *c, struct h2_exchange *x, const Ask *request)
{
    h2_send_message(c, x, &request->base, false);
    Reported *const reported =
        (Reported *)h2_message(c, x, &grpc__reflection__v1__server_reflection_response__descriptor);
    assert_non_null(reported);
    return reported;
}

static void reflect(struct h2_client *c, const char *path)
{
    struct h2_exchange *const x = h2_call(c, path);
    Ask request = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    request.message_request_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES;
    request.list_services = (char *)"";
    Reported *reported = ask(c, x, &request);
    assert_int_equal(reported->list_services_response->n_service, 9);
    protobuf_c_message_free_unpacked(&reported->base, NULL);

    static const char *const symbols[] = {"tracelake.v1.Ingest",
                                          "tracelake.v1.Ingest.Push",
                                          "tracelake.v1.Trace",
                                          "tracelake.v1.Format",
                                          "tracelake.v1.Trace.LabelsEntry",
                                          "tracelake.v1.PushRequest.step",
                                          "tracelake.v1.FORMAT_TEXT"};
    request.message_request_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        request.file_containing_symbol = (char *)(uintptr_t)symbols[i];
        reported = ask(c, x, &request);
        if (reported->message_response_case !=
            GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE)
            fail_msg("%s is not found", symbols[i]);
        protobuf_c_message_free_unpacked(&reported->base, NULL);
    }
    request.file_containing_symbol = (char *)"tracelake.v1.Nonsense";
    reported = ask(c, x, &request);
    assert_int_equal(reported->error_response->error_code, 5);
    assert_string_equal(reported->original_request->file_containing_symbol,
                        "tracelake.v1.Nonsense");
    protobuf_c_message_free_unpacked(&reported->base, NULL);
    h2_send(c, x, empty_message, 0, true);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
}

static void test_reflection(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    reflect(c, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    reflect(c, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    h2_free(c);
}

static void test_ping(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    nghttp2_submit_ping(c->session, 0, (const uint8_t *)"12345678");
    while (!c->pongs && h2_step(c, 240000))
        ;
    assert_int_equal(c->pongs, 1);
    h2_free(c);
}

/* ---- hostile clients ---------------------------------------------------------------------- */

static void test_header_bomb(void **state)
{
    struct serving *const s = *state;
    struct h2_client *const c = h2_connect(s->url);
    char *const big = malloc(40001);
    memset(big, 'a', 40000);
    big[40000] = 0;
    struct h2_exchange *x = h2_request(c, "GET", "/healthz", true, "x-1", big, NULL);
    h2_finish(c, x);
    assert_int_equal(h2_status(x), 200);
    x = h2_request(c, "GET", "/healthz", true, "x-1", big, "x-2", big, NULL);
    h2_finish(c, x);
    assert_true(x->reset || h2_status(x) == 431);
    x = h2_request(c, "GET", "/healthz", true, NULL);
    h2_finish(c, x);
    assert_int_equal(h2_status(x), 200);
    free(big);
    h2_free(c);
}

/* Send a frame many times after the preface; the server must send GOAWAY and close. */
static void flood(const struct serving *s, const uint8_t *frame, size_t n, unsigned times)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const uint8_t settings[9] = {0, 0, 0, 4};
    const int fd = tcp_connect(s->url);
    struct tl_buf out = {0};
    assert_int_equal(tl_buf_add(&out, preface, sizeof preface - 1), TL_OK);
    assert_int_equal(tl_buf_add(&out, settings, sizeof settings), TL_OK);
    for (unsigned i = 0; i < times; i++)
        assert_int_equal(tl_buf_add(&out, frame, n), TL_OK);
    for (size_t at = 0; at < out.n;) {
        const ssize_t put = send(fd, out.p + at, out.n - at, MSG_NOSIGNAL);
        if (put < 0)
            break;
        at += (size_t)put;
    }
    uint8_t in[65536];
    ssize_t got;
    while ((got = recv(fd, in, sizeof in, 0)) > 0)
        ;
    assert_true(got <= 0); /* closed, not left open */
    close(fd);
    tl_buf_fini(&out);
}

static void test_floods(void **state)
{
    struct serving *const s = *state;
    static const uint8_t ping[17] = {0, 0, 8, 6};
    static const uint8_t settings[9] = {0, 0, 0, 4};
    static const uint8_t priority[14] = {0, 0, 5, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    flood(s, ping, sizeof ping, 20000);
    flood(s, settings, sizeof settings, 20000);
    flood(s, priority, sizeof priority, 20000);
    /* The server still answers others. */
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *const x = h2_call(c, LIST);
    h2_send(c, x, empty_message, 5, true);
    expect_list(c, x);
    h2_free(c);
}

/* Streams opened and reset immediately, as fast as possible. */
static void test_rapid_reset(void **state)
{
    struct serving *const s = *state;
    for (int round = 0; round < 20; round++) {
        struct h2_client *const c = h2_connect(s->url);
        for (int i = 0; i < 200; i++) {
            struct h2_exchange *const x = h2_call(c, LIST);
            h2_send(c, x, empty_message, 5, true);
            nghttp2_submit_rst_stream(c->session, 0, x->id, NGHTTP2_CANCEL);
        }
        h2_step(c, 0);
        h2_free(c);
    }
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *const x = h2_call(c, LIST);
    h2_send(c, x, empty_message, 5, true);
    expect_list(c, x);
    h2_free(c);
}

static void test_noise(void **state)
{
    struct serving *const s = *state;
    unsigned seed = (unsigned)test_seed();
    for (int round = 0; round < 200; round++) {
        uint8_t bytes[600];
        const int fd = tcp_connect(s->url);
        const size_t n = 1 + (size_t)rand_r(&seed) % sizeof bytes;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)rand_r(&seed);
        if (round & 1)
            memcpy(bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", n < 24 ? n : 24);
        (void)!send(fd, bytes, n, MSG_NOSIGNAL);
        close(fd);
    }
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *const x = h2_call(c, LIST);
    h2_send(c, x, empty_message, 5, true);
    expect_list(c, x);
    h2_free(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_unary),          TEST(test_many_at_once),
        TEST(test_unknown_method), TEST(test_content_type),
        TEST(test_encodings),      TEST(test_gzip),
        TEST(test_bad_bodies),     TEST(test_error_text_is_encoded),
        TEST(test_deadline),       TEST(test_deadline_of_what_is_not_taken),
        TEST(test_cancel),         TEST(test_health),
        TEST(test_reflection),     TEST(test_ping),
        TEST(test_header_bomb),    TEST(test_floods),
        TEST(test_rapid_reset),    TEST(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
