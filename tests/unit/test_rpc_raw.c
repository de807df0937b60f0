/* SPDX-License-Identifier: MIT */
/* Raw TCP in and out, over the fake lake. */
#include "lake_rows.h"
#include "lake_traces.h"
#include "rpc/raw.h"
#include "unit/patience.h"
#include "unit/serving.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_lines[4096];

static void log_line(const char *line)
{
    pthread_mutex_lock(&lock);
    if (strlen(last_lines) + strlen(line) + 2 < sizeof last_lines) {
        strcat(last_lines, line);
        strcat(last_lines, "\n");
    }
    pthread_mutex_unlock(&lock);
}

struct raw {
    struct tl_lake *lake;
    struct tl_raw *raw;
};

static int setup(void **state)
{
    const struct tl_lake_options options = {.dir = "unused"};
    struct raw *const r = calloc(1, sizeof *r);
    struct tl_fail fail = {0};
    last_lines[0] = 0;
    assert_int_equal(tl_lake_open(&r->lake, &options, &fail), TL_OK);
    assert_int_equal(tl_raw_new(&r->raw, r->lake, log_line), TL_OK);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct raw *const r = *state;
    tl_raw_free(r->raw);
    tl_lake_close(r->lake);
    free(r);
    return 0;
}

/* Wait until a trace is complete; returns its bytes. */
static struct tl_bytes wait_sealed(struct tl_lake *lake, const char *trace)
{
    for (int64_t since = 0;;) {
        struct tl_trace_list list = {0};
        const bool sealed =
            tl_lake_trace(lake, trace, &list) == TL_OK && list.rows[0].state == TL_TRACE_SEALED;
        tl_trace_list_free(&list);
        if (sealed)
            return fake_lake_raw(lake, trace);
        keep_waiting(&since, last_lines);
    }
}

static void wait_for_line(const char *text)
{
    bool there = false;
    for (int64_t since = 0; !there;) {
        pthread_mutex_lock(&lock);
        there = strstr(last_lines, text) != NULL;
        pthread_mutex_unlock(&lock);
        if (!there)
            keep_waiting(&since, text);
    }
}

static void listen_at(struct raw *r, const char *text, char url[static 96])
{
    struct tl_raw_spec spec;
    struct tl_fail fail = {0};
    assert_int_equal(tl_raw_parse(&spec, r->lake, text, &fail), TL_OK);
    if (tl_raw_listen(r->raw, &spec, url, &fail) < 0)
        fail_msg("%s", fail.text);
    tl_raw_spec_fini(&spec);
}

static void send_all(int fd, const uint8_t *p, size_t n, unsigned *seed)
{
    for (size_t at = 0; at < n;) {
        size_t step = 1 + (size_t)rand_r(seed) % 5000;
        step = step < n - at ? step : n - at;
        const ssize_t put = send(fd, p + at, step, MSG_NOSIGNAL);
        assert_true(put > 0);
        at += (size_t)put;
    }
}

