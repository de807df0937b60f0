/* SPDX-License-Identifier: MIT */
/* Quotas of rigs and tokens: what is beyond is refused with a sentence that says which, how much,
 * and what to do; everything up to there is kept. */
#include "lake_traces.h"
#include "net/quota.h"
#include "unit/patience.h"
#include "unit/serving.h"
#include "unit/wire.h"

#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"

#include "base/crc32c.h"
#include "base/now.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST  "/tracelake.v1.Catalog/ListTraces"
#define CHECK "/grpc.health.v1.Health/Check"
#define PUSH  "/tracelake.v1.Ingest/Push"
#define PIECE 4096
#define LARGE (2 << 20)

static const uint8_t piece[LARGE]; /* of which most pushes send PIECE bytes */

static void set_rules(struct serving *s, const char *const *texts, size_t n)
{
    struct tl_quota_rule rules[4];
    struct tl_fail fail = {0};
    for (size_t i = 0; i < n; i++)
        if (tl_quota_rule_parse(&rules[i], texts[i], &fail) < 0)
            fail_msg("%s", fail.text);
    assert_int_equal(tl_rpc_set_quotas(s->rpc, rules, n), TL_OK);
}

static struct h2_exchange *open_push(struct h2_client *c, const char *rig, const char *trace,
                                     const char *token)
{
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    Tracelake__V1__Open open = TRACELAKE__V1__OPEN__INIT;
    open.rig = (char *)(uintptr_t)rig;
    open.trace = (char *)(uintptr_t)trace;
    open.setup = (char *)(uintptr_t) "[trace]\nformat = tpiu\n";
    open.resume = true;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN;
    request.open = &open;
    struct h2_exchange *const x =
        h2_request(c, "POST", PUSH, false, "content-type", "application/grpc",
                   token ? "authorization" : NULL, token, NULL);
    h2_send_message(c, x, &request.base, false);
    ProtobufCMessage *const reply = h2_message(c, x, &tracelake__v1__push_reply__descriptor);
    if (reply)
        protobuf_c_message_free_unpacked(reply, NULL);
    return x;
}

static void send_piece(struct h2_client *c, struct h2_exchange *x, uint64_t offset, bool end)
{
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    Tracelake__V1__Chunk chunk = TRACELAKE__V1__CHUNK__INIT;
    chunk.offset = offset;
    chunk.data.data = (uint8_t *)(uintptr_t)piece;
    chunk.data.len = PIECE;
    chunk.crc32c = tl_crc32c(0, piece, PIECE);
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_CHUNK;
    request.chunk = &chunk;
    h2_send_message(c, x, &request.base, end);
}

/* Wait until the lake has what was sent: a quota counts what is stored. */
static void wait_stored(struct serving *s, const char *trace, uint64_t n)
{
    for (int64_t since = 0;;) {
        struct tl_trace_list list = {0};
        const bool stored =
            tl_lake_trace(s->lake, trace, &list) == TL_OK && list.rows[0].raw_bytes >= n;
        tl_trace_list_free(&list);
        if (stored)
            return;
        keep_waiting(&since, trace);
    }
}

static void expect_refused(struct h2_client *c, struct h2_exchange *x, const char *words)
{
    h2_finish(c, x);
    if (h2_grpc_status(x) != 8 || !strstr(h2_grpc_text(x), words))
        fail_msg("status %d: %s", h2_grpc_status(x), h2_grpc_text(x));
}

static void expect_metric(struct serving *s, const char *line)
{
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *const x = h2_request(c, "GET", "/metrics", true, NULL);
    h2_finish(c, x);
    assert_int_equal(tl_buf_add(&x->body, "", 1), TL_OK);
    if (!strstr((char *)x->body.p, line))
        fail_msg("there is no %s", line);
    h2_free(c);
}

/* Whether the status is the expected one; `words`: in the answer then. */
static bool try_http(struct serving *s, const char *method, const char *path, size_t body,
                     int status, const char *words, bool must)
{
    struct h2_client *const c = h2_connect(s->url);
    struct h2_exchange *const x = h2_request(c, method, path, false, NULL);
    h2_send(c, x, piece, body, true);
    h2_finish(c, x);
    assert_int_equal(tl_buf_add(&x->body, "", 1), TL_OK);
    const bool is = h2_status(x) == status;
    if ((must || is) && !(is && strstr((char *)x->body.p, words)))
        fail_msg("%d: %s", h2_status(x), (char *)x->body.p);
    h2_free(c);
    return is;
}

