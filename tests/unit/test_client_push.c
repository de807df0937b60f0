/* SPDX-License-Identifier: MIT */
/* Push sessions against a server that breaks connections. */
#include "client_fake.h"
#include "tracelake.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

static void expect(int result, int wanted, const struct tracelake_error *error)
{
    if (result != wanted)
        fail_msg("result %d (%s), wanted %d", result, error->text, wanted);
}

static uint8_t *capture(size_t n, unsigned seed)
{
    uint8_t *p = malloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
    return p;
}

static void check_stored(struct fake *fake, const uint8_t *p, size_t n)
{
    assert_int_equal(fake->violations, 0);
    assert_true(fake->complete);
    assert_int_equal(fake->durable, n);
    assert_int_equal(fake->received.n, n);
    if (n)
        assert_memory_equal(fake->received.p, p, n);
}

static void push_at_once(void **state)
{
    struct fake fake = {.seed = 1};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    const size_t n = 3000000;
    uint8_t *p = capture(n, 7);
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    const struct tracelake_push_options options = {.rig = "r", .setup = ""};
    expect(tracelake_push_open(&push, lake, &options, &error), 0, &error);
    assert_string_equal(tracelake_push_trace(push), "made-1");
    assert_int_equal(tracelake_push_offset(push), 0);
    expect(tracelake_push_write(push, p, n, &error), 0, &error);
    assert_int_equal(tracelake_push_offset(push), n);
    expect(tracelake_push_finish(push, &error), 0, &error);
    assert_int_equal(tracelake_push_acked(push), n);
    tracelake_push_close(push);
    uint64_t durable;
    bool complete;
    expect(tracelake_offset(lake, "made-1", &durable, &complete, &error), 0, &error);
    assert_int_equal(durable, n);
    assert_true(complete);
    tracelake_close(lake);
    check_stored(&fake, p, n);
    fake_stop(&fake);
    free(p);
}

static void push_bytewise(void **state)
{
    struct fake fake = {.seed = 2};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    const size_t n = 3000;
    uint8_t *p = capture(n, 8);
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    const struct tracelake_push_options options = {
        .rig = "r", .setup = "", .trace = "t", .chunk_bytes = 1};
    expect(tracelake_push_open(&push, lake, &options, &error), 0, &error);
    for (size_t i = 0; i < n; i++)
        expect(tracelake_push_write(push, p + i, 1, &error), 0, &error);
    expect(tracelake_push_finish(push, &error), 0, &error);
    assert_int_equal(fake.chunks, n);
    tracelake_push_close(push);
    tracelake_close(lake);
    check_stored(&fake, p, n);
    fake_stop(&fake);
    free(p);
}

/* Whatever breaks, and wherever, every byte arrives exactly once. */
static void push_through_breaks(void **state)
{
    const unsigned first = (unsigned)test_seed();
    unsigned broken = 0;
    for (unsigned seed = first; seed < first + 25; seed++) {
        srand(seed);
        const size_t window = 1 + (size_t)(rand() % 100000);
        const size_t n = (size_t)(rand() % 400000) % (window * 50);
        struct fake fake = {.seed = seed, .budget = 2000 + n / 4, .breaks = 1 + rand() % 6};
        struct tracelake *lake;
        struct tracelake_push *push;
        struct tracelake_error error = {0};
        uint8_t *p = capture(n, seed);
        fake.lose_finished = rand() % 2;
        fake_start(&fake);
        const struct tracelake_options connect = {.timeout_ms = 60000};
        const struct tracelake_push_options options = {.rig = "r",
                                                       .trace = "t",
                                                       .setup = "x",
                                                       .resume = true,
                                                       .window_bytes =
                                                           1 + (size_t)(rand() % 100000),
                                                       .chunk_bytes = 1 + (size_t)(rand() % 20000),
                                                       .retry_ms = 60000};
        /* The very first connection and call are not retried by the library. */
        int result;
        do
            result = tracelake_connect(&lake, fake.url, &connect, &error);
        while (result == TRACELAKE_UNREACHABLE);
        expect(result, 0, &error);
        do
            result = tracelake_push_open(&push, lake, &options, &error);
        while (result == TRACELAKE_UNREACHABLE);
        expect(result, 0, &error);
        for (size_t at = tracelake_push_offset(push); at < n;) {
            size_t now = 1 + (size_t)(rand() % 60000);
            if (now > n - at)
                now = n - at;
            expect(tracelake_push_write(push, p + at, now, &error), 0, &error);
            at += now;
            assert_int_equal(tracelake_push_offset(push), at);
            assert_true(tracelake_push_acked(push) <= at);
        }
        expect(tracelake_push_finish(push, &error), 0, &error);
        tracelake_push_close(push);
        tracelake_close(lake);
        check_stored(&fake, p, n);
        broken += fake.connections - 1;
        fake_stop(&fake);
        free(p);
    }
    print_message("%u connections broke\n", broken);
    assert_true(broken > 0);
}

