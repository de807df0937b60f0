/* SPDX-License-Identifier: MIT */
/* The path of raw bytes: Ingest.Push over HTTP/2 into a lake, and back by Ranges.Fetch. */
#include "base/crc32c.h"
#include "rpc/pushchunk.h"
#include "unit/serving.h"

#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"
#include "tracelake/v1/ranges.pb-c.h"
#include "unit/seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PUSH "/tracelake.v1.Ingest/Push"

typedef Tracelake__V1__PushReply Reply;

static void send_open(struct h2_client *c, struct h2_exchange *x, const char *trace, bool resume)
{
    Tracelake__V1__Open open = TRACELAKE__V1__OPEN__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    open.rig = (char *)"rig-1";
    open.trace = (char *)(uintptr_t)trace;
    open.resume = resume;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN;
    request.open = &open;
    h2_send_message(c, x, &request.base, false);
}

static void send_chunk(struct h2_client *c, struct h2_exchange *x, uint64_t offset,
                       const uint8_t *p, size_t n, uint32_t crc_error)
{
    Tracelake__V1__Chunk chunk = TRACELAKE__V1__CHUNK__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    chunk.offset = offset;
    chunk.data.data = (uint8_t *)(uintptr_t)p;
    chunk.data.len = n;
    chunk.crc32c = tl_crc32c(0, p, n) ^ crc_error;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_CHUNK;
    request.chunk = &chunk;
    h2_send_message(c, x, &request.base, false);
}

static void send_finish(struct h2_client *c, struct h2_exchange *x, uint64_t length)
{
    Tracelake__V1__Finish finish = TRACELAKE__V1__FINISH__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    finish.length = length;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_FINISH;
    request.finish = &finish;
    h2_send_message(c, x, &request.base, true);
}

static Reply *next_reply(struct h2_client *c, struct h2_exchange *x)
{
    return (Reply *)h2_message(c, x, &tracelake__v1__push_reply__descriptor);
}

static void expect_opened(struct h2_client *c, struct h2_exchange *x, uint64_t durable)
{
    Reply *const reply = next_reply(c, x);
    assert_non_null(reply);
    assert_int_equal(reply->step_case, TRACELAKE__V1__PUSH_REPLY__STEP_OPENED);
    assert_int_equal(reply->opened->durable, durable);
    protobuf_c_message_free_unpacked(&reply->base, NULL);
}

/* Read acks, which must increase, until `finished`; returns its offset. */
static uint64_t expect_finished(struct h2_client *c, struct h2_exchange *x)
{
    uint64_t last = 0;
    for (;;) {
        Reply *const reply = next_reply(c, x);
        if (!reply)
            fail_msg("ended with %d %s", h2_grpc_status(x), h2_grpc_text(x));
        const bool finished = reply->step_case == TRACELAKE__V1__PUSH_REPLY__STEP_FINISHED;
        const uint64_t durable = finished ? reply->finished->durable : reply->ack->durable;
        if (finished)
            assert_true(durable >= last);
        else
            assert_true(durable > last);
        last = durable;
        protobuf_c_message_free_unpacked(&reply->base, NULL);
        if (finished)
            return last;
    }
}

static uint8_t *noise(size_t n, unsigned *seed)
{
    uint8_t *const p = malloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)rand_r(seed);
    return p;
}

static void test_bytes_arrive(void **state)
{
    enum { TOTAL = 3000000 };
    unsigned seed = (unsigned)test_seed();
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *const x = h2_call(c, PUSH);
    uint8_t *const bytes = noise(TOTAL, &seed);
    send_open(c, x, "t1", false);
    expect_opened(c, x, 0);
    for (size_t at = 0; at < TOTAL;) {
        size_t n = 1 + (size_t)rand_r(&seed) % 100000;
        n = n < TOTAL - at ? n : TOTAL - at;
        send_chunk(c, x, at, bytes + at, n, 0);
        h2_step(c, 0);
        at += n;
    }
    send_finish(c, x, TOTAL);
    assert_int_equal(expect_finished(c, x), TOTAL);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    assert_false(x->reset);
    const struct tl_bytes raw = fake_lake_raw(s.lake, "t1");
    assert_int_equal(raw.n, TOTAL);
    assert_memory_equal(raw.p, bytes, TOTAL);
    free(bytes);
    h2_free(c);
    stop_serving(&s);
}

