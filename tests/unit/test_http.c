/* SPDX-License-Identifier: MIT */
/* The HTTP interface, the same over HTTP/1.1 and HTTP/2, plain and with TLS. */
#include "lake_traces.h"
#include "net/gzip.h"
#include "unit/asking.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <cjson/cJSON.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- tests -------------------------------------------------------------------------------- */

static void test_page(void **state)
{
    struct fixture *const f = *state;
    for (int way = 0; way < WAYS; way++) {
        struct answer a = ask(f, way, "/", NULL);
        assert_int_equal(a.status, 200);
        assert_string_equal((char *)a.body.p, "<!doctype html>");
        expect_head(&a, "content-type", "text/html; charset=utf-8");
        expect_head(&a, "x-content-type-options", "nosniff");
        expect_head(&a, "content-length", "15");
        const char *const policy = tl_fields_get(&a.head, "content-security-policy");
        assert_non_null(policy);
        assert_non_null(strstr(policy, "default-src 'none'; script-src 'self'"));
        assert_null(strstr(policy, "unsafe"));
        answer_fini(&a);

        a = ask(f, way, "/", "If-None-Match: \"other\", W/\"page-1\"");
        assert_int_equal(a.status, 304);
        assert_int_equal(a.body.n, 0);
        expect_head(&a, "etag", "\"page-1\"");
        answer_fini(&a);

        a = ask_as(f, way, "HEAD", "/", NULL);
        assert_int_equal(a.status, 200);
        assert_int_equal(a.body.n, 0);
        expect_head(&a, "content-length", "15");
        answer_fini(&a);
    }
}

static void expect_error(struct fixture *f, const char *method, const char *path, int status,
                         const char *words)
{
    for (int way = 0; way < WAYS; way++) {
        struct answer a = ask_as(f, way, method, path, NULL);
        assert_int_equal(a.status, status);
        expect_head(&a, "content-type", "application/json");
        cJSON *const json = cJSON_Parse((char *)a.body.p);
        assert_non_null(json);
        const char *const text = cJSON_GetStringValue(cJSON_GetObjectItem(json, "error"));
        assert_non_null(text);
        if (!strstr(text, words))
            fail_msg("%s %s: \"%s\" lacks \"%s\"", method, path, text, words);
        if (status == 405)
            expect_head(&a, "allow", "GET, HEAD");
        cJSON_Delete(json);
        answer_fini(&a);
    }
}

static void test_errors(void **state)
{
    struct fixture *const f = *state;
    expect_error(f, "GET", "/nonsense", 404, "/nonsense");
    expect_error(f, "GET", "/..%2f..%2fetc/passwd", 404, "nothing");
    expect_error(f, "GET", "/api/v1/traces/none", 404, "none");
    expect_error(f, "GET", "/api/v1/traces/gr%c3%b6%c3%9fe%ff%22%01", 404, "größe?\"\001");
    expect_error(f, "GET", "/api/v1/traces/t/streams/x/insns", 404, "\"x\"");
    expect_error(f, "POST", "/api/v1/traces", 405, "only GET, HEAD are");
    expect_error(f, "DELETE", "/api/v1/events", 405, "only GET, HEAD are");
    expect_error(f, "GET", "/api/v1/traces/%zz", 400, "percent");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/insns?from=abc", 400, "from=abc");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/insns?from=-1", 400, "from=-1");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/insns?from=99999999999999999999", 400,
                 "number");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/locate?unit=mile", 400, "mile");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/locate?unit=insn", 400,
                 "say at=POSITION");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/locate?insn=5&at=1", 400,
                 "\"insn\" is no argument here; there are unit, axis, at");
    expect_error(f, "GET", "/api/v1/traces/t?from=1", 400, "there are none");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/find", 400, "find what");
    expect_error(f, "GET", "/api/v1/traces/t/find", 400, "find what");
    expect_error(f, "GET", "/api/v1/traces/t/find?pc=2:1", 400, "ends before it begins");
    expect_error(f, "GET", "/api/v1/traces/t/at?streams=cs.10", 400, "say time=TIME");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/range?format=doc", 400, "doc");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/range?from=5&to=2&format=text", 400,
                 "from > to");
    expect_error(f, "GET", "/api/v1/traces/t/streams/cs.10/slices?columns=many", 400, "many");
    expect_error(f, "GET", "/api/v1/traces/t/tiles/up/0/0", 400, "axis=up");
    expect_error(f, "GET", "/api/v1/traces/t/tiles/insn/99/0", 400, "level");
    expect_error(f, "GET", "/api/v1/traces/t/tiles/insn/0/0?lanes=0-16", 400, "lanes");
    expect_error(f, "GET", "/api/v1/traces/t/tiles/insn/0/0?gen=77", 404, "generation 77");
}

