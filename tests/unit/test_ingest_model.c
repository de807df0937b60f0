/* SPDX-License-Identifier: MIT */
/*
 * Pushes, failures of the medium, removals, takeovers and restarts in every order, compared with a
 * model of what must be stored: for each named capture everything reported as durable, and no byte
 * of an earlier capture of the same name.
 */
#include "unit/lake_help.h"
#include "unit/random.h"

#define ROUNDS 60
#define STEPS  60

/* Each trace begun under a name is another incarnation, with its own bytes. */
struct name {
    const char *id;
    uint64_t incarnation;
    atomic_ullong durable; /* as reported */
    uint64_t sent;         /* bytes appended by the open push */
    uint64_t most;         /* by any push: a refused tail may be found after a restart */
    struct tl_ingest *ingest;
    struct tl_ingest *fenced; /* a push that was taken over, not closed yet */
    uint64_t fenced_at;
};

static struct tl_backend *backend;
static struct tl_lake *lake;
static const char setup[] = "[trace]\nformat = tpiu\n";

static uint8_t byte_at(uint64_t incarnation, uint64_t at)
{
    return (uint8_t)((at * 2654435761u + incarnation * 40503u) >> 11);
}

static void reported(void *context, uint64_t durable)
{
    struct name *const n = context;
    if (durable > atomic_load(&n->durable))
        atomic_store(&n->durable, durable);
}

static void open_push(struct name *n, uint64_t incarnation)
{
    struct tl_fail fail = {0};
    char trace[64];
    uint64_t at;
    const struct tl_ingest_request request = {.trace = n->id, .setup = setup, .resume = true};
    if (n->ingest && n->fenced) {
        tl_ingest_close(n->fenced);
        n->fenced = NULL;
    }
    struct tl_ingest *const before = n->ingest;
    n->ingest = NULL;
    if (tl_ingest_open(lake, &request, reported, n, &n->ingest, trace, &at, &fail) < 0) {
        n->ingest = before; /* taken over or not: either is correct; it is closed below */
        if (before) {
            tl_ingest_close(before);
            n->ingest = NULL;
        }
        return;
    }
    n->fenced = before;
    n->fenced_at = n->sent;
    if (n->incarnation == 0) {
        n->incarnation = incarnation;
        assert_int_equal(at, 0);
    }
    if (at < atomic_load(&n->durable) || at > n->most)
        fail_msg("%s goes on at %llu, %llu were durable and %llu sent", n->id,
                 (unsigned long long)at, (unsigned long long)atomic_load(&n->durable),
                 (unsigned long long)n->most);
    n->sent = at;
}

static void close_push(struct name *n)
{
    if (n->fenced)
        tl_ingest_close(n->fenced);
    if (n->ingest)
        tl_ingest_close(n->ingest);
    n->ingest = n->fenced = NULL;
}

