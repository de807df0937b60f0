/* SPDX-License-Identifier: MIT */
/*
 * Captures of which a few raw bytes stand for very many instructions: their shards are stored while
 * they are decoded, in bounded memory; they can be deleted, and the lake closed, at once; others
 * have their turn; and what is stored does not depend on the turns. Progress is measured in shards,
 * never by sleeping.
 */
#include "sim_capture.h"

#include "decoding/suspect.h"

#include <signal.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define ZEROS   ((size_t)16 << 20) /* bytes of the program: none of its instructions branches */
#define SHARD   (UINT64_C(1) << 20)
#define BASE    UINT32_C(0x80000000)
#define AT_ONCE 2000 /* ms; sanitizers slow everything down */

static struct tl_backend *backend;
static struct tl_lake *lake;

static int64_t at_once(void)
{
    return SANITIZED ? 10 * AT_ONCE : AT_ONCE;
}

/* `jumps` addresses in a program of zeros, each followed by an atom: the core ran on for as long as
 * the walker believes. */
static void make_zeros(struct capture *c, const char *hash, unsigned jumps)
{
    static const uint8_t begin[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 1, 1, 0, 4};
    struct tl_setup setup;
    *c = (struct capture){0};
    assert_int_equal(tl_buf_add(&c->bytes, begin, sizeof begin), TL_OK);
    for (unsigned i = 0; i < jumps; i++) {
        const uint8_t jump[] = {0x82, 0, (uint8_t)(i & 15), 0, 0x80, 0, 0xf7};
        assert_int_equal(tl_buf_add(&c->bytes, jump, sizeof jump), TL_OK);
    }
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "etm4,id=0x10", NULL), TL_OK);
    const struct tl_sim_etm4_options etm = {.minor = 4, .trace_id = 0x10};
    assert_int_equal(tl_sim_etm4_source(&etm, &setup.sources[0]), TL_OK);
    snprintf(setup.sources[0].name, sizeof setup.sources[0].name, "cs.10");
    setup.sources[0].id = 0x10;
    assert_int_equal(tl_setup_add_image_at(&setup, hash, BASE, 0, UINT64_MAX, TL_SPACE_ANY), TL_OK);
    assert_int_equal(tl_setup_write(&setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
    tl_setup_fini(&setup);
}

static void put_zeros(struct tl_lake *to, char hash[static 72])
{
    struct tl_buf zeros = {0};
    assert_int_equal(tl_buf_reserve(&zeros, ZEROS), TL_OK);
    memset(zeros.p, 0, ZEROS);
    zeros.n = ZEROS;
    sim_put_image(to, &zeros, hash);
    tl_buf_fini(&zeros);
}

static void open_lake(unsigned threads)
{
    lake = open_memory_lake(&backend, SHARD, threads);
}

static void push_zeros(const char *id, unsigned jumps)
{
    struct capture c;
    char hash[72];
    put_zeros(lake, hash);
    make_zeros(&c, hash, jumps);
    push_all(lake, id, &c, 1 << 20);
    capture_free(&c);
}

/* Wait until `n` more shards have been stored. */
static void wait_shards(unsigned long n)
{
    const unsigned long from = atomic_load(&lake->shards_sealed);
    for (int64_t since = 0; atomic_load(&lake->shards_sealed) < from + n;)
        keep_waiting(&since, "shards");
}

static size_t peak_kib(void)
{
    FILE *const f = fopen("/proc/self/status", "r");
    char line[128];
    size_t kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %zu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static int state_of(const char *id)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    const int state = list.rows[0].state;
    tl_trace_list_free(&list);
    return state;
}

static void delete_at_once(const char *id)
{
    struct tl_fail fail = {0};
    const int64_t begun = tl_monotonic_ms();
    assert_int_equal(tl_lake_delete(lake, id, &fail), TL_OK);
    assert_true(tl_monotonic_ms() - begun < at_once());
}

static void close_at_once(void)
{
    const int64_t begun = tl_monotonic_ms();
    tl_lake_close(lake);
    assert_true(tl_monotonic_ms() - begun < at_once());
    tl_backend_free(backend);
}

/* All of it is one push to the decoder, which takes minutes. */
static void shards_are_stored_within_a_push(void **state)
{
    (void)state;
    open_lake(2);
    push_zeros("zeros", 4000);
    wait_shards(6);
    const size_t before = peak_kib();
    wait_shards(SANITIZED ? 12 : 60);
    assert_int_equal(state_of("zeros"), TL_TRACE_DECODING);
    assert_true(SANITIZED || peak_kib() < before + (64u << 10));
    delete_at_once("zeros");
    close_at_once();
}

static void closing_ends_a_push(void **state)
{
    (void)state;
    open_lake(1);
    push_zeros("a", 4000);
    push_zeros("b", 4000);
    wait_shards(3);
    close_at_once();
}

/* With one thread, three captures that take minutes; others are decoded in the meantime. */
static void others_have_their_turn(void **state)
{
    const struct sim_options options = {
        .seed = 5, .insns = 20000, .cores = 1, .image = true, .events = true};
    static const char *const names[] = {"a", "b", "c"};
    struct capture c;
    (void)state;
    open_lake(1);
    sim_capture(lake, &options, &c);
    for (size_t i = 0; i < 3; i++)
        push_zeros(names[i], 4000);
    wait_shards(2);
    push_all(lake, "short", &c, 1000);
    assert_int_equal(wait_done(lake, "short"), TL_TRACE_SEALED);
    for (size_t i = 0; i < 3; i++) {
        struct tl_trace *const trace = tl_lake_find_trace(lake, names[i]);
        for (int64_t since = 0; trace->serving->completed == 0;)
            keep_waiting(&since, "each one progresses");
        tl_trace_put(trace);
        assert_int_equal(state_of(names[i]), TL_TRACE_DECODING);
    }
    capture_free(&c);
    delete_at_once("b"); /* also those that wait for their turn */
    close_at_once();
}

/* Traces that are being pushed have three of four turns, however many others wait. */
static void live_ones_go_first(void **state)
{
    enum { OTHERS = 40, JUMPS = 8, AT = 16, JUMP = 7 }; /* bytes: make_zeros() */
    char name[16], trace[64], hash[72];
    struct tl_ingest *rig;
    struct capture c;
    uint64_t at;
    (void)state;
    open_lake(1);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "other%d", i);
        push_zeros(name, 4000);
    }
    put_zeros(lake, hash);
    make_zeros(&c, hash, JUMPS);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "live", .setup = (const char *)c.setup.p};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &rig, trace, &at, NULL), TL_OK);
    struct tl_trace *const live = tl_lake_find_trace(lake, "live");
    for (size_t end = AT; end <= c.bytes.n; end += JUMP) {
        assert_int_equal(
            tl_ingest_append(rig, at, (struct tl_bytes){c.bytes.p + at, end - at}, NULL), TL_OK);
        at = end;
        for (int64_t since = 0; atomic_load(&live->serving->decoded) < at;)
            keep_waiting(&since, "what came live is decoded");
    }
    pthread_mutex_lock(&lake->lock);
    const uint64_t others = lake->given[false], lives = lake->given[true];
    pthread_mutex_unlock(&lake->lock);
    /* The others began before, one after the other. */
    if (others > OTHERS + 2 * JUMPS + lives / 2)
        fail_msg("%llu turns of others, %llu of the live one", (unsigned long long)others,
                 (unsigned long long)lives);
    tl_trace_put(live);
    tl_ingest_close(rig);
    capture_free(&c);
    close_at_once();
}

