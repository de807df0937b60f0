/* SPDX-License-Identifier: MIT */
/* Two servers with one store in a cluster. What one of them decodes is visible at the other as far
 * as it is durable, whether notifications arrive, are lost, or arrive twice. */
#include "lake_raw.h"
#include "lake_upkeep.h"
#include "sim_capture.h"

#include "pool.h"

#ifdef TL_WITH_RADOS
#include "rados/fake/interposer.h"
#include "rados/fake/model.h"
#include "share/share.h"
#endif

static struct tl_backend *one, *two;
static struct tl_lake *a, *b;
static struct capture c;

static void open_both(void)
{
    one = open_pool();
    two = open_pool();
    a = open_lake_sized(one, 2500, 1);
    b = open_lake_sized(two, 2500, 1);
}

static void close_both(void)
{
    tl_lake_close(a);
    tl_lake_close(b);
    tl_backend_free(one);
    tl_backend_free(two);
}

static void make_capture(void)
{
    struct tl_backend *memory;
    const struct sim_options options = {
        .seed = 5, .insns = 20000, .cores = 2, .image = true, .events = true};
    assert_int_equal(tl_backend_memory(&memory), TL_OK);
    struct tl_lake *const lake = open_lake_sized(memory, 2500, 1);
    sim_capture(lake, &options, &c);
    tl_lake_close(lake);
    tl_backend_free(memory);
}

static struct tl_ingest *push_without_image(struct tl_lake *lake)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)c.setup.p, .resume = true};
    struct tl_ingest *ingest;
    char id[64];
    uint64_t at;
    struct tl_fail fail = {0};
    if (tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, &fail) < 0)
        fail_msg("%s", fail.text);
    return ingest;
}

static void put_image(struct tl_lake *lake)
{
    struct tl_image_row row;
    assert_int_equal(
        tl_lake_put_image(lake, "program", (struct tl_bytes){c.elf.p, c.elf.n}, &row, NULL), TL_OK);
}

static struct tl_ingest *push_to(struct tl_lake *lake)
{
    put_image(lake);
    return push_without_image(lake);
}

static void append(struct tl_ingest *ingest, uint64_t from, uint64_t to)
{
    assert_int_equal(tl_ingest_append(ingest, from,
                                      (struct tl_bytes){c.bytes.p + from, (size_t)(to - from)},
                                      NULL),
                     TL_OK);
}

/* The number of instructions that a server shows; `*sealed`: those in sealed shards. */
static uint64_t shown(struct tl_lake *lake, uint64_t *decoded, uint64_t *sealed)
{
    struct tl_trace_list list;
    uint64_t insns = 0;
    *decoded = *sealed = 0;
    if (tl_lake_trace(lake, "t", &list) < 0)
        return 0;
    *decoded = list.rows[0].decoded_bytes;
    for (size_t i = 0; i < list.rows[0].n_streams; i++) {
        insns += list.rows[0].streams[i].insns;
        *sealed += list.rows[0].streams[i].sealed_insns;
    }
    tl_trace_list_free(&list);
    return insns;
}

static void wait_decoded(struct tl_lake *lake, uint64_t bytes)
{
    uint64_t decoded, sealed;
    for (int64_t since = 0; (void)shown(lake, &decoded, &sealed), decoded < bytes;)
        keep_waiting(&since, "these bytes are decoded");
}

/* Wait until a server shows this many instructions. */
static void wait_shown(struct tl_lake *lake, uint64_t min)
{
    uint64_t decoded, sealed;
    for (int64_t since = 0; shown(lake, &decoded, &sealed) < min;)
        keep_waiting(&since, "these instructions are shown");
}

