/* SPDX-License-Identifier: MIT */
/* JSON answers of the HTTP interface. */
#include "unit/asking.h"
#include "json/messagejson.h"

#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/images.pb-c.h"
#include "tracelake/v1/lookups.pb-c.h"

#include <cjson/cJSON.h>

static void test_traces(void **state)
{
    struct fixture *const f = *state;
    for (int way = 0; way < WAYS; way++) {
        struct answer a = ask(f, way, "/api/v1/traces", NULL);
        assert_int_equal(a.status, 200);
        cJSON *const list = cJSON_Parse((char *)a.body.p);
        assert_int_equal(cJSON_GetArraySize(list), 1);
        const cJSON *const t = cJSON_GetArrayItem(list, 0);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(t, "id")), "t");
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(t, "state")), "live");
        /* Above 2^53: exact, as text. */
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(t, "created_ns")),
                            "1700000000000000001");
        const cJSON *const stream = cJSON_GetArrayItem(cJSON_GetObjectItem(t, "streams"), 0);
        assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(stream, "insns")), 10000);
        cJSON_Delete(list);
        answer_fini(&a);
        a = ask(f, way, "/api/v1/traces/t", NULL);
        cJSON *const one = cJSON_Parse((char *)a.body.p);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(one, "id")), "t");
        cJSON_Delete(one);
        answer_fini(&a);
    }
}

static void test_find(void **state)
{
    struct fixture *const f = *state;
    for (int way = 0; way < WAYS; way++) {
        struct answer a =
            ask(f, way,
                way % 2 ? "/api/v1/traces/t/streams/cs.10/find?pc=0xffff800012345678&limit=2"
                        : "/api/v1/traces/t/streams/cs.10/find?pc=ffff800012345678&limit=2",
                NULL);
        assert_int_equal(a.status, 200);
        cJSON *const o = cJSON_Parse((char *)a.body.p);
        const cJSON *const hits = cJSON_GetObjectItem(o, "hits");
        assert_int_equal(cJSON_GetArraySize(hits), 2);
        assert_string_equal(
            cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(hits, 0), "pc")),
            "0xffff800012345678");
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(o, "more")));
        assert_null(cJSON_GetObjectItem(o, "total"));
        cJSON_Delete(o);
        answer_fini(&a);
    }
}

/* Search all streams, from a position in one of them. */
static void test_find_near(void **state)
{
    struct fixture *const f = *state;
    for (int way = 0; way < WAYS; way++) {
        struct answer a =
            ask(f, way, "/api/v1/traces/t/find?q=a%20b&near=cs.10&at=77&backward=1&count=1", NULL);
        assert_int_equal(a.status, 200);
        cJSON *const o = cJSON_Parse((char *)a.body.p);
        const cJSON *const hit = cJSON_GetArrayItem(cJSON_GetObjectItem(o, "hits"), 0);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(hit, "text")), "a b");
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(hit, "stream")), "cs.10");
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "before")) == 77);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "total")),
                            "18446744073709551615");
        cJSON_Delete(o);
        answer_fini(&a);
    }
}

static void expect_in(const struct answer *a, const char *text)
{
    if (!strstr((const char *)a->body.p, text))
        fail_msg("%s is not in %s", text, (const char *)a->body.p);
}

static void test_slices(void **state)
{
    static const char path[] = "/api/v1/traces/t/streams/cs.10/slices?axis=time&from=3&to=70";
    struct fixture *const f = *state;
    struct answer a = ask(f, WAY_H1, path, NULL);
    assert_int_equal(a.status, 200);
    expect_in(&a, "{\"truncated\":true,\"resolution\":0,\"slices\":[{\"depth\":0,\"from\":3,"
                  "\"to\":70,\"name\":\"exception 5 größe\"}]}");
    answer_fini(&a);
    a = ask(f, WAY_H2, "/api/v1/traces/t/slices?streams=cs.10&from=3&columns=500", NULL);
    assert_int_equal(a.status, 200);
    expect_in(&a, "{\"streams\":{\"cs.10\":{\"truncated\":false,\"resolution\":500,");
    expect_in(&a, "\"name\":\"interrupt größe\"");
    answer_fini(&a);
}

