/* SPDX-License-Identifier: MIT */
/*
 * Each allocation that a server's threads make for a request fails once: the request gets an error,
 * its connection ends, or it succeeds; the next one is answered, and nothing is lost. The lake is a
 * fake whose own allocations do not fail.
 */
#include "base/crc32c.h"
#include "unit/nomem.h"

#include "grpc/reflection/v1/reflection.pb-c.h"
#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/images.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"
#include "tracelake/v1/lookups.pb-c.h"
#include "unit/asking.h"

#include <errno.h>

#define PATIENCE_S 20 /* maximum wait for an answer; no answer is a fault */

static void open_gate(bool open)
{
    __atomic_store_n(&nomem.closed, !open, __ATOMIC_RELEASE);
}

/* Send an HTTP/1.1 request, accepting any result. */
static void ask_loosely(const char *url, const char *path, const char *extra)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char request[600], buf[65536];
    struct wire w = wire_open(url);
    ssize_t n;
    assert_int_equal(setsockopt(w.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    snprintf(request, sizeof request,
             "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", path, extra);
    (void)!send(w.fd, request, strlen(request), MSG_NOSIGNAL);
    while ((n = wire_read(&w, buf, sizeof buf)) > 0)
        ;
    if (n < 0 && errno == EAGAIN)
        fail_msg("%s: no answer and no end", path);
    wire_close(&w);
}

static void http1(const char *url)
{
    ask_loosely(url, "/", "Accept-Encoding: gzip\r\n");
    ask_loosely(url, "/api/v1/traces", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/range?from=10&to=900&format=text",
                "Range: bytes=5-10\r\n");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/find?pc=16", "");
    ask_loosely(url, "/api/v1/traces/t/tiles/insn/3/5?lanes=0-15", "Accept: application/json\r\n");
}

static void http1_lookups(const char *url)
{
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/insns?from=5&count=20", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/stats?from=5&to=20", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/slices?from=5&to=20", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/locate?unit=insn&at=7", "");
    ask_loosely(url, "/metrics", "");
    ask_loosely(url, "/api/v1/traces/%zz", "");
}

static void http1_lanes(const char *url)
{
    ask_loosely(url, "/api/v1/traces/t/stats?functions=3", "");
    ask_loosely(url, "/api/v1/traces/t/at?streams=cs.10&time=7", "");
    ask_loosely(url, "/api/v1/traces/t/log?streams=cs.10", "");
    ask_loosely(url, "/api/v1/traces/t/states?streams=cs.10", "");
    ask_loosely(url, "/api/v1/traces/t/counters?streams=cs.10", "");
    ask_loosely(url, "/api/v1/traces/t/functions", "");
    ask_loosely(url, "/api/v1/traces/t/setup", "");
    ask_loosely(url, "/api/v1/traces/t/notes", "");
}

static void http1_calls(const char *url)
{
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/call?at=7", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/profile", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/compare?with=t/cs.10", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/simpoints", "");
    ask_loosely(url, "/api/v1/traces/t/streams/cs.10/source?at=7", "");
    ask_loosely(url, "/api/v1/images", "");
}

static void http2(const char *url)
{
    struct h2_client *const c = h2_connect(url);
    h2_finish(c, h2_request(c, "GET", "/", true, "accept-encoding", "gzip", (char *)NULL));
    if (!c->eof)
        h2_finish(c, h2_request(c, "GET",
                                "/api/v1/traces/t/streams/cs.10/range?from=1&to=900&format=text",
                                true, (char *)NULL));
    if (!c->eof)
        h2_finish(c, h2_request(c, "GET", "/api/v1/traces/t", true, (char *)NULL));
    h2_free(c);
}

/* One call with one message. */
static void call(struct h2_client *c, const char *path, const ProtobufCMessage *message)
{
    if (c->eof)
        return;
    struct h2_exchange *const x = h2_call(c, path);
    h2_send_message(c, x, message, true);
    h2_finish(c, x);
}

