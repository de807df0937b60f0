/* SPDX-License-Identifier: MIT */
/* No kind of call can keep others from being answered: long work, public calls, messages that are
 * announced and never arrive. And work is stopped when it is no longer wanted. */
#include "lake_ingest.h"
#include "lake_traces.h"
#include "net/http.h"
#include "unit/patience.h"
#include "unit/serving.h"

#include "grpc/health/v1/health.pb-c.h"
#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LIST    "/tracelake.v1.Catalog/ListTraces"
#define WATCH   "/tracelake.v1.Catalog/WatchTraces"
#define VERIFY  "/tracelake.v1.Catalog/Verify"
#define FIND    "/tracelake.v1.Ranges/Find"
#define PUSH    "/tracelake.v1.Ingest/Push"
#define CHECK   "/grpc.health.v1.Health/Check"
#define HEALTH  "/grpc.health.v1.Health/Watch"
#define REFLECT "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

#define LIMIT_MS  (PATIENCE_S * 1000) /* for events that need no further action */
#define STREAMS   100                 /* on a connection */
#define ANNOUNCED (4u << 20)

static const uint8_t empty_message[5];

static void on_durable(void *context, uint64_t offset)
{
}

static void add_trace(struct tl_lake *lake, const char *name)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = name, .setup = "[trace]\nformat = tpiu\n"};
    static const uint8_t bytes[4096];
    struct tl_ingest *ingest;
    char trace[64];
    uint64_t durable;
    struct tl_fail fail = {0};
    if (tl_ingest_open(lake, &request, on_durable, NULL, &ingest, trace, &durable, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){bytes, sizeof bytes}, &fail),
                     TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &durable, &fail), TL_OK);
    tl_ingest_close(ingest);
}

static void open_server(struct serving *s, const struct tl_net_options *options)
{
    serve(s, options);
    add_trace(s->lake, "t");
}

static struct h2_exchange *begin_verify(struct h2_client *c, const char *timeout)
{
    Tracelake__V1__VerifyRequest request = TRACELAKE__V1__VERIFY_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    struct h2_exchange *const x =
        h2_request(c, "POST", VERIFY, false, "content-type", "application/grpc",
                   timeout ? "grpc-timeout" : NULL, timeout, NULL);
    h2_send_message(c, x, &request.base, true);
    return x;
}

static struct h2_exchange *begin_find(struct h2_client *c)
{
    Tracelake__V1__FindRequest request = TRACELAKE__V1__FIND_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    request.stream = (char *)(uintptr_t) "cs.10";
    request.what_case = TRACELAKE__V1__FIND_REQUEST__WHAT_EVENT;
    request.event = (char *)(uintptr_t) "exception";
    request.limit = atomic_load(&fake.chatty) ? 100000 : 0;
    struct h2_exchange *const x = h2_call(c, FIND);
    h2_send_message(c, x, &request.base, true);
    return x;
}

/* Wait until this many calls are active in the lake, sending pending output. */
static void wait_held(struct h2_client *c, unsigned min, unsigned most)
{
    const int64_t until = tl_monotonic_ms() + LIMIT_MS;
    for (;;) {
        const unsigned held = atomic_load(&fake.held);
        if (held >= min && held <= most)
            return;
        if (tl_monotonic_ms() > until)
            fail_msg("%u are at work, not %u to %u", held, min, most);
        if (c)
            h2_step(c, 1);
        else
            usleep(1000);
    }
}

static void expect_ok(struct h2_client *c, const char *path)
{
    struct h2_exchange *const x = h2_call(c, path);
    h2_send(c, x, empty_message, 5, true);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
}

static void expect_page(struct h2_client *c, const char *path)
{
    struct h2_exchange *const x = h2_request(c, "GET", path, true, NULL);
    h2_finish(c, x);
    assert_int_equal(h2_status(x), 200);
}

