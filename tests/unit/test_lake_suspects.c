/* SPDX-License-Identifier: MIT */
/*
 * Captures that end the server: after two ends they are left, whoever else was being decoded is
 * let off, and nobody else waits for them. The servers that are ended are this program, begun anew.
 */
#include "decoding/suspect.h"
#include "turns.h"

#include <signal.h>
#include <sys/wait.h>

/* Each server is a process of its own on a real folder. */
static char dir[] = "/tmp/tl-suspects-XXXXXX";
static bool crashing; /* whoever decodes "bad" */
static const struct tl_backend_ops *folder_ops;
static struct tl_backend_ops crashing_ops;
static pthread_t main_thread;

static void make_folder(void)
{
    strcpy(dir + sizeof dir - 7, "XXXXXX");
    assert_non_null(mkdtemp(dir));
}

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

/* Raw bytes of "bad" end the server: in its turn, on the thread that decodes it. */
static int crash_on_open(struct tl_backend *store, const char *key, bool create,
                         struct tl_log **out, uint64_t *size, struct tl_fail *fail)
{
    if (!create && strncmp(key, "r/bad/", 6) == 0 && !pthread_equal(pthread_self(), main_thread))
        raise(SIGSEGV);
    return folder_ops->log_open(store, key, create, out, size, fail);
}

static bool gates; /* the next server's medium is behind the gate */

static void serve_folder(unsigned threads)
{
    static struct tl_backend_ops gated;
    struct tl_fail fail;
    assert_int_equal(tl_backend_folder(&backend, dir, &fail), TL_OK);
    main_thread = pthread_self();
    folder_ops = backend->ops;
    crashing_ops = *folder_ops;
    crashing_ops.log_open = crash_on_open;
    backend->ops = crashing ? &crashing_ops : folder_ops;
    if (gates)
        shut_gate(&gated);
    /* The lease of a killed process is released, but not immediately. */
    const struct tl_lake_options options = {
        .shard_insns = SHARD, .decode_threads = threads, .min_free_bytes = 1};
    for (int64_t since = 0; tl_lake_open_on(&lake, backend, &options, &fail) < 0;)
        keep_waiting(&since, fail.text);
}

/* A server that lives as `name` says and is ended by a signal: this program, begun anew. */
static void live_and_die(const char *name, unsigned threads, int number)
{
    char text[2][12];
    snprintf(text[0], sizeof text[0], "%u", threads);
    snprintf(text[1], sizeof text[1], "%d", number);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "test_lake_suspects", name, dir, text[0], text[1], (char *)NULL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == number);
}

/* How many ends of the server count against a trace, by the file about turns, which is read as an
 * administrator would. `*turn`: it has its turn, or had when the server was killed. */
static unsigned read_turns(const char *id, bool *turn)
{
    char path[64], line[200], name[64];
    unsigned ends = 0, found;
    *turn = false;
    snprintf(path, sizeof path, "%s/turns", dir);
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line + 1, "%u %*s %*s %63s", &found, name) == 2 && !strcmp(name, id)) {
            ends = found;
            *turn = line[0] == '+';
        }
    fclose(f);
    return ends;
}

static unsigned ends_of(const char *id)
{
    bool turn;
    return read_turns(id, &turn);
}

/* The server is killed while "zeros" has its turn: one that waits for the medium has none. */
static void die_computing(void)
{
    bool turn = false;
    while (!turn) {
        live_and_die("push_and_compute", 1, SIGKILL);
        (void)read_turns("zeros", &turn);
    }
}

static struct tl_gen *making_of(const char *id)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    assert_non_null(trace);
    struct tl_gen *const gen = trace->making;
    tl_trace_put(trace);
    return gen;
}

static bool has(const char *id)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    tl_trace_put(trace);
    return trace;
}

/* Until it has computed for so long that a kill counts. */
static void wait_computed(const char *id)
{
    struct tl_gen *const gen = making_of(id);
    const struct tl_decode_job *job;
    for (int64_t since = 0; !(job = job_of(gen)) || job->cpu_ns < 2 * TL_SUSPECT_CPU_NS;)
        keep_waiting(&since, id);
}

