/* SPDX-License-Identifier: MIT */
/* What hostile and broken clients must not achieve: occupying connections, sending ambiguous
 * requests, flooding. */
#include "base/now.h"
#include "net/tls.h"
#include "unit/patience.h"
#include "unit/serving.h"
#include "unit/wire.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS (PATIENCE_S * 1000)

#define GET "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

static int connect_from(const char *url, const char *source)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    inet_pton(AF_INET, source, &at.sin_addr);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    at.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void put(int fd, const char *text, size_t n)
{
    (void)!send(fd, text, n, MSG_NOSIGNAL);
}

/* The status of the answer; 0: the connection was closed without one. */
static int status_of(int fd)
{
    char in[4096] = "";
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    const ssize_t n = recv(fd, in, sizeof in - 1, 0);
    return n > 12 ? atoi(in + 9) : 0;
}

static int ask(const char *url, const char *source, const char *text, size_t n)
{
    const int fd = connect_from(url, source);
    put(fd, text, n);
    const int status = status_of(fd);
    close(fd);
    return status;
}

/* Repeat until a connection is accepted: connections end only when their threads have. */
static void expect_served(const char *url, const char *source)
{
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        if (ask(url, source, GET, strlen(GET)) == 200)
            return;
        usleep(10000);
    }
    fail_msg("not served any more");
}

/* A connection that was served once and then stops in the middle of a request head. */
static int hold(const char *url, const char *source)
{
    static const char text[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\n";
    for (int i = 0; i < PATIENCE_MS / 10; i++) {
        const int fd = connect_from(url, source);
        put(fd, text, sizeof text - 1);
        if (status_of(fd) == 200)
            return fd;
        close(fd); /* earlier connections have not ended yet */
        usleep(10000);
    }
    fail_msg("not served any more");
    return -1;
}

/* One address can occupy its share of HTTP/1.1 connections; others are served, and when it
 * disconnects everything is available again. */
static void test_burst_http1(void **state)
{
    struct serving s;
    const struct tl_net_options options = {.max_http1 = 8};
    int held[4];
    serve(&s, &options);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < 4; i++)
            held[i] = hold(s.url, "127.0.0.1");
        for (int i = 0; i < 16; i++)
            assert_int_equal(ask(s.url, "127.0.0.1", GET, strlen(GET)), 503);
        expect_served(s.url, "127.0.0.2");
        for (size_t i = 0; i < 4; i++)
            close(held[i]);
        expect_served(s.url, "127.0.0.1");
    }
    stop_serving(&s);
}

/* More connections at once than the library can accept; the server can still shut down. */
static void test_burst_of_600(void **state)
{
    enum { N = 600 };
    static int fd[N];
    struct serving s;
    serve(&s, NULL);
    for (int i = 0; i < N; i++) {
        char source[16];
        snprintf(source, sizeof source, "127.0.0.%d", 2 + i % 4);
        fd[i] = connect_from(s.url, source);
        put(fd[i], "GET / HTTP/1.1\r\n", 16);
    }
    for (int i = 0; i < N; i++)
        close(fd[i]);
    expect_served(s.url, "127.0.0.1");
    stop_serving(&s);
}

static void test_idle_connections_of_one_address(void **state)
{
    struct serving s;
    const struct tl_net_options options = {.max_connections = 64, .max_per_address = 4};
    int held[4];
    serve(&s, &options);
    for (size_t i = 0; i < 4; i++)
        held[i] = connect_from(s.url, "127.0.0.1");
    assert_int_equal(ask(s.url, "127.0.0.1", GET, strlen(GET)), 0);
    assert_int_equal(ask(s.url, "127.0.0.2", GET, strlen(GET)), 200);
    for (size_t i = 0; i < 4; i++)
        close(held[i]);
    expect_served(s.url, "127.0.0.1");
    stop_serving(&s);
}

/* Send a byte from time to time until the server closes the connection, which it must. */
static void expect_cut(int fd, const char *piece)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
        char in[64];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (*piece)
            put(fd, piece, 1);
        if (poll(&p, 1, 10) == 1 && recv(fd, in, sizeof in, 0) <= 0) {
            close(fd);
            return;
        }
    }
    fail_msg("still open");
}

