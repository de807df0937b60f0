/* SPDX-License-Identifier: MIT */
/* Verifying every stored byte, and repairing: shards, raw bytes, images, catalog rows. */
#include "keeping.h"

#include "raw/packed.h"
#include "raw/segment.h"
#include "unit/patience.h"

#include <sqlite3.h>

/* Push in parts, each durable before the next one is sent. */
static void push_parts(const char *id, unsigned parts)
{
    struct tl_fail fail = {0};
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = id, .setup = (const char *)capture.setup.p, .resume = true};
    for (unsigned i = 1; i <= parts; i++) {
        struct tl_ingest *ingest;
        char trace[64];
        uint64_t at;
        assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, &fail),
                         TL_OK);
        const size_t n = (size_t)(capture.bytes.n * i / parts - at);
        assert_int_equal(
            tl_ingest_append(ingest, at, (struct tl_bytes){capture.bytes.p + at, n}, &fail), TL_OK);
        if (i == parts)
            assert_int_equal(tl_ingest_finish(ingest, &at, &fail), TL_OK);
        tl_ingest_close(ingest);
    }
    assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
}

struct names {
    char key[256][192];
    size_t n;
};

static int add_key(void *context, const char *key, uint64_t size)
{
    struct names *names = context;
    assert_true(names->n < 256);
    snprintf(names->key[names->n++], 192, "%s", key);
    return TL_OK;
}

static void put(const char *key, const struct tl_buf *content)
{
    const struct tl_bytes bytes = {content->p, content->n};
    assert_int_equal(tl_backend_put(backend, key, bytes, NULL), TL_OK);
}

/* For a flipped bit in any byte of any object, the object is reported, with an offset. */
static void every_damaged_byte_is_found(void **state)
{
    (void)state;
    push_parts("t", 5);
    struct names *names = calloc(1, sizeof(*names));
    struct tl_buf content = {0}, report = {0};
    uint64_t random = 1;
    unsigned flips = 0;
    assert_int_equal(backend->ops->list(backend, "", add_key, names, NULL), TL_OK);
    assert_true(names->n > 8);
    for (size_t k = 0; k < names->n; k++) {
        const char *key = names->key[k];
        /* Names are not checked; counts and calls are regenerated. */
        if (key[0] == 'n' || strstr(key, ".count") || strstr(key, ".calls"))
            continue;
        tl_buf_reset(&content);
        assert_int_equal(tl_backend_get_all(backend, key, &content, NULL), TL_OK);
        for (size_t i = 0; i < content.n; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const uint8_t bit = (uint8_t)(1 << (random >> 61));
            content.p[i] ^= bit;
            put(key, &content);
            /* What the lake knows of itself belongs to no trace. */
            const int findings = verify(key[0] == 'k' ? "" : "t", false, &report);
            if (findings == 0 || !strstr((char *)report.p, key) ||
                !strstr((char *)report.p, "offset 0x"))
                fail_msg("%s byte %zu of %zu: %d findings: %s", key, i, content.n, findings,
                         (char *)report.p);
            content.p[i] ^= bit;
            /* All of the first and last bytes, and many in between. */
            const bool edge = i < 64 || i + 64 > content.n;
            i += edge ? 1 : 1 + (random >> 33) % (content.n / 30 + 1);
        }
        put(key, &content);
    }
    print_message("%u flipped bits in %zu objects\n", flips, names->n);
    assert_int_equal(verify("t", false, &report), 0);
    if (verify("", false, &report) != 0)
        fail_msg("%s", (char *)report.p);
    tl_buf_fini(&content);
    tl_buf_fini(&report);
    free(names);
}

static void flip(const char *key, uint64_t at)
{
    struct tl_buf content = {0};
    assert_int_equal(tl_backend_get_all(backend, key, &content, NULL), TL_OK);
    assert_true(at < content.n);
    content.p[at] ^= 0x55;
    put(key, &content);
    tl_buf_fini(&content);
}

