/* SPDX-License-Identifier: MIT */
/*
 * Permissions: every method and route, with every kind of token, on an own and on a foreign trace,
 * over gRPC, HTTP/2 and HTTP/1.1. A new method or route fails here until it has a line that
 * classifies it.
 */
#include "lake_ingest.h"
#include "lake_traces.h"
#include "rpc/rpcint.h"
#include "unit/serving.h"

#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PUBLIC = TL_ROLE_PUBLIC,
    READ = TL_ROLE_READ,
    PUSH = TL_ROLE_PUSH,
    ADMIN = TL_ROLE_ADMIN,
    HEALTH = TL_ROLE_HEALTH
};
enum { TRACE = TL_REACH_TRACE, OWN = TL_REACH_OWN, NONE = TL_REACH_NONE, ALL = TL_REACH_ALL };

struct rule {
    const char *path;
    unsigned role, reach;
    enum tl_verb verb;
};

static const struct rule methods[] = {
    {"/tracelake.v1.Ingest/Push", PUSH, OWN},
    {"/tracelake.v1.Ingest/GetOffset", READ, TRACE},
    {"/tracelake.v1.Catalog/ListTraces", READ, OWN},
    {"/tracelake.v1.Catalog/GetTrace", READ, TRACE},
    {"/tracelake.v1.Catalog/WatchTraces", READ, OWN},
    {"/tracelake.v1.Catalog/DeleteTrace", ADMIN, TRACE},
    {"/tracelake.v1.Catalog/SetLabels", PUSH, TRACE},
    {"/tracelake.v1.Catalog/Redecode", PUSH, TRACE},
    {"/tracelake.v1.Catalog/Seal", PUSH, TRACE},
    {"/tracelake.v1.Catalog/Verify", READ, TRACE},
    {"/tracelake.v1.Catalog/ListNotes", READ, TRACE},
    {"/tracelake.v1.Catalog/PutNote", PUSH, TRACE},
    {"/tracelake.v1.Catalog/DeleteNote", PUSH, TRACE},
    {"/tracelake.v1.Catalog/ListRetention", READ, ALL},
    {"/tracelake.v1.Catalog/PlanRetention", READ, ALL},
    {"/tracelake.v1.Catalog/SetRetention", ADMIN, ALL},
    {"/tracelake.v1.Images/PutImage", PUSH, NONE},
    {"/tracelake.v1.Images/ListImages", READ, ALL},
    {"/tracelake.v1.Images/GetImage", READ, ALL},
    {"/tracelake.v1.Images/BindImage", PUSH, TRACE},
    {"/tracelake.v1.Images/RemoveImage", ADMIN, ALL},
    {"/tracelake.v1.Ranges/Fetch", READ, TRACE},
    {"/tracelake.v1.Ranges/Follow", READ, TRACE},
    {"/tracelake.v1.Ranges/Locate", READ, TRACE},
    {"/tracelake.v1.Ranges/Find", READ, TRACE},
    {"/tracelake.v1.Lookups/Stats", READ, TRACE},
    {"/tracelake.v1.Lookups/Insns", READ, TRACE},
    {"/tracelake.v1.Lookups/Slices", READ, TRACE},
    {"/tracelake.v1.Lookups/Source", READ, TRACE},
    {"/tracelake.v1.Lookups/Log", READ, TRACE},
    {"/tracelake.v1.Lookups/States", READ, TRACE},
    {"/tracelake.v1.Lookups/Counters", READ, TRACE},
    {"/tracelake.v1.Lookups/Hits", READ, TRACE},
    {"/tracelake.v1.Lookups/Call", READ, TRACE},
    {"/tracelake.v1.Ranges/Functions", READ, TRACE},
    {"/tracelake.v1.Ranges/Calls", READ, TRACE},
    {"/tracelake.v1.Ranges/Exceptions", READ, TRACE},
    {"/tracelake.v1.Ranges/Gaps", READ, TRACE},
    {"/tracelake.v1.Ranges/Extremes", READ, TRACE},
    {"/tracelake.v1.Ranges/Sql", READ, TRACE},
    {"/tracelake.v1.Ranges/InsnColumns", READ, TRACE},
    {"/tracelake.v1.Lookups/Compare", READ, TRACE},
    {"/tracelake.v1.Lookups/Profile", READ, TRACE},
    {"/tracelake.v1.Lookups/SimPoints", READ, TRACE},
    {"/tracelake.v1.Ranges/Code", READ, TRACE},
    {"/tracelake.v1.Ranges/Coverage", READ, TRACE},
    {"/tracelake.v1.Ranges/GetTiles", READ, TRACE},
    /* Which have gone to Lookups. */
    {"/tracelake.v1.Ranges/Stats", READ, NONE},
    {"/tracelake.v1.Ranges/Insns", READ, NONE},
    {"/tracelake.v1.Ranges/Slices", READ, NONE},
    {"/tracelake.v1.Ranges/Source", READ, NONE},
    {"/tracelake.v1.Ranges/Log", READ, NONE},
    {"/tracelake.v1.Ranges/States", READ, NONE},
    {"/tracelake.v1.Ranges/Counters", READ, NONE},
    {"/tracelake.v1.Ranges/Call", READ, NONE},
    {"/tracelake.v1.Ranges/Profile", READ, NONE},
    {"/tracelake.v1.Ranges/Compare", READ, NONE},
    {"/tracelake.v1.Ranges/SimPoints", READ, NONE},
    {"/tracelake.v1.Raw/FetchRaw", READ, TRACE},
    {"/tracelake.v1.Raw/GetSetup", READ, TRACE},
    {"/grpc.health.v1.Health/Check", HEALTH, NONE},
    {"/grpc.health.v1.Health/Watch", HEALTH, NONE},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", PUBLIC, NONE},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", PUBLIC, NONE},
};

