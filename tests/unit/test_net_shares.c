/* SPDX-License-Identifier: MIT */
/* One client that takes everything it can get leaves the others their share: of threads and of
 * connections. And what does not arrive ends by itself. */
#include "unit/sharing.h"

#include "tracelake/v1/ingest.pb-c.h"

#include <poll.h>

/* ---- requests that do not arrive ------------------------------------------------------------ */

static void test_requests_that_do_not_arrive(void **state)
{
    static const uint8_t half[] = {0, 0, 0, 0, 9, 1};
    static const char *const paths[] = {LIST, PUSH, CHECK, REFLECT, WATCH};
    const struct tl_net_options options = {.request_ms = 100};
    struct serving s;
    open_server(&s, options, false);
    struct h2_client *const c = h2_connect(s.url);
    for (size_t i = 0; i < 2 * sizeof paths / sizeof *paths; i++) {
        struct h2_exchange *const x = h2_call(c, paths[i / 2]);
        if (i & 1) /* part of a message */
            h2_send(c, x, half, sizeof half, false);
        expect_status(c, x, 14);
        assert_non_null(strstr(h2_grpc_text(x), "did not arrive"));
    }
    struct h2_exchange *const get = h2_request(c, "GET", "/healthz", false, NULL);
    h2_finish(c, get);
    assert_int_equal(h2_status(get), 408);
    struct h2_exchange *const put =
        h2_request(c, "PUT", "/api/v1/images?name=x", false, "content-length", "5", NULL);
    h2_send(c, put, half, 3, false);
    h2_finish(c, put);
    assert_int_equal(h2_status(put), 408);
    expect_short_call(c, LIST, NULL);
    h2_free(c);
    expect_short_calls(&s, NULL, NULL);
    stop_serving(&s);
}

