/* SPDX-License-Identifier: MIT */
/*
 * For tests of the turns that decode jobs have: captures of which a few raw bytes stand for very
 * many instructions, a lake that is closed at once, and a medium that takes its time. Header only;
 * one lake at a time.
 */
#ifndef TL_TESTS_UNIT_TURNS_H
#define TL_TESTS_UNIT_TURNS_H

#include "decoding/decode_job.h"
#include "sim_capture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define ZEROS   ((size_t)4 << 20) /* bytes of the program: none of its instructions branches */
#define SHARD   (UINT64_C(1) << 18)
#define BASE    UINT32_C(0x80000000)
#define ENDLESS 100000 /* jumps: hours of decoding, so that nothing of that is waited for in time  \
                        */

static struct tl_backend *backend;
static struct tl_lake *lake;

/* The generation's decode job; NULL: it has had no turn yet. */
static inline const struct tl_decode_job *job_of(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    const struct tl_decode_job *const job = gen->job;
    pthread_mutex_unlock(&gen->lock);
    return job;
}

static inline bool has_completed(struct tl_gen *gen)
{
    const struct tl_decode_job *const job = job_of(gen);
    return job && job->completed > 0;
}

/* `jumps` addresses in a program of zeros, each followed by an atom: the core ran on for as long as
 * the walker believes. */
static inline void make_zeros(struct capture *c, const char *hash, unsigned jumps)
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

static inline void put_zeros(struct tl_lake *to, char hash[static 72])
{
    struct tl_buf zeros = {0};
    assert_int_equal(tl_buf_reserve(&zeros, ZEROS), TL_OK);
    memset(zeros.p, 0, ZEROS);
    zeros.n = ZEROS;
    sim_put_image(to, &zeros, hash);
    tl_buf_fini(&zeros);
}

static inline void open_lake(unsigned threads)
{
    lake = open_memory_lake(&backend, SHARD, threads);
}

static inline void push_zeros(const char *id, unsigned jumps)
{
    struct capture c;
    char hash[72];
    put_zeros(lake, hash);
    make_zeros(&c, hash, jumps);
    push_all(lake, id, &c, 1 << 20);
    capture_free(&c);
}

/* Wait until `n` more shards have been stored. */
static inline void wait_shards(unsigned long n)
{
    const unsigned long from = atomic_load(&lake->shards_sealed);
    for (int64_t since = 0; atomic_load(&lake->shards_sealed) < from + n;)
        keep_waiting(&since, "shards");
}

static inline size_t peak_kib(void)
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

static inline int state_of(const char *id)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    const int state = list.rows[0].state;
    tl_trace_list_free(&list);
    return state;
}

static inline void delete_at_once(const char *id)
{
    struct tl_fail fail = {0};
    const int64_t begun = tl_monotonic_ms();
    assert_int_equal(tl_lake_delete(lake, id, &fail), TL_OK);
    assert_true(tl_monotonic_ms() - begun < PATIENCE_S * 1000);
}

static inline void close_at_once(void)
{
    const int64_t begun = tl_monotonic_ms();
    tl_lake_close(lake);
    assert_true(tl_monotonic_ms() - begun < PATIENCE_S * 1000);
    tl_backend_free(backend);
}

static inline void assert_failed(const char *id, const char *why)
{
    struct tl_trace_list list;
    assert_int_equal(wait_done(lake, id), TL_TRACE_FAILED);
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    if (!strstr(list.rows[0].message, why))
        fail_msg("%s", list.rows[0].message);
    tl_trace_list_free(&list);
}

/* ---- a medium that takes its time ------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    const struct tl_backend_ops *real;
    bool open;
    const char *through; /* the trace that need not wait; NULL: none */
    char waiting[64];    /* the last one that began to wait; "": none */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

/* Is it the key of an object that has to wait? */
static inline bool is_stopped_locked(const char *key)
{
    const size_t n = gate.through ? strlen(gate.through) : 0;
    const bool passes = n > 0 && strncmp(key + 2, gate.through, n) == 0 && key[2 + n] == '/';
    return !gate.open && !passes && strncmp(key, "t/slow", 6) == 0;
}

static inline int put_behind_gate(struct tl_backend *store, const struct tl_object *objects,
                                  size_t n, struct tl_fail *fail)
{
    pthread_mutex_lock(&gate.lock);
    while (n > 0 && is_stopped_locked(objects[0].key)) {
        (void)sscanf(objects[0].key, "t/%63[^/]", gate.waiting);
        pthread_cond_wait(&gate.cond, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
    return gate.real->put_all(store, objects, n, fail);
}

static inline void shut_gate(struct tl_backend_ops *gated)
{
    gate.real = backend->ops;
    gate.open = false;
    gate.through = NULL;
    gate.waiting[0] = '\0';
    *gated = *backend->ops;
    gated->put_all = put_behind_gate;
    backend->ops = gated;
}

static inline void open_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.lock);
}

/* What the medium has of a trace must be done with before that can be removed. */
static inline void let_through(const char *id)
{
    pthread_mutex_lock(&gate.lock);
    gate.through = id;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.lock);
}

static inline bool is_at_gate(char who[static 64])
{
    pthread_mutex_lock(&gate.lock);
    memcpy(who, gate.waiting, sizeof gate.waiting);
    pthread_mutex_unlock(&gate.lock);
    return who[0];
}

#endif