#define T "/api/v1/traces/{trace}"
#define S T "/streams/{stream}"
static const struct rule routes[] = {
    {"/api/v1/traces", READ, OWN},
    {T, READ, TRACE},
    {T "/functions", READ, TRACE},
    {T "/tiles/{axis}/{level}/{index}", READ, TRACE},
    {T "/find", READ, TRACE},
    {T "/profile", READ, TRACE},
    {T "/slices", READ, TRACE},
    {T "/at", READ, TRACE},
    {T "/log", READ, TRACE},
    {T "/states", READ, TRACE},
    {T "/sql", READ, TRACE},
    {T "/sql", READ, TRACE, TL_POST},
    {T "/counters", READ, TRACE},
    {T "/hits", READ, TRACE},
    {T "/extremes", READ, TRACE},
    {T "/stats", READ, TRACE},
    {S "/range", READ, TRACE},
    {S "/locate", READ, TRACE},
    {S "/find", READ, TRACE},
    {S "/hits", READ, TRACE},
    {S "/call", READ, TRACE},
    {S "/functions", READ, TRACE},
    {S "/calls", READ, TRACE},
    {S "/interrupts", READ, TRACE},
    {S "/gaps", READ, TRACE},
    {S "/compare", READ, TRACE},
    {S "/profile", READ, TRACE},
    {S "/stats", READ, TRACE},
    {S "/slices", READ, TRACE},
    {S "/insns", READ, TRACE},
    {S "/source", READ, TRACE},
    {S "/simpoints", READ, TRACE},
    {"/api/v1/events", READ, OWN},
    {"/metrics", READ, ALL},
    {"/healthz", HEALTH, NONE},
    {"/readyz", HEALTH, NONE},
    {"/api/v1/login", READ, NONE, TL_POST},
    {"/api/v1/logout", PUBLIC, NONE, TL_POST},
    {"/login", PUBLIC, NONE},
    {"/login.js", PUBLIC, NONE},
    {"/login.css", PUBLIC, NONE},
    {"/licenses.txt", PUBLIC, NONE},
    {"/{*}", READ, NONE},
    {T "/setup", READ, TRACE},
    {T "/notes", READ, TRACE},
    {T "/notes", PUSH, TRACE, TL_POST},
    {T "/notes/{note}", PUSH, TRACE, TL_DELETE},
    {T, PUSH, OWN, TL_PUT},
    {T, ADMIN, TRACE, TL_DELETE},
    {T "/raw", PUSH, OWN, TL_POST},
    {T "/labels", PUSH, TRACE, TL_POST},
    {T "/images", READ, TRACE},
    {T "/images", PUSH, TRACE, TL_POST},
    {"/api/v1/images", READ, ALL},
    {"/api/v1/images", PUSH, NONE, TL_PUT},
    {"/api/v1/images/{image}", ADMIN, ALL, TL_DELETE},
};
static const char *const verbs[] = {"GET", "PUT", "POST", "DELETE"};