/* One byte per message, each message in pieces: framing must not matter. */
static void test_byte_by_byte(void **state)
{
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *const x = h2_call(c, PUSH);
    send_open(c, x, "bytes", false);
    expect_opened(c, x, 0);
    for (uint8_t i = 0; i < 200; i++)
        send_chunk(c, x, i, &i, 1, 0);
    /* The last request arrives byte by byte. */
    Tracelake__V1__Finish finish = TRACELAKE__V1__FINISH__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    uint8_t packed[64] = {0};
    finish.length = 200;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_FINISH;
    request.finish = &finish;
    packed[4] = (uint8_t)protobuf_c_message_pack(&request.base, packed + 5);
    for (size_t i = 0; i < packed[4] + 5u; i++) {
        h2_send(c, x, packed + i, 1, i == packed[4] + 4u);
        h2_step(c, 0);
    }
    assert_int_equal(expect_finished(c, x), 200);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    const struct tl_bytes raw = fake_lake_raw(s.lake, "bytes");
    assert_int_equal(raw.n, 200);
    for (uint8_t i = 0; i < 200; i++)
        assert_int_equal(raw.p[i], i);
    h2_free(c);
    stop_serving(&s);
}

static void test_resume(void **state)
{
    static const uint8_t bytes[1000] = {1, 2, 3};
    struct serving s;
    serve(&s, NULL);
    struct h2_client *c = h2_connect(s.url);
    struct h2_exchange *x = h2_call(c, PUSH);
    send_open(c, x, "again", false);
    expect_opened(c, x, 0);
    send_chunk(c, x, 0, bytes, 600, 0);
    Reply *const ack = next_reply(c, x);
    assert_int_equal(ack->ack->durable, 600);
    protobuf_c_message_free_unpacked(&ack->base, NULL);
    h2_free(c); /* the rig disconnects without a message */

    for (bool opened = false; !opened;) {
        c = h2_connect(s.url);
        x = h2_call(c, PUSH);
        send_open(c, x, "again", true);
        Reply *const reply = next_reply(c, x);
        opened = reply != NULL;
        if (opened) {
            assert_int_equal(reply->opened->durable, 600);
            protobuf_c_message_free_unpacked(&reply->base, NULL);
        } else { /* the server has not noticed yet */
            assert_int_equal(h2_grpc_status(x), 6);
            h2_free(c);
        }
    }
    send_chunk(c, x, 500, bytes + 500, 500, 0); /* some of it twice */
    send_finish(c, x, 1000);
    assert_int_equal(expect_finished(c, x), 1000);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    assert_int_equal(fake_lake_raw(s.lake, "again").n, 1000);
    h2_free(c);
    stop_serving(&s);
}

/* A failing push ends with this status and a text that contains `words`. */
static void expect_end(struct h2_client *c, struct h2_exchange *x, int status, const char *words)
{
    for (Reply *reply; (reply = next_reply(c, x));)
        protobuf_c_message_free_unpacked(&reply->base, NULL);
    assert_int_equal(h2_grpc_status(x), status);
    if (!strstr(h2_grpc_text(x), words))
        fail_msg("\"%s\" lacks \"%s\"", h2_grpc_text(x), words);
}