static void test_trickled_heads(void **state)
{
    static const char *const beginnings[] = {
        "G", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nX: "};
    struct serving s;
    const struct tl_net_options options = {.request_ms = 100};
    serve(&s, &options);
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        const int fd = connect_from(s.url, "127.0.0.1");
        put(fd, beginnings[i], strlen(beginnings[i]));
        expect_cut(fd, "x");
    }
    stop_serving(&s);
}

static void test_silence_and_half_preface(void **state)
{
    static const char *const beginnings[] = {"", "PR", "PRI * HTTP/2.0\r\n",
                                             "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
    struct serving s;
    const struct tl_net_options options = {.hello_ms = 50};
    serve(&s, &options);
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        const int fd = connect_from(s.url, "127.0.0.1");
        put(fd, beginnings[i], strlen(beginnings[i]));
        expect_cut(fd, "");
    }
    stop_serving(&s);
}

static void test_http1_oddities(void **state)
{
#define LINE  "GET /healthz HTTP/1.1\r\n"
#define CLOSE "Connection: close\r\n\r\n"
#define ODD(text)                                                                                  \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
    static const struct {
        const char *text;
        size_t n;
    } odd[] = {
        ODD(LINE CLOSE),
        ODD(LINE "Host: localhost\r\nHost: localhost\r\n" CLOSE),
        ODD(LINE "Host: localhost\r\nHost: evil\r\n" CLOSE),
        ODD(LINE "Host : localhost\r\n" CLOSE),
        ODD(LINE "Host: localhost\r\nX: a\rb\r\n" CLOSE),
        ODD(LINE "Host: localhost\r\nX: a\r\n b\r\n" CLOSE),
        ODD(LINE "Host: localhost\r\nX: a\r\n\tb\r\n" CLOSE),
        ODD(LINE "Host: localhost\n \r\n" CLOSE),
        ODD(LINE " Host: localhost\r\n" CLOSE),
        ODD(LINE "Host: localhost\r\nX: a\0b\r\n" CLOSE),
        ODD(LINE "Host: localhost\r\nX\0: b\r\n" CLOSE),
        ODD(LINE "Host: localhost\0.evil\r\n" CLOSE),
        ODD("GET /healthz\0/x HTTP/1.1\r\nHost: localhost\r\n" CLOSE),
        ODD("GET /healthz HTTP/1.1\0\r\nHost: localhost\r\n" CLOSE),
        ODD(" GET /healthz HTTP/1.1\r\nHost: localhost\r\n" CLOSE),
        ODD(LINE "Host: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n" CLOSE "ab"),
        ODD(LINE "Host: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" CLOSE
                 "0\r\n\r\n"),
    };
    struct serving s;
    serve(&s, NULL);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const int status = ask(s.url, "127.0.0.1", odd[i].text, odd[i].n);
        if (status != 400)
            fail_msg("oddity %zu is answered %d", i, status);
    }
    assert_int_equal(ask(s.url, "127.0.0.1", GET, strlen(GET)), 200);
    stop_serving(&s);
}