static int h1_send(const char *url, const char *path)
{
    char text[256];
    const int fd = tcp_connect(url);
    const int n = snprintf(text, sizeof text,
                           "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    return fd;
}

static void expect_h1(const char *url, const char *path)
{
    char text[64] = {0};
    const int fd = h1_send(url, path);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
    assert_true(recv(fd, text, sizeof text - 1, 0) > 12);
    assert_memory_equal(text, "HTTP/1.1 200", 12);
    close(fd);
}

static void expect_short_calls(const struct serving *s)
{
    struct h2_client *const c = h2_connect(s->url);
    for (int i = 0; i < 20; i++) {
        expect_ok(c, LIST);
        expect_ok(c, CHECK);
    }
    expect_page(c, "/healthz");
    expect_page(c, "/readyz");
    expect_page(c, "/api/v1/traces");
    expect_h1(s->url, "/healthz");
    expect_h1(s->url, "/api/v1/traces");
    h2_free(c);
}

static void open_push(struct h2_client *c, const char *trace)
{
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    Tracelake__V1__Open open = TRACELAKE__V1__OPEN__INIT;
    open.rig = (char *)(uintptr_t) "rig";
    open.trace = (char *)(uintptr_t)trace;
    open.setup = (char *)(uintptr_t) "[trace]\nformat = tpiu\n";
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN;
    request.open = &open;
    struct h2_exchange *const x = h2_call(c, PUSH);
    h2_send_message(c, x, &request.base, false);
    ProtobufCMessage *const reply = h2_message(c, x, &tracelake__v1__push_reply__descriptor);
    if (!reply)
        fail_msg("push: %d %s", h2_grpc_status(x), h2_grpc_text(x));
    protobuf_c_message_free_unpacked(reply, NULL);
}

/* ---- long work -------------------------------------------------------------------------- */

static void test_long_beside_short(void **state)
{
    struct serving s;
    struct h2_exchange *x[64];
    open_server(&s, NULL);
    atomic_store(&fake.hold, true);
    struct h2_client *const c = h2_connect(s.url);
    for (int i = 0; i < 64; i++)
        x[i] = i & 1 ? begin_find(c) : begin_verify(c, NULL);
    const int h1 = h1_send(s.url, "/api/v1/traces/t/streams/cs.10/find?event=exception");
    wait_held(c, 2, 64);
    expect_short_calls(&s);
    atomic_store(&fake.hold, false);
    for (int i = 0; i < 64; i++) {
        h2_finish(c, x[i]);
        assert_int_equal(h2_grpc_status(x[i]), 0);
    }
    close(h1);
    h2_free(c);
    stop_serving(&s);
}

/* Work that would otherwise never end is cancelled here. */
static void test_cancelled_work_ends(void **state)
{
    struct serving s;
    open_server(&s, NULL);
    atomic_store(&fake.hold, true);
    struct h2_client *c = h2_connect(s.url);
    struct h2_exchange *x[40];
    for (int i = 0; i < 40; i++)
        x[i] = i & 1 ? begin_find(c) : begin_verify(c, NULL);
    wait_held(c, 2, 40);
    for (int i = 0; i < 40; i++)
        nghttp2_submit_rst_stream(c->session, 0, x[i]->id, NGHTTP2_CANCEL);
    wait_held(c, 0, 0);
    assert_true(atomic_load(&fake.cancelled) < 40); /* waiting calls were never started */
    /* The whole connection is closed. */
    begin_find(c);
    wait_held(c, 1, 1);
    h2_free(c);
    wait_held(NULL, 0, 0);
    /* HTTP/2 without gRPC. */
    c = h2_connect(s.url);
    struct h2_exchange *const y =
        h2_request(c, "GET", "/api/v1/traces/t/streams/cs.10/find?event=exception", true, NULL);
    wait_held(c, 1, 1);
    nghttp2_submit_rst_stream(c->session, 0, y->id, NGHTTP2_CANCEL);
    wait_held(c, 0, 0);
    h2_free(c);
    /* HTTP/1.1. */
    const int h1 = h1_send(s.url, "/api/v1/traces/t/streams/cs.10/find?event=exception");
    wait_held(NULL, 1, 1);
    close(h1);
    wait_held(NULL, 0, 0);
    stop_serving(&s);
}

static void test_expired_work_ends(void **state)
{
    struct serving s;
    open_server(&s, NULL);
    atomic_store(&fake.hold, true);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *x[20];
    for (int i = 0; i < 20; i++)
        x[i] = begin_verify(c, "100m");
    for (int i = 0; i < 20; i++) {
        h2_finish(c, x[i]);
        assert_int_equal(h2_grpc_status(x[i]), 4);
    }
    wait_held(NULL, 0, 0);
    h2_free(c);
    stop_serving(&s);
}

/* For any kind of call, however fast the answer would be. */
static void test_deadlines_that_have_passed(void **state)
{
    static const char *const paths[] = {LIST, WATCH, VERIFY, PUSH, CHECK, HEALTH, REFLECT};
    static const char *const timeouts[] = {"1n", "0m", "1n"};
    struct serving s;
    open_server(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (size_t k = 0; k < 3; k++) {
            struct h2_exchange *const x =
                h2_request(c, "POST", paths[i], false, "content-type", "application/grpc",
                           "grpc-timeout", timeouts[k], NULL);
            h2_send(c, x, empty_message, 5, true);
            h2_finish(c, x);
            if (h2_grpc_status(x) != 4)
                fail_msg("%s within %s: status %d", paths[i], timeouts[k], h2_grpc_status(x));
        }
    h2_free(c);
    stop_serving(&s);
}

/* ---- calls that anyone may make ---------------------------------------------------------- */

static void test_public_streams(void **state)
{
    const struct tl_net_options options = {.max_streaming = 40};
    struct h2_client *clients[6];
    struct serving s;
    open_server(&s, &options);
    for (int i = 0; i < 6; i++) {
        clients[i] = h2_connect(s.url);
        for (int k = 0; k < STREAMS; k++) {
            struct h2_exchange *const x = h2_call(clients[i], i & 1 ? REFLECT : HEALTH);
            if (!(i & 1))
                h2_send(clients[i], x, empty_message, 5, true);
        }
        while (h2_step(clients[i], 50))
            ;
    }
    /* A rig pushes, a reader watches. */
    struct h2_client *const c = h2_connect(s.url);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "trace-%d", i);
        open_push(c, name);
    }
    struct h2_exchange *const watch = h2_call(c, WATCH);
    h2_send(c, watch, empty_message, 5, true);
    ProtobufCMessage *const first =
        h2_message(c, watch, &tracelake__v1__list_traces_reply__descriptor);
    assert_non_null(first);
    protobuf_c_message_free_unpacked(first, NULL);
    expect_short_calls(&s);
    h2_free(c);
    for (int i = 0; i < 6; i++)
        h2_free(clients[i]);
    stop_serving(&s);
}