static void grpc(const char *url)
{
    Tracelake__V1__ListTracesRequest list = TRACELAKE__V1__LIST_TRACES_REQUEST__INIT;
    Tracelake__V1__FetchRequest fetch = TRACELAKE__V1__FETCH_REQUEST__INIT;
    Tracelake__V1__GetTraceRequest get = TRACELAKE__V1__GET_TRACE_REQUEST__INIT;
    struct h2_client *const c = h2_connect(url);
    call(c, "/tracelake.v1.Catalog/ListTraces", &list.base);
    get.trace = (char *)"t";
    call(c, "/tracelake.v1.Catalog/GetTrace", &get.base);
    fetch.trace = (char *)"t";
    fetch.stream = (char *)"cs.10";
    call(c, "/tracelake.v1.Ranges/Fetch", &fetch.base);
    call(c, "/tracelake.v1.Nobody/Knows", &list.base);
    h2_free(c);
}

static void grpc_lookups(const char *url)
{
    Tracelake__V1__FindRequest find = TRACELAKE__V1__FIND_REQUEST__INIT;
    Tracelake__V1__StatsRequest stats = TRACELAKE__V1__STATS_REQUEST__INIT;
    Tracelake__V1__LocateRequest locate = TRACELAKE__V1__LOCATE_REQUEST__INIT;
    Tracelake__V1__GetTilesRequest tiles = TRACELAKE__V1__GET_TILES_REQUEST__INIT;
    Tracelake__V1__PcRange pc = TRACELAKE__V1__PC_RANGE__INIT;
    struct h2_client *const c = h2_connect(url);
    find.trace = stats.trace = locate.trace = tiles.trace = (char *)"t";
    find.stream = stats.stream = locate.stream = (char *)"cs.10";
    find.what_case = TRACELAKE__V1__FIND_REQUEST__WHAT_PC;
    find.pc = &pc;
    pc.begin = 16;
    tiles.lane_to = 15;
    call(c, "/tracelake.v1.Ranges/Find", &find.base);
    call(c, "/tracelake.v1.Lookups/Stats", &stats.base);
    call(c, "/tracelake.v1.Ranges/Locate", &locate.base);
    call(c, "/tracelake.v1.Ranges/GetTiles", &tiles.base);
    h2_free(c);
}

static void grpc_others(const char *url)
{
    Tracelake__V1__ListImagesRequest list = TRACELAKE__V1__LIST_IMAGES_REQUEST__INIT;
    Tracelake__V1__PutImageRequest image = TRACELAKE__V1__PUT_IMAGE_REQUEST__INIT;
    Grpc__Reflection__V1__ServerReflectionRequest ask =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    static uint8_t bytes[3000];
    struct h2_client *const c = h2_connect(url);
    image.name = (char *)"a.elf";
    image.data = (ProtobufCBinaryData){sizeof bytes, bytes};
    call(c, "/tracelake.v1.Images/PutImage", &image.base);
    call(c, "/tracelake.v1.Images/ListImages", &list.base);
    ask.message_request_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL;
    ask.file_containing_symbol = (char *)"tracelake.v1.Trace";
    call(c, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &ask.base);
    ask.message_request_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES;
    ask.list_services = (char *)"";
    call(c, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &ask.base);
    h2_free(c);
}

static void grpc_of_code(const char *url)
{
    Tracelake__V1__CodeRequest code = TRACELAKE__V1__CODE_REQUEST__INIT;
    Tracelake__V1__ListNotesRequest notes = TRACELAKE__V1__LIST_NOTES_REQUEST__INIT;
    Tracelake__V1__InsnsRequest insns = TRACELAKE__V1__INSNS_REQUEST__INIT;
    Tracelake__V1__SetLabelsRequest labels = TRACELAKE__V1__SET_LABELS_REQUEST__INIT;
    Tracelake__V1__SetLabelsRequest__LabelsEntry entry =
        TRACELAKE__V1__SET_LABELS_REQUEST__LABELS_ENTRY__INIT;
    Tracelake__V1__SetLabelsRequest__LabelsEntry *const entries = &entry;
    struct h2_client *const c = h2_connect(url);
    code.trace = notes.trace = insns.trace = labels.trace = (char *)"t";
    code.stream = insns.stream = (char *)"cs.10";
    entry.key = (char *)"board";
    entry.value = (char *)"juno";
    labels.labels = (Tracelake__V1__SetLabelsRequest__LabelsEntry **)&entries;
    labels.n_labels = 1;
    call(c, "/tracelake.v1.Catalog/SetLabels", &labels.base);
    call(c, "/tracelake.v1.Ranges/Code", &code.base);
    call(c, "/tracelake.v1.Ranges/Coverage", &code.base);
    call(c, "/tracelake.v1.Catalog/ListNotes", &notes.base);
    call(c, "/tracelake.v1.Lookups/Insns", &insns.base);
    h2_free(c);
}