static void expect_http(struct serving *s, const char *method, const char *path, size_t body,
                        int status, const char *words)
{
    (void)try_http(s, method, path, body, status, words, true);
}

static void test_words(void **state)
{
    struct tl_quota q = {0};
    struct tl_quota_rule rule;
    static const char *const bad[] = {"",
                                      "rig=a",
                                      "bytes=1G",
                                      "rig=a,bytes=",
                                      "rig=a,bytes=0",
                                      "rig=a,bytes=x",
                                      "rig=a,calls=3",
                                      "rig=a,size=3"};
    assert_int_equal(tl_quota_add(&q, "bytes=200G"), TL_OK);
    assert_int_equal(tl_quota_add(&q, "traces=7"), TL_OK);
    assert_int_equal(tl_quota_add(&q, "rate=50M"), TL_OK);
    assert_int_equal(tl_quota_add(&q, "calls=100"), TL_OK);
    assert_true(q.bytes == UINT64_C(200) << 30 && q.traces == 7 && q.rate == 50 << 20 &&
                q.calls == 100);
    assert_int_equal(tl_quota_add(&q, "rig=a"), TL_USAGE);
    assert_int_equal(tl_quota_add(&q, "calls=many"), TL_BAD);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tl_fail fail = {0};
        assert_int_equal(tl_quota_rule_parse(&rule, bad[i], &fail), TL_USAGE);
        assert_non_null(strstr(fail.text, "write rig=GLOB"));
    }
    assert_int_equal(tl_quota_rule_parse(&rule, "bytes=1M,rig=bench*", NULL), TL_OK);
    assert_string_equal(rule.rig, "bench*");
}

static void test_bytes_of_a_rig(void **state)
{
    static const char *const rules[] = {"rig=bench*,bytes=16K", "rig=*,bytes=1G"};
    struct serving s;
    serve(&s, NULL);
    set_rules(&s, rules, 2);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *x = open_push(c, "bench1", "t1", NULL);
    for (int i = 0; i < 4; i++)
        send_piece(c, x, i * PIECE, false);
    wait_stored(&s, "t1", 4 * PIECE);
    send_piece(c, x, 4 * PIECE, false);
    expect_refused(c, x, "rig bench1 has 16384 of at most 16384 bytes");
    /* Also with a new trace; another rig of the same rule has its own. */
    expect_refused(c, open_push(c, "bench1", "t2", NULL), "(bytes=): remove traces");
    x = open_push(c, "bench2", "t3", NULL);
    send_piece(c, x, 0, true);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    expect_http(&s, "PUT", "/api/v1/traces/t4?rig=bench1", 0, 429, "of at most 16384 bytes");
    expect_http(&s, "PUT", "/api/v1/traces/t5?rig=bench3", 0, 200, "durable");
    expect_http(&s, "POST", "/api/v1/traces/t5/raw?offset=0", PIECE, 200, "4096");
    expect_metric(&s, "tracelake_quota_bytes{of=\"rig bench1\"} 16384\n");
    expect_metric(&s, "tracelake_quota_bytes_limit{of=\"rig bench1\"} 16384\n");
    expect_metric(&s, "tracelake_quota_refused_total{of=\"rig bench1\"} 3\n");
    /* Removing something makes room. */
    assert_int_equal(tl_lake_delete(s.lake, "t1", NULL), TL_OK);
    for (int64_t since = 0; (x = open_push(c, "bench1", "t6", NULL))->closed;)
        keep_waiting(&since, "what was removed is counted no more");
    send_piece(c, x, 0, true);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    h2_free(c);
    stop_serving(&s);
}

