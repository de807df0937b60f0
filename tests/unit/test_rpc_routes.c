/* SPDX-License-Identifier: MIT */
/*
 * The table of HTTP paths beside the messages that it fills: a name that is misspelled there would
 * be found when somebody asks, and an argument that fills the wrong kind of field, never.
 */
#include "rpc/rpcint.h"
#include "rpc/webargs.h"
#include "unit/serving.h"

#include <stdio.h>
#include <string.h>

/* The parts of the pattern are those of the table, in order. */
static void check_parts(const struct tl_route *route)
{
    const char *p = route->pattern;
    char name[64];
    for (const struct tl_route_arg *arg = route->takes; arg->name; arg++) {
        if (*arg->name != '{')
            continue;
        p = strchr(p, '{');
        assert_non_null(p);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "}") + 1, p);
        assert_string_equal(arg->name, name);
        p++;
    }
    assert_null(strchr(p, '{'));
}

static bool may_fill(const ProtobufCFieldDescriptor *field, unsigned how)
{
    switch (how) {
    case TL_ARG_FROM:
    case TL_ARG_TO:
    case TL_ARG_PLACE:
    case TL_ARG_TIME:
        return field->type == PROTOBUF_C_TYPE_UINT64;
    case TL_ARG_GIVEN:
    case TL_ARG_MISSING:
    case TL_ARG_YES:
        return field->type == PROTOBUF_C_TYPE_BOOL;
    default:
        return field->type == PROTOBUF_C_TYPE_UINT64 || field->type == PROTOBUF_C_TYPE_UINT32 ||
               field->type == PROTOBUF_C_TYPE_BOOL || field->type == PROTOBUF_C_TYPE_ENUM ||
               field->type == PROTOBUF_C_TYPE_STRING;
    }
}

static void check_argument(const struct tl_route *route, const struct tl_route_arg *arg)
{
    char name[64], *none = NULL;
    const bool of_path = *arg->name == '{';
    if (arg->how == TL_ARG_OWN || arg->how == TL_ARG_UNIT)
        return;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg->name + of_path, "}"),
             arg->name + of_path);
    const ProtobufCFieldDescriptor *const field =
        tl_web_field(route->message, arg->field ? arg->field : name, &none);
    if (!field || field->label == PROTOBUF_C_LABEL_REPEATED || !may_fill(field, arg->how))
        fail_msg("%s: %s fills no such field of %s", route->pattern, arg->name,
                 route->message->short_name);
}

static void test_arguments(void **state)
{
    size_t n = 0;
    for (size_t i = 0; i < tl_http_routes_n; i++) {
        const struct tl_route *const route = &tl_http_routes[i];
        if (!route->message)
            continue;
        check_parts(route);
        for (const struct tl_route_arg *arg = route->takes; arg->name; arg++, n++)
            check_argument(route, arg);
    }
    assert_true(n > 150);
}

/* What is asked under /api/v1 is described by a message, but for the two that log in and out. */
static void test_all_are_described(void **state)
{
    for (size_t i = 0; i < tl_http_routes_n; i++) {
        const struct tl_route *const route = &tl_http_routes[i];
        const bool asks = !strncmp(route->pattern, "/api/v1/", 8) && route->run != tl_http_login &&
                          route->run != tl_http_logout;
        if (asks != (route->message != NULL) || asks != (route->takes != NULL))
            fail_msg("%s", route->pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_all_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
