/* SPDX-License-Identifier: MIT */
/* Clients that take much of what a server has, and its metrics: for tests of its shares. */
#ifndef TL_TESTS_SHARING_H
#define TL_TESTS_SHARING_H

#include "lake_ingest.h"
#include "unit/patience.h"
#include "unit/serving.h"
#include "unit/wire.h"

#include "grpc/health/v1/health.pb-c.h"
#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST    "/tracelake.v1.Catalog/ListTraces"
#define WATCH   "/tracelake.v1.Catalog/WatchTraces"
#define VERIFY  "/tracelake.v1.Catalog/Verify"
#define LOCATE  "/tracelake.v1.Ranges/Locate"
#define PUSH    "/tracelake.v1.Ingest/Push"
#define CHECK   "/grpc.health.v1.Health/Check"
#define REFLECT "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

#define ALICE "Bearer alice-0123456789abc"
#define BOB   "Bearer bob-0123456789abcde"

#define OTHER "127.0.0.2"

static const uint8_t empty_message[5];

static inline void on_durable(void *context, uint64_t offset)
{
}

static inline void add_trace(struct tl_lake *lake, const char *name)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = name, .setup = "[trace]\nformat = tpiu\n"};
    static const uint8_t bytes[16384];
    struct tl_ingest *ingest;
    char trace[64];
    uint64_t durable;
    struct tl_fail fail = {0};
    assert_int_equal(
        tl_ingest_open(lake, &request, on_durable, NULL, &ingest, trace, &durable, &fail), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){bytes, sizeof bytes}, &fail),
                     TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &durable, &fail), TL_OK);
    tl_ingest_close(ingest);
}

static inline void open_server(struct serving *s, struct tl_net_options options, bool tokens)
{
    static const char lines[] = "alice-0123456789abc push name=alice\n"
                                "bob-0123456789abcde push name=bob\n";
    char tokens_path[64];
    snprintf(tokens_path, sizeof tokens_path, "/tmp/tl-shares-%d", (int)getpid());
    FILE *const file = fopen(tokens_path, "w");
    assert_non_null(file);
    fputs(lines, file);
    fclose(file);
    chmod(tokens_path, 0600);
    options.tokens = tokens ? tokens_path : NULL;
    serve(s, &options);
    unlink(tokens_path);
    add_trace(s->lake, "t");
}

static inline unsigned long long metric(struct tl_net *net, const char *name)
{
    struct tl_buf text = {0};
    char line[96];
    snprintf(line, sizeof line, "\ntracelake_%s ", name);
    assert_int_equal(tl_net_metrics(net, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    const char *const at = strstr((char *)text.p, line);
    if (!at)
        fail_msg("there is no %s", name);
    const unsigned long long value = strtoull(at + strlen(line), NULL, 10);
    tl_buf_fini(&text);
    return value;
}

static inline void await_metric(struct tl_net *net, const char *name, unsigned long long least,
                                unsigned long long most)
{
    char what[128];
    unsigned long long now;
    for (int64_t since = 0; (now = metric(net, name)) < least || now > most;) {
        snprintf(what, sizeof what, "%s is %llu, not %llu to %llu", name, now, least, most);
        keep_waiting(&since, what);
    }
}

static inline struct h2_exchange *begin(struct h2_client *c, const char *path, const char *token)
{
    return h2_request(c, "POST", path, false, "content-type", "application/grpc",
                      token ? "authorization" : NULL, token, NULL);
}

static inline struct h2_exchange *call(struct h2_client *c, const char *path, const char *token)
{
    struct h2_exchange *const x = begin(c, path, token);
    h2_send(c, x, empty_message, 5, true);
    return x;
}

static inline struct h2_exchange *verify(struct h2_client *c, const char *token)
{
    Tracelake__V1__VerifyRequest request = TRACELAKE__V1__VERIFY_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    struct h2_exchange *const x = begin(c, VERIFY, token);
    h2_send_message(c, x, &request.base, true);
    return x;
}

/* A long call that is soon done. */
static inline struct h2_exchange *locate(struct h2_client *c, const char *token)
{
    Tracelake__V1__LocateRequest request = TRACELAKE__V1__LOCATE_REQUEST__INIT;
    request.trace = (char *)(uintptr_t) "t";
    request.stream = (char *)(uintptr_t) "cs.10";
    struct h2_exchange *const x = begin(c, LOCATE, token);
    h2_send_message(c, x, &request.base, true);
    return x;
}

static inline void expect_status(struct h2_client *c, struct h2_exchange *x, int status)
{
    h2_finish(c, x);
    if (h2_grpc_status(x) != status)
        fail_msg("status %d, not %d: %s", h2_grpc_status(x), status, h2_grpc_text(x));
}

/* Wait until everything that was sent has been processed. */
static inline void settle(struct h2_client *c)
{
    const unsigned pongs = c->pongs;
    nghttp2_submit_ping(c->session, 0, NULL);
    for (int64_t since = 0; c->pongs == pongs && !c->eof;)
        if (!h2_step(c, 20))
            keep_waiting(&since, "an answer to PING");
}

/* Call `path`, NULL: locate(). A server with little patience may think that the request does not
 * arrive, where a busy machine takes its time to send it. */
static inline void expect_short_call(struct h2_client *c, const char *path, const char *token)
{
    for (int64_t since = 0;;) {
        struct h2_exchange *const x = path ? call(c, path, token) : locate(c, token);
        h2_finish(c, x);
        if (h2_grpc_status(x) == 0)
            return;
        if (h2_grpc_status(x) != 14 || !strstr(h2_grpc_text(x), "did not arrive"))
            fail_msg("status %d: %s", h2_grpc_status(x), h2_grpc_text(x));
        keep_waiting(&since, "a request that arrives in time");
    }
}

static inline void expect_short_calls(const struct serving *s, const char *source,
                                      const char *token)
{
    struct h2_client *const c = h2_connect_from(s->url, source, 1 << 20);
    expect_short_call(c, CHECK, NULL);
    expect_short_call(c, LIST, token);
    expect_short_call(c, NULL, token);
    struct h2_exchange *const x = h2_request(c, "GET", "/readyz", true, NULL);
    h2_finish(c, x);
    assert_int_equal(h2_status(x), 200);
    h2_free(c);
}

#endif
