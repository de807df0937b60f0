/* SPDX-License-Identifier: MIT */
/* Changes made by the page over HTTP, and the bodies of requests: with every protocol. */
#include "lake_traces.h"
#include "unit/asking.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tl_bytes text_of(const char *text)
{
    return (struct tl_bytes){(const uint8_t *)text, strlen(text)};
}

/* The answer's field `name`, as a number or text. */
static void expect_json(const struct answer *a, const char *name, const char *value)
{
    cJSON *const json = cJSON_Parse((char *)a->body.p);
    const cJSON *const item = cJSON_GetObjectItem(json, name);
    char number[32] = "";
    const char *got = cJSON_GetStringValue(item);
    if (cJSON_IsNumber(item)) {
        snprintf(number, sizeof number, "%.0f", cJSON_GetNumberValue(item));
        got = number;
    }
    if (!got || !strstr(got, value))
        fail_msg("%s is \"%s\", not \"%s\": %s", name, got ? got : "(none)", value,
                 (char *)a->body.p);
    cJSON_Delete(json);
}

static void expect(struct fixture *f, enum way way, const char *method, const char *path,
                   const char *body, int status, const char *name, const char *value)
{
    struct answer a =
        ask_with(f, way, method, path, NULL, body ? text_of(body) : (struct tl_bytes){0});
    if (a.status != status)
        fail_msg("%s %s: %d, not %d: %s", method, path, a.status, status, (char *)a.body.p);
    expect_json(&a, name, value);
    answer_fini(&a);
}

static void test_labels(void **state)
{
    struct fixture *const f = *state;
    static const char path[] = "/api/v1/traces/t/labels";
    for (enum way way = 0; way < WAYS; way++) {
        expect(f, way, "POST", path, "{\"board\":\"juno\",\"old\":\"\"}", 200, "id", "t");
        struct tl_trace_list list = {0};
        assert_int_equal(tl_lake_trace(f->s.lake, "t", &list), TL_OK);
        assert_string_equal(list.rows[0].labels, "board=juno\nold=\n");
        tl_trace_list_free(&list);
        expect(f, way, "POST", path, "[]", 400, "error", "no JSON object");
        expect(f, way, "POST", path, "{\"a\"", 400, "error", "no JSON object");
        expect(f, way, "POST", path, "", 400, "error", "no JSON object");
        expect(f, way, "POST", path, "{\"a\":1}", 400, "error", "text of one line");
        expect(f, way, "POST", path, "{\"a=b\":\"c\"}", 400, "error", "text of one line");
        expect(f, way, "POST", path, "{\"a\":\"c\\nd\"}", 400, "error", "text of one line");
        expect(f, way, "POST", "/api/v1/traces/none/labels", "{}", 404, "error", "none");
    }
}

/* Mapped files that are missing, by their reported properties. */
static void check_missing(struct fixture *f, enum way way)
{
    struct answer a = ask(f, way, "/api/v1/traces/t/images", NULL);
    assert_int_equal(a.status, 200);
    cJSON *const all = cJSON_Parse((char *)a.body.p);
    assert_int_equal(cJSON_GetArraySize(all), 3);
    const cJSON *const file = cJSON_GetArrayItem(all, 0);
    const cJSON *const kernel = cJSON_GetArrayItem(all, 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(file, "build_id")), "0c9a");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(file, "path")), "/bin/w");
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(file, "there")));
    /* The same place at two times counts once. */
    const cJSON *const places = cJSON_GetObjectItem(file, "places");
    const cJSON *const place = cJSON_GetArrayItem(places, 0);
    assert_int_equal(cJSON_GetArraySize(places), 1);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(place, "context")), "0x7");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(place, "name")), "httpd");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(kernel, "places")), 1);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetArrayItem(all, 2), "there")));
    cJSON_Delete(all);
    answer_fini(&a);
}

static void test_images(void **state)
{
    struct fixture *const f = *state;
    for (enum way way = 0; way < WAYS; way++) {
        char hash[80];
        char path[200];
        struct answer a = ask_with(f, way, "PUT", "/api/v1/images?name=a%20b.elf", NULL,
                                   text_of("the content of an image"));
        assert_int_equal(a.status, 200);
        expect_json(&a, "name", "a b.elf");
        expect_json(&a, "size", "23");
        cJSON *const json = cJSON_Parse((char *)a.body.p);
        snprintf(hash, sizeof hash, "%s",
                 cJSON_GetStringValue(cJSON_GetObjectItem(json, "sha256")));
        cJSON_Delete(json);
        answer_fini(&a);

        a = ask(f, way, "/api/v1/images", NULL);
        assert_non_null(strstr((char *)a.body.p, hash));
        answer_fini(&a);

        snprintf(path, sizeof path, "/api/v1/traces/t/images?sha256=%s&address=0x80000000", hash);
        expect(f, way, "POST", path, NULL, 200, "id", "t");
        check_missing(f, way);
        expect(f, way, "GET", "/api/v1/traces/nobody/images", NULL, 404, "error", "there");
        expect(f, way, "DELETE", "/api/v1/images/sha256:0", NULL, 404, "error", "no image");
        expect(f, way, "POST", "/api/v1/traces/t/images?address=0", NULL, 400, "error", "sha256=");
        expect(f, way, "POST", "/api/v1/traces/t/images?sha256=x&address=y", NULL, 400, "error",
               "address=y");
        expect(f, way, "POST", "/api/v1/traces/t/images?sha256=sha256:1", NULL, 404, "error",
               "no image");
        expect(f, way, "PUT", "/api/v1/images?name=x", "", 400, "error", "empty");
    }
}