static void shards_are_rebuilt_from_raw(void **state)
{
    struct tl_buf report = {0};
    (void)state;
    push("t");
    struct tl_buf before = {0}, after = {0};
    assert_int_equal(tl_backend_get_all(backend, "t/t/1/cs.10/000001.zstf", &before, NULL), TL_OK);
    flip("t/t/1/cs.10/000000.zstf", 700);
    assert_int_equal(backend->ops->remove(backend, "t/t/1/cs.11/000001.zstf", NULL), TL_OK);
    reopen();
    assert_true(verify("t", false, &report) >= 2);
    assert_true(verify("t", true, &report) >= 2);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_int_equal(verify("t", false, &report), 0);
    check_text("t");
    /* The same bytes as before. */
    assert_int_equal(tl_backend_get_all(backend, "t/t/2/cs.10/000001.zstf", &after, NULL), TL_OK);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.p, after.p, before.n);
    tl_buf_fini(&before);
    tl_buf_fini(&after);
    tl_buf_fini(&report);
}

static void get(const char *key, struct tl_buf *out)
{
    tl_buf_reset(out);
    assert_int_equal(tl_backend_get_all(backend, key, out, NULL), TL_OK);
}

/* The number of lines of `text` that begin with `what`. */
static unsigned count_lines(const struct tl_buf *text, const char *what)
{
    unsigned n = 0;
    const char *p = (const char *)text->p, *end = p + text->n;
    while (p < end) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        if ((size_t)(end - p) >= strlen(what) && strncmp(p, what, strlen(what)) == 0)
            n++;
        p = line ? line + 1 : end;
    }
    return n;
}

/* Keep only the lines of instructions. */
static void only_insns(struct tl_buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->n;) {
        const uint8_t *end = memchr(text->p + i, '\n', text->n - i);
        const size_t size = end ? (size_t)(end + 1 - (text->p + i)) : text->n - i;
        if (text->p[i] == 'I') {
            memmove(text->p + n, text->p + i, size);
            n += size;
        }
        i += size;
    }
    text->n = n;
}

/* Check that all instructions are present; other items may be missing. */
static void check_insns(const char *id)
{
    struct tl_buf got = {0};
    struct tl_buf expected = {0};
    lake_text(lake, id, &got);
    assert_int_equal(tl_buf_add(&expected, capture.text.p, capture.text.n), TL_OK);
    only_insns(&got);
    only_insns(&expected);
    assert_texts_equal(&expected, &got);
    tl_buf_fini(&got);
    tl_buf_fini(&expected);
}

/* Without raw bytes, and with any one byte outside the instructions damaged, the shard is restored
 * from its intact parts, byte for byte. */
static void shards_are_mended_without_raw(void **state)
{
    const char *key = "t/t/1/cs.10/000001.zstf";
    struct tl_buf before = {0}, content = {0}, report = {0};
    uint64_t random = 7;
    (void)state;
    push("t");
    set_rule("", (struct tl_retention){.raw_age_s = 3600});
    assert_int_equal(tl_lake_retain(lake, in_days(1), NULL), 1);
    get(key, &before);
    const uint64_t index = tl_le64(before.p + 12);
    const size_t items = (size_t)index + 8 + 24 * (size_t)tl_le64(before.p + index) + 28 + 16;
    const size_t body = (size_t)tl_le64(before.p + before.n - 48 + 24);
    unsigned lost = 0, flips = 0;
    for (size_t i = 0; i < before.n; flips++) {
        tl_buf_reset(&content);
        assert_int_equal(tl_buf_add(&content, before.p, before.n), TL_OK);
        random = random * 6364136223846793005u + 1442695040888963407u;
        content.p[i] ^= (uint8_t)(1 << (random >> 61));
        put(key, &content);
        const int findings = verify("t", true, &report);
        if (findings <= 0 || !strstr((char *)report.p, "made whole"))
            fail_msg("byte %zu of %zu: %s", i, before.n, (char *)report.p);
        get(key, &content);
        if (i >= items && i < body) {
            assert_non_null(strstr((char *)report.p, "are lost"));
            check_insns("t");
            lost++;
        } else if (i >= body && i + 48 < before.n) {
            /* A rebuilt index has no buckets in time: those depend on the shards around it. */
            assert_memory_equal(content.p, before.p, index);
            assert_memory_equal(content.p + items, before.p + items, body - items);
        } else if (content.n != before.n || memcmp(content.p, before.p, before.n) != 0) {
            fail_msg("byte %zu of %zu: made whole, but not what it was", i, before.n);
        }
        assert_int_equal(verify("t", false, &report), 0);
        const bool edge = i < 20 || i + 48 > before.n || (i >= index && i < items);
        i += edge ? 1 : 1 + (random >> 33) % (before.n / 60 + 1);
        if (i >= 20 && i < index) /* instructions are stored only once */
            i = (size_t)index;
        put(key, &before);
        assert_true(verify("t", true, &report) >= 0);
    }
    print_message("%u flips, %u in item logs\n", flips, lost);
    assert_true(lost > 3);
    check_text("t");
    tl_buf_fini(&before);
    tl_buf_fini(&content);
    tl_buf_fini(&report);
}