/* The same with TLS. */
static void serve_both(struct serving *s)
{
    char dir[] = "/tmp/tl-limits-XXXXXX";
    char cert[40];
    char key[40];
    struct tl_fail fail = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(cert, sizeof cert, "%s/c.pem", dir);
    snprintf(key, sizeof key, "%s/k.pem", dir);
    assert_int_equal(tl_tls_make_certificate(cert, key, &fail), 1);
    const struct tl_net_options options = {.tls_cert = cert, .tls_key = key};
    serve(s, &options);
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

/* The statuses of all answers until the server closes: "200 400 ". */
static void expect_statuses(struct wire *w, const char *expected)
{
    struct tl_buf in = {0};
    char statuses[64] = "";
    char buf[4096];
    for (ssize_t n; (n = wire_read(w, buf, sizeof buf)) > 0;)
        assert_int_equal(tl_buf_add(&in, buf, (size_t)n), TL_OK);
    assert_int_equal(tl_buf_add(&in, "", 1), TL_OK);
    for (const char *at = (char *)in.p; (at = strstr(at, "HTTP/1.1 ")); at += 9)
        strncat(statuses, at + 9, 4);
    assert_string_equal(statuses, expected);
    tl_buf_fini(&in);
}

/* Malformed heads in any pieces, and after valid requests. */
static void test_malformed_heads(void **state)
{
#define BEGIN "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    static const struct {
        const char *text;
        size_t n;
    } odd[] = {
        ODD(BEGIN "X: a\r\n b\r\n\r\n"),
        ODD(BEGIN "X: a\r\n\tb\r\n\r\n"),
        ODD(BEGIN "X: a\n b\n\n"),
        ODD(BEGIN " X: a\r\n\r\n"),
        ODD(BEGIN "X: a\0b\r\n\r\n"),
        ODD(BEGIN "X\0: a\r\n\r\n"),
        ODD(BEGIN "X: a\rb\r\n\r\n"),
        ODD(BEGIN "\r\r\n\r\n"),
        ODD(BEGIN "\rX: a\r\n\r\n"),
        ODD(BEGIN "\0\r\n\r\n"),
        ODD(" " BEGIN "\r\n"),
        ODD("\r" BEGIN "\r\n"),
        ODD("GET /healthz\0 HTTP/1.1\r\n\r\n"),
        ODD("GET /healthz HTTP/1.1\0\r\n\r\n"),
    };
    struct serving s;
    serve_both(&s);
    const char *const urls[] = {s.url, s.tls_url};
    for (size_t i = 0; i < 4 * sizeof odd / sizeof *odd; i++) {
        struct wire w = wire_open(urls[i & 1]);
        const size_t odd_i = i / 4;
        const bool whole = i & 2;
        wire_send(&w, BEGIN "\r\n" BEGIN "X: a:b\r\n\r\n");
        for (size_t at = 0; at < odd[odd_i].n; at += whole ? odd[odd_i].n : 1)
            wire_send_n(&w, odd[odd_i].text + at, whole ? odd[odd_i].n : 1);
        expect_statuses(&w, "200 200 400 ");
        wire_close(&w);
    }
    stop_serving(&s);
}

/* Whatever is wrong with a head, and whatever precedes it, there is one answer, and the connection
 * ends. */