/* A rig that returns finds its capture among the live ones, though its job waits among others. */
static void who_returns_is_live_at_once(void **state)
{
    enum { OTHERS = 8 };
    char name[16], trace[64], hash[72];
    struct tl_ingest *rig;
    struct capture c;
    uint64_t at;
    (void)state;
    open_lake(1);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "other%d", i);
        push_zeros(name, 4000);
    }
    put_zeros(lake, hash);
    make_zeros(&c, hash, 4000);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "live", .setup = (const char *)c.setup.p, .resume = true};
    for (int round = 0; round < 3; round++) {
        assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &rig, trace, &at, NULL), TL_OK);
        struct tl_trace *const live = tl_lake_find_trace(lake, "live");
        pthread_mutex_lock(&lake->lock);
        assert_true(live->live);
        pthread_mutex_unlock(&lake->lock);
        if (at < c.bytes.n)
            assert_int_equal(
                tl_ingest_append(rig, at, (struct tl_bytes){c.bytes.p + at, c.bytes.n - at}, NULL),
                TL_OK);
        for (int64_t since = 0; live->serving->completed == 0;)
            keep_waiting(&since, "it has begun");
        tl_ingest_close(rig);
        for (int64_t since = 0; live->live;)
            keep_waiting(&since, "it is one of the others");
        tl_trace_put(live);
    }
    capture_free(&c);
    close_at_once();
}