/* Wait until the other server shows as much as the owner of the trace, with the same text. */
static void wait_same(void)
{
    struct tl_buf mine = {0}, theirs = {0};
    uint64_t decoded, sealed;
    const uint64_t insns = shown(a, &decoded, &sealed);
    assert_true(insns > sealed); /* not only sealed shards */
    for (int64_t since = 0; shown(b, &decoded, &sealed) != insns;)
        keep_waiting(&since, "the same instructions are shown");
    lake_text(a, "t", &mine);
    lake_text(b, "t", &theirs);
    assert_texts_equal(&mine, &theirs);
    tl_buf_fini(&mine);
    tl_buf_fini(&theirs);
}

static void follow(void)
{
    enum { STEPS = 6 };
    struct tl_ingest *const ingest = push_to(a);
    struct tl_buf text = {0};
    uint64_t at = 0;
    for (unsigned i = 1; i <= STEPS; i++) {
        const uint64_t to = (c.bytes.n - 16) * i / STEPS;
        append(ingest, at, to);
        at = to;
        wait_decoded(a, to);
        wait_same();
    }
    append(ingest, at, c.bytes.n);
    assert_int_equal(tl_ingest_finish(ingest, &at, NULL), TL_OK);
    tl_ingest_close(ingest);
    assert_int_equal(wait_done(b, "t"), TL_TRACE_SEALED);
    lake_text(b, "t", &text);
    assert_texts_equal(&c.text, &text);
    tl_buf_fini(&text);
}

static void followed_elsewhere(void **state)
{
    (void)state;
    if (!choose_pool())
        skip_pool();
    open_both();
    follow();
    close_both();
}

static void followed_by_looking(void **state)
{
    (void)state;
    if (!choose_pool() || getenv("TL_RADOS"))
        skip(); /* a real cluster loses fewer notifications than its model */
#ifdef TL_WITH_RADOS
    open_both();
    interposer_deaf(true);
    follow();
    close_both();
#endif
}

/* A missing image is uploaded to the other server: the owner decodes with it at once, while the
 * capture continues. */
static void image_comes_elsewhere(void **state)
{
    (void)state;
    if (!choose_pool())
        skip_pool();
    open_both();
    const uint64_t half = c.bytes.n / 2;
    struct tl_buf text = {0};
    uint64_t at, decoded, sealed;
    struct tl_ingest *const ingest = push_without_image(a);
    append(ingest, 0, half);
    wait_decoded(a, half);
    const uint64_t before = shown(a, &decoded, &sealed);
    wait_shown(b, before);
    put_image(b);
    wait_shown(a, before + 101);
    append(ingest, half, c.bytes.n);
    assert_int_equal(tl_ingest_finish(ingest, &at, NULL), TL_OK);
    tl_ingest_close(ingest);
    assert_int_equal(wait_done(b, "t"), TL_TRACE_SEALED);
    lake_text(b, "t", &text);
    assert_texts_equal(&c.text, &text);
    tl_buf_fini(&text);
    close_both();
}

/* The lease moves to the server that reads the live edge: it does not take the previous owner's
 * decoded data for its own. */
static void read_and_then_taken(void **state)
{
    (void)state;
    if (!choose_pool())
        skip_pool();
    open_both();
    const uint64_t half = c.bytes.n / 2;
    struct tl_buf text = {0};
    uint64_t at;
    struct tl_ingest *const old = push_to(a);
    append(old, 0, half);
    wait_decoded(a, half);
    wait_same();
    struct tl_ingest *const now = push_to(b);
    append(now, half, c.bytes.n);
    assert_int_equal(tl_ingest_finish(now, &at, NULL), TL_OK);
    tl_ingest_close(now);
    tl_ingest_close(old);
    assert_int_equal(wait_done(b, "t"), TL_TRACE_SEALED);
    assert_int_equal(wait_done(a, "t"), TL_TRACE_SEALED);
    lake_text(b, "t", &text);
    assert_texts_equal(&c.text, &text);
    tl_buf_reset(&text);
    lake_text(a, "t", &text);
    assert_texts_equal(&c.text, &text);
    tl_buf_fini(&text);
    close_both();
}