static void test_range(void **state)
{
    struct fixture *const f = *state;
    struct tl_buf want = {0};
    assert_int_equal(tl_buf_printf(&want, "# stream cs.10\n"), TL_OK);
    for (unsigned i = 10; i < 9000; i++)
        assert_int_equal(tl_buf_printf(&want, "I %016x %08x\n", i * 4, i), TL_OK);
    for (int way = 0; way < WAYS; way++) {
        struct answer a =
            ask(f, way, "/api/v1/traces/t/streams/cs%2e10/range?from=10&to=9000&format=text", NULL);
        assert_int_equal(a.status, 200);
        expect_head(&a, "content-type", "text/plain; charset=utf-8");
        expect_head(&a, "content-disposition", "inline; filename=\"t-cs.10-10.txt\"");
        expect_head(&a, "tracelake-count", "8990");
        assert_int_equal(a.body.n, want.n);
        assert_memory_equal(a.body.p, want.p, want.n);
        answer_fini(&a);
        a = ask_as(f, way, "HEAD", "/api/v1/traces/t/streams/cs.10/range", NULL);
        assert_int_equal(a.status, 200);
        assert_int_equal(a.body.n, 0);
        expect_head(&a, "content-disposition", "attachment; filename=\"t-cs.10-0.zstf\"");
        answer_fini(&a);
    }
    tl_buf_fini(&want);
    assert_int_equal(atomic_load(&fake.ranges), 0);
}

static void expect_part(struct fixture *f, int way, const char *path, const char *range,
                        const struct tl_buf *whole, size_t from, size_t to)
{
    char text[80];
    struct answer a = ask(f, way, path, range);
    snprintf(text, sizeof text, "bytes %zu-%zu/%zu", from, to - 1, whole->n);
    assert_int_equal(a.status, 206);
    expect_head(&a, "content-range", text);
    assert_int_equal(a.body.n, to - from);
    assert_memory_equal(a.body.p, whole->p + from, to - from);
    answer_fini(&a);
}

static void test_parts_of_a_body(void **state)
{
    static const char *const ignored[] = {
        "Range: bytes=0-1,4-5", "Range: lines=0-1", "Range: bytes=5-4", "Range: bytes=x-4",
        "Range: bytes=",        "Range: bytes=-",   "Range: bytes=1-2x"};
    static const char *const paths[] = {
        "/", "/api/v1/traces/t/streams/cs.10/range?from=10&to=9000&format=text"};
    struct fixture *const f = *state;
    for (int i = 0; i < 2 * WAYS; i++) {
        const int way = i / 2;
        const char *const path = paths[i % 2];
        char text[80];
        struct answer all = ask(f, way, path, NULL);
        const struct tl_buf *const whole = &all.body;
        const size_t n = whole->n;
        expect_head(&all, "accept-ranges", "bytes");
        expect_part(f, way, path, "Range: bytes=0-0", whole, 0, 1);
        expect_part(f, way, path, "Range: bytes=3-9", whole, 3, 10);
        expect_part(f, way, path, "Range: Bytes=7-", whole, 7, n);
        expect_part(f, way, path, "Range: bytes=-4", whole, n - 4, n);
        expect_part(f, way, path, "Range: bytes=-99999999999999999999999", whole, 0, n);
        expect_part(f, way, path, "Range: bytes=5-99999999999999999999999", whole, 5, n);
        snprintf(text, sizeof text, "Range: bytes=%zu-%zu", n / 2, n - 1);
        expect_part(f, way, path, text, whole, n / 2, n);
        for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++) {
            struct answer a = ask(f, way, path, ignored[k]);
            assert_int_equal(a.status, 200);
            assert_int_equal(a.body.n, n);
            answer_fini(&a);
        }
        for (int k = 0; k < 2; k++) {
            snprintf(text, sizeof text, k ? "Range: bytes=-0" : "Range: bytes=%zu-", n);
            struct answer a = ask(f, way, path, text);
            snprintf(text, sizeof text, "bytes */%zu", n);
            assert_int_equal(a.status, 416);
            expect_head(&a, "content-range", text);
            answer_fini(&a);
        }
        struct answer a = ask_as(f, way, "HEAD", path, "Range: bytes=0-0");
        assert_int_equal(a.status, 200);
        expect_head(&a, "accept-ranges", "bytes");
        answer_fini(&a);
        answer_fini(&all);
    }
    assert_int_equal(atomic_load(&fake.ranges), 0);
}

