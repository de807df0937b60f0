/* SPDX-License-Identifier: MIT */
/*
 * Fetch of stored bytes that go from a mapped file to the socket, read only by the kernel:
 * completely, to readers that stall, disconnect, or request compression, and from a file that is
 * truncated.
 */
#include "lake_ingest.h"
#include "unit/serving.h"

#include "tracelake/v1/ranges.pb-c.h"
#include "unit/patience.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FETCH    "/tracelake.v1.Ranges/Fetch"
#define CHECK    "/grpc.health.v1.Health/Check"
#define BYTES    (40u << 20)
#define LIMIT_MS (PATIENCE_S * 1000)

/* A server, a trace of four instructions, and the file that its ranges end with. */
struct stage {
    struct serving s;
    int fd;
    uint8_t *bytes; /* mapped; a copy is `want` */
    uint8_t *want;
};

static void on_durable(void *context, uint64_t offset)
{
}

static int setup(void **state)
{
    struct stage *const st = calloc(1, sizeof *st);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = "[trace]\nformat = tpiu\n"};
    static const uint8_t raw[16];
    struct tl_ingest *ingest;
    char trace[64];
    uint64_t durable;
    struct tl_fail fail = {0};
    serve(&st->s, NULL);
    assert_int_equal(
        tl_ingest_open(st->s.lake, &request, on_durable, NULL, &ingest, trace, &durable, &fail),
        TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){raw, sizeof raw}, &fail), TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &durable, &fail), TL_OK);
    tl_ingest_close(ingest);
    st->want = malloc(BYTES);
    for (uint32_t i = 0; i < BYTES / 4; i++) {
        const uint32_t v = i * 2654435761u;
        memcpy(st->want + 4 * (size_t)i, &v, 4);
    }
    st->fd = memfd_create("stored", MFD_CLOEXEC);
    assert_true(st->fd >= 0);
    for (size_t at = 0; at < BYTES;) {
        const ssize_t n = write(st->fd, st->want + at, BYTES - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    st->bytes = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, st->fd, 0);
    assert_true(st->bytes != MAP_FAILED);
    atomic_store(&fake.stored_n, BYTES);
    atomic_store(&fake.stored, st->bytes);
    atomic_store(&fake.given, 0);
    *state = st;
    return 0;
}

static int teardown(void **state)
{
    struct stage *const st = *state;
    stop_serving(&st->s);
    assert_int_equal(atomic_load(&fake.pieces), 0);
    assert_int_equal(atomic_load(&fake.ranges), 0);
    atomic_store(&fake.stored, NULL);
    munmap(st->bytes, BYTES);
    close(st->fd);
    free(st->want);
    free(st);
    return 0;
}

static struct h2_exchange *begin_fetch(struct h2_client *c, bool gzip)
{
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    request.stream = (char *)(uintptr_t) "cs.10";
    request.format = TRACELAKE__V1__FORMAT__FORMAT_TEXT;
    struct h2_exchange *const x =
        h2_request(c, "POST", FETCH, false, "content-type", "application/grpc",
                   gzip ? "grpc-encoding" : NULL, "gzip", "grpc-accept-encoding", "gzip", NULL);
    h2_send_message(c, x, &request.base, true);
    return x;
}

/* Receive until the body has `n` bytes. */
static void receive(struct h2_client *c, const struct h2_exchange *x, size_t n)
{
    while (x->body.n < n && !x->closed)
        assert_true(h2_step(c, LIMIT_MS));
    assert_true(x->body.n >= n);
}

static void expect_health(struct h2_client *c)
{
    static const uint8_t nothing[5];
    struct h2_exchange *const x = h2_call(c, CHECK);
    h2_send(c, x, nothing, sizeof nothing, true);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
}

