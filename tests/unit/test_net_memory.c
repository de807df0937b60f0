/* SPDX-License-Identifier: MIT */
/* Memory that clients take by what they ask for, and by not taking the answers: each has its share
 * of it, and what is not taken ends by itself. */
#include "base/processors.h"
#include "unit/sharing.h"

/* Large heads of requests that never end. */
static void test_heads_are_counted(void **state)
{
    enum { CLIENTS = 14, STREAMS = 100, BYTES = 60000, SHARE = 64 << 20 };
    struct serving s;
    struct h2_client *clients[CLIENTS];
    open_server(&s, (struct tl_net_options){.request_ms = PATIENCE_S * 1000}, false);
    char *const value = malloc(BYTES + 1);
    memset(value, 'x', BYTES);
    value[BYTES] = 0;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = h2_connect(s.url);
        for (int k = 0; k < STREAMS; k++)
            h2_request(clients[i], "POST", LIST, false, "content-type", "application/grpc", "x",
                       value, NULL);
        settle(clients[i]);
    }
    assert_true(metric(s.net, "share_largest{of=\"head-bytes\"}") <= SHARE + BYTES);
    assert_true(metric(s.net, "share_largest{of=\"head-bytes\"}") > SHARE / 2);
    assert_true(metric(s.net, "share_refused_total{of=\"head-bytes\"}") > 0);
    expect_short_calls(&s, OTHER, NULL);
    for (int i = 0; i < CLIENTS; i++)
        h2_free(clients[i]);
    await_metric(s.net, "share_used{of=\"head-bytes\"}", 0, 0);
    free(value);
    stop_serving(&s);
}

/* Answers of some MiB each, to a client that gives no window for them. */
static void test_answers_that_are_not_taken(void **state)
{
    enum { STREAMS = 100, ALL = 32 << 20, ANSWER = 4 << 20 };
    const char *const used = "share_used{of=\"answer-bytes\"}";
    struct serving s;
    open_server(&s, (struct tl_net_options){.max_outbound = ALL}, false);
    atomic_store(&fake.chatty, true);
    struct h2_client *const c = h2_connect_from(s.url, NULL, 0);
    for (int i = 0; i < STREAMS; i++)
        verify(c, NULL);
    settle(c);
    await_metric(s.net, used, ALL / 2, ALL / 2 + 8 * ANSWER);
    expect_short_calls(&s, OTHER, NULL);
    assert_true(metric(s.net, used) <= ALL / 2 + 8 * ANSWER);
    h2_free(c);
    await_metric(s.net, used, 0, 0);
    stop_serving(&s);
}