/* If a resource has changed since, a part of it is useless: all of it is sent. */
static void test_parts_of_what_is_known(void **state)
{
    static const struct {
        const char *path;
        const char *tag;
        bool part;
    } cases[] = {{"/", "\"page-1\"", true},
                 {"/", "\"page-0\"", false},
                 {"/", "W/\"page-1\"", false},
                 {"/", "Sat, 29 Oct 1994 19:43:31 GMT", false},
                 {"/api/v1/traces/t/streams/cs.10/range?format=text", "\"x\"", false}};
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        char in[512] = "";
        struct wire w = wire_open(f->s.url);
        snprintf(text, sizeof text,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nRange: bytes=1-2\r\nIf-Range: %s\r\n\r\n",
                 cases[i].path, cases[i].tag);
        wire_send(&w, text);
        assert_true(wire_read(&w, in, sizeof in - 1) > 12);
        assert_int_equal(atoi(in + 9), cases[i].part ? 206 : 200);
        wire_close(&w);
    }
}

static void test_tiles(void **state)
{
    struct fixture *const f = *state;
    const char *const path = "/api/v1/traces/t/tiles/insn/3/5?lanes=0-15&gen=1";
    for (int way = 0; way < WAYS; way++) {
        struct answer a = ask(f, way, path, NULL);
        assert_int_equal(a.status, 200);
        expect_head(&a, "content-type", "application/x-protobuf");
        expect_head(&a, "cache-control", "no-cache"); /* it is still growing */
        Tracelake__V1__Tile *const tile = tracelake__v1__tile__unpack(NULL, a.body.n, a.body.p);
        assert_int_equal(tile->level, 3);
        assert_int_equal(tile->index, 5);
        tracelake__v1__tile__free_unpacked(tile, NULL);
        /* Weak: the same for gzip and plain. */
        assert_memory_equal(tl_fields_get(&a.head, "etag"), "W/\"", 3);
        char match[100];
        snprintf(match, sizeof match, "If-None-Match: %s", tl_fields_get(&a.head, "etag"));
        answer_fini(&a);
        a = ask(f, way, path, match);
        assert_int_equal(a.status, 304);
        answer_fini(&a);
        a = ask(f, way, path, "Accept: application/json");
        expect_head(&a, "content-type", "application/json");
        cJSON *const json = cJSON_Parse((char *)a.body.p);
        assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(json, "level")), 3);
        cJSON_Delete(json);
        answer_fini(&a);
    }
}

