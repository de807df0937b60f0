/* SPDX-License-Identifier: MIT */
/*
 * Captures of which a few raw bytes stand for very many instructions: their shards are stored while
 * they are decoded, in bounded memory; they can be deleted, and the lake closed, at once; others
 * have their turn; and what is stored does not depend on the turns. Progress is measured in shards,
 * never by sleeping.
 */
#include "turns.h"

/* All of it is one push to the decoder, which takes hours. */
static void shards_are_stored_within_a_push(void **state)
{
    (void)state;
    open_lake(2);
    push_zeros("zeros", ENDLESS);
    wait_shards(6);
    const size_t before = peak_kib();
    wait_shards(SANITIZED ? 12 : 60);
    assert_int_equal(state_of("zeros"), TL_TRACE_DECODING);
    assert_true(SANITIZED || peak_kib() < before + (16u << 10)); /* of 80 MB of records */
    delete_at_once("zeros");
    close_at_once();
}

static void closing_ends_a_push(void **state)
{
    (void)state;
    open_lake(1);
    push_zeros("a", ENDLESS);
    push_zeros("b", ENDLESS);
    wait_shards(3);
    close_at_once();
}

/* With one thread, three captures that take hours; others are decoded in the meantime. */
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
        push_zeros(names[i], ENDLESS);
    wait_shards(2);
    push_sealed(lake, "short", &c, 1000);
    for (size_t i = 0; i < 3; i++) {
        struct tl_trace *const trace = tl_lake_find_trace(lake, names[i]);
        for (int64_t since = 0; !has_completed(trace->serving);)
            keep_waiting(&since, "each one progresses");
        tl_trace_put(trace);
        assert_int_equal(state_of(names[i]), TL_TRACE_DECODING);
    }
    capture_free(&c);
    delete_at_once("b"); /* also those that wait for their turn */
    close_at_once();
}

/* How many jobs compute, of those that are not live and of those that are. */
static void count_busy(unsigned busy[static 2])
{
    pthread_mutex_lock(&lake->lock);
    memcpy(busy, lake->queue.busy, sizeof lake->queue.busy);
    pthread_mutex_unlock(&lake->lock);
}

/* Traces that are being pushed have slots of their own, more than the processors that the server
 * may use, however many others wait; these have one at least, and what the live ones leave. */
static void live_ones_wait_for_no_others(void **state)
{
    enum { OTHERS = 8, LIVES = 5, SLOTS = 2, LIVE_SLOTS = 6 };
    char name[16], trace[64], hash[72];
    struct tl_ingest *rigs[LIVES];
    struct capture c;
    unsigned busy[2];
    uint64_t at;
    (void)state;
    open_lake(SLOTS);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "other%d", i);
        push_zeros(name, ENDLESS);
    }
    count_busy(busy);
    for (int64_t since = 0; busy[false] < SLOTS; count_busy(busy))
        keep_waiting(&since, "the others have all slots");
    put_zeros(lake, hash);
    make_zeros(&c, hash, ENDLESS);
    for (int i = 0; i < LIVES; i++) {
        snprintf(name, sizeof name, "live%d", i);
        const struct tl_ingest_request request = {
            .rig = name, .trace = name, .setup = (const char *)c.setup.p};
        assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &rigs[i], trace, &at, NULL),
                         TL_OK);
        assert_int_equal(
            tl_ingest_append(rigs[i], 0, (struct tl_bytes){c.bytes.p, c.bytes.n}, NULL), TL_OK);
    }
    for (int64_t since = 0; busy[true] < LIVES || busy[false] != 1; count_busy(busy)) {
        assert_true(busy[true] <= LIVE_SLOTS && busy[false] <= SLOTS);
        keep_waiting(&since, "all live ones compute, and one of the others");
    }
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof name, "other%d", i);
        struct tl_trace *const other = tl_lake_find_trace(lake, name);
        for (int64_t since = 0; !has_completed(other->serving);)
            keep_waiting(&since, "the others progress, one after the other");
        tl_trace_put(other);
    }
    for (int i = 0; i < LIVES; i++)
        tl_ingest_close(rigs[i]);
    for (int64_t since = 0; busy[true] > 0 || busy[false] != SLOTS; count_busy(busy))
        keep_waiting(&since, "whoever is not live any more leaves the slots of those who are");
    capture_free(&c);
    close_at_once();
}