/* Receive all messages, the first of which is text. */
static void expect_whole(struct stage *st, struct h2_client *c, struct h2_exchange *x)
{
    Tracelake__V1__FetchReply *reply;
    size_t at = 0;
    bool first = true;
    while ((reply = (Tracelake__V1__FetchReply *)h2_message(
                c, x, &tracelake__v1__fetch_reply__descriptor))) {
        if (!first) {
            assert_int_equal(reply->data.data[0], 'B');
            assert_true(reply->data.len - 1 <= BYTES - at);
            assert_memory_equal(reply->data.data + 1, st->want + at, reply->data.len - 1);
            at += reply->data.len - 1;
        }
        first = false;
        protobuf_c_message_free_unpacked(&reply->base, NULL);
    }
    assert_int_equal(h2_grpc_status(x), 0);
    assert_int_equal(at, BYTES);
}

static void await_zero(atomic_uint *what)
{
    for (int64_t since = 0; atomic_load(what);)
        keep_waiting(&since, "it is zero");
}

static void test_whole(void **state)
{
    struct stage *const st = *state;
    struct h2_client *const c = h2_connect(st->s.url);
    expect_whole(st, c, begin_fetch(c, false));
    assert_int_equal(atomic_load(&fake.given), (BYTES + FAKE_STORED - 1) / FAKE_STORED);
    h2_free(c);
}

/* Two ranges on one connection, and one on another. */
static void test_together(void **state)
{
    struct stage *const st = *state;
    struct h2_client *const a = h2_connect(st->s.url), *const b = h2_connect(st->s.url);
    struct h2_exchange *const x = begin_fetch(a, false), *const y = begin_fetch(a, false);
    struct h2_exchange *const z = begin_fetch(b, false);
    receive(b, z, 1000);
    expect_whole(st, a, x);
    expect_whole(st, a, y);
    expect_whole(st, b, z);
    h2_free(a);
    h2_free(b);
}

/* For a reader that stalls only a limited amount waits; others are answered, and when it
 * disconnects everything is released. */
static void test_stalled(void **state)
{
    struct stage *const st = *state;
    struct h2_client *const c = h2_connect(st->s.url), *const other = h2_connect(st->s.url);
    struct h2_exchange *const x = begin_fetch(c, false);
    receive(c, x, 1000);
    expect_health(other);
    expect_whole(st, other, begin_fetch(other, false));
    assert_true(atomic_load(&fake.pieces) <= (10u << 20) / FAKE_STORED);
    receive(c, x, 300000);
    expect_health(c);
    nghttp2_submit_rst_stream(c->session, 0, x->id, NGHTTP2_CANCEL);
    expect_health(c);
    await_zero(&fake.ranges);
    await_zero(&fake.pieces);
    begin_fetch(c, false);
    expect_health(c);
    h2_free(c); /* in the middle of the range */
    await_zero(&fake.ranges);
    await_zero(&fake.pieces);
    h2_free(other);
}

/* The call fails with the reason; its connection and other calls continue. */
static void test_cut_short(void **state)
{
    struct stage *const st = *state;
    struct h2_client *const c = h2_connect(st->s.url), *const d = h2_connect(st->s.url);
    struct h2_exchange *const x = begin_fetch(c, false), *const y = begin_fetch(d, false);
    receive(c, x, 1000);
    receive(d, y, 1000);
    assert_int_equal(ftruncate(st->fd, 0), 0);
    h2_finish(c, x);
    h2_finish(d, y);
    assert_int_equal(h2_grpc_status(x), 13);
    assert_int_equal(h2_grpc_status(y), 13);
    if (!strstr(h2_grpc_text(x), "cut short"))
        fail_msg("\"%s\"", h2_grpc_text(x));
    assert_false(x->reset);
    assert_true(x->body.n < 4u << 20); /* its window is a quarter of that */
    expect_health(c);
    expect_health(d);
    await_zero(&fake.ranges);
    h2_free(c);
    h2_free(d);
}

/* Bytes to be compressed are read, not mapped. */
static void test_compressed(void **state)
{
    struct stage *const st = *state;
    struct h2_client *const c = h2_connect(st->s.url);
    struct h2_exchange *const x = begin_fetch(c, true);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    assert_int_equal(atomic_load(&fake.given), 0);
    h2_free(c);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_whole),     TEST(test_together),   TEST(test_stalled),
        TEST(test_cut_short), TEST(test_compressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