static void test_sealed_tiles_are_immutable(void **state)
{
    struct fixture *const f = *state;
    const struct tl_ingest_request request = {.rig = "rig", .trace = "done", .setup = ""};
    struct tl_ingest *ingest = NULL;
    char id[64];
    uint64_t durable = 0;
    struct tl_fail fail = {0};
    assert_int_equal(tl_ingest_open(f->s.lake, &request, NULL, NULL, &ingest, id, &durable, &fail),
                     TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &durable, &fail), TL_OK);
    tl_ingest_close(ingest);
    struct answer a = ask(f, WAY_H2, "/api/v1/traces/done/tiles/time/0/0?gen=1", NULL);
    expect_head(&a, "cache-control", "public, max-age=31536000, immutable");
    answer_fini(&a);
    /* Without a generation the address may later mean another tile. */
    a = ask(f, WAY_H1, "/api/v1/traces/done/tiles/time/0/0", NULL);
    expect_head(&a, "cache-control", "no-cache");
    answer_fini(&a);
    /*
     * Now from the cache: the same for all protocols, plain and gzip, as long as the trace exists.
     */
    const char *const path = "/api/v1/traces/done/tiles/time/0/0?gen=1";
    struct answer first = ask(f, WAY_H2, path, NULL);
    for (int way = 0; way < WAYS; way++) {
        for (int round = 0; round < 2; round++) {
            struct tl_buf out = {0};
            a = ask(f, way, path, NULL);
            assert_int_equal(a.body.n, first.body.n);
            assert_memory_equal(a.body.p, first.body.p, a.body.n);
            assert_string_equal(tl_fields_get(&a.head, "etag"), tl_fields_get(&first.head, "etag"));
            expect_head(&a, "cache-control", "public, max-age=31536000, immutable");
            answer_fini(&a);
            a = ask(f, way, path, "Accept-Encoding: gzip");
            expect_head(&a, "content-encoding", "gzip");
            assert_int_equal(tl_gunzip((struct tl_bytes){a.body.p, a.body.n}, 1 << 20, &out),
                             TL_OK);
            assert_int_equal(out.n, first.body.n);
            assert_memory_equal(out.p, first.body.p, out.n);
            tl_buf_fini(&out);
            answer_fini(&a);
        }
        char match[100];
        snprintf(match, sizeof match, "If-None-Match: %s", tl_fields_get(&first.head, "etag"));
        a = ask(f, way, path, match);
        assert_int_equal(a.status, 304);
        assert_int_equal(a.body.n, 0);
        answer_fini(&a);
        a = ask(f, way, path, "Accept: application/json");
        expect_head(&a, "content-type", "application/json");
        answer_fini(&a);
        expect_error(f, "GET", "/api/v1/traces/done/tiles/time/0/0?gen=2", 404, "generation 2");
    }
    answer_fini(&first);
    assert_int_equal(tl_lake_delete(f->s.lake, "done", &fail), TL_OK);
    expect_error(f, "GET", path, 404, "");
}

static void test_gzip(void **state)
{
    struct fixture *const f = *state;
    for (int way = 0; way < WAYS; way++) {
        struct answer plain = ask(f, way, "/metrics", NULL);
        assert_null(tl_fields_get(&plain.head, "content-encoding"));
        assert_non_null(strstr((char *)plain.body.p, "tracelake_connections_total"));
        assert_non_null(strstr((char *)plain.body.p, "tracelake_appended_bytes"));
        expect_head(&plain, "vary", "accept-encoding");
        struct answer zip = ask(f, way, "/metrics", "Accept-Encoding: br, gzip");
        expect_head(&zip, "content-encoding", "gzip");
        struct tl_buf out = {0};
        assert_int_equal(tl_gunzip((struct tl_bytes){zip.body.p, zip.body.n}, 1 << 20, &out),
                         TL_OK);
        assert_true(zip.body.n < out.n);
        assert_memory_equal(out.p, "# TYPE tracelake_appended", 25);
        tl_buf_fini(&out);
        answer_fini(&plain);
        answer_fini(&zip);
        struct answer none = ask(f, way, "/metrics", "Accept-Encoding: gzip;q=0");
        assert_null(tl_fields_get(&none.head, "content-encoding"));
        answer_fini(&none);
    }
}

static void test_health(void **state)
{
    struct fixture *const f = *state;
    for (int way = 0; way < WAYS; way++) {
        struct answer a = ask(f, way, "/healthz", NULL);
        assert_int_equal(a.status, 200);
        answer_fini(&a);
        a = ask(f, way, "/readyz", NULL);
        assert_int_equal(a.status, 200);
        answer_fini(&a);
    }
}

/* ---- pages of traces ---------------------------------------------------------------------- */