static void test_refusals(void **state)
{
    static const uint8_t bytes[100];
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *x = h2_call(c, PUSH);
    send_chunk(c, x, 0, bytes, 1, 0);
    expect_end(c, x, 3, "first request");

    x = h2_call(c, PUSH);
    send_open(c, x, "a/b", false);
    expect_end(c, x, 3, "trace");

    x = h2_call(c, PUSH);
    send_open(c, x, "crc", false);
    expect_opened(c, x, 0);
    send_chunk(c, x, 0, bytes, 100, 0);
    send_chunk(c, x, 100, bytes, 50, 1);
    expect_end(c, x, 3, "offset 100: ");
    assert_int_equal(fake_lake_raw(s.lake, "crc").n, 100);

    x = h2_call(c, PUSH);
    send_open(c, x, "hole", false);
    expect_opened(c, x, 0);
    send_chunk(c, x, 5, bytes, 50, 0);
    expect_end(c, x, 3, "offset 5: a hole");

    x = h2_call(c, PUSH);
    send_open(c, x, "crc", false);
    expect_end(c, x, 6, "exists");

    x = h2_call(c, PUSH);
    send_open(c, x, "short", false);
    expect_opened(c, x, 0);
    send_chunk(c, x, 0, bytes, 50, 0);
    send_finish(c, x, 60);
    expect_end(c, x, 3, "offset 50: ");

    x = h2_call(c, PUSH);
    send_open(c, x, "full", false);
    expect_opened(c, x, 0);
    atomic_store(&fake.fail_append, TL_NOSPACE);
    send_chunk(c, x, 0, bytes, 50, 0);
    expect_end(c, x, 8, "no room");
    h2_free(c);
    stop_serving(&s);
}

/* A stalled disk closes the rig's window; the bytes in memory stay bounded. */
static void test_back_pressure(void **state)
{
    enum { CHUNK = 1 << 20 };
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *const x = h2_call(c, PUSH);
    uint8_t *const bytes = calloc(1, CHUNK);
    send_open(c, x, "slow", false);
    expect_opened(c, x, 0);
    const unsigned long long before = atomic_load(&fake.appended);
    atomic_store(&fake.stall, true);
    for (size_t i = 0; i < 64; i++)
        send_chunk(c, x, i * CHUNK, bytes, CHUNK, 0);
    while (h2_step(c, 300))
        ;
    /* most of it is held back here */
    assert_true(x->out.n - x->out_at > 32u << 20);
    assert_true(atomic_load(&fake.appended) - before < 16u << 20); /* the fake's own limit */
    /* Other calls on the same connection continue. */
    struct h2_exchange *const y = h2_call(c, "/tracelake.v1.Catalog/ListTraces");
    const Tracelake__V1__ListTracesRequest list = TRACELAKE__V1__LIST_TRACES_REQUEST__INIT;
    h2_send_message(c, y, &list.base, true);
    h2_finish(c, y);
    assert_int_equal(h2_grpc_status(y), 0);

    atomic_store(&fake.stall, false);
    send_finish(c, x, 64ull * CHUNK);
    assert_int_equal(expect_finished(c, x), 64ull * CHUNK);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    free(bytes);
    h2_free(c);
    stop_serving(&s);
}

