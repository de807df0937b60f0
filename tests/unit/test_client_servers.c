/* SPDX-License-Identifier: MIT */
/* Calls and pushes over several servers of the same lake, some of which go away. */
#include "client_fake.h"
#include "tracelake.h"

#include <dlfcn.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { UNAVAILABLE = 14 };

/* "lake.test" is 127.0.0.2 and 127.0.0.1, in this order; all other names are resolved normally. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **out)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "lake.test") != 0)
        return real(host, port, hints, out);
    const int failed = real("127.0.0.2", port, hints, out);
    return failed ? failed : real("127.0.0.1", port, hints, &(*out)->ai_next);
}

static void expect(int result, int wanted, const struct tracelake_error *error)
{
    if (result != wanted)
        fail_msg("result %d (%s), wanted %d", result, error->text, wanted);
}

static void fill(struct tl_buf *buf, size_t n, unsigned seed)
{
    uint8_t *const p = malloc(n);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
    assert_int_equal(tl_buf_add(buf, p, n), 0);
    free(p);
}

static struct tracelake *connect_to(const struct fake *a, const struct fake *b)
{
    char urls[160];
    struct tracelake *lake;
    struct tracelake_error error = {0};
    snprintf(urls, sizeof urls, "%s,%s", a->url, b->url);
    expect(tracelake_connect(&lake, urls, NULL, &error), 0, &error);
    return lake;
}

static int list(struct tracelake *lake, struct tracelake_error *error)
{
    struct tracelake_list *traces;
    const int result = tracelake_list_traces(lake, &traces, error);
    if (result == 0) {
        assert_int_equal(traces->n, 3);
        tracelake_list_free(traces);
    }
    return result;
}

/* The first server that answers is used; if it ends, or reports that it cannot serve, the next one
 * is used. */
static void calls_change_over(void **state)
{
    struct fake a = {.n_traces = 3}, b = {.n_traces = 3};
    struct tracelake_error error = {0};
    fake_start(&a);
    fake_start(&b);
    struct tracelake *lake = connect_to(&a, &b);
    expect(list(lake, &error), 0, &error);
    assert_int_equal(b.connections, 0);
    a.refuse_status = UNAVAILABLE;
    expect(list(lake, &error), 0, &error);
    assert_int_equal(b.connections, 1);
    /* The client stays with the second one. */
    a.refuse_status = 0;
    expect(list(lake, &error), 0, &error);
    assert_int_equal(a.connections, 1);
    fake_stop(&b);
    expect(list(lake, &error), 0, &error);
    assert_int_equal(a.connections, 2);
    tracelake_close(lake);
    lake = connect_to(&b, &a); /* the first one is away */
    expect(list(lake, &error), 0, &error);
    fake_stop(&a);
    tracelake_close(lake);
    char urls[160];
    snprintf(urls, sizeof urls, "%s,%s", a.url, b.url);
    expect(tracelake_connect(&lake, urls, NULL, &error), TRACELAKE_UNREACHABLE, &error);
    assert_non_null(strstr(error.text, "none of 2 servers"));
}

/* If no server can serve now, they are asked again. */
static void nobody_can_now(void **state)
{
    struct fake a = {.refuse_status = UNAVAILABLE, .refuse_message = "not now"};
    struct fake b = {.n_traces = 3, .refuse_status = UNAVAILABLE, .refuse_calls = 5};
    struct tracelake_error error = {0};
    fake_start(&a);
    fake_start(&b);
    struct tracelake *lake = connect_to(&a, &b);
    expect(list(lake, &error), 0, &error);
    assert_true(a.connections >= 5);
    tracelake_close(lake);
    fake_stop(&a);
    fake_stop(&b);
}

/* The addresses of a name are servers like those of a list. */
static void addresses_of_a_name(void **state)
{
    struct fake a = {.n_traces = 3};
    struct tracelake_error error = {0};
    struct tracelake *lake;
    char url[64];
    struct fake b = {.n_traces = 3, .address = 2, .refuse_status = UNAVAILABLE};
    /* A port that is free at both addresses. */
    while (!a.bound) {
        b.port = 0;
        assert_true(fake_bind(&b));
        a.port = b.port;
        if (!fake_bind(&a))
            close(b.listener);
    }
    fake_start(&a);
    snprintf(url, sizeof url, "http://lake.test:%d", a.port);
    /* nothing listens at 127.0.0.2 */
    expect(tracelake_connect(&lake, url, NULL, &error), 0, &error);
    expect(list(lake, &error), 0, &error);
    tracelake_close(lake);
    fake_start(&b);
    expect(tracelake_connect(&lake, url, NULL, &error), 0, &error);
    expect(list(lake, &error), 0, &error);
    assert_int_equal(b.connections, 1);
    assert_int_equal(a.connections, 2);
    tracelake_close(lake);
    fake_stop(&a);
    fake_stop(&b);
}