static void test_each_connection_is_a_capture(void **state)
{
    struct raw *const r = *state;
    unsigned seed = 1;
    char url[96];
    uint8_t bytes[100000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rand_r(&seed);
    listen_at(r, "127.0.0.1:0,format=tpiu,sync=fsync,rig=probe", url);
    for (int i = 0; i < 3; i++) {
        char trace[32];
        const int fd = tcp_connect(url);
        send_all(fd, bytes, sizeof bytes - (size_t)i, &seed);
        close(fd);
        snprintf(trace, sizeof trace, "probe-%d", i);
        const struct tl_bytes raw = wait_sealed(r->lake, trace);
        assert_int_equal(raw.n, sizeof bytes - (size_t)i);
        assert_memory_equal(raw.p, bytes, raw.n);
    }
    close(tcp_connect(url)); /* no byte, so no capture */
    const int after = tcp_connect(url);
    send_all(after, bytes, 1, &seed);
    close(after);
    assert_int_equal(wait_sealed(r->lake, "probe-3").n, 1);
    tl_raw_free(r->raw); /* no connection is active any more */
    assert_int_equal(tl_raw_new(&r->raw, r->lake, log_line), TL_OK);
    struct tl_trace_list list = {0};
    assert_int_equal(tl_lake_traces(r->lake, &list), TL_OK);
    assert_int_equal(list.n, 4);
    tl_trace_list_free(&list);
}

/* The server stops while a rig is connected: its capture ends with the bytes that have arrived. */
static void test_stop(void **state)
{
    struct raw *const r = *state;
    char url[96];
    unsigned seed = 2;
    listen_at(r, "127.0.0.1:0,format=di,rig=a", url);
    const int fd = tcp_connect(url);
    send_all(fd, (const uint8_t *)"12345678", 8, &seed);
    for (int64_t since = 0; fake_lake_raw(r->lake, "a-0").n < 8;)
        keep_waiting(&since, "the bytes are there");
    tl_raw_free(r->raw);
    assert_int_equal(wait_sealed(r->lake, "a-0").n, 8);
    assert_true(fake_lake_explained(r->lake, "the server stops"));
    close(fd);
    assert_int_equal(tl_raw_new(&r->raw, r->lake, log_line), TL_OK);
}

/* A full disk makes the rig wait; nothing is lost, whether the rig is still there or not. */
static void test_no_room(void **state)
{
    struct raw *const r = *state;
    char url[96];
    listen_at(r, "127.0.0.1:0,format=di,rig=a", url);
    atomic_store(&fake.fail_append, TL_NOSPACE);
    const int fd = tcp_connect(url);
    assert_int_equal(send(fd, "1234", 4, MSG_NOSIGNAL), 4);
    wait_for_line("no room; the capture waits");
    assert_true(fake_lake_explained(r->lake, "no room"));
    assert_int_equal(send(fd, "5678", 4, MSG_NOSIGNAL), 4);
    close(fd);
    atomic_store(&fake.fail_append, 0);
    const struct tl_bytes raw = wait_sealed(r->lake, "a-0");
    assert_int_equal(raw.n, 8);
    assert_memory_equal(raw.p, "12345678", 8);
}

/* The same over IPv6, with the address in brackets. */
static void test_ipv6(void **state)
{
    struct raw *const r = *state;
    struct tl_raw_spec spec;
    struct tl_fail fail = {0};
    char url[96];
    const int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    const bool has = probe >= 0 && bind(probe, (struct sockaddr *)&at, sizeof at) == 0;
    if (probe >= 0)
        close(probe);
    if (!has)
        skip();
    assert_int_equal(tl_raw_parse(&spec, r->lake, "[::1]:0,format=itm,id=1,rig=six", &fail), TL_OK);
    assert_int_equal(tl_raw_listen(r->raw, &spec, url, &fail), TL_OK);
    assert_int_equal(strncmp(url, "tcp://[::1]:", 12), 0);
    at.sin6_port = htons((uint16_t)atoi(url + 12));
    const int fd = socket(AF_INET6, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(fd, "1234", 4, MSG_NOSIGNAL), 4);
    close(fd);
    for (int64_t since = 0; fake_lake_raw(r->lake, "six-0").n < 4;)
        keep_waiting(&since, "the bytes are there");
    assert_int_equal(fake_lake_raw(r->lake, "six-0").n, 4);
}

/* A source, at `*port`. */
static int open_source(unsigned *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 4), 0);
    getsockname(listener, (struct sockaddr *)&at, &n);
    *port = ntohs(at.sin_port);
    return listener;
}

static void dial(struct raw *r, unsigned port, const char *more)
{
    struct tl_raw_spec spec;
    struct tl_fail fail = {0};
    char text[128];
    snprintf(text, sizeof text, "tcp://127.0.0.1:%u,format=itm,id=1,rig=far%s", port, more);
    assert_int_equal(tl_raw_parse_source(&spec, r->lake, text, &fail), TL_OK);
    assert_int_equal(tl_raw_assign_orphans(r->lake, &spec, 1, log_line), TL_OK);
    assert_int_equal(tl_raw_dial(r->raw, &spec, &fail), TL_OK);
    tl_raw_spec_fini(&spec);
}

/* We connect to a source, and reconnect after it has disconnected. */
static void test_source(void **state)
{
    struct raw *const r = *state;
    unsigned port;
    const int listener = open_source(&port);
    dial(r, port, ",rejoin=no");
    for (int i = 0; i < 2; i++) {
        char trace[16];
        const int fd = accept(listener, NULL, NULL);
        assert_true(fd >= 0);
        assert_int_equal(send(fd, "abcdefgh", 8, MSG_NOSIGNAL), 8);
        close(fd);
        snprintf(trace, sizeof trace, "far-%d", i);
        const struct tl_bytes raw = wait_sealed(r->lake, trace);
        assert_int_equal(raw.n, 8);
        assert_memory_equal(raw.p, "abcdefgh", 8);
    }
    close(listener);
}

static void wait_bytes(struct raw *r, const char *trace, const char *bytes)
{
    const size_t n = strlen(bytes);
    for (int64_t since = 0; fake_lake_raw(r->lake, trace).n < n;)
        keep_waiting(&since, bytes);
    assert_int_equal(fake_lake_raw(r->lake, trace).n, n);
    assert_memory_equal(fake_lake_raw(r->lake, trace).p, bytes, n);
}