static void push(const char *url)
{
    Tracelake__V1__Open open = TRACELAKE__V1__OPEN__INIT;
    Tracelake__V1__Chunk chunk = TRACELAKE__V1__CHUNK__INIT;
    Tracelake__V1__Finish finish = TRACELAKE__V1__FINISH__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    struct h2_client *const c = h2_connect(url);
    struct h2_exchange *const x = h2_call(c, "/tracelake.v1.Ingest/Push");
    static uint8_t bytes[5000];
    open.rig = (char *)"rig-1";
    open.trace = (char *)"pushed";
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN;
    request.open = &open;
    h2_send_message(c, x, &request.base, false);
    chunk.data = (ProtobufCBinaryData){sizeof bytes, bytes};
    chunk.crc32c = tl_crc32c(0, bytes, sizeof bytes);
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_CHUNK;
    request.chunk = &chunk;
    h2_send_message(c, x, &request.base, false);
    finish.length = sizeof bytes;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_FINISH;
    request.finish = &finish;
    h2_send_message(c, x, &request.base, true);
    h2_finish(c, x);
    h2_free(c);
}

/* A server from start to shutdown. */
static int serve_some(void *context, struct tl_buf *out)
{
    void (*const *ask_some)(const char *) = context;
    struct fixture f = {0};
    const struct tl_net_options options = {.drain_ms = 100};
    open_gate(false);
    serve(&f.s, &options);
    add_trace(f.s.lake, "t", 1000);
    open_gate(true);
    (*ask_some)(f.s.url);
    open_gate(false);
    struct answer a = {0};
    ask_h1(f.s.url, "GET", "/", NULL, (struct tl_bytes){0}, &a);
    assert_int_equal(a.status, 200);
    answer_fini(&a);
    stop_serving(&f.s);
    return TL_OK;
}

static void some(void (*ask_some)(const char *url))
{
    nomem.others = true;
    assert_true(nomem_run(serve_some, &ask_some) > 5);
}

/* Bodies passed on by libmicrohttpd. */
static void requests_of_http1(void **state)
{
    nomem.given = true;
    some(http1);
}

static void lookups_of_http1(void **state)
{
    some(http1_lookups);
}

static void requests_of_http2(void **state)
{
    nomem.given = false;
    some(http2);
}

static void calls(void **state)
{
    some(grpc);
}

static void lookups_by_calls(void **state)
{
    some(grpc_lookups);
}

static void other_calls(void **state)
{
    some(grpc_others);
}

static void lanes_of_http1(void **state)
{
    some(http1_lanes);
}

static void calls_of_http1(void **state)
{
    some(http1_calls);
}

static void calls_about_code(void **state)
{
    some(grpc_of_code);
}

static void pushes(void **state)
{
    some(push);
}

/* The services are available, or the server does not start. */
static int begin_services(void *context, struct tl_buf *out)
{
    struct tl_rpc *rpc = NULL;
    struct tl_fail fail = {0};
    const int rc = tl_rpc_new(&rpc, context, NULL, 0, &fail);
    if (rc == TL_OK)
        tl_rpc_free(rpc);
    return rc;
}

static void services(void **state)
{
    struct tl_lake *lake;
    const struct tl_lake_options options = {0};
    struct tl_fail fail;
    assert_int_equal(tl_lake_open(&lake, &options, &fail), TL_OK);
    nomem.others = false;
    open_gate(true);
    assert_true(nomem_run(begin_services, lake) > 5);
    tl_lake_close(lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_http1),
        cmocka_unit_test(lookups_of_http1),
        cmocka_unit_test(lanes_of_http1),
        cmocka_unit_test(calls_of_http1),
        cmocka_unit_test(requests_of_http2),
        cmocka_unit_test(calls),
        cmocka_unit_test(pushes),
        cmocka_unit_test(lookups_by_calls),
        cmocka_unit_test(other_calls),
        cmocka_unit_test(calls_about_code),
        cmocka_unit_test(services),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