static void test_fetch(void **state)
{
    enum { INSNS = 50000 };
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *x = h2_call(c, PUSH);
    uint8_t *const bytes = calloc(INSNS, 4);
    for (size_t i = 0; i < INSNS; i++)
        tl_put_le32(bytes + 4 * i, (uint32_t)i * 3);
    send_open(c, x, "f", false);
    expect_opened(c, x, 0);
    send_chunk(c, x, 0, bytes, 4 * INSNS, 0);
    send_finish(c, x, 4 * INSNS);
    assert_int_equal(expect_finished(c, x), 4 * INSNS);
    h2_finish(c, x);

    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    struct tl_buf got = {0};
    struct tl_buf want = {0};
    request.trace = (char *)"f";
    request.stream = (char *)"cs.10";
    request.begin = 100;
    request.to = 40000;
    request.format = TRACELAKE__V1__FORMAT__FORMAT_TEXT;
    x = h2_call(c, "/tracelake.v1.Ranges/Fetch");
    h2_send_message(c, x, &request.base, true);
    bool first = true;
    for (Tracelake__V1__FetchReply *reply; (reply = (Tracelake__V1__FetchReply *)h2_message(
                                                c, x, &tracelake__v1__fetch_reply__descriptor));) {
        assert_int_equal(reply->first, first ? 100 : 0);
        assert_int_equal(reply->count, first ? 39900 : 0);
        first = false;
        assert_int_equal(tl_buf_add(&got, reply->data.data, reply->data.len), TL_OK);
        protobuf_c_message_free_unpacked(&reply->base, NULL);
    }
    assert_int_equal(h2_grpc_status(x), 0);
    assert_int_equal(tl_buf_printf(&want, "# stream cs.10\n"), TL_OK);
    for (uint64_t i = 100; i < 40000; i++)
        assert_int_equal(tl_buf_printf(&want, "I %016" PRIx64 " %08" PRIx64 "\n", i * 4, i * 3),
                         TL_OK);
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.p, want.p, want.n);

    request.stream = (char *)"cs.11";
    x = h2_call(c, "/tracelake.v1.Ranges/Fetch");
    h2_send_message(c, x, &request.base, true);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 5);
    assert_int_equal(x->frames, 1); /* trailers only */
    assert_int_equal(atomic_load(&fake.ranges), 0);
    tl_buf_fini(&got);
    tl_buf_fini(&want);
    free(bytes);
    h2_free(c);
    stop_serving(&s);
}

/* Text of a follow, until it has `n` instructions or has ended. */
static void read_follow(struct h2_client *c, struct h2_exchange *x, size_t n, struct tl_buf *got)
{
    Tracelake__V1__FetchReply *reply;
    size_t insns = 0;
    for (size_t i = 0; i < got->n; i++)
        insns += got->p[i] == 'I';
    while (insns < n && (reply = (Tracelake__V1__FetchReply *)h2_message(
                             c, x, &tracelake__v1__fetch_reply__descriptor))) {
        for (size_t i = 0; i < reply->data.len; i++)
            insns += reply->data.data[i] == 'I';
        assert_int_equal(tl_buf_add(got, reply->data.data, reply->data.len), TL_OK);
        protobuf_c_message_free_unpacked(&reply->base, NULL);
    }
}

/* A range opened when less data was available than a moment before omits nothing. */
static void test_follow_behind(void **state)
{
    enum { INSNS = 200, FIRST = 100, AFTER = 40 };
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *const push = h2_call(c, PUSH);
    Tracelake__V1__FollowRequest request = TRACELAKE__V1__FOLLOW_REQUEST__INIT;
    uint8_t bytes[4 * INSNS];
    struct tl_buf got = {0};
    struct tl_buf want = {0};
    for (size_t i = 0; i < INSNS; i++)
        tl_put_le32(bytes + 4 * i, (uint32_t)i * 3);
    send_open(c, push, "live", false);
    expect_opened(c, push, 0);
    send_chunk(c, push, 0, bytes, 4 * FIRST, 0);
    Reply *const ack = next_reply(c, push);
    assert_non_null(ack);
    assert_int_equal(ack->ack->durable, 4 * FIRST);
    protobuf_c_message_free_unpacked(&ack->base, NULL);
    atomic_store(&fake.after, AFTER);
    request.trace = (char *)"live";
    request.stream = (char *)"cs.10";
    request.format = TRACELAKE__V1__FORMAT__FORMAT_TEXT;
    struct h2_exchange *const x = h2_call(c, "/tracelake.v1.Ranges/Follow");
    h2_send_message(c, x, &request.base, true);
    read_follow(c, x, FIRST - AFTER, &got);
    send_chunk(c, push, 4 * FIRST, bytes + 4 * FIRST, 4 * (INSNS - FIRST), 0);
    send_finish(c, push, 4 * INSNS);
    assert_int_equal(expect_finished(c, push), 4 * INSNS);
    h2_finish(c, push);
    read_follow(c, x, SIZE_MAX, &got);
    assert_int_equal(h2_grpc_status(x), 0);
    assert_int_equal(tl_buf_printf(&want, "# stream cs.10\n"), TL_OK);
    for (uint64_t i = 0; i < INSNS; i++)
        assert_int_equal(tl_buf_printf(&want, "I %016" PRIx64 " %08" PRIx64 "\n", i * 4, i * 3),
                         TL_OK);
    assert_int_equal(got.n, want.n);
    assert_memory_equal(got.p, want.p, want.n);
    tl_buf_fini(&got);
    tl_buf_fini(&want);
    h2_free(c);
    stop_serving(&s);
}