/* Texts are UTF-8, whatever the trace's files contain, and no number loses digits. */
static void test_texts_and_numbers(void **state)
{
    static const struct {
        const char *path, *json;
    } answers[] = {
        {"functions", "[\n{\"id\":0,\"name\":\"größe\",\"pc\":\"0x10\"},\n{\"id\":1,\"name\":"
                      "\"gr??\",\"pc\":\"0xffffffffffffffff\"}]\n"},
        {"streams/cs.10/stats?from=9007199254740991",
         "{\"from\":9007199254740991,\"to\":\"18446744073709551615\",\"insns\":1,"
         "\"taken\":\"18446744073709551615\",\"functions\":[{\"name\":\"größe\",\"pc\":"
         "\"0xffffffffffffffff\",\"insns\":9007199254740991,\"calls\":\"9007199254740992\"},"
         "{\"name\":\"gr??\",\"pc\":\"0x0\",\"insns\":1,\"calls\":0}],"
         "\"functions_run\":312,\"mix\":{\"plain\":9007199254740991},\"modes\":{},\"items\":{},"
         "\"gaps\":{},\"lost\":{}}\n"},
        {"streams/cs.10/insns?from=9007199254740991&count=2",
         "[\n{\"insn\":9007199254740991,\"pc\":\"0x7ffffffffffffc\",\"function\":\"größe\","
         "\"text\":\"nop\\t; gr??\",\"events\":[\"O\",\"A switch 1 1 größe\"]},\n"
         "{\"insn\":\"9007199254740992\",\"pc\":\"0x80000000000000\",\"function\":\"größe\","
         "\"encoding\":\"d503201f\",\"text\":\"nop\\t; gr??\",\"time\":\"90071992547409920\","
         "\"file\":\"größe\",\"line\":1,\"inlined\":[{\"function\":\"gr??\",\"file\":\"f.h\","
         "\"line\":7},"
         "{\"function\":\"größe\"}]}]\n"},
        {"streams/cs.10/stats?unit=time&from=50&to=70&functions=1",
         "{\"from\":5,\"to\":7,\"insns\":1,"
         "\"taken\":\"18446744073709551615\",\"functions\":[{\"name\":\"größe\",\"pc\":"
         "\"0xffffffffffffffff\",\"insns\":5,\"calls\":6}],"
         "\"functions_run\":312,\"mix\":{\"plain\":5},\"modes\":{},\"items\":{},"
         "\"gaps\":{},\"lost\":{}}\n"},
        {"streams/cs.10/insns?axis=byte&from=28&to=32",
         "[\n{\"insn\":7,\"pc\":\"0x1c\",\"function\":\"größe\",\"text\":\"nop\\t; gr??\","
         "\"events\":[\"O\",\"A switch 1 1 größe\"]}]\n"},
        {"streams/cs.10/source?at=0&frame=2", "{\"file\":\"größe\",\"line\":2,\"why\":\"gr??\"}\n"},
        {"streams/cs.10/source?at=1",
         "{\"file\":\"größe\",\"line\":0,\"text\":\"gr??\",\"why\":\"gr??\"}\n"},
        {"at?streams=cs.10&time=70",
         "{\"streams\":{\"cs.10\":{\"insn\":7,\"time\":70,\"byte\":28,\"has_time\":true,"
         "\"row\":{\"insn\":7,\"pc\":\"0x1c\",\"function\":\"größe\",\"text\":\"nop\\t; gr??\","
         "\"events\":[\"O\",\"A switch 1 1 größe\"]}}}}\n"},
        {"log?streams=cs.10&axis=time&from=3&limit=9&last=1",
         "{\"streams\":{\"cs.10\":{\"more\":true,\"entries\":[{\"at\":3,\"last\":"
         "\"18446744073709551615\",\"source\":\"uart\",\"records\":9,\"text\":\"gr??\"},{\"at\":0,"
         "\"last\":0,\"time\":\"18446744073709551615\",\"source\":\"stm\",\"channel\":\"1.2\","
         "\"records\":0,\"size\":2,\"value\":\"0x12\"}]}}}\n"},
        {"states?streams=cs.10&axis=time&from=1&to=5&columns=4",
         "{\"streams\":{\"cs.10\":{\"sampled\":true,\"runs\":[{\"from\":1,\"to\":5,\"mode\":\"gr??"
         "\","
         "\"context\":\"0xffffffffffffffff\",\"mixed\":true}]}}}\n"},
        {"notes",
         "[\n{\"id\":3,\"stream\":\"cs.10\",\"at\":0,\"to\":\"18446744073709551615\",\"text\":"
         "\"größe\",\"has_time\":false,\"created_ns\":0,\"updated_ns\":0}]\n"},
        {"counters?streams=cs.10&from=1&to=5&columns=4",
         "{\"streams\":{\"cs.10\":{\"sampled\":false,\"from\":1,\"to\":5,\"insns\":[4,0],"
         "\"cycles\":["
         "\"18446744073709551615\",0],\"cycle_insns\":[0,7]}}}\n"},
        {"streams/cs.10/functions?unit=time&from=5ns&to=7ns&limit=9",
         "{\"about\":{\"from\":5,\"to\":7,\"has_time\":true,\"time_unit_ns\":true,\"time_from\":1,"
         "\"time_to\":\"18446744073709551615\",\"time\":10,\"ran\":4,\"lost\":3,\"off\":2,"
         "\"switched_out\":1,\"time_step\":6},"
         "\"functions\":[{\"name\":\"gr??\",\"pc\":\"0xffffffffffffffff\",\"calls\":1,\"ended\":0,"
         "\"self\":5,\"total\":6,\"self_time\":{\"value\":2,\"least\":1,\"most\":0,"
         "\"unbounded\":true},\"total_time\":3},"
         "{\"name\":\"größe\",\"pc\":\"0x0\",\"calls\":0,\"ended\":1,\"self\":0,\"total\":0,"
         "\"self_time\":{\"value\":2,\"least\":1,\"most\":3,\"unbounded\":false},\"total_time\":0,"
         "\"insns\":{\"total\":9,\"min\":1,\"max\":5,\"p50\":2,\"p90\":3,\"p99\":4,"
         "\"p999\":\"18446744073709551615\",\"longest\":7},"
         "\"time\":{\"total\":9,\"min\":1,\"max\":5,\"p50\":2,\"p90\":3,\"p99\":4,"
         "\"p999\":\"18446744073709551615\",\"longest\":7}}],\"all\":9}\n"},
        {"streams/cs.10/calls?of=main&least=5us&order=first&skip=3&limit=8&from=1&to=2",
         "{\"about\":{\"from\":1,\"to\":2,\"has_time\":true,\"time_unit_ns\":false,\"time_from\":1,"
         "\"time_to\":\"18446744073709551615\",\"time\":10,\"ran\":4,\"lost\":3,\"off\":2,"
         "\"switched_out\":1,\"time_step\":6},"
         "\"what\":\"calls of main\",\"all\":3,\"calls\":[{\"name\":\"gr??\",\"caller\":\"\","
         "\"from\":5000,\"to\":\"18446744073709551615\",\"self\":8,\"time_from\":0,\"time_to\":0,"
         "\"time\":{\"value\":0,\"least\":0,\"most\":0,\"unbounded\":true},\"self_time\":0,"
         "\"interrupted\":0,\"interruptions\":0,\"depth\":2,\"cut\":true,\"open\":true,"
         "\"switched_out\":0}]}\n"},
        {"streams/cs.10/gaps?from=1&to=2&limit=4",
         "{\"about\":{\"from\":1,\"to\":2,\"has_time\":true,\"time_unit_ns\":false,\"time_from\":1,"
         "\"time_to\":\"18446744073709551615\",\"time\":10,\"ran\":4,\"lost\":3,\"off\":2,"
         "\"switched_out\":1,\"time_step\":6},"
         "\"all\":4,\"gaps\":[{\"at\":1,\"time_from\":2,\"time_to\":3,\"gaps\":2,\"off\":false,"
         "\"reasons\":[\"overflow\",\"sync\"],\"switched_out\":false}]}\n"},
        {"streams/cs.10/range?from=10&to=11&format=json",
         "{\"trace\":\"t\",\"stream\":\"cs.10\",\"first\":10,\"count\":1,\"items\":[\n"
         "{\"at\":10,\"kind\":\"I\",\"text\":\"0000000000000028 größe\","
         "\"pc\":\"0x28\",\"encoding\":\"größe\"}\n]}\n"},
    };
    struct fixture *const f = *state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        char path[128];
        snprintf(path, sizeof path, "/api/v1/traces/t/%s", answers[i].path);
        for (int way = 0; way < WAYS; way++) {
            struct answer a = ask(f, way, path, NULL);
            assert_int_equal(a.status, 200);
            expect_head(&a, "content-type", "application/json");
            assert_string_equal((const char *)a.body.p, answers[i].json);
            answer_fini(&a);
        }
    }
}