/* A server that no longer answers keeps its traces exactly until its lease ends. */
static void taken_when_the_lease_is_over(void **state)
{
    (void)state;
    if (!choose_pool() || getenv("TL_RADOS"))
        skip();
#ifdef TL_WITH_RADOS
    open_both();
    uint64_t at;
    const uint64_t half = c.bytes.n / 2;
    struct tl_ingest *const old = push_to(a);
    append(old, 0, half);
    wait_decoded(a, half);
    wait_same();
    interposer_cut_off(1, true);
    struct tl_trace *const trace = tl_lake_find_trace(b, "t");
    model_advance(1000 * (POOL_LEASE_S - POOL_LEASE_S / 2));
    assert_int_equal(tl_trace_pin(trace, TL_PIN_TRY, NULL), TL_AGAIN);
    model_advance(1000 * POOL_LEASE_S / 2);
    assert_int_equal(tl_trace_pin(trace, TL_PIN_TRY, NULL), TL_OK);
    tl_trace_unpin(trace);
    tl_trace_put(trace);
    struct tl_ingest *const now = push_to(b);
    append(now, half, c.bytes.n);
    assert_int_equal(tl_ingest_finish(now, &at, NULL), TL_OK);
    tl_ingest_close(now);
    interposer_cut_off(1, false);
    tl_ingest_close(old);
    assert_int_equal(wait_done(b, "t"), TL_TRACE_SEALED);
    close_both();
#endif
}

/* Wait until a trace is at rest and its lease is released. */
static void wait_idle(const char *id)
{
    struct tl_trace_list list;
    bool idle = false;
    for (int64_t since = 0; !idle;) {
        keep_waiting(&since, id);
        assert_int_equal(tl_lake_trace(b, id, &list), TL_OK);
        idle = list.rows[0].state == TL_TRACE_SEALED && list.rows[0].content[0];
        tl_trace_list_free(&list);
        struct tl_lake *const lakes[] = {a, b};
        for (unsigned k = 0; k < 2; k++) {
            struct tl_trace *const trace = tl_lake_find_trace(lakes[k], id);
            pthread_mutex_lock(&trace->lock);
            idle = idle && !trace->lease;
            pthread_mutex_unlock(&trace->lock);
            tl_trace_put(trace);
        }
    }
}

/* ---- round trips to the cluster -------------------------------------------------------------- */

#ifdef TL_WITH_RADOS
enum { NOISE = 300000 };
static uint8_t noise[NOISE];

/* Push noise, which packing does not shrink. Wait until it is packed and its lease is released. */
static void push_noise(struct tl_lake *lake)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = "[trace]\nformat=stf\n"};
    struct tl_ingest *ingest;
    char named[64];
    uint64_t at, random = 1;
    for (size_t i = 0; i < NOISE; i++)
        noise[i] = (uint8_t)((random = random * 6364136223846793005u + 1442695040888963407u) >> 56);
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, named, &at, NULL), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){noise, NOISE}, NULL), TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &at, NULL), TL_OK);
    tl_ingest_close(ingest);
    wait_idle("t");
}

static void read_noise(struct tl_lake *lake, uint64_t from, uint64_t to)
{
    struct tl_raw_range *range;
    struct tl_buf out = {0};
    struct tl_fail fail = {0};
    uint64_t offset;
    int r;
    assert_int_equal(tl_raw_open(lake, "t", from, to, &range, NULL), TL_OK);
    while ((r = tl_raw_next(range, &offset, &out, &fail)) >= 0)
        ;
    if (r != TL_EOF)
        fail_msg("%s", fail.text);
    assert_int_equal(out.n, to - from);
    assert_memory_equal(out.p, noise + from, out.n);
    tl_raw_close(range);
    tl_buf_fini(&out);
}

/* The minimum number of operations over several reads, since threads of the servers also execute
 * some from time to time. */