/* A range continues at another server after what was delivered: nothing is repeated or missing. */
static void range_changes_over(void **state)
{
    struct fake a = {.fetch_piece = 50000, .fetch_count = 7};
    struct fake b = a;
    const struct tracelake_range range = {"t", "s", TRACELAKE_INSN, 0, TRACELAKE_END};
    struct tracelake_error error = {0};
    struct tracelake_fetch *fetch;
    struct tl_buf got = {0};
    const void *p;
    size_t n;
    int result;
    fill(&a.fetch, 20 << 20, 1);
    fill(&b.fetch, 20 << 20, 1);
    fake_start(&a);
    fake_start(&b);
    struct tracelake *const lake = connect_to(&a, &b);
    expect(tracelake_fetch_open(&fetch, lake, &range, TRACELAKE_STF, &error), 0, &error);
    expect(tracelake_fetch_next(fetch, &p, &n, &error), 0, &error);
    assert_int_equal(tl_buf_add(&got, p, n), 0);
    fake_stop(&a);
    while ((result = tracelake_fetch_next(fetch, &p, &n, &error)) == 0)
        assert_int_equal(tl_buf_add(&got, p, n), 0);
    expect(result, TRACELAKE_EOF, &error);
    assert_int_equal(b.connections, 1);
    assert_int_equal(got.n, b.fetch.n);
    assert_memory_equal(got.p, b.fetch.p, got.n);
    tracelake_fetch_close(fetch);
    tracelake_close(lake);
    fake_stop(&b);
    tl_buf_fini(&got);
}

/* If the other server has different data, that is an error, not a mixture. */
static void range_is_another(void **state)
{
    const size_t sizes[] = {20 << 20, 100};
    for (size_t i = 0; i < 2; i++) {
        struct fake a = {.fetch_piece = 50000};
        struct fake b = a;
        const struct tracelake_range range = {"t", "s", TRACELAKE_INSN, 0, TRACELAKE_END};
        struct tracelake_error error = {0};
        struct tracelake_fetch *fetch;
        const void *p;
        size_t n;
        int result;
        fill(&a.fetch, 20 << 20, 1);
        fill(&b.fetch, sizes[i], 2 - (unsigned)i);
        fake_start(&a);
        fake_start(&b);
        struct tracelake *const lake = connect_to(&a, &b);
        expect(tracelake_fetch_open(&fetch, lake, &range, TRACELAKE_STF, &error), 0, &error);
        expect(tracelake_fetch_next(fetch, &p, &n, &error), 0, &error);
        fake_stop(&a);
        while ((result = tracelake_fetch_next(fetch, &p, &n, &error)) == 0)
            ;
        expect(result, TRACELAKE_IO, &error);
        tracelake_fetch_close(fetch);
        tracelake_close(lake);
        fake_stop(&b);
    }
}

/*
 * A push continues at the server that takes over the trace, after the bytes that are durable there.
 */
static void push_changes_over(void **state)
{
    static const int how[] = {0, UNAVAILABLE, 7 /* it lost the lease */};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        struct fake a = {.seed = 1},
                    b = {.seed = 2, .refuse_status = UNAVAILABLE, .refuse_calls = 2};
        const struct tracelake_push_options options = {
            .rig = "r", .trace = "t", .setup = "", .resume = true, .chunk_bytes = 5000};
        struct tracelake_error error = {0};
        struct tracelake_push *push;
        struct tl_buf bytes = {0};
        fill(&bytes, 1000000, 3);
        fake_start(&a);
        fake_start(&b);
        struct tracelake *const lake = connect_to(&a, &b);
        expect(tracelake_push_open(&push, lake, &options, &error), 0, &error);
        expect(tracelake_push_write(push, bytes.p, 400000, &error), 0, &error);
        expect(tracelake_push_flush(push, &error), 0, &error);
        /* B has the durable bytes, fewer than were sent to A. */
        assert_int_equal(tl_buf_add(&b.received, bytes.p, 400000), 0);
        b.durable = 400000;
        a.refuse_status = how[i];
        if (how[i] == 0)
            fake_stop(&a);
        expect(tracelake_push_write(push, bytes.p + 400000, 600000, &error), 0, &error);
        expect(tracelake_push_finish(push, &error), 0, &error);
        assert_int_equal(b.violations, 0);
        assert_true(b.complete);
        assert_int_equal(b.received.n, bytes.n);
        assert_memory_equal(b.received.p, bytes.p, bytes.n);
        tracelake_push_close(push);
        tracelake_close(lake);
        if (how[i] != 0)
            fake_stop(&a);
        fake_stop(&b);
        tl_buf_fini(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_change_over),   cmocka_unit_test(nobody_can_now),
        cmocka_unit_test(addresses_of_a_name), cmocka_unit_test(range_changes_over),
        cmocka_unit_test(range_is_another),    cmocka_unit_test(push_changes_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