static void test_traces_of_a_rig(void **state)
{
    static const char *const rules[] = {"rig=r,traces=2"};
    struct serving s;
    serve(&s, NULL);
    set_rules(&s, rules, 1);
    struct h2_client *const c = h2_connect(s.url);
    assert_false(open_push(c, "r", "t1", NULL)->closed);
    expect_http(&s, "PUT", "/api/v1/traces/t2?rig=r", 0, 200, "durable");
    expect_refused(c, open_push(c, "r", "t3", NULL), "rig r has 2 of at most 2 traces");
    expect_http(&s, "PUT", "/api/v1/traces/t4?rig=r", 0, 429, "(traces=): remove some");
    assert_false(open_push(c, "r", "t2", NULL)->closed); /* it is there already */
    assert_false(open_push(c, "other", "t3", NULL)->closed);
    h2_free(c);
    stop_serving(&s);
}

/* A push is slowed down, a piece that comes too early is refused. */
static void test_rate_of_a_rig(void **state)
{
    static const char *const rules[] = {"rig=r,rate=8K"};
    struct serving s;
    serve(&s, NULL);
    set_rules(&s, rules, 1);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *const x = open_push(c, "r", "t1", NULL);
    const int64_t begin = tl_monotonic_ms();
    for (int i = 0; i < 4; i++)
        send_piece(c, x, i * PIECE, i == 3);
    h2_finish(c, x);
    assert_int_equal(h2_grpc_status(x), 0);
    assert_true(tl_monotonic_ms() - begin > 900); /* 16 KiB, of which 8 at once */
    expect_http(&s, "PUT", "/api/v1/traces/t2?rig=r", 0, 200, "durable");
    int64_t since = 0;
    while (!try_http(&s, "POST", "/api/v1/traces/t2/raw?offset=0", LARGE, 200, "2097152", false))
        keep_waiting(&since, "the push before it is paid for");
    /* That is four minutes of this rate. */
    expect_http(&s, "POST", "/api/v1/traces/t2/raw?offset=2097152", PIECE, 429,
                "8192 bytes a second");
    h2_free(c);
    stop_serving(&s);
}

/* A token's quota is for what its scope covers; each has its own number of calls. */
static void test_tokens(void **state)
{
    static const char lines[] = "alice-0123456789abc push name=alice rig=a* bytes=8K traces=2\n"
                                "bob-0123456789abcde push name=bob calls=5\n"
                                "eve-0123456789abcde push name=eve\n";
    char path[64];
    struct serving s;
    snprintf(path, sizeof path, "/tmp/tl-quotas-%d", (int)getpid());
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs(lines, file);
    fclose(file);
    chmod(path, 0600);
    serve(&s, &(struct tl_net_options){.tokens = path});
    unlink(path);
    struct h2_client *const c = h2_connect(s.url);
    struct h2_exchange *x = open_push(c, "a1", "t1", "Bearer alice-0123456789abc");
    for (int i = 0; i < 2; i++)
        send_piece(c, x, i * PIECE, false);
    wait_stored(&s, "t1", 2 * PIECE);
    send_piece(c, x, 2 * PIECE, false);
    expect_refused(c, x, "token alice has 8192 of at most 8192 bytes");
    expect_refused(c, open_push(c, "a2", "t2", "Bearer alice-0123456789abc"), "token alice");
    assert_false(open_push(c, "a2", "t2", "Bearer eve-0123456789abcde")->closed);
    static const uint8_t empty_message[5];
    unsigned passed = 0;
    for (bool refused = false; !refused; passed += !refused) {
        assert_true(passed < 1000); /* some three minutes' worth of calls */
        x = h2_request(c, "POST", LIST, false, "content-type", "application/grpc", "authorization",
                       "Bearer bob-0123456789abcde", NULL);
        h2_send(c, x, empty_message, 5, true);
        h2_finish(c, x);
        refused = h2_grpc_status(x) != 0;
    }
    assert_true(passed >= 5);
    expect_refused(c, x, "token bob may make 5 calls a second");
    struct wire w = wire_open(s.url);
    char in[512] = "";
    wire_send(&w, "GET /api/v1/traces HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  "Authorization: Bearer eve-0123456789abcde\r\n\r\n");
    assert_true(wire_read(&w, in, sizeof in - 1) > 12);
    assert_memory_equal(in, "HTTP/1.1 200", 12);
    wire_close(&w);
    h2_free(c);
    stop_serving(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),           cmocka_unit_test(test_bytes_of_a_rig),
        cmocka_unit_test(test_traces_of_a_rig), cmocka_unit_test(test_rate_of_a_rig),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