static void test_bad_heads_get_one_answer(void **state)
{
#define HOST "Host: localhost\r\n"
#define HEAD "GET /healthz HTTP/1.1\r\n" HOST
    static const struct {
        const char *text;
        const char *status;
    } bad[] = {
        {"garbage\r\n\r\n", "400 "},
        {"garbage\r\n" HOST "\r\n", "400 "},
        {"G\x01T / HTTP/1.1\r\n" HOST "\r\n", "400 "},
        {"GET / b HTTP/1.1\r\n" HOST "\r\n", "400 "},
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", "400 "},
        {"GET\t/\tHTTP/1.1\r\n" HOST "\r\n", "400 "},
        {"GET /\r\n" HOST "\r\n", "400 "},
        {"GET / HTTP/1.10\r\n" HOST "\r\n", "400 "},
        {"GET / http/1.1\r\n" HOST "\r\n", "400 "},
        {"GET / HTTP/0.9\r\n" HOST "\r\n", "505 "},
        {"GET / HTTP/2.0\r\n" HOST "\r\n", "505 "},
        {HEAD ": x\r\n\r\n", "400 "},
        {HEAD "x\r\n\r\n", "400 "},
        {HEAD "a b: x\r\n\r\n", "400 "},
        {HEAD "a : x\r\n\r\n", "400 "},
        {HEAD "a: \x01\r\n\r\n", "400 "},
        {HEAD "Content-Length: x\r\n\r\n" HEAD "\r\n", "400 "},
        {HEAD "Content-Length: -1\r\n\r\n", "400 "},
        {HEAD "Content-Length: +1\r\n\r\na", "400 "},
        {HEAD "Content-Length:\r\n\r\n", "400 "},
        {HEAD "Content-Length: 1, 1\r\n\r\na", "400 "},
        {HEAD "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", "400 "},
        {HEAD "Content-Length: 99999999999999999999999\r\n\r\n", "413 "},
        {HEAD "Transfer-Encoding: gzip\r\n\r\n", "501 "},
        {HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 "},
        {HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "400 "},
        {"GET /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 "},
        {"GET /healthz HTTP/1.1\r\n\r\n" HEAD "\r\n", "400 "},
        {"HEAD /healthz HTTP/1.1\r\n\r\n", "400 "},
        {"PUT /api/v1/images?name=x HTTP/1.1\r\n" HOST
         "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
         "400 "},
        {"REFUSE /200 HTTP/1.1\r\n" HOST "\r\n", "400 "},
        {"REFUSE /431 HTTP/1.1\r\n" HOST "\r\n", "431 "},
    };
    struct serving s;
    serve_both(&s);
    const char *const urls[] = {s.url, s.tls_url};
    for (size_t i = 0; i < 8 * sizeof bad / sizeof *bad; i++) {
        struct wire w = wire_open(urls[i & 1]);
        const char *const text = bad[i / 8].text;
        const bool first = i & 2, whole = i & 4;
        char expected[16];
        snprintf(expected, sizeof expected, "%s%s", first ? "" : "200 ", bad[i / 8].status);
        if (!first)
            wire_send(&w, HEAD "\r\n");
        for (size_t at = 0; at < strlen(text); at += whole ? strlen(text) : 1)
            wire_try_n(&w, text + at, whole ? strlen(text) : 1);
        expect_statuses(&w, expected);
        wire_close(&w);
    }
    stop_serving(&s);
}

static void ask_with_fields(const char *url, unsigned fields, size_t length, const char *expected)
{
    struct tl_buf text = {0};
    struct wire w = wire_open(url);
    assert_int_equal(tl_buf_printf(&text, "%s", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"),
                     TL_OK);
    for (unsigned i = 0; i < fields; i++)
        assert_int_equal(tl_buf_printf(&text, "X: %0*d\r\n", (int)length, 0), TL_OK);
    assert_int_equal(tl_buf_printf(&text, "Connection: close\r\n\r\n"), TL_OK);
    wire_try_n(&w, (char *)text.p, text.n);
    expect_statuses(&w, expected);
    wire_close(&w);
    tl_buf_fini(&text);
}

/* More header fields than are accepted, or longer ones. */
static void test_too_many_fields(void **state)
{
    static const unsigned many[] = {127, 129, 500, 2000, 5000};
    struct serving s;
    serve_both(&s);
    ask_with_fields(s.url, 126, 1, "200 ");
    ask_with_fields(s.tls_url, 1, 60000, "200 ");
    ask_with_fields(s.url, 1, 66000, "431 ");
    ask_with_fields(s.tls_url, 70, 1000, "431 ");
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        ask_with_fields(i & 1 ? s.tls_url : s.url, many[i], 1, "431 ");
    struct h2_client *const c = h2_connect(s.url);
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        struct h2_exchange *const get =
            h2_request_long(c, "GET", "/healthz", many[i], "text/plain");
        struct h2_exchange *const call =
            h2_request_long(c, "POST", "/grpc.health.v1.Health/Check", many[i], "application/grpc");
        h2_finish(c, get);
        h2_finish(c, call);
        assert_int_equal(h2_status(get), 431);
        assert_int_equal(h2_grpc_status(call), 8);
    }
    h2_free(c);
    stop_serving(&s);
}

/* A body's contents are not a request head, and nothing is answered after it. */
static void test_bodies_end_connections(void **state)
{
    static const char *const bodies[] = {
        "PUT /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n \n\tb",
        "PUT /healthz HTTP/1.1\r\nHost: localhost\r\nTRANSFER-encoding: chunked\r\n\r\n"
        "4\r\n \n\tb\r\n0\r\n\r\n"};
    struct serving s;
    serve_both(&s);
    const char *const urls[] = {s.url, s.tls_url};
    for (size_t i = 0; i < 4; i++) {
        struct wire w = wire_open(urls[i & 1]);
        /* In one piece: bytes that arrive after the connection is closed would reset it. */
        char both[512];
        snprintf(both, sizeof both, "%s" BEGIN "\r\n", bodies[i / 2]);
        wire_send(&w, both);
        expect_statuses(&w, "405 ");
        wire_close(&w);
    }
    stop_serving(&s);
}

/* The handler does not read the body, and closes: the answer must arrive nevertheless. */
static void test_unwanted_bodies_are_answered(void **state)
{
    enum { BODY = 100000, TIMES = 200 };
    static char request[128 + BODY];
    struct serving s;
    serve_both(&s);
    const char *const urls[] = {s.url, s.tls_url};
    const int head = snprintf(request, sizeof request,
                              "PUT /healthz HTTP/1.1\r\nHost: localhost\r\n"
                              "Content-Length: %d\r\n\r\n",
                              BODY);
    memset(request + head, 'x', BODY);
    for (size_t i = 0; i < TIMES; i++) {
        struct wire w = wire_open(urls[i & 1]);
        wire_send_n(&w, request, (size_t)head + BODY);
        expect_statuses(&w, "405 ");
        wire_close(&w);
    }
    stop_serving(&s);
}

/* ---- HTTP/2 ------------------------------------------------------------------------------- */

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static void test_content_length_flood(void **state)
{
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    const nghttp2_nv nv[] = {field(":method", "POST"), field(":scheme", "http"),
                             field(":authority", "localhost"), field(":path", "/healthz"),
                             field("content-length", "5")};
    for (int i = 0; i < 20000 && !c->goaways && !c->eof; i++) {
        assert_true(nghttp2_submit_request(c->session, NULL, nv, 5, NULL, NULL) > 0);
        h2_step(c, 0);
    }
    while (!c->goaways && !c->eof && h2_step(c, PATIENCE_MS))
        ;
    assert_int_equal(c->goaways, 1);
    assert_int_equal(c->goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    h2_free(c);
    expect_served(s.url, "127.0.0.1");
    stop_serving(&s);
}

static void test_foreign_authority_of_calls(void **state)
{
    static const uint8_t empty[5];
    static const char *const names[] = {"[::1].evil", "evil.example", "127.0.0.1.evil"};
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        /* A Host field in addition to :authority must not differ from it. */
        struct h2_exchange *const x =
            h2_request(c, "POST", "/tracelake.v1.Catalog/ListTraces", false, "host", names[i],
                       "content-type", "application/grpc", (char *)NULL);
        h2_send(c, x, empty, 5, true);
        h2_finish(c, x);
        assert_int_equal(h2_grpc_status(x), 7);
    }
    h2_free(c);
    stop_serving(&s);
}

/* A client that has no request under way, and does not read, does not hold up the end of a server.
 */
static void test_idle_clients_do_not_delay_the_end(void **state)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    const struct tl_net_options options = {.drain_ms = 600000};
    struct serving s;
    (void)state;
    serve(&s, &options);
    const int fd = connect_from(s.url, "127.0.0.1");
    put(fd, preface, sizeof preface - 1);
    struct h2_client *const c = h2_connect(s.url);
    assert_non_null(c);
    const int64_t begun = tl_monotonic_ms();
    stop_serving(&s);
    assert_true(tl_monotonic_ms() - begun < options.drain_ms / 2);
    h2_free(c);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst_http1),
        cmocka_unit_test(test_burst_of_600),
        cmocka_unit_test(test_idle_clients_do_not_delay_the_end),
        cmocka_unit_test(test_idle_connections_of_one_address),
        cmocka_unit_test(test_trickled_heads),
        cmocka_unit_test(test_silence_and_half_preface),
        cmocka_unit_test(test_http1_oddities),
        cmocka_unit_test(test_malformed_heads),
        cmocka_unit_test(test_bad_heads_get_one_answer),
        cmocka_unit_test(test_too_many_fields),
        cmocka_unit_test(test_bodies_end_connections),
        cmocka_unit_test(test_unwanted_bodies_are_answered),
        cmocka_unit_test(test_content_length_flood),
        cmocka_unit_test(test_foreign_authority_of_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