static const struct token {
    const char *bearer;
    unsigned roles;
    bool scoped;
} tokens[] = {
    {NULL, 0, false},
    {"Bearer read-all-0123456789", READ, false},
    {"Bearer push-all-0123456789", READ | PUSH, false},
    {"Bearer admin-all-012345678", READ | PUSH | ADMIN, false},
    {"Bearer read-own-0123456789", READ, true},
    {"Bearer push-own-0123456789", READ | PUSH, true},
    {"Bearer admin-own-012345678", READ | PUSH | ADMIN, true},
};
#define N_TOKENS (sizeof tokens / sizeof *tokens)

static const char file[] = "read-all-0123456789 read\npush-all-0123456789 push\n"
                           "admin-all-012345678 admin\nread-own-0123456789 read rig=lab-*\n"
                           "push-own-0123456789 push rig=lab-*\n"
                           "admin-own-012345678 admin rig=lab-*\n";

static struct serving server;
static char tokens_path[] = "/tmp/tl-scopes-XXXXXX";

static void on_durable(void *context, uint64_t offset)
{
    (void)context;
    (void)offset;
}

/* Recreate what a request may have removed. */
static void see_to_trace(const char *name, const char *rig)
{
    const struct tl_ingest_request request = {.rig = rig, .trace = name, .setup = "[trace]\n"};
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char trace[64];
    uint64_t durable;
    struct tl_trace_list list = {0};
    const bool there = tl_lake_trace(server.lake, name, &list) == TL_OK;
    tl_trace_list_free(&list);
    if (there)
        return;
    if (tl_ingest_open(server.lake, &request, on_durable, NULL, &ingest, trace, &durable, &fail) <
        0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_ingest_finish(ingest, &durable, &fail), TL_OK);
    tl_ingest_close(ingest);
}

static int open_server(void **state)
{
    const int fd = mkstemp(tokens_path);
    assert_int_equal(write(fd, file, sizeof file - 1), sizeof file - 1);
    close(fd);
    const struct tl_net_options options = {.tokens = tokens_path};
    serve(&server, &options);
    see_to_trace("own", "lab-1");
    see_to_trace("foreign", "other");
    return 0;
}

static int close_server(void **state)
{
    stop_serving(&server);
    unlink(tokens_path);
    return 0;
}

static const struct rule *rule_of(const struct rule *rules, size_t n, const char *path,
                                  enum tl_verb verb)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(rules[i].path, path) && rules[i].verb == verb)
            return &rules[i];
    fail_msg("%s is not in this test: say there who may call it", path);
    return NULL;
}

/* ---- gRPC --------------------------------------------------------------------------------- */