/* All ways of writing a range of time mean the same instructions. */
static void test_times(void **state)
{
    static const char *const spans[] = {
        "unit=time&from=50&to=70",        "unit=time&from=50&to=+20",
        "unit=time&from=50&to=%2B20",     "axis=time&from=50ns&to=70ns",
        "unit=time&from=50ns&to=%2B20ns", "unit=time&from=0.05us&to=70ns",
        "unit=ns&from=50&to=70"};
    static const char *const wrong[] = {"unit=time&from=50ns&to=70", "unit=time&from=7&to=5",
                                        "unit=time&from=1.5&to=70",  "unit=insn&from=50ns&to=70ns",
                                        "unit=time&from=x",          "unit=ns&from=50ns&to=70ns"};
    struct fixture *const f = *state;
    char path[128];
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        snprintf(path, sizeof path, "/api/v1/traces/t/streams/cs.10/stats?%s", spans[i]);
        struct answer a = ask(f, WAY_H2, path, NULL);
        assert_int_equal(a.status, 200);
        assert_memory_equal(a.body.p, "{\"from\":5,\"to\":7,", 17);
        answer_fini(&a);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(path, sizeof path, "/api/v1/traces/t/streams/cs.10/stats?%s", wrong[i]);
        struct answer a = ask(f, WAY_H2, path, NULL);
        assert_int_equal(a.status, 400);
        answer_fini(&a);
    }
    struct answer a =
        ask(f, WAY_H1, "/api/v1/traces/t/streams/cs.10/locate?unit=time&at=0.07us", NULL);
    assert_non_null(strstr((char *)a.body.p, "\"insn\":7,"));
    answer_fini(&a);
}