/* ---- a medium that takes its time ------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    const struct tl_backend_ops *real;
    bool open;
    char waiting[64]; /* the trace that waits; "": none */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static int put_behind_gate(struct tl_backend *store, const struct tl_object *objects, size_t n,
                           struct tl_fail *fail)
{
    pthread_mutex_lock(&gate.lock);
    while (n > 0 && strncmp(objects[0].key, "t/slow", 6) == 0 && !gate.open) {
        (void)sscanf(objects[0].key, "t/%63[^/]", gate.waiting);
        pthread_cond_wait(&gate.cond, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
    return gate.real->put_all(store, objects, n, fail);
}

static void shut_gate(struct tl_backend_ops *gated)
{
    gate.real = backend->ops;
    gate.open = false;
    gate.waiting[0] = '\0';
    *gated = *backend->ops;
    gated->put_all = put_behind_gate;
    backend->ops = gated;
}

static void open_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.lock);
}

static bool is_at_gate(char who[static 64])
{
    pthread_mutex_lock(&gate.lock);
    memcpy(who, gate.waiting, sizeof gate.waiting);
    pthread_mutex_unlock(&gate.lock);
    return who[0];
}

/* While the medium takes shards of one, others are decoded, by the only thread that may. */
static void storing_stops_nobody(void **state)
{
    const struct sim_options options = {
        .seed = 5, .insns = 20000, .cores = 1, .image = true, .events = true};
    struct capture c;
    (void)state;
    open_lake(1);
    sim_capture(lake, &options, &c);
    struct tl_backend_ops gated;
    shut_gate(&gated);
    push_all(lake, "slow-0", &c, 1000); /* waits at its end */
    push_zeros("slow-1", 4000);         /* waits in the middle */
    struct tl_trace *const slow = tl_lake_find_trace(lake, "slow-1");
    for (int64_t since = 0; slow->serving->completed == 0;)
        keep_waiting(&since, "it has shards to be stored");
    tl_trace_put(slow);
    for (unsigned i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "short-%u", i);
        push_all(lake, name, &c, 1000);
        assert_int_equal(wait_done(lake, name), TL_TRACE_SEALED);
    }
    assert_int_equal(state_of("slow-0"), TL_TRACE_DECODING);
    open_gate();
    assert_int_equal(wait_done(lake, "slow-0"), TL_TRACE_SEALED);
    capture_free(&c);
    close_at_once();
}

/* ---- the same result, whatever the turns ----------------------------------------------------- */

static int add_object(void *context, const char *key, uint64_t size)
{
    struct tl_buf *const out = context;
    (void)size;
    return strstr(key, "/cs.10/") ? tl_buf_printf(out, "%s\n", key) : TL_OK;
}

/* Hash of all stored shards of "same". */
static void digest(char out[static TL_HASH_TEXT])
{
    struct tl_buf keys = {0}, all = {0};
    assert_int_equal(backend->ops->list(backend, "t/same", add_object, &keys, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&all, keys.p, keys.n), TL_OK);
    assert_int_equal(tl_buf_add(&keys, "", 1), TL_OK);
    char *rest;
    size_t n = 0;
    for (char *key = strtok_r((char *)keys.p, "\n", &rest); key;
         key = strtok_r(NULL, "\n", &rest)) {
        assert_int_equal(tl_backend_get_all(backend, key, &all, NULL), TL_OK);
        n++;
    }
    assert_true(n > 4);
    assert_int_equal(tl_hash_text((struct tl_bytes){all.p, all.n}, out), TL_OK);
    tl_buf_fini(&keys);
    tl_buf_fini(&all);
}

