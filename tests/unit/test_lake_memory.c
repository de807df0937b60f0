/* SPDX-License-Identifier: MIT */
/* Storing a stream takes constant memory: four times the instructions need no more. Memory that is
 * no longer needed is freed. */
#include "sim_capture.h"

#include "lake/heap.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { INSNS = 1 << 20, SLACK = 12 << 10 /* KiB: variation between threads */ };

struct source {
    struct tl_buf trace;
    struct tl_buf elf;
};

static void make(struct source *s)
{
    const struct tl_sim_etm4_options etm = sim_etm(&(struct sim_options){.events = true}, 0);
    const struct tl_sim_core_options options = {.seed = 2, .etm = etm};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    assert_int_equal(
        tl_sim_program_init(&program, &(struct tl_sim_program_options){.seed = 1, .extra = 50}),
        TL_OK);
    assert_int_equal(tl_sim_core_new(&core, &program, &options, &s->trace, NULL, NULL), TL_OK);
    assert_int_equal(tl_sim_core_step(core, INSNS), TL_OK);
    assert_int_equal(tl_sim_core_flush(core), TL_OK);
    assert_int_equal(tl_sim_program_elf(&program, &s->elf), TL_OK);
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
}

static void write_setup(const char *hash, struct tl_buf *out)
{
    const struct tl_sim_etm4_options etm = sim_etm(&(struct sim_options){.events = true}, 0);
    struct tl_setup setup;
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "etm4,id=0x10", NULL), TL_OK);
    assert_int_equal(tl_sim_etm4_source(&etm, &setup.sources[0]), TL_OK);
    snprintf(setup.sources[0].name, sizeof(setup.sources[0].name), "cs.10");
    setup.sources[0].id = 0x10;
    assert_int_equal(tl_setup_add_image(&setup, hash, NULL), TL_OK);
    assert_int_equal(tl_setup_write(&setup, out), TL_OK);
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
    tl_setup_fini(&setup);
}

/* In a child process, store the trace `times` times as one stream. Returns 0 if all instructions
 * are stored. */
static int store(const struct source *s, const char *dir, unsigned times)
{
    const struct tl_lake_options options = {
        .dir = dir, .shard_insns = INSNS / 8, .decode_threads = 2, .min_free_bytes = 1};
    struct tl_lake *lake;
    struct tl_ingest *ingest;
    struct tl_trace_list list;
    struct tl_buf setup = {0};
    char hash[72], id[64];
    uint64_t at;
    if (tl_lake_open(&lake, &options, NULL) < 0)
        return 1;
    sim_put_image(lake, &s->elf, hash);
    write_setup(hash, &setup);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)setup.p};
    if (tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, NULL) < 0)
        return 2;
    for (unsigned i = 0; i < times; i++) {
        for (size_t done = 0; done < s->trace.n; done += 4096) {
            const size_t n = s->trace.n - done < 4096 ? s->trace.n - done : 4096;
            if (tl_ingest_append(ingest, at, (struct tl_bytes){s->trace.p + done, n}, NULL) < 0)
                return 3;
            at += n;
        }
    }
    if (tl_ingest_finish(ingest, &at, NULL) < 0)
        return 4;
    tl_ingest_close(ingest);
    if (wait_done(lake, "t") != TL_TRACE_SEALED || tl_lake_trace(lake, "t", &list) < 0)
        return 5;
    const uint64_t insns = list.rows[0].streams[0].insns;
    tl_trace_list_free(&list);
    tl_lake_close(lake);
    tl_buf_fini(&setup);
    return insns < (uint64_t)times * INSNS * 9 / 10 ? 6 : 0;
}

/* Peak memory of a process in KiB. */
static long memory_of(const struct source *s, unsigned times)
{
    char dir[] = "/tmp/tl-memory-XXXXXX";
    char command[256];
    struct rusage usage;
    int status;
    assert_non_null(mkdtemp(dir));
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(store(s, dir, times));
    assert_int_equal(wait4(pid, &status, 0, &usage), pid);
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return usage.ru_maxrss;
}

