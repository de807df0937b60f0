/* SPDX-License-Identifier: MIT */
/*
 * Pushes that begin at once under one name that is new, or under names that the server chooses:
 * each gets its trace, and nobody is told of a trace that was made for him. A rig that was killed
 * and begins again meets its own earlier push in just this way.
 */
#include "lake_help.h"

enum { RIGS = 4, ROUNDS = 60 };

static const char setup[] = "[trace]\nformat = tpiu\n";

static struct tl_backend *backend;
static struct tl_lake *lake;
static pthread_barrier_t barrier;

struct rig {
    const char *name; /* NULL: the server chooses one */
    bool virtual;
    bool met; /* somebody removes the trace meanwhile, which is to be tried again */
    struct tl_ingest *ingest;
    char trace[64], labels[64];
    uint64_t at;
    int opened, appended;
    struct tl_fail fail;
};

static void note_labels(struct rig *rig)
{
    struct tl_trace_list list;
    if (tl_lake_trace(lake, rig->trace, &list) < 0)
        return;
    snprintf(rig->labels, sizeof rig->labels, "%s", list.rows[0].labels);
    tl_trace_list_free(&list);
}

static void *push(void *context)
{
    struct rig *const rig = context;
    const struct tl_ingest_request request = {.rig = "rig",
                                              .trace = rig->name,
                                              .setup = setup,
                                              .resume = rig->name != NULL,
                                              .shards = rig->virtual ? TL_SHARDS_VIRTUAL
                                                                     : TL_SHARDS_STORED};
    pthread_barrier_wait(&barrier);
    do
        rig->opened = tl_ingest_open(lake, &request, NULL, NULL, &rig->ingest, rig->trace, &rig->at,
                                     &rig->fail);
    while (rig->met && rig->opened == TL_AGAIN);
    if (rig->opened >= 0)
        note_labels(rig);
    pthread_barrier_wait(&barrier);
    if (rig->opened >= 0)
        rig->appended = tl_ingest_append(rig->ingest, rig->at,
                                         (struct tl_bytes){(const uint8_t *)"x", 1}, &rig->fail);
    return NULL;
}

static void *remove_it(void *context)
{
    const char *const name = context;
    pthread_barrier_wait(&barrier);
    for (int r = TL_NOTFOUND; r == TL_NOTFOUND || r == TL_AGAIN;)
        r = tl_lake_delete(lake, name, NULL); /* TL_DENIED: it is being pushed */
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* All of them push, and perhaps somebody removes the trace; then all close. Returns how many could
 * append. */
static unsigned push_at_once(struct rig rigs[static RIGS], const char *removed)
{
    pthread_t threads[RIGS + 1];
    unsigned n = 0;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, RIGS + (removed ? 1 : 0)), 0);
    if (removed)
        assert_int_equal(pthread_create(&threads[RIGS], NULL, remove_it, (void *)removed), 0);
    for (size_t i = 0; i < RIGS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push, &rigs[i]), 0);
    for (size_t i = 0; i < RIGS + (removed ? 1 : 0); i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < RIGS; i++) {
        if (rigs[i].opened < 0)
            fail_msg("not opened: %s: %s", tl_err_name(rigs[i].opened), rigs[i].fail.text);
        if (rigs[i].appended < 0 && rigs[i].appended != TL_DENIED)
            fail_msg("not appended: %s", rigs[i].fail.text);
        n += rigs[i].appended >= 0;
    }
    for (size_t i = 0; i < RIGS; i++)
        tl_ingest_close(rigs[i].ingest);
    pthread_barrier_destroy(&barrier);
    return n;
}

/* The last one has it, and the others learn that somebody took over. */
static void a_new_name_is_for_all(void **state)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct rig rigs[RIGS] = {{0}};
        char name[16];
        snprintf(name, sizeof name, "new-%u", round);
        for (size_t i = 0; i < RIGS; i++)
            rigs[i] = (struct rig){.name = name, .virtual = round % 2};
        assert_int_equal(push_at_once(rigs, NULL), 1);
        for (size_t i = 0; i < RIGS; i++)
            assert_string_equal(rigs[i].labels, round % 2 ? "shards=virtual\n" : "");
    }
}

static void a_name_that_is_removed_at_once_is_for_all(void **state)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct rig rigs[RIGS] = {{0}};
        char name[16];
        snprintf(name, sizeof name, "gone-%u", round);
        for (size_t i = 0; i < RIGS; i++)
            rigs[i] = (struct rig){.name = name, .met = true, .virtual = round % 2};
        assert_int_equal(push_at_once(rigs, name), 1);
    }
}

static void chosen_names_differ(void **state)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct rig rigs[RIGS] = {{0}};
        assert_int_equal(push_at_once(rigs, NULL), RIGS);
        for (size_t i = 0; i < RIGS; i++)
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(rigs[i].trace, rigs[k].trace);
    }
}

static int set_up(void **state)
{
    lake = open_memory_lake(&backend, 1000, 1);
    return 0;
}

static int tear_down(void **state)
{
    close_memory_lake(backend, lake);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_name_is_for_all),
        cmocka_unit_test(a_name_that_is_removed_at_once_is_for_all),
        cmocka_unit_test(chosen_names_differ),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