static void expect_sql(const struct answer *a, const char *truncated)
{
    char text[256];
    assert_int_equal(a->status, 200);
    snprintf(
        text, sizeof text,
        "{\"columns\":[{\"name\":\"i\",\"kind\":\"integer\"},{\"name\":\"r\",\"kind\":\"real\"},"
        "{\"name\":\"t\",\"kind\":\"text\"},{\"name\":\"n\",\"kind\":\"integer\"}],"
        "\"truncated\":%s,\"rows\":[\n[1,0.5,\"a\\\"\\n\",1],\n"
        "[\"9007199254740992\",\"-Infinity\",\"gr??\",null]]}\n",
        truncated);
    assert_string_equal((const char *)a->body.p, text);
}

/* A question in the address, or as a body; what is wrong with it has a status. */
static void test_sql(void **state)
{
    static const char path[] = "/api/v1/traces/t/sql";
    struct fixture *const f = *state;
    for (int way = 0; way < WAYS; way++) {
        struct answer a = ask(f, way, "/api/v1/traces/t/sql?q=SELECT%201&rows=2", NULL);
        expect_sql(&a, "true");
        answer_fini(&a);
        a = ask_with(f, way, "POST", path, NULL, (struct tl_bytes){(const uint8_t *)"SELECT 1", 8});
        expect_sql(&a, "false");
        answer_fini(&a);
        a = ask(f, way, path, NULL);
        assert_int_equal(a.status, 400);
        answer_fini(&a);
        a = ask(f, way, "/api/v1/traces/none/sql?q=SELECT%201", NULL);
        assert_int_equal(a.status, 404);
        answer_fini(&a);
        a = ask(f, way, "/api/v1/traces/t/sql?q=SELECT%201&limit=2", NULL);
        assert_int_equal(a.status, 400);
        answer_fini(&a);
    }
}

