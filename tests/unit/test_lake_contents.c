/* SPDX-License-Identifier: MIT */
/* Hashes of captures: a medium that refuses reads, damaged bytes. */
#include "sim_capture.h"

#include "raw/packed.h"
#include "raw/segment.h"
#include "unit/patience.h"

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;

/* A memory backend that refuses to read the raw bytes of "refused" while `refusing` is set. */
static const struct tl_backend_ops *memory;
static struct tl_backend_ops ops;
static atomic_bool refusing;
static atomic_uint refusals;

static bool refuses(const char *key)
{
    const bool is = atomic_load(&refusing) && strncmp(key, "r/refused", 9) == 0;
    atomic_fetch_add(&refusals, is);
    return is;
}

static int get(struct tl_backend *b, const char *key, uint64_t offset, size_t n, struct tl_buf *out,
               struct tl_fail *fail)
{
    return refuses(key) ? TL_IO : memory->get(b, key, offset, n, out, fail);
}

static int log_open(struct tl_backend *b, const char *key, bool create, struct tl_log **out,
                    uint64_t *size, struct tl_fail *fail)
{
    return refuses(key) ? TL_IO : memory->log_open(b, key, create, out, size, fail);
}

static int set_up(void **state)
{
    (void)state;
    sim_lake_begin(&backend, &lake, &capture, 2500);
    tl_lake_close(lake);
    memory = backend->ops;
    ops = *memory;
    ops.get = get;
    ops.log_open = log_open;
    backend->ops = &ops;
    lake = open_lake_sized(backend, 2500, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    atomic_store(&refusing, false);
    sim_lake_end(backend, lake, &capture);
    return 0;
}

/* Make a hashed trace look as if it had not been hashed. */
static void forget(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    tl_trace_set_content_locked(trace, "");
    pthread_mutex_unlock(&trace->lock);
    tl_housekeeper_wake(lake);
}

/* Wait for the hash; "" if the bytes are reported as damaged. */
static void wait_hashed(struct tl_trace *trace, char out[static TL_CONTENT_BYTES])
{
    for (int64_t since = 0;;) {
        pthread_mutex_lock(&trace->lock);
        memcpy(out, trace->content, TL_CONTENT_BYTES);
        const bool known = out[0] || trace->content_state == TL_CONTENT_DAMAGED;
        pthread_mutex_unlock(&trace->lock);
        if (known)
            return;
        keep_waiting(&since, trace->id);
    }
}

static struct tl_trace *push(const char *id, char hash[static TL_CONTENT_BYTES])
{
    push_sealed(lake, id, &capture, 3000);
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    assert_non_null(trace);
    wait_hashed(trace, hash);
    assert_true(hash[0]);
    return trace;
}

static void a_refused_capture_is_hashed_later(void **state)
{
    char before[TL_CONTENT_BYTES], after[TL_CONTENT_BYTES];
    (void)state;
    struct tl_trace *const other = push("other", before);
    struct tl_trace *const refused = push("refused", before);
    atomic_store(&refusing, true);
    forget(refused);
    forget(other);
    wait_hashed(other, after); /* not delayed by the other trace */
    assert_string_equal(after, before);
    for (int64_t since = 0; atomic_load(&refusals) < 2;)
        keep_waiting(&since, "it is tried again");
    pthread_mutex_lock(&refused->lock);
    assert_int_equal(refused->content[0], 0);
    assert_int_not_equal(refused->content_state, TL_CONTENT_DAMAGED);
    pthread_mutex_unlock(&refused->lock);
    atomic_store(&refusing, false);
    wait_hashed(refused, after);
    assert_string_equal(after, before);
    tl_trace_put(other);
    tl_trace_put(refused);
}

static void a_damaged_capture_has_no_hash(void **state)
{
    char hash[TL_CONTENT_BYTES], key[128];
    struct tl_segments segments = {0};
    struct tl_buf content = {0};
    (void)state;
    struct tl_trace *const trace = push("t", hash);
    assert_int_equal(tl_segments_list(&segments, backend, "t", NULL), TL_OK);
    tl_packed_key(key, "t", segments.v[0].first);
    assert_int_equal(tl_backend_get_all(backend, key, &content, NULL), TL_OK);
    content.p[300] ^= 0x55;
    assert_int_equal(tl_backend_put(backend, key, (struct tl_bytes){content.p, content.n}, NULL),
                     TL_OK);
    forget(trace);
    wait_hashed(trace, hash);
    assert_int_equal(hash[0], 0);
    tl_buf_fini(&content);
    tl_segments_fini(&segments);
    tl_trace_put(trace);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_refused_capture_is_hashed_later),
        TEST(a_damaged_capture_has_no_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