static void append_some(struct name *n)
{
    struct tl_fail fail = {0};
    uint8_t bytes[4000];
    const size_t size = 1 + next() % sizeof(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(n->incarnation, n->sent + i);
    const int r = tl_ingest_append(n->ingest, n->sent, (struct tl_bytes){bytes, size}, &fail);
    if (n->sent + size > n->most)
        n->most = n->sent + size;
    if (r >= 0) {
        n->sent += size;
        return;
    }
    /* Whatever was refused, the reason must be the medium, not missing bytes. */
    if (r != TL_IO && r != TL_NOSPACE)
        fail_msg("append: %s: %s", tl_err_name(r), fail.text);
    close_push(n);
}

/* A push that was taken over may report anything; nothing of it is stored. */
static void append_fenced(struct name *n)
{
    struct tl_fail fail = {0};
    const uint8_t bytes[16] = {0xee, 0xee, 0xee};
    assert_int_equal(
        tl_ingest_append(n->fenced, n->fenced_at, (struct tl_bytes){bytes, sizeof(bytes)}, &fail),
        TL_DENIED);
    assert_int_equal(tl_ingest_continues(n->fenced, &fail), TL_DENIED);
}

static void check(const struct name *n, uint64_t durable)
{
    struct tl_spool_reader *reader;
    struct tl_buf buf = {0};
    struct tl_fail fail = {0};
    assert_int_equal(tl_spool_reader_new(&reader, backend, n->id), TL_OK);
    int r = TL_OK;
    while (r >= 0 && buf.n < durable)
        r = tl_spool_read(reader, buf.n, durable, &buf, &fail);
    if (r < 0)
        fail_msg("%s: at %zu of %llu: %s", n->id, buf.n, (unsigned long long)durable, fail.text);
    for (size_t i = 0; i < buf.n; i++)
        if (buf.p[i] != byte_at(n->incarnation, i))
            fail_msg("%s: byte %zu of %llu is another one", n->id, i, (unsigned long long)durable);
    tl_spool_reader_free(reader);
    tl_buf_fini(&buf);
}

static void remove_trace(struct name *n)
{
    struct tl_fail fail = {0};
    close_push(n);
    const int r = tl_lake_delete(lake, n->id, &fail);
    if (r == TL_OK || r == TL_NOTFOUND) {
        n->incarnation = n->sent = n->most = 0;
        atomic_store(&n->durable, 0);
    }
}

static void step(struct name *n, uint64_t incarnation)
{
    switch (next() % 12) {
    case 0:
    case 1:
        open_push(n, incarnation);
        break;
    case 2:
        close_push(n);
        break;
    case 3:
        tl_backend_memory_refuse(backend, next() % 12, 1 + next() % 8,
                                 next() % 2 ? TL_IO : TL_NOSPACE);
        break;
    case 4:
        remove_trace(n);
        break;
    case 5:
        if (n->fenced && n->ingest)
            append_fenced(n);
        break;
    default:
        if (!n->ingest)
            open_push(n, incarnation);
        if (n->ingest)
            append_some(n);
    }
}

static void restart(struct name *names)
{
    for (int i = 0; i < 2; i++)
        close_push(&names[i]);
    tl_backend_memory_refuse(backend, 0, 0, TL_IO);
    tl_lake_close(lake);
    lake = open_lake_sized(backend, 1 << 20, 1);
    for (int i = 0; i < 2; i++) {
        struct tl_trace_list list;
        if (tl_lake_trace(lake, names[i].id, &list) < 0)
            continue;
        tl_trace_list_free(&list);
        if (names[i].incarnation == 0) /* its removal failed halfway: either is possible */
            assert_true(tl_lake_delete(lake, names[i].id, NULL) >= 0);
    }
}

static void every_order(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        struct name names[2] = {{.id = "a"}, {.id = "b"}};
        lake = open_memory_lake(&backend, 1 << 20, 1);
        for (uint64_t i = 1; i <= STEPS; i++) {
            step(&names[next() % 2], round * 1000 + i);
            if (next() % 24 == 0)
                restart(names);
        }
        restart(names);
        for (int i = 0; i < 2; i++) {
            struct name *const n = &names[i];
            open_push(n, round * 1000 + STEPS + 1);
            assert_non_null(n->ingest);
            check(n, n->sent);
            for (int k = 0; k < 5; k++)
                append_some(n);
            const uint64_t sent = n->sent;
            uint64_t durable = 0;
            assert_int_equal(tl_ingest_finish(n->ingest, &durable, NULL), TL_OK);
            assert_int_equal(durable, sent);
            check(n, sent);
            close_push(n);
        }
        close_memory_lake(backend, lake);
    }
}

/* A regression test: a refused sync, then the name is removed and reused. */
static void a_name_is_used_again_after_a_failure(void **state)
{
    (void)state;
    struct name n = {.id = "again"};
    lake = open_memory_lake(&backend, 1 << 20, 1);
    open_push(&n, 1);
    append_some(&n);
    uint64_t durable;
    while (atomic_load(&n.durable) < n.sent)
        usleep(100);
    tl_backend_memory_refuse(backend, 0, 100, TL_IO);
    while (n.ingest)
        append_some(&n);
    tl_backend_memory_refuse(backend, 0, 0, TL_IO);
    remove_trace(&n);
    assert_int_equal(n.incarnation, 0);
    open_push(&n, 2); /* asserts that it begins at 0 */
    append_some(&n);
    assert_int_equal(tl_ingest_finish(n.ingest, &durable, NULL), TL_OK);
    check(&n, n.sent);
    close_push(&n);
    close_memory_lake(backend, lake);
}

static void another_rig_does_not_take_over(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    struct tl_ingest *first, *second, *third, *back;
    char trace[64];
    uint64_t at;
    struct tl_ingest_request request = {.rig = "one", .trace = "t", .setup = setup, .resume = true};
    lake = open_memory_lake(&backend, 1 << 20, 1);
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &first, trace, &at, &fail), TL_OK);
    assert_int_equal(
        tl_ingest_append(first, 0, (struct tl_bytes){(const uint8_t *)"abc", 3}, &fail), TL_OK);
    request.rig = "two";
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &second, trace, &at, &fail),
                     TL_EXISTS);
    /* The same push after reconnecting: everything it has appended is stored. */
    request.rig = "one";
    request.epoch = tl_ingest_epoch(first);
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &second, trace, &at, &fail), TL_OK);
    assert_int_equal(at, 3);
    /* Another push of the rig takes over; the previous one does not take the trace back. */
    request.epoch = 0;
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &third, trace, &at, &fail), TL_OK);
    request.epoch = tl_ingest_epoch(second);
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &back, trace, &at, &fail),
                     TL_DENIED);
    tl_ingest_close(first);
    tl_ingest_close(second);
    assert_int_equal(
        tl_ingest_append(third, 3, (struct tl_bytes){(const uint8_t *)"def", 3}, &fail), TL_OK);
    assert_int_equal(tl_ingest_finish(third, &at, &fail), TL_OK);
    assert_int_equal(at, 6);
    tl_ingest_close(third);
    close_memory_lake(backend, lake);
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_used_again_after_a_failure),
        cmocka_unit_test(another_rig_does_not_take_over),
        cmocka_unit_test(every_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