static void long_streams_take_no_more(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("skipped: a sanitizer keeps memory of its own\n");
    skip();
#endif
    struct source s = {0};
    make(&s);
    const long once = memory_of(&s, 3);
    const long more = memory_of(&s, 12);
    print_message("%u M instructions: %ld KiB; %u M: %ld KiB\n", 3, once, 12, more);
    assert_true(more < once + SLACK);
    tl_buf_fini(&s.trace);
    tl_buf_fini(&s.elf);
}

enum { ROUNDS = 5, TRACES = 30 /* in a round */, OF_A_TRACE = 64 << 10 };

static void store_some(struct tl_lake *lake, const struct capture *c, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        char id[16];
        snprintf(id, sizeof(id), "t%u", i);
        push_sealed(lake, id, c, 10000);
    }
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The memory in use for each of many small captures, which are decoded and then only stored. */
static void stored_traces_take_little(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("skipped: a sanitizer has a malloc() of its own\n");
    skip();
#endif
    const struct sim_options options = {
        .seed = 5, .insns = 20000, .cores = 1, .image = true, .events = true};
    struct tl_backend *backend;
    struct tl_trace_list list;
    struct capture c;
    char dir[] = "/tmp/tl-memory-XXXXXX";
    char command[256];
    assert_non_null(mkdtemp(dir));
    struct tl_fail fail = {0};
    if (tl_backend_folder(&backend, dir, &fail) < 0)
        fail_msg("%s", fail.text);
    struct tl_lake *const lake = open_lake_sized(backend, 1 << 20, 2);
    sim_capture(lake, &options, &c);
    int64_t grown[ROUNDS];
    store_some(lake, &c, 0, TRACES);
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint64_t before = tl_heap_use().in_use;
        store_some(lake, &c, (i + 1) * TRACES, TRACES);
        grown[i] = (int64_t)tl_heap_use().in_use - (int64_t)before;
        print_message("%lld bytes a trace\n", (long long)(grown[i] / TRACES));
    }
    /* Not the largest: a thread gets its own compressor, a megabyte or two, when it is first
     * needed. */
    qsort(grown, ROUNDS, sizeof *grown, by_size);
    assert_true(grown[ROUNDS / 2] < (int64_t)TRACES * OF_A_TRACE);
    assert_int_equal(tl_lake_traces(lake, &list), TL_OK);
    assert_int_equal(list.n, (ROUNDS + 1) * TRACES);
    tl_trace_list_free(&list);
    close_memory_lake(backend, lake);
    capture_free(&c);
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

enum { PIECES = 4096, PIECE_BYTES = 60000 };

/* Every 64th piece is kept, so that no heap can be trimmed at its end. */
static void freed_memory_is_given_back(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    print_message("skipped: a sanitizer has a malloc() of its own\n");
    skip();
#endif
    static void *pieces[PIECES];
    tl_lake_share_heaps();
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = malloc(PIECE_BYTES);
        assert_non_null(pieces[i]);
        memset(pieces[i], 1, PIECE_BYTES);
    }
    for (size_t i = 0; i < PIECES; i++) {
        if (i % 64 == 63)
            continue;
        free(pieces[i]);
        pieces[i] = NULL;
    }
    const struct tl_heap_use held = tl_heap_use();
    tl_heap_tidy();
    const struct tl_heap_use use = tl_heap_use();
    print_message("in use %llu; resident %llu, then %llu\n", (unsigned long long)use.in_use,
                  (unsigned long long)held.resident, (unsigned long long)use.resident);
    assert_true(held.resident > (uint64_t)PIECES * PIECE_BYTES * 9 / 10);
    assert_true(use.resident < use.in_use + use.in_use / 2 + (64u << 20));
    for (size_t i = 0; i < PIECES; i++)
        free(pieces[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_streams_take_no_more),
        cmocka_unit_test(stored_traces_take_little),
        cmocka_unit_test(freed_memory_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