static void test_setup(void **state)
{
    struct fixture *const f = *state;
    for (enum way way = 0; way < WAYS; way++) {
        struct answer a = ask(f, way, "/api/v1/traces/t/setup", NULL);
        assert_int_equal(a.status, 200);
        assert_string_equal((char *)a.body.p, "[trace]\n");
        expect_head(&a, "content-type", "text/plain; charset=utf-8");
        answer_fini(&a);
    }
}

static void test_capture(void **state)
{
    struct fixture *const f = *state;
    for (enum way way = 0; way < WAYS; way++) {
        char path[80];
        char more[128];
        snprintf(path, sizeof path, "/api/v1/traces/new-%d", (int)way);
        expect(f, way, "PUT", path, "[trace]\n", 200, "durable", "0");
        expect(f, way, "PUT", path, "[trace]\n", 409, "error", "exists");
        snprintf(more, sizeof more, "%s/raw?offset=0", path);
        expect(f, way, "POST", more, "12345678", 200, "durable", "8");
        snprintf(more, sizeof more, "%s/raw?offset=20", path);
        expect(f, way, "POST", more, "12345678", 400, "error", "");
        snprintf(more, sizeof more, "%s/raw?offset=8&last=1", path);
        expect(f, way, "POST", more, "1234", 200, "durable", "12");
        struct tl_trace_list list = {0};
        assert_int_equal(tl_lake_trace(f->s.lake, path + 15, &list), TL_OK);
        assert_string_equal(list.rows[0].rig, "browser");
        tl_trace_list_free(&list);
        expect(f, way, "PUT", "/api/v1/traces/n%20w", "", 400, "error", "1 to 63");
        expect(f, way, "POST", "/api/v1/traces/none/raw", "x", 404, "error", "none");
    }
}

static void test_delete(void **state)
{
    struct fixture *const f = *state;
    for (enum way way = 0; way < WAYS; way++) {
        char path[80];
        snprintf(path, sizeof path, "/api/v1/traces/gone-%d", (int)way);
        add_trace(f->s.lake, path + 15, 10);
        struct answer a = ask_as(f, way, "DELETE", path, NULL);
        assert_int_equal(a.status, 200);
        answer_fini(&a);
        a = ask_as(f, way, "DELETE", path, NULL);
        assert_int_equal(a.status, 404);
        answer_fini(&a);
    }
}

/* A page of another site can make the browser send anything, with the user's credentials. */
static void test_other_sites(void **state)
{
    struct fixture *const f = *state;
    static const struct {
        const char *extra;
        int status;
    } cases[] = {
        {"Sec-Fetch-Site: cross-site", 403},   {"Sec-Fetch-Site: same-site", 403},
        {"Sec-Fetch-Site: same-origin", 200},  {"Sec-Fetch-Site: none", 200},
        {"Origin: https://evil.example", 403}, {"Origin: null", 403},
    };
    for (enum way way = 0; way < WAYS; way++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct answer a =
                ask_with(f, way, "POST", "/api/v1/traces/t/labels", cases[i].extra, text_of("{}"));
            if (a.status != cases[i].status)
                fail_msg("%s: %d", cases[i].extra, a.status);
            answer_fini(&a);
            a = ask(f, way, "/api/v1/traces/t", cases[i].extra);
            /* forbidding access to the answer is up to the browser */
            assert_int_equal(a.status, 200);
            answer_fini(&a);
        }
}

/* Bodies larger than the route accepts, and than the socket's buffers and HTTP/2's window. */
static void test_large_bodies(void **state)
{
    struct fixture *const f = *state;
    const size_t n = 3u << 20;
    uint8_t *const big = malloc(n);
    for (size_t i = 0; i < n; i++)
        big[i] = (uint8_t)(i * 131 >> 7);
    for (enum way way = 0; way < WAYS; way++) {
        struct answer a =
            ask_with(f, way, "PUT", "/api/v1/images?name=big", NULL, (struct tl_bytes){big, n});
        assert_int_equal(a.status, 200);
        expect_json(&a, "size", "3145728");
        answer_fini(&a);
        a = ask_with(f, way, "POST", "/api/v1/traces/t/labels", NULL,
                     (struct tl_bytes){big, 100000});
        assert_int_equal(a.status, 413);
        expect_json(&a, "error", "longer than 65536 bytes");
        answer_fini(&a);
    }
    free(big);
}

static void test_verbs(void **state)
{
    struct fixture *const f = *state;
    for (enum way way = 0; way < WAYS; way++) {
        struct answer a = ask_as(f, way, "POST", "/api/v1/images", NULL);
        assert_int_equal(a.status, 405);
        expect_head(&a, "allow", "GET, HEAD, PUT");
        answer_fini(&a);
        a = ask_as(f, way, "BREW", "/api/v1/traces/t", NULL);
        assert_int_equal(a.status, 405);
        expect_head(&a, "allow", "GET, HEAD, PUT, DELETE");
        answer_fini(&a);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_labels), TEST(test_images),      TEST(test_setup),        TEST(test_capture),
        TEST(test_delete), TEST(test_other_sites), TEST(test_large_bodies), TEST(test_verbs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