/* 2^53 + 1 survives both forms. */
static void test_exact_numbers(void **state)
{
    struct fixture *const f = *state;
    const char *const path = "/api/v1/traces/t/streams/cs.10/locate?unit=insn&at=9007199254740993";
    struct answer a = ask(f, WAY_H2, path, NULL);
    assert_non_null(strstr((char *)a.body.p, "\"insn\":\"9007199254740993\""));
    answer_fini(&a);
    a = ask(f, WAY_H1, path, "Accept: application/x-protobuf");
    expect_head(&a, "content-type", "application/x-protobuf");
    Tracelake__V1__Position *const at = tracelake__v1__position__unpack(NULL, a.body.n, a.body.p);
    assert_int_equal(at->insn, 9007199254740993);
    tracelake__v1__position__free_unpacked(at, NULL);
    answer_fini(&a);
}

/* An answer as the message that its JSON is made from. */
static void test_messages(void **state)
{
    static const char accept[] = "Accept: application/x-protobuf";
    struct fixture *const f = *state;
    struct answer a = ask(f, WAY_H2, "/api/v1/traces/t/streams/cs.10/insns?from=7&to=8", accept);
    expect_head(&a, "content-type", "application/x-protobuf");
    Tracelake__V1__InsnsReply *const insns =
        tracelake__v1__insns_reply__unpack(NULL, a.body.n, a.body.p);
    assert_non_null(insns);
    assert_int_equal(insns->n_insns, 1);
    assert_int_equal(insns->insns[0]->insn, 7);
    assert_int_equal(insns->insns[0]->opt_time_case, TRACELAKE__V1__INSN__OPT_TIME__NOT_SET);
    assert_string_equal(insns->insns[0]->function, "größe");
    tracelake__v1__insns_reply__free_unpacked(insns, NULL);
    answer_fini(&a);
    a = ask(f, WAY_H1, "/api/v1/traces/t/streams/cs.10/insns?from=7&to=7", NULL);
    assert_string_equal((const char *)a.body.p, "[]\n");
    answer_fini(&a);
}

/* Ask for JSON and for the message: both say the same. */
static void check_message(struct fixture *f, const char *path,
                          const ProtobufCMessageDescriptor *kind, bool rows)
{
    struct answer json = ask(f, WAY_H1, path, NULL);
    struct answer packed = ask(f, WAY_H2, path, "Accept: application/x-protobuf");
    if (json.status != 200 || packed.status != 200)
        fail_msg("%s: %s", path, (char *)json.body.p);
    expect_head(&packed, "content-type", "application/x-protobuf");
    expect_head(&packed, "cache-control", "no-store");
    ProtobufCMessage *const message =
        protobuf_c_message_unpack(kind, NULL, packed.body.n, packed.body.p);
    assert_non_null(message);
    assert_int_equal(protobuf_c_message_get_packed_size(message), packed.body.n);
    struct tl_buf text = {0};
    struct tl_jsonout out = {.out = &text};
    if (rows)
        tl_messagejson_rows(&out, message);
    else
        tl_messagejson(&out, message);
    assert_int_equal(tl_buf_add(&text, "\n", 2), TL_OK);
    if (strcmp((char *)text.p, (char *)json.body.p) != 0)
        fail_msg("%s: %s, as message %s", path, (char *)json.body.p, (char *)text.p);
    tl_buf_fini(&text);
    protobuf_c_message_free_unpacked(message, NULL);
    answer_fini(&json);
    answer_fini(&packed);
}