/* Let no job begin, or let them again. */
static void occupy_slots(bool occupied)
{
    pthread_mutex_lock(&lake->lock);
    lake->queue.busy[false] = occupied ? lake->queue.slots[false] : 0;
    lake->queue.busy[true] = occupied ? lake->queue.slots[true] : 0;
    pthread_cond_broadcast(&lake->queue.work);
    pthread_mutex_unlock(&lake->lock);
}

/* Once many are suspended, which costs memory, each has its turn before another one begins. */
static void many_begin_slowly(void **state)
{
    enum { ALL = 20, BEGUN = 18, RESUMED = 50 /* of 8 + 9 + … + 17, some of which store */ };
    struct tl_trace *traces[ALL];
    unsigned begun = 0;
    uint64_t given = 0;
    (void)state;
    open_lake(1);
    occupy_slots(true);
    for (int i = 0; i < ALL; i++) {
        char name[16];
        snprintf(name, sizeof name, "other%d", i);
        push_zeros(name, ENDLESS);
        traces[i] = tl_lake_find_trace(lake, name);
    }
    for (int i = 0; i < ALL; i++)
        tl_lake_queue(lake, traces[i], 0); /* it is not live any more */
    occupy_slots(false);
    for (int64_t since = 0; begun < BEGUN;) {
        keep_waiting(&since, "they begin");
        pthread_mutex_lock(&lake->lock);
        begun = 0;
        for (int i = 0; i < ALL; i++)
            begun += traces[i]->job.state >= TL_JOB_RUNS;
        given = lake->queue.given[false];
        pthread_mutex_unlock(&lake->lock);
    }
    assert_in_range(given, begun + RESUMED, UINT64_MAX);
    for (int i = 0; i < ALL; i++)
        tl_trace_put(traces[i]);
    close_at_once();
}

/* Whoever sends one capture does not wait for all that another rig has sent before. */
static void rigs_alternate(void **state)
{
    static const char *const sent[] = {"a1", "a2", "a3", "b1", "a4", "c1", "b2", "b3"};
    static const char *const line[] = {"a1", "b1", "c1", "a2", "b2", "a3", "b3", "a4"};
    struct capture c;
    char hash[72], trace[64];
    uint64_t at;
    (void)state;
    open_lake(1);
    occupy_slots(true);
    put_zeros(lake, hash);
    make_zeros(&c, hash, 1);
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        const char rig[] = {sent[i][0], 0};
        struct tl_ingest *ingest;
        const struct tl_ingest_request request = {
            .rig = rig, .trace = sent[i], .setup = (const char *)c.setup.p};
        assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, NULL),
                         TL_OK);
        assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){c.bytes.p, c.bytes.n}, NULL),
                         TL_OK);
        assert_int_equal(tl_ingest_finish(ingest, &at, NULL), TL_OK);
        tl_ingest_close(ingest);
        struct tl_trace *const t = tl_lake_find_trace(lake, sent[i]);
        tl_lake_queue(lake, t, 0); /* it is not live any more */
        tl_trace_put(t);
    }
    pthread_mutex_lock(&lake->lock);
    struct tl_trace *begun[sizeof line / sizeof *line];
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        begun[i] = tl_job_queue_take(&lake->queue, false);
        assert_string_equal(begun[i] ? begun[i]->id : "nothing", line[i]);
    }
    assert_int_equal(lake->queue.n_waiting, 0);
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        tl_job_queue_add(&lake->queue, begun[i]);
    pthread_mutex_unlock(&lake->lock);
    occupy_slots(false);
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        assert_int_equal(wait_done(lake, line[i]), TL_TRACE_SEALED);
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
        push_zeros(name, ENDLESS);
    }
    put_zeros(lake, hash);
    make_zeros(&c, hash, ENDLESS);
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "live", .setup = (const char *)c.setup.p, .resume = true};
    for (int round = 0; round < 3; round++) {
        assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &rig, trace, &at, NULL), TL_OK);
        struct tl_trace *const live = tl_lake_find_trace(lake, "live");
        pthread_mutex_lock(&lake->lock);
        assert_true(live->job.live);
        pthread_mutex_unlock(&lake->lock);
        if (at < c.bytes.n)
            assert_int_equal(
                tl_ingest_append(rig, at, (struct tl_bytes){c.bytes.p + at, c.bytes.n - at}, NULL),
                TL_OK);
        for (int64_t since = 0; !has_completed(live->serving);)
            keep_waiting(&since, "it has begun");
        tl_ingest_close(rig);
        for (int64_t since = 0; live->job.live;)
            keep_waiting(&since, "it is one of the others");
        tl_trace_put(live);
    }
    capture_free(&c);
    close_at_once();
}