static void turns_change_nothing(void **state)
{
    char alone[TL_HASH_TEXT], beside[TL_HASH_TEXT];
    (void)state;
    open_lake(1);
    push_zeros("same", 40);
    assert_int_equal(wait_done(lake, "same"), TL_TRACE_SEALED);
    digest(alone);
    close_at_once();
    open_lake(1);
    push_zeros("other", 4000);
    wait_shards(1);
    push_zeros("same", 40);
    assert_int_equal(wait_done(lake, "same"), TL_TRACE_SEALED);
    digest(beside);
    close_at_once();
    assert_string_equal(alone, beside);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void assert_failed(const char *id, const char *why)
{
    struct tl_trace_list list;
    assert_int_equal(wait_done(lake, id), TL_TRACE_FAILED);
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    if (!strstr(list.rows[0].message, why))
        fail_msg("%s", list.rows[0].message);
    tl_trace_list_free(&list);
}

/* One that needs more memory than it may have fails; its neighbour does not. */
static void memory_is_limited(void **state)
{
    const struct sim_options options = {
        .seed = 5, .insns = 20000, .cores = 1, .image = true, .events = true};
    const struct tl_lake_options limits = {
        .shard_insns = SHARD, .decode_threads = 1, .min_free_bytes = 1, .decode_memory = 24u << 20};
    struct capture c;
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    assert_int_equal(tl_lake_open_on(&lake, backend, &limits, NULL), TL_OK);
    push_zeros("large", 4000);
    assert_failed("large", "--decode-memory");
    assert_int_equal(atomic_load(&lake->decode_bytes), 0);
    sim_capture(lake, &options, &c);
    push_all(lake, "small", &c, 1000);
    assert_int_equal(wait_done(lake, "small"), TL_TRACE_SEALED);
    capture_free(&c);
    close_at_once();
}

/* ---- what ends the server -------------------------------------------------------------------- */

/* Each server is a process of its own on a real folder. */
static char dir[] = "/tmp/tl-turns-XXXXXX";
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
        execl("/proc/self/exe", "test_lake_turns", name, dir, text[0], text[1], (char *)NULL);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == number);
}

/* How many ends of the server count against a trace, by the file about turns, which is read as an
 * administrator would. */
static unsigned ends_of(const char *id)
{
    char path[64], line[200], name[64];
    unsigned ends = 0, found;
    snprintf(path, sizeof path, "%s/turns", dir);
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line + 1, "%u %*s %*s %63s", &found, name) == 2 && !strcmp(name, id))
            ends = found;
    fclose(f);
    return ends;
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
    const struct tl_gen *const gen = making_of(id);
    for (int64_t since = 0; gen->cpu_ns < 2 * TL_SUSPECT_CPU_NS;)
        keep_waiting(&since, id);
}

static void push_and_compute(void)
{
    if (!has("zeros"))
        push_zeros("zeros", 4000);
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
    push_zeros("zeros", 4000);
    for (unsigned i = 0; i < 3; i++) {
        wait_computed("zeros");
        close_at_once();
        serve_folder(1);
    }
    close_at_once();
    live_and_die("push_and_compute", 1, SIGKILL);
    live_and_die("push_and_compute", 1, SIGKILL);
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
    live_and_die("push_and_compute", 1, SIGKILL);
    serve_folder(1);
    wait_computed("zeros");
    close_at_once();
    live_and_die("push_and_compute", 1, SIGKILL);
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
        push_zeros("zeros", 4000);
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
    push_all(lake, "live", &c, 1000);
    assert_int_equal(wait_done(lake, "live"), TL_TRACE_SEALED);
    capture_free(&c);
    close_at_once();
    remove_folder();
}

/* With a thread for each of two that take minutes, either may have been it; they are tried one
 * after the other, and one that is still there while the other one ends the server is let off. */
static void push_two(void)
{
    push_zeros("a", 4000);
    push_zeros("b", 4000);
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
        push_zeros(slow[i], 4000);
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
    push_all(lake, "short", &c, 1000);
    assert_int_equal(wait_done(lake, "short"), TL_TRACE_SEALED);
    for (size_t i = 0; i < 3; i++)
        if (strcmp(slow[i], first) != 0)
            delete_at_once(slow[i]);
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
        cmocka_unit_test(shards_are_stored_within_a_push),
        cmocka_unit_test(closing_ends_a_push),
        cmocka_unit_test(others_have_their_turn),
        cmocka_unit_test(live_ones_go_first),
        cmocka_unit_test(who_returns_is_live_at_once),
        cmocka_unit_test(storing_stops_nobody),
        cmocka_unit_test(turns_change_nothing),
        cmocka_unit_test(memory_is_limited),
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