static uint64_t operations(unsigned pause_us)
{
    uint64_t min = UINT64_MAX;
    for (uint64_t from = 0; from < 4 * 65536; from += 65536) {
        usleep(pause_us);
        interposer_fault_at(FAULT_REFUSED, UINT64_MAX);
        read_noise(b, from, from + 100);
        const uint64_t n = interposer_passed();
        min = n < min ? n : min;
    }
    interposer_faults(0, 1, 0);
    return min;
}
#endif

/* A range of raw bytes in a known segment needs one round trip to the cluster, to read its bytes;
 * if the last one was some time ago, the segment's location is checked at the same time. */
static void a_cold_range_is_one_trip(void **state)
{
    (void)state;
    if (!choose_pool() || getenv("TL_RADOS"))
        skip(); /* the interposer counts the model's operations */
#ifdef TL_WITH_RADOS
    open_both();
    push_noise(a);
    read_noise(b, 0, NOISE);
    assert_int_equal(operations(0), 1);
    assert_int_equal(operations(110000), 2);
    close_both();
#endif
}

/* ---- work that is done once ------------------------------------------------------------------ */

enum {
    SHARED = 8,
    AGE_S = 800 /* so that the housekeepers, whose clock is the real one, find nothing that old */
};

static void push_small(struct tl_lake *lake, const char *id)
{
    static const uint8_t bytes[] = {0, 0, 0, 0, 0, 0x80, 0x09, 1, 0x09, 2};
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = id, .setup = "[trace]\nformat=itm,id=0\n"};
    struct tl_ingest *ingest;
    char named[64];
    uint64_t at;
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, named, &at, NULL), TL_OK);
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){bytes, sizeof bytes}, NULL),
                     TL_OK);
    assert_int_equal(tl_ingest_finish(ingest, &at, NULL), TL_OK);
    tl_ingest_close(ingest);
}

struct retaining {
    pthread_t thread;
    struct tl_lake *lake;
    int removed;
};

static void *retain(void *context)
{
    struct retaining *const r = context;
    r->removed = tl_lake_retain(r->lake, tl_wall_ns() + INT64_C(1000000000000), NULL);
    return NULL;
}

/* Run retention on both servers at the same time. Returns the total number of traces changed. */
static int retain_both(void)
{
    struct retaining both[] = {{.lake = a}, {.lake = b}};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&both[i].thread, NULL, retain, &both[i]), 0);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(both[i].thread, NULL);
        assert_true(both[i].removed >= 0);
    }
    return both[0].removed + both[1].removed;
}

/* If two servers are about to do the same work, one of them does it, once: decoding again and
 * hashing after a push, making old traces virtual, retention. */
static void work_is_done_once(void **state)
{
    (void)state;
    const struct tl_retention rule = {.decoded_age_s = AGE_S};
    struct tl_trace_list list;
    char id[16];
    int done = 0;
    if (!choose_pool())
        skip_pool();
    open_both();
    for (unsigned i = 0; i < SHARED; i++) {
        snprintf(id, sizeof id, "s%u", i);
        push_small(i % 2 ? a : b, id);
    }
    for (unsigned i = 0; i < SHARED; i++) {
        snprintf(id, sizeof id, "s%u", i);
        wait_idle(id);
    }
    atomic_store(&a->retain_stf_s, AGE_S);
    atomic_store(&b->retain_stf_s, AGE_S);
    /* Traces that the other server was working on are visited again. */
    for (int64_t since = 0; done < SHARED;) {
        keep_waiting(&since, "the rule applies to all");
        done += retain_both();
    }
    assert_int_equal(done, SHARED);
    for (unsigned i = 0; i < SHARED; i++) {
        snprintf(id, sizeof id, "s%u", i);
        wait_idle(id);
        assert_int_equal(tl_lake_trace(a, id, &list), TL_OK);
        assert_int_equal(list.rows[0].generation & 0xffff, 1); /* decoded again once */
        tl_trace_list_free(&list);
    }
    atomic_store(&a->retain_stf_s, 0);
    atomic_store(&b->retain_stf_s, 0);
    assert_int_equal(tl_lake_set_retention(a, "", &rule, NULL), TL_OK);
    done = 0;
    for (int64_t since = 0; done < SHARED;) {
        keep_waiting(&since, "the rule applies to all");
        done += retain_both();
    }
    assert_int_equal(done, SHARED);
    assert_int_equal(retain_both(), 0);
    close_both();
}