static void raw_damage_is_a_gap(void **state)
{
    char key[128];
    struct tl_buf report = {0}, text = {0};
    (void)state;
    const struct tl_lake_options options = {.shard_insns = SHARD,
                                            .decode_threads = 1,
                                            .min_free_bytes = 1,
                                            .segment_bytes = capture.bytes.n / 12};
    tl_lake_close(lake);
    assert_int_equal(tl_lake_open_on(&lake, backend, &options, NULL), TL_OK);
    push_parts("t", 10);
    struct tl_segments segments = {0};
    assert_int_equal(tl_segments_list(&segments, backend, "t", NULL), TL_OK);
    assert_true(segments.n > 6);
    flip(tl_packed_key(key, "t", segments.v[segments.n / 2].first), 300);
    tl_segments_fini(&segments);
    const int findings = verify("t", true, &report);
    assert_int_equal(findings, 1);
    assert_non_null(strstr((char *)report.p, "raw bytes 0x"));
    assert_non_null(strstr((char *)report.p, "lost"));
    check_text("t"); /* the earlier result of decoding is unchanged */
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    lake_text(lake, "t", &text);
    assert_true(count_lines(&text, "G transport") >= 1);
    assert_int_equal(count_lines(&text, "# stream"), 2);
    /* The trace is available again after the next synchronisation point. */
    const unsigned had = count_lines(&capture.text, "I "), have = count_lines(&text, "I ");
    if (have >= had || have < had / 4)
        fail_msg("%u of %u instructions\n%s", have, had, (char *)report.p);
    tl_buf_fini(&report);
    tl_buf_fini(&text);
}

static void shards_without_raw_are_reported(void **state)
{
    struct tl_buf report = {0};
    (void)state;
    push("t");
    set_rule("", (struct tl_retention){.raw_age_s = 3600});
    assert_int_equal(tl_lake_retain(lake, in_days(1), NULL), 1);
    flip("t/t/1/cs.10/000001.zstf", 700);
    assert_int_equal(verify("t", true, &report), 1);
    assert_non_null(strstr((char *)report.p, "cannot be made again"));
    struct tl_buf text = {0};
    const struct tl_range_request request = {
        .trace = "t", .stream = "cs.11", .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    fetch(lake, &request, &text);
    assert_true(text.n > 1000);
    tl_buf_fini(&text);
    tl_buf_fini(&report);
}

static void images_are_checked(void **state)
{
    struct names *names = calloc(1, sizeof(*names));
    struct tl_buf report = {0};
    char hash[72];
    (void)state;
    push("t");
    assert_int_equal(backend->ops->list(backend, "i", add_key, names, NULL), TL_OK);
    assert_int_equal(names->n, 1);
    flip(names->key[0], 1000);
    assert_int_equal(verify("t", true, &report), 1);
    assert_non_null(strstr((char *)report.p, "upload it again"));
    /* The image can be uploaded again now, and the trace is decoded with it. */
    sim_put_image(lake, &capture.elf, hash);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_int_equal(verify("t", false, &report), 0);
    check_text("t");
    tl_buf_fini(&report);
    free(names);
}

static void run_sql(const char *sql)
{
    sqlite3 *db;
    char *error = NULL;
    assert_int_equal(sqlite3_open_v2(backend->ops->catalog_uri(backend), &db,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL),
                     SQLITE_OK);
    sqlite3_busy_timeout(db, 60000); /* the lake may be writing */
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
    sqlite3_close(db);
}

static void rows_are_checked(void **state)
{
    static const char *const damages[] = {
        "UPDATE shards SET first = first + 1 WHERE number = 1",
        "UPDATE shards SET summary = x'00112233' WHERE number = 2",
        "UPDATE shards SET begin = x'ff' WHERE number = 0",
        "DELETE FROM shards WHERE number = 3 AND stream = 1",
        "UPDATE shards SET time_last = 7 WHERE number = 0",
    };
    struct tl_buf report = {0};
    (void)state;
    push("t");
    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        run_sql(damages[i]);
        assert_true(verify("t", false, &report) > 0);
        assert_non_null(strstr((char *)report.p, "catalog"));
        assert_true(verify("t", true, &report) > 0);
        if (verify("t", false, &report) != 0)
            fail_msg("%s", (char *)report.p);
    }
    reopen();
    check_text("t");
    tl_buf_fini(&report);
}