/* Every answer that is made from a message. */
static void test_all_messages(void **state)
{
    static const struct {
        const char *path; /* behind that of the trace */
        const ProtobufCMessageDescriptor *kind;
        bool rows;
    } all[] = {
        {"/functions", &tracelake__v1__function_names__descriptor, true},
        {"/find?q=x&count=1", &tracelake__v1__find_reply__descriptor, false},
        {"/profile", &tracelake__v1__profile_reply__descriptor, false},
        {"/stats", &tracelake__v1__stats_reply__descriptor, false},
        {"/extremes", &tracelake__v1__extremes_reply__descriptor, false},
        {"/notes", &tracelake__v1__list_notes_reply__descriptor, true},
        {"/slices?streams=cs.10", &tracelake__v1__slices_of_streams__descriptor, false},
        {"/states?streams=cs.10", &tracelake__v1__states_of_streams__descriptor, false},
        {"/counters?streams=cs.10", &tracelake__v1__counters_of_streams__descriptor, false},
        {"/hits?streams=cs.10&q=x", &tracelake__v1__hits_of_streams__descriptor, false},
        {"/log?streams=cs.10", &tracelake__v1__log_of_streams__descriptor, false},
        {"/at?streams=cs.10&time=5", &tracelake__v1__moments_of_streams__descriptor, false},
        {"/streams/cs.10/locate?at=5", &tracelake__v1__position__descriptor, false},
        {"/streams/cs.10/find?q=x", &tracelake__v1__find_reply__descriptor, false},
        {"/streams/cs.10/hits?q=x", &tracelake__v1__hits_reply__descriptor, false},
        {"/streams/cs.10/compare?with=t/cs.10", &tracelake__v1__compare_reply__descriptor, false},
        {"/streams/cs.10/simpoints", &tracelake__v1__sim_points__descriptor, false},
        {"/streams/cs.10/call?at=5", &tracelake__v1__call_reply__descriptor, false},
        {"/streams/cs.10/functions", &tracelake__v1__functions_reply__descriptor, false},
        {"/streams/cs.10/calls?of=f", &tracelake__v1__calls_reply__descriptor, false},
        {"/streams/cs.10/interrupts", &tracelake__v1__exceptions_reply__descriptor, false},
        {"/streams/cs.10/gaps", &tracelake__v1__gaps_reply__descriptor, false},
        {"/streams/cs.10/profile", &tracelake__v1__profile_reply__descriptor, false},
        {"/streams/cs.10/stats", &tracelake__v1__stats_reply__descriptor, false},
        {"/streams/cs.10/slices", &tracelake__v1__slices_reply__descriptor, false},
        {"/streams/cs.10/insns?from=1&to=9", &tracelake__v1__insns_reply__descriptor, true},
        {"/streams/cs.10/source?at=1", &tracelake__v1__source_reply__descriptor, false},
    };
    char path[128];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(path, sizeof path, "/api/v1/traces/t%s", all[i].path);
        check_message(*state, path, all[i].kind, all[i].rows);
    }
    check_message(*state, "/api/v1/images", &tracelake__v1__list_images_reply__descriptor, true);
}

/* Those that are not: traces, whose JSON has a member more, and the answer to a question in SQL. */
static void test_other_messages(void **state)
{
    static const char accept[] = "Accept: application/x-protobuf";
    struct fixture *const f = *state;
    static const char *const lists[] = {"/api/v1/traces", "/api/v1/traces?limit=7"};
    for (size_t i = 0; i < 2; i++) {
        struct answer a = ask(f, WAY_H1, lists[i], accept);
        expect_head(&a, "content-type", "application/x-protobuf");
        Tracelake__V1__ListTracesReply *const list =
            tracelake__v1__list_traces_reply__unpack(NULL, a.body.n, a.body.p);
        assert_non_null(list);
        assert_int_equal(list->n_traces, 1);
        assert_string_equal(list->traces[0]->id, "t");
        tracelake__v1__list_traces_reply__free_unpacked(list, NULL);
        answer_fini(&a);
    }
    struct answer a = ask(f, WAY_H2, "/api/v1/traces/t", accept);
    Tracelake__V1__Trace *const trace = tracelake__v1__trace__unpack(NULL, a.body.n, a.body.p);
    assert_non_null(trace);
    assert_string_equal(trace->id, "t");
    assert_int_equal(trace->streams[0]->insns, 10000);
    tracelake__v1__trace__free_unpacked(trace, NULL);
    answer_fini(&a);
    a = ask(f, WAY_H1, "/api/v1/traces/t/sql?q=SELECT%201&rows=2", accept);
    expect_head(&a, "content-type", "application/x-protobuf");
    Tracelake__V1__Tables *const tables = tracelake__v1__tables__unpack(NULL, a.body.n, a.body.p);
    assert_non_null(tables);
    assert_true(tables->n_tables > 0 && tables->tables[tables->n_tables - 1]->last);
    assert_true(tables->tables[tables->n_tables - 1]->truncated);
    assert_true(tables->tables[0]->rows > 0 && tables->tables[0]->n_columns > 0);
    tracelake__v1__tables__free_unpacked(tables, NULL);
    answer_fini(&a);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_traces),
        TEST(test_find),
        TEST(test_find_near),
        TEST(test_slices),
        TEST(test_texts_and_numbers),
        TEST(test_times),
        TEST(test_sql),
        TEST(test_exact_numbers),
        TEST(test_messages),
        TEST(test_all_messages),
        TEST(test_other_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