static void push_and_compute(void)
{
    if (!has("zeros"))
        push_zeros("zeros", ENDLESS);
    wait_computed("zeros");
}

/* A server that is stopped, even often, resumes it; one that was killed twice meanwhile does not,
 * until it is told to. */
static void what_kills_the_server_is_left(void **state)
{
    struct tl_fail fail = {0};
    (void)state;
    make_folder();
    serve_folder(1);
    push_zeros("zeros", ENDLESS);
    for (unsigned i = 0; i < 3; i++) {
        wait_computed("zeros");
        close_at_once();
        serve_folder(1);
    }
    close_at_once();
    die_computing();
    die_computing();
    serve_folder(1);
    assert_failed("zeros", "ended 2 times");
    assert_failed("zeros", "redecode zeros");
    assert_int_equal(tl_lake_redecode(lake, "zeros", NULL, &fail), TL_OK);
    wait_shards(2);
    close_at_once();
    remove_folder();
}

/* Stopping in between does not make it forgotten. */
static void a_stop_between_changes_nothing(void **state)
{
    (void)state;
    make_folder();
    die_computing();
    serve_folder(1);
    wait_computed("zeros");
    close_at_once();
    die_computing();
    serve_folder(1);
    assert_failed("zeros", "redecode zeros");
    close_at_once();
    remove_folder();
}

static void make_live(struct capture *c)
{
    const struct sim_options options = {
        .seed = 5, .insns = 40000, .cores = 1, .image = true, .events = true};
    sim_capture(lake, &options, c);
}

/* Push part of a live capture, and wait until it is decoded: it has no turn now. */
static void push_live(void)
{
    struct tl_ingest *ingest;
    struct capture c;
    char trace[64];
    uint64_t at;
    make_live(&c);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "live", .setup = (const char *)c.setup.p, .resume = true};
    const size_t part = c.bytes.n / 16;
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, NULL), TL_OK);
    const struct tl_bytes bytes = {c.bytes.p + at, part};
    assert_int_equal(tl_ingest_append(ingest, at, bytes, NULL), TL_OK);
    struct tl_trace *const t = tl_lake_find_trace(lake, "live");
    for (int64_t since = 0; atomic_load(&t->making->decoded) < at + part;)
        keep_waiting(&since, "decoding");
    tl_lake_end_job(lake, t);
    tl_trace_put(t);
    capture_free(&c);
}

/* One that waits for its turn because of others, which computed before. */
static void push_beside_others(void)
{
    push_live();
    if (!has("zeros"))
        push_zeros("zeros", ENDLESS);
    wait_computed("zeros");
}

static void only_ends_in_its_turn_count(void **state)
{
    struct capture c;
    (void)state;
    make_folder();
    for (unsigned i = 0; i < 10; i++) {
        live_and_die(i < 8 ? "push_live" : "push_beside_others", 1, SIGKILL);
        assert_int_equal(ends_of("live"), 0);
    }
    serve_folder(2);
    make_live(&c);
    push_sealed(lake, "live", &c, 1000);
    capture_free(&c);
    close_at_once();
    remove_folder();
}

/* With a thread for each of two that take hours, either may have been it; they are tried one
 * after the other, and one that is still there while the other one ends the server is let off. */
static void push_two(void)
{
    push_zeros("a", ENDLESS);
    push_zeros("b", ENDLESS);
    wait_computed("a");
    wait_computed("b");
}

static void try_two(void)
{
    wait_computed("a");
    wait_computed("b");
}

static void suspects_are_tried_alone(void **state)
{
    (void)state;
    make_folder();
    live_and_die("push_two", 2, SIGKILL);
    live_and_die("try_two", 2, SIGKILL);
    serve_folder(2);
    const unsigned failed = (state_of("a") == TL_TRACE_FAILED) + (state_of("b") == TL_TRACE_FAILED);
    assert_true(failed <= 1);
    close_at_once();
    assert_true(ends_of("a") < 2 || ends_of("b") < 2);
    remove_folder();
}

static const char *const slow[] = {"slow-a", "slow-b", "slow-c"};