/* They end by themselves, and those that waited for room after them. */
static void test_stalled_answers_end(void **state)
{
    enum { STREAMS = 20, ALL = 32 << 20 };
    const struct tl_net_options options = {.max_outbound = ALL, .answer_ms = 100};
    struct serving s;
    open_server(&s, options, false);
    atomic_store(&fake.chatty, true);
    struct h2_client *const c = h2_connect_from(s.url, NULL, 0);
    struct h2_exchange *x[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        x[i] = verify(c, NULL);
    for (int i = 0; i < STREAMS; i++) {
        h2_finish(c, x[i]);
        assert_true(x[i]->reset);
        assert_int_equal(x[i]->code, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    await_metric(s.net, "share_used{of=\"answer-bytes\"}", 0, 0);
    assert_int_equal(metric(s.net, "answers_stalled_total"), STREAMS);
    h2_free(c);
    stop_serving(&s);
}

/* Not even a reset arrives at a client that reads nothing from its socket, however lively it is. */
static void test_unread_sockets_end(void **state)
{
    enum { STREAMS = 4, ALL = 32 << 20, ROOM = 65536 };
    const struct tl_net_options options = {.max_outbound = ALL, .answer_ms = 100};
    struct serving s;
    open_server(&s, options, false);
    atomic_store(&fake.chatty, true);
    struct h2_client *const c = h2_connect_from(s.url, NULL, 1 << 30);
    setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &(int){ROOM}, sizeof(int));
    settle(c);
    unsigned looked = 0, next = 0;
    for (int64_t since = 0; metric(s.net, "connections_open"); looked++) {
        /* If they ended before the socket was full, they are asked for again, ever more seldom. */
        if (looked >= next && !metric(s.net, "share_used{of=\"answer-bytes\"}")) {
            for (int i = 0; i < STREAMS; i++)
                verify(c, NULL);
            next = 2 * looked + 8;
        }
        nghttp2_submit_window_update(c->session, 0, 0, 1);
        (void)!nghttp2_session_send(c->session);
        keep_waiting(&since, "the end of a connection");
    }
    await_metric(s.net, "share_used{of=\"answer-bytes\"}", 0, 0);
    h2_free(c);
    stop_serving(&s);
}

/* More answers at a time than there is memory for are taken one after the other. */
static void test_answers_wait_for_room(void **state)
{
    enum { STREAMS = 64, ALL = 16 << 20 };
    const struct tl_net_options options = {.max_outbound = ALL};
    struct serving s;
    open_server(&s, options, false);
    atomic_store(&fake.chatty, true);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *x[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        x[i] = verify(c, NULL);
    for (int i = 0; i < STREAMS; i++)
        expect_status(c, x[i], 0);
    h2_free(c);
    stop_serving(&s);
}

/* Over HTTP/1.1, too: each client asks for more than its socket takes. */
static void test_answers_over_http1(void **state)
{
    enum { CLIENTS = 24, TIMES = 4, ALL = 32 << 20, ANSWER = 3 << 20 };
    static const char get[] = "GET /api/v1/traces/t/streams/cs.10/find?event=exception&limit=100000"
                              " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char list[] = "GET /api/v1/traces HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const struct tl_net_options options = {.max_outbound = ALL};
    struct serving s;
    struct wire w[CLIENTS];
    char in[4096] = "";
    open_server(&s, options, false);
    atomic_store(&fake.chatty, true);
    for (int i = 0; i < CLIENTS; i++) {
        w[i] = wire_open(s.url);
        for (int k = 0; k < TIMES; k++)
            wire_send(&w[i], get);
    }
    /* Answers are waiting for the first eight of them, for as long as they do not read. Here a
     * short request asks for more: a long one that comes before the limit waits with the others. */
    int status = 0;
    for (int64_t since = 0; status != 429;) {
        struct wire one = wire_open(s.url);
        wire_send(&one, list);
        assert_true(wire_read(&one, in, sizeof in - 1) > 12);
        status = atoi(in + 9);
        wire_close(&one);
        keep_waiting(&since, "a refusal");
    }
    assert_true(metric(s.net, "share_used{of=\"answer-bytes\"}") < ALL / 2 + CLIENTS * ANSWER);
    expect_short_calls(&s, OTHER, NULL);
    for (int i = 0; i < CLIENTS; i++)
        wire_close(&w[i]);
    await_metric(s.net, "share_used{of=\"answer-bytes\"}", 0, 0);
    stop_serving(&s);
}

static struct wire find_over_http1(const char *url)
{
    struct wire w = wire_open(url);
    wire_send(&w, "GET /api/v1/traces/t/streams/cs.10/find?event=exception&limit=9 HTTP/1.1\r\n"
                  "Host: localhost\r\n\r\n");
    return w;
}

/* A request that waits for a thread is told the same as one that comes later. */
static void test_share_that_fills_while_waiting(void **state)
{
    enum { ALL = 16 << 20, RANGES = 2, MOST = 256 };
    static const char running[] = "worker_threads{pool=\"read-long\"}";
    static const char queued[] = "worker_queue{pool=\"read-long\"}";
    /* Half of the threads for long work, which is as many as one client has: net/workers.c. A call
     * that still waits for its thread to start is not meant here. */
    const unsigned threads = (2 * tl_processors() < 8 ? 8 : 2 * tl_processors()) / 2;
    struct serving s;
    struct wire w[MOST];
    size_t n = 0;
    char in[4096] = "";
    open_server(&s, (struct tl_net_options){.max_outbound = ALL}, false);
    atomic_store(&fake.hold, true);
    atomic_store(&fake.mute, true);
    while (n < MOST && (metric(s.net, running) < threads || !metric(s.net, queued))) {
        w[n] = find_over_http1(s.url);
        n++;
        for (int64_t since = 0; metric(s.net, running) + metric(s.net, queued) < n;)
            keep_waiting(&since, "a call");
    }
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    request.stream = (char *)(uintptr_t) "cs.10";
    request.format = TRACELAKE__V1__FORMAT__FORMAT_TEXT;
    struct h2_client *const c = h2_connect_from(s.url, NULL, 0);
    for (int i = 0; i < RANGES; i++)
        h2_send_message(c, begin(c, "/tracelake.v1.Ranges/Fetch", NULL), &request.base, true);
    settle(c);
    await_metric(s.net, "share_used{of=\"answer-bytes\"}", ALL / 2 + 1, ALL);
    atomic_store(&fake.hold, false);
    assert_true(wire_read(&w[n - 1], in, sizeof in - 1) > 12);
    assert_int_equal(atoi(in + 9), 429);
    atomic_store(&fake.mute, false);
    h2_free(c);
    for (size_t i = 0; i < n; i++)
        wire_close(&w[i]);
    stop_serving(&s);
}

/* Ranges that are open, over RPC and HTTP/2: each is memory, even if nothing of it is taken. */
static void test_ranges_are_memory(void **state)
{
    enum { STREAMS = 60, ALL = 64 << 20, RANGE = 4 << 20, MOST = ALL / 2 / RANGE };
    const struct tl_net_options options = {.max_outbound = ALL, .answer_ms = 1000};
    struct serving s;
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    request.stream = (char *)(uintptr_t) "cs.10";
    request.format = TRACELAKE__V1__FORMAT__FORMAT_TEXT;
    open_server(&s, options, false);
    struct h2_client *const c = h2_connect_from(s.url, NULL, 0);
    struct h2_exchange *x[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        if (i & 1) {
            x[i] = h2_request(c, "GET", "/api/v1/traces/t/streams/cs.10/range?format=text", true,
                              NULL);
        } else {
            x[i] = begin(c, "/tracelake.v1.Ranges/Fetch", NULL);
            h2_send_message(c, x[i], &request.base, true);
        }
    }
    settle(c);
    expect_short_calls(&s, OTHER, NULL);
    assert_true(metric(s.net, "share_largest{of=\"answer-bytes\"}") <= ALL / 2 + RANGE);
    /* Those that are in progress end, except as many as nobody misses. */
    const char *const stalled = "share_used{of=\"answer-bytes\"}";
    for (int64_t since = 0; metric(s.net, stalled) > ALL / 16;)
        if (!h2_step(c, 1))
            keep_waiting(&since, "ranges that end");
    h2_free(c);
    await_metric(s.net, stalled, 0, 0);
    stop_serving(&s);
}

/* The client gives a window for exactly the first piece; another one follows when that is used. */
static void test_late_answers_stall(void **state)
{
    enum { ALL = 16 << 20, PIECE = 15 + 2048 * 28 }; /* a heading, then lines of instructions */
    const struct tl_net_options options = {.max_outbound = ALL, .answer_ms = 100};
    struct serving s;
    open_server(&s, options, false);
    atomic_store(&fake.mute, true);
    struct h2_client *const c = h2_connect_from(s.url, NULL, PIECE);
    c->keeps_window = true;
    struct h2_exchange *const x =
        h2_request(c, "GET", "/api/v1/traces/t/streams/cs.10/range?format=text", true, NULL);
    for (int64_t since = 0; x->body.n < PIECE;)
        if (!h2_step(c, 20))
            keep_waiting(&since, "the first piece");
    assert_int_equal(x->body.n, PIECE);
    assert_int_equal(metric(s.net, "answers_stalled_total"), 0);
    atomic_store(&fake.mute, false);
    h2_finish(c, x);
    assert_true(x->reset);
    assert_int_equal(x->code, NGHTTP2_ENHANCE_YOUR_CALM);
    await_metric(s.net, "share_used{of=\"answer-bytes\"}", 0, 0);
    h2_free(c);
    stop_serving(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_answers_stall),
        cmocka_unit_test(test_heads_are_counted),
        cmocka_unit_test(test_answers_that_are_not_taken),
        cmocka_unit_test(test_stalled_answers_end),
        cmocka_unit_test(test_unread_sockets_end),
        cmocka_unit_test(test_answers_wait_for_room),
        cmocka_unit_test(test_answers_over_http1),
        cmocka_unit_test(test_share_that_fills_while_waiting),
        cmocka_unit_test(test_ranges_are_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