/* Without retries the session ends, and a new one continues after the durable bytes. */
static void push_resumed_by_caller(void **state)
{
    struct fake fake = {.seed = 5, .budget = 300000, .breaks = 1};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    const size_t n = 2000000;
    uint8_t *p = capture(n, 9);
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    const struct tracelake_push_options options = {
        .rig = "r", .trace = "t", .setup = "", .resume = true, .retry_ms = -2};
    expect(tracelake_push_open(&push, lake, &options, &error), 0, &error);
    int result = tracelake_push_write(push, p, n, &error);
    if (result == TRACELAKE_OK)
        result = tracelake_push_finish(push, &error);
    expect(result, TRACELAKE_UNREACHABLE, &error);
    assert_true(strlen(error.text) > 0);
    assert_int_equal(tracelake_push_write(push, p, 1, &error), TRACELAKE_UNREACHABLE);
    tracelake_push_close(push);

    expect(tracelake_push_open(&push, lake, &options, &error), 0, &error);
    const uint64_t at = tracelake_push_offset(push);
    assert_true(at < n);
    expect(tracelake_push_write(push, p + at, n - at, &error), 0, &error);
    expect(tracelake_push_finish(push, &error), 0, &error);
    tracelake_push_close(push);
    tracelake_close(lake);
    check_stored(&fake, p, n);
    fake_stop(&fake);
    free(p);
}

/* If a server has lost bytes it acknowledged, that is reported; it is not sent a capture with
 * holes. */
static void push_to_forgetful_server(void **state)
{
    struct fake fake = {.seed = 6, .budget = 400000, .breaks = 1, .forget = true};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    const size_t n = 1000000;
    uint8_t *p = capture(n, 10);
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    const struct tracelake_push_options options = {
        .rig = "r", .trace = "t", .setup = "", .window_bytes = 50000, .chunk_bytes = 2000};
    expect(tracelake_push_open(&push, lake, &options, &error), 0, &error);
    int result = tracelake_push_write(push, p, n, &error);
    if (result == TRACELAKE_OK)
        result = tracelake_push_finish(push, &error);
    expect(result, TRACELAKE_IO, &error);
    assert_non_null(strstr(error.text, "lost"));
    tracelake_push_close(push);
    tracelake_close(lake);
    fake_stop(&fake);
    free(p);
}

static void push_refused(void **state)
{
    struct fake fake = {.refuse_status = 8, .refuse_message = "disk full%3b free 1%25 of \xc3\xa4"};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    const struct tracelake_push_options options = {
        .rig = "r", .trace = "t", .setup = "", .retry_ms = -2};
    expect(tracelake_push_open(&push, lake, &options, &error), TRACELAKE_NOSPACE, &error);
    assert_int_equal(error.grpc_status, 8);
    assert_string_equal(error.text, "disk full; free 1% of \xc3\xa4");
    tracelake_close(lake);
    fake_stop(&fake);
}

static void push_to_silence(void **state)
{
    struct fake fake = {.silent = true};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    fake_start(&fake);
    const struct tracelake_options connect = {.timeout_ms = 200};
    /* On a busy machine connecting itself may take longer. */
    int result;
    do
        result = tracelake_connect(&lake, fake.url, &connect, &error);
    while (result == TRACELAKE_TIMEOUT || result == TRACELAKE_UNREACHABLE);
    expect(result, 0, &error);
    const struct tracelake_push_options options = {.rig = "r", .trace = "t", .setup = ""};
    do /* … and so may the answer by which a link is known to live */
        result = tracelake_push_open(&push, lake, &options, &error);
    while (result == TRACELAKE_UNREACHABLE);
    expect(result, TRACELAKE_TIMEOUT, &error);
    tracelake_close(lake);
    fake_stop(&fake);
}

static void *interrupt_soon(void *lake)
{
    poll(NULL, 0, 50);
    tracelake_interrupt(lake);
    return NULL;
}

static void interrupt_ends_a_wait(void **state)
{
    struct fake fake = {.silent = true};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    pthread_t thread;
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, lake), 0);
    const struct tracelake_push_options options = {.rig = "r", .trace = "t", .setup = ""};
    expect(tracelake_push_open(&push, lake, &options, &error), TRACELAKE_CANCELLED, &error);
    pthread_join(thread, NULL);
    tracelake_resume(lake);
    tracelake_close(lake);
    fake_stop(&fake);
}

static void options_are_checked(void **state)
{
    struct fake fake = {0};
    struct tracelake *lake;
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    fake_start(&fake);
    expect(tracelake_connect(&lake, fake.url, NULL, &error), 0, &error);
    struct tracelake_push_options options = {.trace = "t", .setup = ""};
    expect(tracelake_push_open(&push, lake, &options, &error), TRACELAKE_USAGE, &error);
    options.rig = "r";
    options.chunk_bytes = 4 << 20;
    expect(tracelake_push_open(&push, lake, &options, &error), TRACELAKE_USAGE, &error);
    tracelake_close(lake);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_at_once),
        cmocka_unit_test(push_bytewise),
        cmocka_unit_test(push_through_breaks),
        cmocka_unit_test(push_resumed_by_caller),
        cmocka_unit_test(push_to_forgetful_server),
        cmocka_unit_test(push_refused),
        cmocka_unit_test(push_to_silence),
        cmocka_unit_test(interrupt_ends_a_wait),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