/* HEADERS without the rest of the header block: nothing else may be sent on the connection. */
static void test_heads_that_do_not_arrive(void **state)
{
    static const char begin_of_head[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                        "\0\0\0\x04\0\0\0\0\0"
                                        "\0\0\x01\x01\0\0\0\0\x01\x82";
    const struct tl_net_options options = {.request_ms = 100};
    struct serving s;
    open_server(&s, options, false);
    struct wire w = wire_open(s.url);
    char in[256];
    wire_send_n(&w, begin_of_head, sizeof begin_of_head - 1);
    ssize_t n;
    do {
        struct pollfd p = {.fd = w.fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
    } while ((n = wire_read(&w, in, sizeof in)) > 0);
    wire_close(&w);
    await_metric(s.net, "share_used{of=\"head-bytes\"}", 0, 0);
    stop_serving(&s);
}

/* A push that has begun may pause for as long as it wants. */
static void test_pushes_may_pause(void **state)
{
    const struct tl_net_options options = {.request_ms = 40};
    struct serving s;
    open_server(&s, options, false);
    struct h2_client *const c = h2_connect(s.url);
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    Tracelake__V1__Open open = TRACELAKE__V1__OPEN__INIT;
    open.rig = (char *)(uintptr_t) "rig";
    open.trace = (char *)(uintptr_t) "p";
    open.setup = (char *)(uintptr_t) "[trace]\nformat = tpiu\n";
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN;
    request.open = &open;
    struct h2_exchange *push = NULL;
    ProtobufCMessage *opened = NULL;
    for (int64_t since = 0; !opened;) { /* its own request must come in time */
        keep_waiting(&since, "a push that begins in time");
        push = h2_call(c, PUSH);
        h2_send_message(c, push, &request.base, false);
        opened = h2_message(c, push, &tracelake__v1__push_reply__descriptor);
    }
    protobuf_c_message_free_unpacked(opened, NULL);
    /* Several requests that come too late, one after the other: much longer than one of them. */
    for (int i = 0; i < 10; i++)
        expect_status(c, h2_call(c, LIST), 14);
    assert_false(push->closed);
    h2_free(c);
    stop_serving(&s);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Health and readiness, while one address has all that it can have of everything public. */
static void test_health_has_its_own(void **state)
{
    enum { CLIENTS = 9, STREAMS = 100, MESSAGE = 60000 };
    struct serving s;
    struct h2_client *clients[CLIENTS];
    open_server(&s, (struct tl_net_options){.max_inbound = 8 << 20}, true);
    uint8_t *const message = calloc(1, MESSAGE + 5);
    message[3] = MESSAGE >> 8;
    message[4] = (MESSAGE + 1) & 255; /* one byte more than is sent */
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = h2_connect(s.url);
        for (int k = 0; k < STREAMS; k++) {
            struct h2_exchange *const x = begin(clients[i], i % 3 ? REFLECT : CHECK, NULL);
            h2_send(clients[i], x, message, MESSAGE + 5, false);
        }
        settle(clients[i]);
    }
    struct h2_client *const c = h2_connect(s.url);
    for (int i = 0; i < 20; i++) {
        expect_status(c, call(c, CHECK, NULL), 0);
        struct h2_exchange *const x =
            h2_request(c, "GET", i & 1 ? "/readyz" : "/healthz", true, NULL);
        h2_finish(c, x);
        assert_int_equal(h2_status(x), 200);
    }
    h2_free(c);
    expect_short_calls(&s, NULL, ALICE);
    for (int i = 0; i < CLIENTS; i++)
        h2_free(clients[i]);
    free(message);
    stop_serving(&s);
}

/* Few requests without a token at a time; the refusal says how many. */
static void test_guests(void **state)
{
    enum { STREAMS = 20 };
    struct serving s;
    struct h2_exchange *x[STREAMS];
    open_server(&s, (struct tl_net_options){.max_guests = 64}, true);
    struct h2_client *const c = h2_connect(s.url);
    for (int i = 0; i < STREAMS; i++)
        x[i] = h2_request(c, "PUT", "/api/v1/images?name=x", false, "content-length", "9", NULL);
    for (int i = 8; i < STREAMS; i++) {
        h2_finish(c, x[i]);
        assert_int_equal(h2_status(x[i]), 429);
        assert_int_equal(tl_buf_add(&x[i]->body, "", 1), TL_OK);
        assert_non_null(strstr((char *)x[i]->body.p, "without a valid token: 8 of at most 64"));
    }
    expect_status(c, begin(c, REFLECT, NULL), 8);
    expect_short_calls(&s, NULL, ALICE);
    expect_short_calls(&s, OTHER, BOB);
    h2_free(c);
    await_metric(s.net, "share_used{of=\"guests\"}", 0, 0);
    stop_serving(&s);
}

/* Alice has all the calls that last which she can have. */
static void test_lasting_calls(void **state)
{
    enum { ALL = 40, STREAMS = 60 };
    static const char *const paths[] = {WATCH, PUSH};
    static const char *const pools[] = {"worker_threads{pool=\"read-lasts\"}",
                                        "worker_threads{pool=\"push-lasts\"}"};
    struct serving s;
    open_server(&s, (struct tl_net_options){.max_streaming = ALL}, true);
    for (int k = 0; k < 2; k++) {
        struct h2_client *const alice = h2_connect_from(s.url, NULL, 1 << 20);
        struct h2_client *const elsewhere = h2_connect_from(s.url, "127.0.0.3", 1 << 20);
        struct h2_client *const bob = h2_connect_from(s.url, OTHER, 1 << 20);
        for (int i = 0; i < STREAMS; i++) {
            struct h2_exchange *const x = begin(i & 1 ? elsewhere : alice, paths[k], ALICE);
            if (!k)
                h2_send(i & 1 ? elsewhere : alice, x, empty_message, 5, true);
        }
        settle(alice);
        settle(elsewhere);
        await_metric(s.net, pools[k], ALL / 2, ALL / 2);
        struct h2_exchange *x[ALL];
        for (int i = 0; i < ALL; i++) {
            x[i] = begin(bob, paths[k], BOB);
            if (!k)
                h2_send(bob, x[i], empty_message, 5, true);
        }
        settle(bob);
        await_metric(s.net, pools[k], ALL * 3 / 4, ALL * 3 / 4);
        expect_status(bob, x[ALL - 1], 8);
        assert_non_null(strstr(h2_grpc_text(x[ALL - 1]), "30 of at most 40"));
        expect_short_calls(&s, NULL, ALICE);
        h2_free(alice);
        h2_free(elsewhere);
        h2_free(bob);
        await_metric(s.net, pools[k], 0, 0);
    }
    stop_serving(&s);
}

/* Alice has long calls by the hundred, Bob one at a time. */
static void test_long_calls(void **state)
{
    enum { CLIENTS = 8, STREAMS = 100 };
    struct serving s;
    struct h2_client *clients[CLIENTS];
    open_server(&s, (struct tl_net_options){0}, true);
    atomic_store(&fake.hold, true);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = h2_connect(s.url);
        for (int k = 0; k < STREAMS; k++)
            verify(clients[i], ALICE);
        settle(clients[i]);
    }
    await_metric(s.net, "worker_queue{pool=\"read-long\"}", 100, 1024);
    struct h2_client *const bob = h2_connect_from(s.url, OTHER, 1 << 20);
    for (int i = 0; i < 50; i++)
        expect_status(bob, locate(bob, BOB), 0);
    h2_free(bob);
    atomic_store(&fake.hold, false);
    for (int i = 0; i < CLIENTS; i++)
        h2_free(clients[i]);
    stop_serving(&s);
}

/* ---- HTTP/1.1 ------------------------------------------------------------------------------- */

static int status_of(struct wire *w)
{
    char in[4096] = "";
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_S * 1000), 1);
    return wire_read(w, in, sizeof in - 1) > 12 ? atoi(in + 9) : 0;
}