static void expect_page(struct fixture *f, int way, const char *path, size_t n, bool more,
                        char *cursor)
{
    struct answer a = ask(f, way, path, NULL);
    assert_int_equal(a.status, 200);
    cJSON *const json = cJSON_Parse((char *)a.body.p);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "traces")), n);
    assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(json, "more")), more);
    const char *const next = cJSON_GetStringValue(cJSON_GetObjectItem(json, "cursor"));
    assert_int_equal(next != NULL, more);
    snprintf(cursor, 80, "%s", next ? next : "");
    cJSON_Delete(json);
    answer_fini(&a);
}

static void test_pages(void **state)
{
    struct fixture *const f = *state;
    const size_t n = 3;
    struct answer a = ask(f, 0, "/api/v1/traces", NULL);
    cJSON *const json = cJSON_Parse((char *)a.body.p);
    const size_t before = (size_t)cJSON_GetArraySize(json); /* an array, without the arguments */
    assert_true(cJSON_IsArray(json));
    cJSON_Delete(json);
    answer_fini(&a);
    add_trace(f->s.lake, "p1", 4);
    add_trace(f->s.lake, "p2", 4);
    for (int way = 0; way < WAYS; way++) {
        char cursor[80] = "", path[160];
        size_t left = before + 2;
        for (; left > n; left -= n) {
            snprintf(path, sizeof path, "/api/v1/traces?limit=3%s%s", *cursor ? "&cursor=" : "",
                     cursor);
            expect_page(f, way, path, n, true, cursor);
        }
        snprintf(path, sizeof path, "/api/v1/traces?%s%s", *cursor ? "cursor=" : "limit=100",
                 cursor);
        expect_page(f, way, path, left, false, cursor);
    }
    expect_error(f, "GET", "/api/v1/traces?limit=0", 400, "limit is from 1 to 10000");
    expect_error(f, "GET", "/api/v1/traces?cursor=monday", 400, "\"monday\" is no cursor");
}

/* ---- events ------------------------------------------------------------------------------- */

/* Read until the text has been seen `times` times. */
static void read_until(struct wire *w, const char *text, unsigned times)
{
    struct tl_buf in = {0};
    char buf[4096];
    for (unsigned seen = 0; seen < times;) {
        const ssize_t n = wire_read(w, buf, sizeof buf);
        assert_true(n > 0);
        assert_int_equal(tl_buf_add(&in, buf, (size_t)n), TL_OK);
        assert_int_equal(tl_buf_add(&in, "", 1), TL_OK);
        in.n--;
        seen = 0;
        for (const char *p = (char *)in.p; (p = strstr(p, text)); p++)
            seen++;
    }
    tl_buf_fini(&in);
}