/* A request with its field `trace` set, and nothing else. */
static void make_request(const ProtobufCMessageDescriptor *type, const char *trace,
                         struct tl_buf *out)
{
    const ProtobufCFieldDescriptor *const field =
        protobuf_c_message_descriptor_get_field_by_name(type, "trace");
    const size_t n = field ? strlen(trace) + 2 : 0;
    const uint8_t head[5] = {0, 0, 0, 0, (uint8_t)n};
    assert_int_equal(tl_buf_add(out, head, 5), TL_OK);
    if (!field)
        return;
    assert_true(field->id < 16);
    const uint8_t key[2] = {(uint8_t)(field->id << 3 | 2), (uint8_t)strlen(trace)};
    assert_int_equal(tl_buf_add(out, key, 2), TL_OK);
    assert_int_equal(tl_buf_add(out, trace, strlen(trace)), TL_OK);
}

/* The status within a time, after which calls that last end. */
static int call(const struct tl_method *method, const struct token *token, const char *trace,
                const char *time)
{
    struct h2_client *const c = h2_connect(server.url);
    struct tl_buf request = {0};
    make_request(method->request, trace, &request);
    struct h2_exchange *const x = h2_request(
        c, "POST", method->path, false, "content-type", "application/grpc", "te", "trailers",
        "grpc-timeout", time, token->bearer ? "authorization" : NULL, token->bearer, NULL);
    h2_send(c, x, request.p, request.n, true);
    h2_finish(c, x);
    const int status = h2_grpc_status(x);
    tl_buf_fini(&request);
    h2_free(c);
    return status;
}

/* The status because of scope or role; -1: the call is permitted. */
static int refusal(const struct rule *rule, const struct token *token, bool foreign)
{
    if (tl_role_needs(rule->role) && !token->bearer)
        return 16;
    if ((token->roles & tl_role_needs(rule->role)) != tl_role_needs(rule->role))
        return 7;
    if (!token->scoped || rule->reach == NONE)
        return -1;
    if (rule->reach == ALL)
        return 7;
    if (!foreign)
        return -1;
    /* A list names no trace, and a push has no request: see below. */
    if (rule->reach == OWN)
        return strstr(rule->path, "WatchTraces") ? 5 : -1;
    return rule->role == READ ? 5 : 7;
}

static void check_method(const struct tl_method *method)
{
    const struct rule *const rule =
        rule_of(methods, sizeof methods / sizeof *methods, method->path, TL_GET);
    assert_int_equal(method->role, rule->role);
    assert_int_equal(method->reach, rule->reach);
    if (rule->reach == TRACE)
        assert_non_null(protobuf_c_message_descriptor_get_field_by_name(method->request, "trace"));
    for (size_t t = 0; t < N_TOKENS; t++)
        for (int foreign = 0; foreign < 2; foreign++) {
            see_to_trace("own", "lab-1");
            see_to_trace("foreign", "other");
            const char *const trace = foreign ? "foreign" : "own";
            const int wanted = refusal(rule, &tokens[t], foreign);
            int status = call(method, &tokens[t], trace, "300m");
            if (wanted >= 0 && status == 4) /* a busy machine may take longer to refuse it */
                status = call(method, &tokens[t], trace, "240S");
            if (wanted >= 0 ? status != wanted : status == 7 || status == 16)
                fail_msg("%s, %s, a trace of %s: status %d, not %d", method->path,
                         tokens[t].bearer ? tokens[t].bearer : "no token",
                         foreign ? "another" : "its own", status, wanted);
        }
}

static void test_methods(void **state)
{
    const struct tl_app *const app = tl_rpc_app(server.rpc);
    assert_int_equal(app->n_methods, sizeof methods / sizeof *methods);
    for (size_t i = 0; i < app->n_methods; i++)
        check_method(&app->methods[i]);
}

static int push_as(const struct token *token, const char *rig, const char *trace)
{
    Tracelake__V1__Open open = TRACELAKE__V1__OPEN__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    struct h2_client *const c = h2_connect(server.url);
    open.rig = (char *)(uintptr_t)rig;
    open.trace = (char *)(uintptr_t)trace;
    open.setup = (char *)"";
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN;
    request.open = &open;
    struct h2_exchange *const x =
        h2_request(c, "POST", "/tracelake.v1.Ingest/Push", false, "content-type",
                   "application/grpc", "te", "trailers", "authorization", token->bearer, NULL);
    h2_send_message(c, x, &request.base, true);
    h2_finish(c, x);
    const int status = h2_grpc_status(x);
    h2_free(c);
    return status;
}