/* Readers cannot act as rigs either. */
static void test_readers_leave_room_for_rigs(void **state)
{
    const struct tl_net_options options = {.max_streaming = 40};
    struct serving s;
    open_server(&s, &options);
    struct h2_client *const readers = h2_connect(s.url);
    for (int k = 0; k < STREAMS; k++) {
        struct h2_exchange *const x = h2_call(readers, WATCH);
        h2_send(readers, x, empty_message, 5, true);
    }
    while (h2_step(readers, 50))
        ;
    struct h2_client *const c = h2_connect(s.url);
    open_push(c, "p");
    expect_ok(c, LIST);
    h2_free(c);
    h2_free(readers);
    stop_serving(&s);
}

/* ---- messages ---------------------------------------------------------------------------- */

static unsigned long long inbound_bytes(struct tl_net *net)
{
    struct tl_buf text = {0};
    assert_int_equal(tl_net_metrics(net, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    const char *const line = strstr((char *)text.p, "\ntracelake_grpc_inbound_bytes ");
    assert_non_null(line);
    const unsigned long long bytes = strtoull(strchr(line, ' ') + 1, NULL, 10);
    tl_buf_fini(&text);
    return bytes;
}

/* 4 MiB are announced each time, and one byte arrives. */
static void test_announced_messages(void **state)
{
    static const uint8_t head[] = {
        0, ANNOUNCED >> 24, ANNOUNCED >> 16 & 255, ANNOUNCED >> 8 & 255, ANNOUNCED & 255, 1};
    static const char *const paths[] = {LIST, PUSH, VERIFY};
    const struct tl_net_options options = {.max_inbound = 8u << 20};
    struct h2_client *clients[3];
    struct serving s;
    open_server(&s, &options);
    for (int i = 0; i < 3; i++) {
        clients[i] = h2_connect(s.url);
        for (int k = 0; k < STREAMS; k++)
            h2_send(clients[i], h2_call(clients[i], paths[i]), head, sizeof head, false);
        expect_ok(clients[i], CHECK); /* the server has processed the previous data */
    }
    assert_true(inbound_bytes(s.net) > 0);
    assert_true(inbound_bytes(s.net) < 1u << 20);
    struct h2_client *const c = h2_connect(s.url);
    open_push(c, "p");
    expect_short_calls(&s);
    h2_free(c);
    for (int i = 0; i < 3; i++)
        h2_free(clients[i]);
    stop_serving(&s);
}

/* Messages of public calls are small, and take nothing from others. */
static void test_public_messages(void **state)
{
    const struct tl_net_options options = {.max_inbound = 8u << 20};
    struct serving s;
    open_server(&s, &options);
    uint8_t *const message = calloc(1, 60005);
    assert_non_null(message);
    message[3] = 60000 >> 8;
    message[4] = 60001 & 255; /* one more than is sent */
    struct h2_client *const c = h2_connect(s.url);
    for (int k = 0; k < STREAMS; k++)
        h2_send(c, h2_call(c, CHECK), message, 60005, false);
    while (h2_step(c, 50))
        ;
    assert_true(inbound_bytes(s.net) <= 128u << 10);
    /* Large ones are refused before they arrive. */
    message[2] = 2;
    struct h2_exchange *const x = h2_call(c, HEALTH);
    h2_send(c, x, message, 5, false);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 8);
    struct h2_client *const rig = h2_connect(s.url);
    open_push(rig, "p");
    h2_free(rig);
    h2_free(c);
    free(message);
    stop_serving(&s);
}

/* ---- lists ------------------------------------------------------------------------------- */

#define TRACES 40

static void set_labels(struct tl_lake *lake, const char *trace, size_t each)
{
    struct tl_buf text = {0};
    char *const value = malloc(each + 1);
    assert_non_null(value);
    memset(value, 'x', each);
    value[each] = '\0';
    assert_int_equal(tl_buf_printf(&text, "a=%s\nb=%s\nwho=me\n", value, value), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    assert_int_equal(tl_lake_set_labels(lake, trace, (char *)text.p, NULL), TL_OK);
    tl_buf_fini(&text);
    free(value);
}

/* More than fits into a message, and a single trace that is as large. */
static void open_full_server(struct serving *s)
{
    serve(s, NULL);
    for (int i = 0; i < TRACES; i++) {
        char name[16];
        snprintf(name, sizeof name, "trace-%02d", i);
        add_trace(s->lake, name);
        set_labels(s->lake, name, i == 20 ? 3900000 : 120000);
    }
}

static Tracelake__V1__ListTracesReply *next_page(struct h2_client *c, struct h2_exchange *x)
{
    Tracelake__V1__ListTracesReply *const reply = (Tracelake__V1__ListTracesReply *)h2_message(
        c, x, &tracelake__v1__list_traces_reply__descriptor);
    if (!reply)
        fail_msg("status %d: %s", h2_grpc_status(x), h2_grpc_text(x));
    assert_true(tracelake__v1__list_traces_reply__get_packed_size(reply) < 4u << 20);
    return reply;
}

static Tracelake__V1__ListTracesReply *ask_page(struct h2_client *c, uint32_t size,
                                                const char *token)
{
    Tracelake__V1__ListTracesRequest request = TRACELAKE__V1__LIST_TRACES_REQUEST__INIT;
    request.page_size = size;
    request.page_token = (char *)(uintptr_t)token;
    struct h2_exchange *const x = h2_call(c, LIST);
    h2_send_message(c, x, &request.base, true);
    Tracelake__V1__ListTracesReply *const reply = next_page(c, x);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    return reply;
}

/* Check that the traces of a page are the next ones, newest first. Returns their number. */
static size_t check_page(const Tracelake__V1__ListTracesReply *page, size_t at)
{
    assert_true(page->n_traces > 0);
    for (size_t i = 0; i < page->n_traces; i++) {
        const Tracelake__V1__Trace *const t = page->traces[i];
        const size_t number = TRACES - 1 - at - i;
        char name[16];
        snprintf(name, sizeof name, "trace-%02zu", number);
        assert_string_equal(t->id, name);
        assert_int_equal(t->n_labels, number == 20 ? 1 : 3);
        assert_int_equal(t->labels_left_out, number == 20 ? 2 : 0);
        assert_string_equal(t->labels[t->n_labels - 1]->value, "me");
    }
    assert_int_equal(*page->next_page_token == '\0', at + page->n_traces == TRACES);
    return page->n_traces;
}

static void list_in_pages(struct h2_client *c, uint32_t size)
{
    char *token = strdup("");
    for (size_t at = 0; at < TRACES;) {
        Tracelake__V1__ListTracesReply *const page = ask_page(c, size, token);
        if (size)
            assert_true(page->n_traces <= size);
        at += check_page(page, at);
        free(token);
        token = strdup(page->next_page_token);
        tracelake__v1__list_traces_reply__free_unpacked(page, NULL);
    }
    free(token);
}

static void test_lists_come_in_pages(void **state)
{
    struct serving s;
    open_full_server(&s);
    struct h2_client *const c = h2_connect(s.url);
    list_in_pages(c, 0);
    list_in_pages(c, 1);
    list_in_pages(c, 7);
    struct h2_exchange *const x = h2_call(c, WATCH);
    h2_send(c, x, empty_message, 5, true);
    for (size_t at = 0; at < TRACES;) {
        Tracelake__V1__ListTracesReply *const page = next_page(c, x);
        at += check_page(page, at);
        tracelake__v1__list_traces_reply__free_unpacked(page, NULL);
    }
    h2_free(c);
    stop_serving(&s);
}

static void test_page_tokens(void **state)
{
    struct serving s;
    open_full_server(&s);
    struct h2_client *const c = h2_connect(s.url);
    /* If the last trace of a page is removed, the next page still begins after it. */
    Tracelake__V1__ListTracesReply *page = ask_page(c, 3, "");
    char *const token = strdup(page->next_page_token);
    tracelake__v1__list_traces_reply__free_unpacked(page, NULL);
    assert_int_equal(tl_lake_delete(s.lake, "trace-37", NULL), TL_OK);
    page = ask_page(c, 1, token);
    assert_string_equal(page->traces[0]->id, "trace-36");
    tracelake__v1__list_traces_reply__free_unpacked(page, NULL);
    free(token);
    static const char *const bad[] = {"x", "12", ".trace-36"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Tracelake__V1__ListTracesRequest request = TRACELAKE__V1__LIST_TRACES_REQUEST__INIT;
        request.page_token = (char *)(uintptr_t)bad[i];
        struct h2_exchange *const x = h2_call(c, LIST);
        h2_send_message(c, x, &request.base, true);
        h2_finish(c, x);
        assert_int_equal(h2_grpc_status(x), 3);
    }
    h2_free(c);
    stop_serving(&s);
}

static void test_long_replies(void **state)
{
    struct serving s;
    open_server(&s, NULL);
    atomic_store(&fake.chatty, true);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *x = begin_find(c);
    Tracelake__V1__FindReply *const hits =
        (Tracelake__V1__FindReply *)h2_message(c, x, &tracelake__v1__find_reply__descriptor);
    assert_non_null(hits);
    assert_true(hits->n_hits > 10000 && hits->n_hits < 100000);
    assert_true(hits->more);
    assert_true(tracelake__v1__find_reply__get_packed_size(hits) < 4u << 20);
    tracelake__v1__find_reply__free_unpacked(hits, NULL);
    x = begin_verify(c, NULL);
    Tracelake__V1__VerifyReply *const verdict =
        (Tracelake__V1__VerifyReply *)h2_message(c, x, &tracelake__v1__verify_reply__descriptor);
    assert_non_null(verdict);
    const size_t n = strlen(verdict->report);
    assert_true(n > 2u << 20 && n < 4u << 20);
    assert_non_null(strstr(verdict->report + n - 80, "damaged\nThere are more findings"));
    tracelake__v1__verify_reply__free_unpacked(verdict, NULL);
    h2_free(c);
    stop_serving(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_beside_short),
        cmocka_unit_test(test_cancelled_work_ends),
        cmocka_unit_test(test_expired_work_ends),
        cmocka_unit_test(test_deadlines_that_have_passed),
        cmocka_unit_test(test_public_streams),
        cmocka_unit_test(test_readers_leave_room_for_rigs),
        cmocka_unit_test(test_announced_messages),
        cmocka_unit_test(test_public_messages),
        cmocka_unit_test(test_lists_come_in_pages),
        cmocka_unit_test(test_page_tokens),
        cmocka_unit_test(test_long_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