/* Parsing in place and by protobuf-c gives the same, for every message and for damaged ones. */
static void test_chunk_in_place(void **state)
{
    unsigned seed = (unsigned)test_seed();
    unsigned taken = 0;
    for (int round = 0; round < 20000; round++) {
        Tracelake__V1__Chunk chunk = TRACELAKE__V1__CHUNK__INIT;
        Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
        uint8_t data[40];
        uint8_t packed[128];
        chunk.offset = (uint64_t)rand_r(&seed) << (rand_r(&seed) % 34);
        chunk.data.data = data;
        chunk.data.len = (size_t)rand_r(&seed) % sizeof data;
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)rand_r(&seed);
        chunk.crc32c = (uint32_t)rand_r(&seed) * (uint32_t)(rand_r(&seed) % 3);
        request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_CHUNK;
        request.chunk = &chunk;
        size_t n = protobuf_c_message_pack(&request.base, packed);
        const bool damaged = round % 2;
        if (damaged)
            packed[(size_t)rand_r(&seed) % n] ^= (uint8_t)(1 << rand_r(&seed) % 8);
        if (damaged && rand_r(&seed) % 4 == 0)
            n = (size_t)rand_r(&seed) % (n + 1);
        struct tl_push_chunk got;
        const bool ok = tl_push_chunk_parse((struct tl_bytes){packed, n}, &got);
        assert_true(ok || damaged);
        if (!ok)
            continue;
        taken++;
        Tracelake__V1__PushRequest *const want =
            tracelake__v1__push_request__unpack(NULL, n, packed);
        assert_non_null(want);
        assert_int_equal(want->step_case, TRACELAKE__V1__PUSH_REQUEST__STEP_CHUNK);
        assert_int_equal(got.offset, want->chunk->offset);
        assert_int_equal(got.crc32c, want->chunk->crc32c);
        assert_int_equal(got.data.n, want->chunk->data.len);
        if (got.data.n)
            assert_memory_equal(got.data.p, want->chunk->data.data, got.data.n);
        tracelake__v1__push_request__free_unpacked(want, NULL);
    }
    assert_true(taken >= 10000);
}

/* The server stops during a push: the rig is informed, and what it sent is kept. */
static void test_stop_while_pushing(void **state)
{
    static const uint8_t bytes[1000];
    struct serving s;
    serve(&s, NULL);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *const x = h2_call(c, PUSH);
    send_open(c, x, "cut", false);
    expect_opened(c, x, 0);
    send_chunk(c, x, 0, bytes, sizeof bytes, 0);
    Reply *const ack = next_reply(c, x);
    assert_int_equal(ack->ack->durable, sizeof bytes);
    protobuf_c_message_free_unpacked(&ack->base, NULL);
    tl_net_free(s.net);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 14);
    assert_true(c->goaways >= 1);
    assert_int_equal(c->goaway_last[0], 0x7fffffff);
    assert_int_equal(fake_lake_raw(s.lake, "cut").n, sizeof bytes);
    h2_free(c);
    tl_rpc_free(s.rpc);
    tl_lake_close(s.lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_arrive),   cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_resume),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_back_pressure),  cmocka_unit_test(test_fetch),
        cmocka_unit_test(test_follow_behind),  cmocka_unit_test(test_stop_while_pushing),
        cmocka_unit_test(test_chunk_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