static void test_pushes(void **state)
{
    const struct token *const all = &tokens[2], *const own = &tokens[5];
    assert_int_equal(push_as(all, "other", "by-all"), 0);
    assert_int_equal(push_as(own, "lab-2", "by-own"), 0);
    assert_int_equal(push_as(own, "other", "new"), 7);
    assert_int_equal(push_as(own, "lab-2", "foreign"), 7);
    assert_int_equal(push_as(own, "lab-2", "by-all"), 7);
}

static void test_lists(void **state)
{
    for (size_t t = 1; t < N_TOKENS; t++) {
        struct h2_client *const c = h2_connect(server.url);
        struct h2_exchange *const x = h2_request(
            c, "POST", "/tracelake.v1.Catalog/ListTraces", false, "content-type",
            "application/grpc", "te", "trailers", "authorization", tokens[t].bearer, NULL);
        const Tracelake__V1__ListTracesRequest request = TRACELAKE__V1__LIST_TRACES_REQUEST__INIT;
        h2_send_message(c, x, &request.base, true);
        Tracelake__V1__ListTracesReply *const reply = (Tracelake__V1__ListTracesReply *)h2_message(
            c, x, &tracelake__v1__list_traces_reply__descriptor);
        assert_non_null(reply);
        bool own = false, foreign = false;
        for (size_t i = 0; i < reply->n_traces; i++) {
            own |= !strcmp(reply->traces[i]->id, "own");
            foreign |= !strcmp(reply->traces[i]->id, "foreign");
        }
        assert_true(own);
        assert_int_equal(foreign, !tokens[t].scoped);
        protobuf_c_message_free_unpacked(&reply->base, NULL);
        h2_free(c);
    }
}

/* ---- HTTP --------------------------------------------------------------------------------- */

struct answer {
    int status;
    char body[8192];
};

static void ask_h2(const char *verb, const char *path, const struct token *token,
                   struct answer *out)
{
    struct h2_client *const c = h2_connect(server.url);
    struct h2_exchange *const x = h2_request(
        c, verb, path, true, token->bearer ? "authorization" : NULL, token->bearer, NULL);
    while (!x->closed && !(x->body.n && !strcmp(path, "/api/v1/events")))
        assert_true(h2_step(c, 240000));
    out->status = h2_status(x);
    snprintf(out->body, sizeof out->body, "%.*s", (int)x->body.n,
             x->body.n ? (char *)x->body.p : "");
    h2_free(c);
}

static void ask_h1(const char *verb, const char *path, const struct token *token,
                   struct answer *out)
{
    char text[8192];
    const int fd = tcp_connect(server.url);
    const int n = snprintf(text, sizeof text,
                           "%s %s HTTP/1.1\r\nHost: localhost\r\n%s%s%s"
                           "Connection: close\r\n\r\n",
                           verb, path, token->bearer ? "Authorization: " : "",
                           token->bearer ? token->bearer : "", token->bearer ? "\r\n" : "");
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    size_t have = 0;
    /* The stream of events does not end. */
    while (have < sizeof text - 1 && !(!strcmp(path, "/api/v1/events") && have > 400)) {
        const ssize_t got = recv(fd, text + have, sizeof text - 1 - have, 0);
        if (got <= 0)
            break;
        have += (size_t)got;
        text[have] = '\0';
        if (!strcmp(path, "/api/v1/events") && strstr(text, "event: traces"))
            break;
    }
    text[have] = '\0';
    close(fd);
    out->status = have > 12 ? atoi(text + 9) : 0;
    const char *const body = strstr(text, "\r\n\r\n");
    snprintf(out->body, sizeof out->body, "%s", body ? body + 4 : "");
}