static void test_events_h1(void **state)
{
    struct fixture *const f = *state;
    struct wire w = wire_open(f->s.url);
    wire_send(&w, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(&w, "event: traces\n", 1);
    add_trace(f->s.lake, "fresh", 4);
    read_until(&w, "\"id\":\"fresh\"", 1);
    wire_close(&w);
}

/* After the first event, only new, changed and removed traces are reported. */
static void test_events_of_changes(void **state)
{
    struct fixture *const f = *state;
    struct wire w = wire_open(f->s.url);
    add_trace(f->s.lake, "quiet", 4);
    wire_send(&w, "GET /api/v1/events?changes=1&every=100 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(&w, "\"id\":\"quiet\"", 1);
    add_trace(f->s.lake, "fresh", 4);
    struct tl_buf in = {0};
    char buf[4096];
    while (!in.n || !strstr((char *)in.p, "\"gone\":")) {
        const ssize_t n = wire_read(&w, buf, sizeof buf);
        assert_true(n > 0);
        assert_int_equal(tl_buf_add(&in, buf, (size_t)n), TL_OK);
        assert_int_equal(tl_buf_add(&in, "", 1), TL_OK);
        in.n--;
    }
    assert_non_null(strstr((char *)in.p, "event: changes\n"));
    assert_non_null(strstr((char *)in.p, "\"id\":\"fresh\""));
    assert_null(strstr((char *)in.p, "\"id\":\"quiet\""));
    tl_buf_fini(&in);
    wire_close(&w);
    expect_error(f, "GET", "/api/v1/events?every=5", 400, "every");
}

/* Only the newest ones are reported: an older one is dropped when a new one appears. */
static void test_events_of_the_newest(void **state)
{
    struct fixture *const f = *state;
    struct wire w = wire_open(f->s.url);
    add_trace(f->s.lake, "older", 4);
    add_trace(f->s.lake, "newer", 4);
    wire_send(&w, "GET /api/v1/events?changes=1&limit=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(&w, "\"more\":true", 1);
    add_trace(f->s.lake, "newest", 4);
    read_until(&w, "\"gone\":[\"newer\"],\"more\":true", 1);
    wire_close(&w);
    expect_error(f, "GET", "/api/v1/events?limit=10001", 400, "limit is at most 10000");
}

static void test_events_h2(void **state)
{
    struct fixture *const f = *state;
    struct h2_client *const c = h2_connect(f->s.tls_url);
    struct h2_exchange *const x = h2_request(c, "GET", "/api/v1/events", true, (char *)NULL);
    while (!x->body.n)
        h2_step(c, 240000);
    expect_head(&(struct answer){.head = x->head}, "content-type", "text/event-stream");
    add_trace(f->s.lake, "fresh", 4);
    do {
        assert_true(h2_step(c, 240000));
        assert_int_equal(tl_buf_add(&x->body, "", 1), TL_OK);
        x->body.n--;
    } while (!strstr((char *)x->body.p, "\"id\":\"fresh\""));
    h2_free(c);
}

/* An open event stream must not delay the server's shutdown. */
static void test_stop_with_listeners(void **state)
{
    struct fixture f = {0};
    serve(&f.s, NULL);
    struct wire w = wire_open(f.s.url);
    wire_send(&w, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(&w, "event: traces\n", 1);
    struct h2_client *const c = h2_connect(f.s.url);
    struct h2_exchange *const x = h2_request(c, "GET", "/api/v1/events", true, (char *)NULL);
    while (!x->body.n)
        h2_step(c, 240000);
    stop_serving(&f.s);
    h2_finish(c, x);
    assert_true(x->ended);
    assert_false(x->reset);
    char rest[4096];
    while (wire_read(&w, rest, sizeof rest) > 0)
        ;
    wire_close(&w);
    h2_free(c);
}

/* ---- first bytes -------------------------------------------------------------------------- */

static void test_slow_first_bytes(void **state)
{
    struct fixture *const f = *state;
    static const char *const pieces[] = {"P", "U", "T / HTTP/1.1\r\nHost: localhost\r\n",
                                         "Content-Length: 0\r\nConnection: close\r\n\r\n"};
    struct wire w = wire_open(f->s.url);
    char in[4096] = "";
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        wire_send(&w, pieces[i]);
        usleep(60000);
    }
    assert_true(wire_read(&w, in, sizeof in - 1) > 12);
    assert_memory_equal(in, "HTTP/1.1 405", 12);
    wire_close(&w);

    w = wire_open(f->s.url);
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (size_t i = 0; i < 24; i++) {
        char one[2] = {preface[i], 0};
        wire_send(&w, one);
        usleep(5000);
    }
    uint8_t head[9];
    assert_int_equal(wire_read(&w, head, 9), 9);
    assert_int_equal(head[3], NGHTTP2_SETTINGS);
    wire_close(&w);
}

static void test_keep_alive_and_pipelining(void **state)
{
    struct fixture *const f = *state;
    struct wire w = wire_open(f->s.tls_url);
    wire_send(&w, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: "
                  "localhost\r\n\r\n");
    read_until(&w, "HTTP/1.1 200", 2);
    wire_send(&w, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    read_until(&w, "HTTP/1.1 200", 1);
    wire_close(&w);
}

static void test_foreign_names(void **state)
{
    struct fixture *const f = *state;
    static const struct {
        const char *host;
        int status;
    } hosts[] = {
        {"127.0.0.1:7070", 200}, {"localhost", 200},
        {"LOCALHOST:1", 200},    {"[::1]:80", 200},
        {"evil.example", 421},   {"127.0.0.1.evil", 421},
        {"[evil]", 421},         {"", 421},
        {"[::1].evil", 421},     {"[::1", 421},
        {"localhost:x", 421},    {"127.0.0.1:80:80", 421},
    };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char text[200];
        char in[512] = "";
        struct wire w = wire_open(f->s.url);
        snprintf(text, sizeof text,
                 "GET /metrics HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", hosts[i].host);
        wire_send(&w, text);
        assert_true(wire_read(&w, in, sizeof in - 1) > 12);
        assert_int_equal(atoi(in + 9), hosts[i].status);
        wire_close(&w);
    }
    struct wire probe = wire_open(f->s.url); /* probes may use any name */
    wire_send(&probe, "GET /readyz HTTP/1.1\r\nHost: pod-7\r\n\r\n");
    read_until(&probe, "HTTP/1.1 200", 1);
    wire_close(&probe);
    /* The absolute form of a request's target is the same as its path. */
    struct answer a = {0};
    ask_h1(f->s.url, "GET", "http://localhost/healthz", NULL, (struct tl_bytes){0}, &a);
    assert_int_equal(a.status, 200);
    answer_fini(&a);
}

/* ---- tokens ------------------------------------------------------------------------------- */

static void test_tokens(void **state)
{
    struct fixture f = {0};
    char path[] = "/tmp/tl-tokens-XXXXXX";
    const int fd = mkstemp(path);
    static const char text[] = "reading-0123456789 read\npushing-0123456789 push\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    const struct tl_net_options options = {.tokens = path};
    serve(&f.s, &options);
    for (int way = 0; way < 2; way++) {
        struct answer a = ask(&f, way, "/", NULL);
        assert_int_equal(a.status, 401);
        expect_head(&a, "www-authenticate", "Bearer realm=\"tracelake\"");
        answer_fini(&a);
        a = ask(&f, way, "/api/v1/traces", "Authorization: Bearer reading-0123456789");
        assert_int_equal(a.status, 200);
        answer_fini(&a);
        a = ask(&f, way, "/", "Authorization: Basic bWU6cmVhZGluZy0wMTIzNDU2Nzg5");
        assert_int_equal(a.status, 200);
        answer_fini(&a);
        a = ask(&f, way, "/", "Authorization: Bearer wrong-0123456789");
        assert_int_equal(a.status, 401);
        answer_fini(&a);
        a = ask(&f, way, "/healthz", NULL);
        assert_int_equal(a.status, 200);
        answer_fini(&a);
    }
    static const uint8_t empty[5];
    struct h2_client *const c = h2_connect(f.s.url);
    const struct {
        const char *path, *token;
        int status;
    } calls[] = {
        {"/tracelake.v1.Catalog/ListTraces", NULL, 16},
        {"/tracelake.v1.Catalog/ListTraces", "Bearer nobody-0123456789", 16},
        {"/tracelake.v1.Catalog/ListTraces", "Bearer reading-0123456789", 0},
        {"/tracelake.v1.Ingest/Push", "Bearer reading-0123456789", 7},
        {"/tracelake.v1.Ingest/Push", "Bearer pushing-0123456789", 0},
        {"/tracelake.v1.Catalog/DeleteTrace", "Bearer pushing-0123456789", 7},
        {"/grpc.health.v1.Health/Check", NULL, 0},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct h2_exchange *const x = h2_request(
            c, "POST", calls[i].path, false, "content-type", "application/grpc",
            calls[i].token ? "authorization" : (char *)NULL, calls[i].token, (char *)NULL);
        h2_send(c, x, empty, strstr(calls[i].path, "Push") ? 0 : 5, true);
        h2_finish(c, x);
        assert_int_equal(h2_grpc_status(x), calls[i].status);
    }
    h2_free(c);
    stop_serving(&f.s);
    unlink(path);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_page),
        TEST(test_errors),
        TEST(test_range),
        TEST(test_parts_of_a_body),
        TEST(test_parts_of_what_is_known),
        TEST(test_tiles),
        TEST(test_sealed_tiles_are_immutable),
        TEST(test_gzip),
        TEST(test_health),
        TEST(test_events_h1),
        TEST(test_events_h2),
        TEST(test_events_of_changes),
        TEST(test_events_of_the_newest),
        TEST(test_pages),
        cmocka_unit_test(test_stop_with_listeners),
        TEST(test_slow_first_bytes),
        TEST(test_keep_alive_and_pipelining),
        TEST(test_foreign_names),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