static void push_slow(void)
{
    for (size_t i = 0; i < 3; i++)
        push_zeros(slow[i], ENDLESS);
    for (size_t i = 0; i < 3; i++)
        wait_computed(slow[i]);
}

/* As if the server had ended once in each one's turn: whose turn it was when it was killed is
 * chance. */
static void suspect_slow(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/turns", dir);
    FILE *const f = fopen(path, "r+");
    assert_non_null(f);
    for (long i = 0; i < 3; i++) {
        assert_int_equal(fseek(f, (i + 1) * 128, SEEK_SET), 0);
        assert_int_equal(fprintf(f, "  1 0 1 %-119s\n", slow[i]), 128);
    }
    assert_int_equal(fclose(f), 0);
}

/* One suspect has its turn, which lasts as long as the medium takes: those that wait for it take
 * nobody's slot meanwhile, and can be removed. */
static void suspects_wait_beside_others(void **state)
{
    const struct sim_options options = {
        .seed = 5, .insns = 20000, .cores = 1, .image = true, .events = true};
    struct capture c;
    char first[64];
    (void)state;
    make_folder();
    live_and_die("push_slow", 3, SIGKILL);
    suspect_slow();
    gates = true;
    serve_folder(2);
    gates = false;
    for (int64_t since = 0; !is_at_gate(first);)
        keep_waiting(&since, "the medium has the shard of one");
    sim_capture(lake, &options, &c);
    push_sealed(lake, "short", &c, 1000);
    for (size_t i = 0; i < 3; i++)
        if (strcmp(slow[i], first) != 0) {
            let_through(slow[i]); /* it may have had a turn before the first one's lasted */
            delete_at_once(slow[i]);
        }
    open_gate();
    capture_free(&c);
    close_at_once();
    remove_folder();
}

static void crash(void)
{
    struct tl_ingest *ingest;
    struct capture c;
    char trace[64], hash[72];
    uint64_t at;
    push_and_compute();
    put_zeros(lake, hash);
    make_zeros(&c, hash, 1);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "bad", .setup = (const char *)c.setup.p, .resume = true};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, NULL), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, at, (struct tl_bytes){c.bytes.p, c.bytes.n}, NULL),
                     TL_OK);
    for (;;)
        pause();
}

static void who_crashed_is_known(void **state)
{
    (void)state;
    make_folder();
    live_and_die("crash", 2, SIGSEGV);
    live_and_die("crash", 2, SIGSEGV);
    serve_folder(2);
    assert_failed("bad", "redecode bad");
    assert_int_equal(state_of("zeros"), TL_TRACE_DECODING);
    close_at_once();
    assert_int_equal(ends_of("zeros"), 0);
    remove_folder();
}

/* ---- a server of these tests ----------------------------------------------------------------- */

struct life {
    const char *name;
    void (*live)(void);
};

static const struct life lives[] = {
    {"push_and_compute", push_and_compute},
    {"push_live", push_live},
    {"push_beside_others", push_beside_others},
    {"push_two", push_two},
    {"try_two", try_two},
    {"push_slow", push_slow},
    {"crash", crash},
};

static char **words; /* name, folder, threads, signal */

static void live(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s", words[1]);
    crashing = !strcmp(words[0], "crash");
    (void)signal(SIGSEGV, SIG_DFL); /* cmocka would catch it */
    tl_lake_watch_crashes();
    serve_folder((unsigned)atoi(words[2]));
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        if (!strcmp(lives[i].name, words[0]))
            lives[i].live();
    raise(atoi(words[3]));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_kills_the_server_is_left),
        cmocka_unit_test(a_stop_between_changes_nothing),
        cmocka_unit_test(only_ends_in_its_turn_count),
        cmocka_unit_test(suspects_are_tried_alone),
        cmocka_unit_test(suspects_wait_beside_others),
        cmocka_unit_test(who_crashed_is_known),
    };
    const struct CMUnitTest server[] = {cmocka_unit_test(live)};
    if (argc == 5) {
        words = argv + 1;
        return cmocka_run_group_tests(server, NULL, NULL);
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