static void send_and_close(int fd, const char *bytes)
{
    assert_int_equal(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
    close(fd);
}

/* The next connection of a source goes on with its trace, and the place is marked; so does the one
 * of another server process. */
static void test_source_comes_back(void **state)
{
    struct raw *const r = *state;
    unsigned port;
    const int listener = open_source(&port);
    dial(r, port, "");
    send_and_close(accept(listener, NULL, NULL), "abc");
    close(accept(listener, NULL, NULL)); /* says nothing */
    send_and_close(accept(listener, NULL, NULL), "defgh");
    wait_bytes(r, "far-0", "abcdefgh");
    assert_int_equal(atomic_load(&fake.rejoined), 3);
    wait_for_line("trace far-0 waits for it");
    tl_raw_free(r->raw);
    assert_int_equal(tl_raw_new(&r->raw, r->lake, log_line), TL_OK);
    dial(r, port, "");
    send_and_close(accept(listener, NULL, NULL), "ij");
    wait_bytes(r, "far-0", "abcdefghij");
    assert_int_equal(atomic_load(&fake.rejoined), 8);
    tl_raw_free(r->raw);
    assert_int_equal(tl_raw_new(&r->raw, r->lake, log_line), TL_OK);
    dial(r, port, ",rejoin=no"); /* which is not waited for any more */
    assert_int_equal(wait_sealed(r->lake, "far-0").n, 10);
    close(listener);
}

/* It is waited for so long. */
static void test_source_stays_away(void **state)
{
    struct raw *const r = *state;
    unsigned port;
    const int listener = open_source(&port);
    dial(r, port, ",rejoin=1s");
    send_and_close(accept(listener, NULL, NULL), "abc");
    close(listener);
    assert_int_equal(wait_sealed(r->lake, "far-0").n, 3);
}

/* A listener waits if it is told to, for connections of the same host. */
static void test_rig_comes_back(void **state)
{
    struct raw *const r = *state;
    char url[96];
    listen_at(r, "127.0.0.1:0,format=itm,id=1,rig=a,rejoin=5m", url);
    send_and_close(tcp_connect(url), "abc");
    wait_for_line("trace a-0 waits for it");
    send_and_close(tcp_connect(url), "def");
    wait_bytes(r, "a-0", "abcdef");
    assert_int_equal(atomic_load(&fake.rejoined), 3);
}

static void test_specifications(void **state)
{
    struct raw *const r = *state;
    static const char *const bad[] = {
        "",
        "127.0.0.1:1",
        "127.0.0.1:1,rig=a",
        "127.0.0.1:1,format=tpiu",
        "127.0.0.1:1,format=nonsense,rig=a",
        "127.0.0.1:1,format=tpiu,rig=a/b",
        "127.0.0.1:1,sync=fsync,format=tpiu,rig=a",
        "127.0.0.1:1,format=tpiu,rig=a,config=/nowhere.ini",
        "127.0.0.1:1,format=tpiu,rig=a,shards=none",
        "127.0.0.1:1,format=tpiu,rig=a,rejoin=soon",
        "127.0.0.1:1,format=tpiu,rig=a,rejoin=2d",
        "127.0.0.1:1,format=di,rig=a,rejoin=10s",
        "127.0.0.1:1,format=stf,rig=a,rejoin=10s",
        "udp://127.0.0.1:1,format=tpiu,rig=a",
        "tcp:/127.0.0.1,format=tpiu,rig=a,config=/nowhere.ini",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tl_raw_spec spec = {0};
        struct tl_fail fail = {0};
        assert_true(tl_raw_parse(&spec, r->lake, bad[i], &fail) < 0);
        assert_true(fail.text[0]);
        tl_raw_spec_fini(&spec);
    }
    struct tl_raw_spec spec = {0};
    struct tl_fail fail = {0};
    assert_int_equal(
        tl_raw_parse(&spec, r->lake, "tcp://h:1,format=tpiu,sync=hsync,rig=x.y", &fail), TL_OK);
    assert_int_equal(spec.shards, TL_SHARDS_AS_LAKE);
    assert_string_equal(spec.address, "h:1");
    assert_int_equal(spec.rejoin_s, 0);
    assert_string_equal(spec.rig, "x.y");
    assert_non_null(strstr(spec.setup, "hsync"));
    tl_raw_spec_fini(&spec);
}

/* Images that a setup refers to by hash need not be available locally. */
static void test_images_by_name(void **state)
{
    struct raw *const r = *state;
    char path[] = "/tmp/test_rpc_raw.XXXXXX", text[128];
    const int fd = mkstemp(path);
    struct tl_raw_spec spec = {0};
    struct tl_fail fail = {0};
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "[image 0]\nfile=build-id:0c9a\naddress=0x1000\n"
                            "[image 1]\nfile=sha256:01\naddress=0x2000\n") > 0);
    close(fd);
    snprintf(text, sizeof text, "127.0.0.1:1,format=tpiu,rig=a,config=%s", path);
    if (tl_raw_parse(&spec, r->lake, text, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_non_null(strstr(spec.setup, "build-id:0c9a"));
    assert_non_null(strstr(spec.setup, "sha256:01"));
    tl_raw_spec_fini(&spec);
    unlink(path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_connection_is_a_capture),
        TEST(test_stop),
        TEST(test_no_room),
        TEST(test_ipv6),
        TEST(test_source),
        TEST(test_source_comes_back),
        TEST(test_source_stays_away),
        TEST(test_rig_comes_back),
        TEST(test_specifications),
        TEST(test_images_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