/* "/a/{trace}/{x}" with the trace's name, and 0 for the others. */
static void make_path(const char *pattern, const char *trace, char *out, size_t size)
{
    size_t n = 0;
    for (const char *p = pattern; *p && n + 64 < size;) {
        if (*p != '{') {
            out[n++] = *p++;
            continue;
        }
        const char *const with = !strncmp(p, "{trace}", 7)    ? trace
                                 : !strncmp(p, "{stream}", 8) ? "cs.10"
                                 : !strncmp(p, "{axis}", 6)   ? "insn"
                                 : !strncmp(p, "{*}", 3)      ? "app.js"
                                                              : "0";
        n += (size_t)snprintf(out + n, size - n, "%s", with);
        p += strcspn(p, "}") + 1;
    }
    out[n] = '\0';
}

static void check_route(const struct tl_route *route)
{
    const char *const verb = verbs[route->verb];
    const struct rule *const rule =
        rule_of(routes, sizeof routes / sizeof *routes, route->pattern, route->verb);
    assert_int_equal(route->role, rule->role);
    assert_int_equal(route->reach, rule->reach);
    for (size_t t = 0; t < N_TOKENS; t++)
        for (int way = 0; way < 4; way++) {
            const bool foreign = way & 1;
            const struct token *const token = &tokens[t];
            char path[256];
            struct answer a = {0};
            make_path(route->pattern, foreign ? "foreign" : "own", path, sizeof path);
            see_to_trace("own", "lab-1");
            see_to_trace("foreign", "other");
            if (way & 2)
                ask_h1(verb, path, token, &a);
            else
                ask_h2(verb, path, token, &a);
            const bool hidden = strstr(a.body, "there is no such trace") != NULL;
            if (tl_role_needs(rule->role) && !token->bearer)
                assert_int_equal(a.status, 401);
            else if ((token->roles & tl_role_needs(rule->role)) != tl_role_needs(rule->role))
                assert_int_equal(a.status, 403);
            else if (rule->reach == OWN && rule->verb != TL_GET) /* begun as rig "browser" */
                assert_int_equal(a.status == 403,
                                 token->scoped && (foreign || rule->verb == TL_PUT));
            else if (token->scoped && rule->reach == ALL)
                assert_int_equal(a.status, 403);
            else if (token->scoped && rule->reach == TRACE && foreign)
                assert_true(a.status == 404 && hidden);
            else if (a.status == 401 || a.status == 403 || hidden)
                fail_msg("%s, %s: status %d", path, token->bearer ? token->bearer : "-", a.status);
            if (rule->reach == OWN && rule->verb == TL_GET && token->bearer) {
                assert_non_null(strstr(a.body, "\"own\""));
                assert_int_equal(strstr(a.body, "\"foreign\"") != NULL, !token->scoped);
            }
        }
}

static void test_routes(void **state)
{
    assert_int_equal(tl_http_routes_n, sizeof routes / sizeof *routes);
    for (size_t i = 0; i < tl_http_routes_n; i++)
        check_route(&tl_http_routes[i]);
}

/* A comparison refers to two traces: both must be permitted. */
static void test_compared(void **state)
{
    static const char path[] = "/api/v1/traces/own/streams/cs.10/compare?with=foreign/cs.10";
    for (size_t t = 0; t < N_TOKENS; t++) {
        struct answer a = {0};
        if (!tokens[t].bearer)
            continue;
        ask_h2("GET", path, &tokens[t], &a);
        const bool hidden = strstr(a.body, "there is no such trace") != NULL;
        assert_int_equal(hidden, tokens[t].scoped);
        assert_true(!tokens[t].scoped || a.status == 404);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes), cmocka_unit_test(test_methods),
        cmocka_unit_test(test_lists),  cmocka_unit_test(test_compared),
        cmocka_unit_test(test_pushes),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