static struct wire ask_http1(const char *url, const char *source, const char *token, int *status)
{
    char text[256];
    struct wire w = {.fd = tcp_connect_from(url, source)};
    snprintf(text, sizeof text,
             "GET /api/v1/traces HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n", token);
    wire_send(&w, text);
    *status = status_of(&w);
    return w;
}

/* Connections that are kept after a request, of one token from several addresses. */
static void test_http1_connections(void **state)
{
    enum { ALL = 16 };
    struct serving s;
    struct wire w[ALL];
    int status;
    open_server(&s, (struct tl_net_options){.max_http1 = ALL}, true);
    for (int i = 0; i < ALL / 2; i++) {
        w[i] = ask_http1(s.url, i & 1 ? NULL : "127.0.0.3", ALICE, &status);
        assert_int_equal(status, 200);
    }
    struct wire more = ask_http1(s.url, "127.0.0.4", ALICE, &status);
    assert_int_equal(status, 429);
    wire_close(&more);
    for (int i = 0; i < 3; i++) {
        more = ask_http1(s.url, OTHER, BOB, &status);
        assert_int_equal(status, 200);
        wire_close(&more);
    }
    for (int i = 0; i < ALL / 2; i++)
        wire_close(&w[i]);
    await_metric(s.net, "share_used{of=\"http1\"}", 0, 0);
    stop_serving(&s);
}

/* Connections without a request have no thread, and take nothing from those with one. */
static void test_http1_silence(void **state)
{
    enum { SILENT = 200 };
    static const char *const begins[] = {"GET / HTTP/1.1\r\nHost: ", "G", "\r\n"};
    struct serving s;
    struct wire w[SILENT];
    int status;
    open_server(&s, (struct tl_net_options){.max_http1 = 8}, true);
    for (int i = 0; i < SILENT; i++) {
        w[i] = wire_open(s.url);
        wire_send(&w[i], begins[i % 3]);
    }
    struct wire one = ask_http1(s.url, NULL, BOB, &status);
    assert_int_equal(status, 200);
    assert_int_equal(metric(s.net, "share_used{of=\"http1\"}"), 1);
    wire_close(&one);
    for (int i = 0; i < SILENT; i++)
        wire_close(&w[i]);
    stop_serving(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_that_do_not_arrive),
        cmocka_unit_test(test_heads_that_do_not_arrive),
        cmocka_unit_test(test_pushes_may_pause),
        cmocka_unit_test(test_health_has_its_own),
        cmocka_unit_test(test_guests),
        cmocka_unit_test(test_lasting_calls),
        cmocka_unit_test(test_long_calls),
        cmocka_unit_test(test_http1_connections),
        cmocka_unit_test(test_http1_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