/* Damage a shard of each trace without a lease, as a faulty medium would. */
static int damage(void *context, const char *key, uint64_t size)
{
    struct tl_backend *const medium = context;
    struct tl_buf shard = {0};
    if (!strstr(key, ".zstf"))
        return TL_OK;
    assert_int_equal(tl_backend_get_all(medium, key, &shard, NULL), TL_OK);
    for (size_t i = 0; i < size / 2; i++)
        shard.p[i] ^= 0x55;
    assert_int_equal(tl_backend_put(medium, key, (struct tl_bytes){shard.p, shard.n}, NULL), TL_OK);
    tl_buf_fini(&shard);
    return TL_OK;
}

struct verifying {
    pthread_t thread;
    struct tl_lake *lake;
    struct tl_buf report;
};

/* Verify and repair until there are no more findings. */
static void *verify(void *context)
{
    struct verifying *const v = context;
    struct tl_fail fail = {0};
    for (unsigned tries = 0; tl_lake_verify(v->lake, "", true, &v->report, &fail) != 0; tries++) {
        if (tries >= 3000)
            fail_msg("%s %.*s", fail.text, (int)v->report.n, (const char *)v->report.p);
        usleep(10000);
    }
    assert_int_equal(tl_buf_add(&v->report, "", 1), TL_OK);
    return NULL;
}

static unsigned count(const struct tl_buf *text, const char *what)
{
    unsigned n = 0;
    for (const char *p = (const char *)text->p; (p = strstr(p, what)); p++)
        n++;
    return n;
}

/* Two servers verify and repair everything at the same time: each damaged trace is decoded again
 * once. */
static void verified_once(void **state)
{
    (void)state;
    char id[16], prefix[32];
    if (!choose_pool())
        skip_pool();
    open_both();
    struct tl_backend *const medium = open_pool();
    for (unsigned i = 0; i < SHARED; i++) {
        snprintf(id, sizeof id, "s%u", i);
        push_small(i % 2 ? a : b, id);
    }
    for (unsigned i = 0; i < SHARED; i++) {
        snprintf(id, sizeof id, "s%u", i);
        snprintf(prefix, sizeof prefix, "t/s%u", i);
        wait_idle(id);
        assert_int_equal(medium->ops->list(medium, prefix, damage, medium, NULL), TL_OK);
    }
    struct verifying both[] = {{.lake = a}, {.lake = b}};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&both[i].thread, NULL, verify, &both[i]), 0);
    unsigned again = 0;
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(both[i].thread, NULL);
        again += count(&both[i].report, "decoding the raw bytes again");
        if (getenv("TL_DEBUG"))
            print_message("%s\n", (const char *)both[i].report.p);
        tl_buf_fini(&both[i].report);
    }
    assert_int_equal(again, SHARED);
    tl_backend_free(medium);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followed_elsewhere),       cmocka_unit_test(followed_by_looking),
        cmocka_unit_test(read_and_then_taken),      cmocka_unit_test(taken_when_the_lease_is_over),
        cmocka_unit_test(a_cold_range_is_one_trip), cmocka_unit_test(work_is_done_once),
        cmocka_unit_test(image_comes_elsewhere),    cmocka_unit_test(verified_once),
    };
    make_capture();
    const int r = cmocka_run_group_tests(tests, NULL, NULL);
    capture_free(&c);
    return r;
}