/* ---- a medium that takes its time ------------------------------------------------------------ */

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
    push_zeros("slow-1", ENDLESS);      /* waits in the middle */
    struct tl_trace *const slow = tl_lake_find_trace(lake, "slow-1");
    for (int64_t since = 0; !has_completed(slow->serving);)
        keep_waiting(&since, "it has shards to be stored");
    tl_trace_put(slow);
    for (unsigned i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "short-%u", i);
        push_sealed(lake, name, &c, 1000);
    }
    assert_int_equal(state_of("slow-0"), TL_TRACE_DECODING);
    open_gate();
    assert_int_equal(wait_done(lake, "slow-0"), TL_TRACE_SEALED);
    capture_free(&c);
    close_at_once();
}

/* Each job that waits for the medium keeps what is to be stored: while they are many, the others
 * wait in the queue, where they need nothing. */
static void store_many(unsigned most, uint64_t decode_memory)
{
    enum { ALL = 40 };
    const struct sim_options options = {
        .seed = 5, .insns = 20000, .cores = 1, .image = true, .events = true};
    struct tl_trace *traces[ALL];
    struct tl_backend_ops gated;
    struct capture c;
    unsigned storing = 0, begun = 0;
    open_lake(1);
    lake->decode_limit = decode_memory;
    sim_capture(lake, &options, &c);
    shut_gate(&gated);
    occupy_slots(true);
    for (int i = 0; i < ALL; i++) {
        char name[16];
        snprintf(name, sizeof name, "slow-%d", i);
        push_all(lake, name, &c, 1000);
        traces[i] = tl_lake_find_trace(lake, name);
        tl_lake_queue(lake, traces[i], 0); /* it is not live any more */
    }
    occupy_slots(false);
    for (int64_t since = 0; storing < most || begun > storing;) {
        keep_waiting(&since, "many wait for the medium");
        pthread_mutex_lock(&lake->lock);
        storing = lake->queue.storing;
        begun = 0;
        for (int i = 0; i < ALL; i++)
            begun += traces[i]->job.state >= TL_JOB_RUNS;
        assert_int_equal(begun + lake->queue.n_waiting, ALL);
        pthread_mutex_unlock(&lake->lock);
        assert_in_range(begun, 0, 2 * most + 1); /* half of them between two shards */
    }
    open_gate();
    for (int i = 0; i < ALL; i++) {
        assert_int_equal(wait_done(lake, traces[i]->id), TL_TRACE_SEALED);
        tl_trace_put(traces[i]);
    }
    capture_free(&c);
    close_at_once();
}

static void many_are_not_stored_at_once(void **state)
{
    (void)state;
    store_many(16, (uint64_t)1 << 30);
    store_many(4, (uint64_t)128 << 20); /* fewer with less memory */
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
    enum { JUMPS = 24 /* of a million instructions each: tens of turns */ };
    char alone[TL_HASH_TEXT], beside[TL_HASH_TEXT];
    (void)state;
    open_lake(1);
    push_zeros("same", JUMPS);
    assert_int_equal(wait_done(lake, "same"), TL_TRACE_SEALED);
    digest(alone);
    close_at_once();
    open_lake(1);
    push_zeros("other", ENDLESS);
    wait_shards(1);
    push_zeros("same", JUMPS);
    assert_int_equal(wait_done(lake, "same"), TL_TRACE_SEALED);
    digest(beside);
    close_at_once();
    assert_string_equal(alone, beside);
}

/* ---- limits ---------------------------------------------------------------------------------- */

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
    push_zeros("large", ENDLESS);
    assert_failed("large", "--decode-memory");
    assert_int_equal(atomic_load(&lake->decode_bytes), 0);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "small", &c, 1000);
    capture_free(&c);
    close_at_once();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_stored_within_a_push),
        cmocka_unit_test(closing_ends_a_push),
        cmocka_unit_test(others_have_their_turn),
        cmocka_unit_test(live_ones_wait_for_no_others),
        cmocka_unit_test(many_begin_slowly),
        cmocka_unit_test(rigs_alternate),
        cmocka_unit_test(who_returns_is_live_at_once),
        cmocka_unit_test(storing_stops_nobody),
        cmocka_unit_test(many_are_not_stored_at_once),
        cmocka_unit_test(turns_change_nothing),
        cmocka_unit_test(memory_is_limited),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