static const struct tl_backend_ops *prompt;
static atomic_bool holds, held, released;

/* Only the first writing of the copy of the row is slow. */
static int put_slowly(struct tl_backend *to, const struct tl_object *objects, size_t n,
                      struct tl_fail *fail)
{
    const bool slow = !strcmp(objects->key, "m/t") && atomic_exchange(&holds, false);
    if (slow)
        atomic_store(&held, true);
    for (int64_t since = 0; slow && !atomic_load(&released);)
        keep_waiting(&since, "verify");
    return prompt->put_all(to, objects, n, fail);
}

static void *save(void *trace)
{
    struct tl_trace *const t = trace;
    pthread_mutex_lock(&t->lock);
    snprintf(t->message, sizeof t->message, "changed");
    pthread_mutex_unlock(&t->lock);
    assert_int_equal(tl_trace_save_quietly(t, NULL), TL_OK);
    return NULL;
}

/* However long it takes to write a row and its copy, that is no damage. */
static void a_copy_being_written_is_no_damage(void **state)
{
    struct tl_buf report = {0};
    struct tl_backend_ops slow = *backend->ops;
    pthread_t thread;
    (void)state;
    push("t");
    struct tl_trace *const trace = tl_lake_find_trace(lake, "t");
    prompt = backend->ops;
    slow.put_all = put_slowly;
    backend->ops = &slow;
    atomic_store(&holds, true);
    assert_int_equal(pthread_create(&thread, NULL, save, trace), 0);
    for (int64_t since = 0; !atomic_load(&held);)
        keep_waiting(&since, "the copy");
    const int findings = verify("t", false, &report);
    atomic_store(&released, true);
    pthread_join(thread, NULL);
    if (findings != 0)
        fail_msg("%s", (char *)report.p);
    assert_int_equal(verify("t", false, &report), 0);
    backend->ops = prompt;
    tl_trace_put(trace);
    tl_buf_fini(&report);
}

/* A damaged clock is reported and written anew, and not believed when a lake is opened. */
static void the_clock_is_checked(void **state)
{
    const char *const key = "k/clock";
    const size_t digit = strlen("clock ");
    struct tl_buf report = {0}, content = {0};
    uint64_t size;
    int64_t since = 0;
    (void)state;
    /* A lake stores it soon after it is opened, then not for minutes. */
    while (backend->ops->size(backend, key, &size, NULL) < 0)
        keep_waiting(&since, "the clock is stored");
    flip(key, digit);
    assert_int_equal(verify("", false, &report), 1);
    assert_non_null(strstr((char *)report.p, "k/clock: offset 0x0"));
    assert_int_equal(verify("", true, &report), 1);
    assert_int_equal(verify("", false, &report), 0);
    tl_lake_close(lake);
    assert_int_equal(tl_backend_get_all(backend, key, &content, NULL), TL_OK);
    assert_int_equal(content.p[digit], '1');
    content.p[digit] = '9'; /* another century */
    put(key, &content);
    lake = open_lake_sized(backend, SHARD, 1);
    assert_true(tl_lake_clock_settled(lake));
    assert_true(tl_lake_now(lake) < in_days(1));
    tl_buf_fini(&report);
    tl_buf_fini(&content);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_damaged_byte_is_found),
        TEST(shards_are_rebuilt_from_raw),
        TEST(shards_are_mended_without_raw),
        TEST(raw_damage_is_a_gap),
        TEST(shards_without_raw_are_reported),
        TEST(images_are_checked),
        TEST(rows_are_checked),
        TEST(a_copy_being_written_is_no_damage),
        TEST(the_clock_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
