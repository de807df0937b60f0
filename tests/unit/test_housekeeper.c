/* SPDX-License-Identifier: MIT */
/* Keeping house: retention, deleting, verifying and repairing, a lost catalog, images by build ID.
 */
#include "sim_capture.h"

#include "base/lifetime.h"
#include "ingest/packed.h"
#include "ingest/segment.h"

#include <sqlite3.h>

#define SHARD 2500

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;

static int set_up(void **state)
{
    (void)state;
    sim_lake_begin(&backend, &lake, &capture, SHARD);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sim_lake_end(backend, lake, &capture);
    return 0;
}

static void reopen(void)
{
    tl_lake_close(lake);
    lake = open_lake_sized(backend, SHARD, 1);
}

static void push(const char *id)
{
    push_all(lake, id, &capture, 3000);
    assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
}

/* In parts, each durable before the next one comes. */
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

static int add_size(void *context, const char *key, uint64_t size)
{
    *(uint64_t *)context += size;
    return TL_OK;
}

static uint64_t stored(const char *prefix)
{
    uint64_t bytes = 0;
    assert_int_equal(backend->ops->list(backend, prefix, add_size, &bytes, NULL), TL_OK);
    return bytes;
}

static bool there(const char *id)
{
    struct tl_trace_list list;
    if (tl_lake_trace(lake, id, &list) < 0)
        return false;
    tl_trace_list_free(&list);
    return true;
}

static void check_text(const char *id)
{
    struct tl_buf got = {0};
    lake_text(lake, id, &got);
    assert_texts_equal(&capture.text, &got);
    tl_buf_fini(&got);
}

static int verify(const char *id, bool repair, struct tl_buf *report)
{
    struct tl_fail fail = {0};
    tl_buf_reset(report);
    const int r = tl_lake_verify(lake, id, repair, report, &fail);
    if (r < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_buf_add(report, "", 1), TL_OK);
    report->n--;
    return r;
}

static void set_rule(const char *scope, struct tl_retention rule)
{
    assert_int_equal(tl_lake_set_retention(lake, scope, &rule, NULL), TL_OK);
}

static int64_t in_days(int days)
{
    return tl_wall_ns() + (int64_t)days * 86400 * 1000000000;
}

/* ---- deleting ------------------------------------------------------------------------------- */

/* The housekeeper removes what is left of a trace, beside us. */
static void wait_gone(const char *prefix)
{
    for (int i = 0; stored(prefix) > 0; i++) {
        if (i == 10000)
            fail_msg("%s is still there", prefix);
        usleep(1000);
    }
}

static void deleting_frees_the_space_at_once(void **state)
{
    (void)state;
    push("t");
    assert_true(stored("r/t") > 1000 && stored("t/t") > 1000);
    assert_int_equal(tl_lake_delete(lake, "t", NULL), TL_OK);
    assert_int_equal(stored("m/t"), 0);
    wait_gone("r/t");
    wait_gone("t/t");
    assert_false(there("t"));
    push("t"); /* the name is free again */
    check_text("t");
}

static void who_reads_goes_on(void **state)
{
    (void)state;
    push("t");
    const struct tl_range_request request = {
        .trace = "t", .stream = "cs.10", .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    struct tl_buf whole = {0}, got = {0};
    struct tl_range *range;
    fetch(lake, &request, &whole);
    assert_int_equal(tl_range_open(lake, &request, &range, NULL), TL_OK);
    assert_int_equal(tl_lake_delete(lake, "t", NULL), TL_OK);
    wait_gone("r/t");
    push("t"); /* another of the same name does not get mixed up with it */
    int r;
    while ((r = tl_range_next(range, &got, NULL)) >= 0)
        ;
    assert_int_equal(r, TL_EOF);
    assert_texts_equal(&whole, &got);
    assert_true(stored("t/t/1") > 0);
    tl_range_close(range);
    wait_gone("t/t/1");
    check_text("t");
    tl_buf_fini(&whole);
    tl_buf_fini(&got);
}

/* ---- retention ------------------------------------------------------------------------------ */

static void retention_by_age(void **state)
{
    (void)state;
    push("t");
    set_rule("", (struct tl_retention){.raw_age_s = 10 * 86400, .decoded_age_s = 30 * 86400});
    assert_int_equal(tl_lake_retain(lake, in_days(9), NULL), 0);
    assert_true(stored("r/t") > 0);
    assert_int_equal(tl_lake_retain(lake, in_days(11), NULL), 1);
    assert_int_equal(stored("r/t"), 0);
    check_text("t");
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, &fail), TL_DENIED);
    assert_non_null(strstr(fail.text, "retention"));
    struct tl_buf report = {0};
    assert_int_equal(verify("t", false, &report), 0);
    reopen();
    check_text("t");
    assert_int_equal(verify("t", false, &report), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(29), NULL), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(31), NULL), 1);
    assert_false(there("t"));
    assert_int_equal(stored("t/t") + stored("m/t"), 0);
    tl_buf_fini(&report);
}

static void decoded_data_comes_back(void **state)
{
    (void)state;
    push("t");
    set_rule("trace t", (struct tl_retention){.decoded_age_s = 60});
    const struct tl_range_request request = {
        .trace = "t", .stream = "cs.10", .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    struct tl_range *range;
    struct tl_buf got = {0};
    assert_int_equal(tl_range_open(lake, &request, &range, NULL), TL_OK);
    assert_int_equal(tl_lake_retain(lake, in_days(1), NULL), 1);
    assert_true(stored("t/t") > 0); /* it is being read */
    while (tl_range_next(range, &got, NULL) >= 0)
        ;
    assert_true(got.n > 1000);
    tl_range_close(range);
    assert_int_equal(stored("t/t"), 0);
    assert_true(stored("r/t") > 0);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
    assert_true(list.rows[0].decoded_removed && !list.rows[0].raw_removed);
    assert_int_equal(list.rows[0].n_streams, 0);
    tl_trace_list_free(&list);
    reopen();
    assert_int_equal(stored("t/t"), 0);
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    check_text("t");
    tl_buf_fini(&got);
}

static void retention_by_size(void **state)
{
    (void)state;
    push("a");
    usleep(1000);
    push("b");
    usleep(1000);
    push("c");
    assert_int_equal(tl_lake_set_labels(lake, "a", "keep=yes\n", NULL), TL_OK);
    /* Room for two: a is the oldest, but kept; b goes. */
    set_rule("", (struct tl_retention){.raw_bytes = 2 * capture.bytes.n + 10});
    assert_true(tl_lake_retain(lake, tl_wall_ns(), NULL) >= 0); /* or the housekeeper was first */
    assert_true(stored("r/a") > 0 && stored("r/c") > 0);
    assert_int_equal(stored("r/b"), 0);
    check_text("b");
    assert_int_equal(tl_lake_retain(lake, tl_wall_ns(), NULL), 0);
}

static void the_most_special_rule_counts(void **state)
{
    (void)state;
    push("a");
    push("b");
    push("c");
    assert_int_equal(tl_lake_set_labels(lake, "a", "team=cpu\n", NULL), TL_OK);
    assert_int_equal(tl_lake_set_labels(lake, "b", "team=cpu\nkeep=no\n", NULL), TL_OK);
    set_rule("", (struct tl_retention){.raw_age_s = 86400});
    set_rule("label team=cpu", (struct tl_retention){.raw_age_s = 10 * 86400});
    set_rule("trace a", (struct tl_retention){0});
    assert_int_equal(tl_lake_retain(lake, in_days(2), NULL), 1);
    assert_int_equal(stored("r/c"), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(11), NULL), 1);
    assert_int_equal(stored("r/b"), 0);
    assert_true(stored("r/a") > 0);
    struct tl_retention_row *rows;
    size_t n;
    assert_int_equal(tl_lake_retention(lake, &rows, &n), TL_OK);
    assert_int_equal(n, 3);
    free(rows);
    assert_int_equal(tl_lake_set_retention(lake, "nonsense", NULL, NULL), TL_USAGE);
    assert_int_equal(tl_lake_set_retention(lake, "trace a", NULL, NULL), TL_OK);
    assert_int_equal(tl_lake_retain(lake, in_days(2), NULL), 0);
    assert_int_equal(tl_lake_retain(lake, in_days(40), NULL), 1);
    assert_int_equal(stored("r/a"), 0);
}

static void running_captures_are_left_alone(void **state)
{
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t at;
    (void)state;
    set_rule("", (struct tl_retention){.raw_age_s = 1, .decoded_age_s = 1, .raw_bytes = 1});
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)capture.setup.p};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, &fail), TL_OK);
    const size_t half = capture.bytes.n / 2;
    assert_int_equal(tl_ingest_append(ingest, 0, (struct tl_bytes){capture.bytes.p, half}, &fail),
                     TL_OK);
    assert_int_equal(tl_lake_retain(lake, in_days(100), NULL), 0);
    tl_ingest_close(ingest);
    /* It may be resumed: nothing of it goes. */
    assert_int_equal(tl_lake_retain(lake, in_days(100), NULL), 0);
    set_rule("", (struct tl_retention){0});
    push("t");
    check_text("t");
}

static void texts_of_rules(void **state)
{
    static const struct {
        const char *text;
        uint64_t age, bytes;
        const char *back;
    } cases[] = {
        {"30d,200G", 30 * 86400, UINT64_C(200) << 30, "30d,200G"},
        {"200G", 0, UINT64_C(200) << 30, "200G"},
        {"90m", 5400, 0, "90m"},
        {"2w", 14 * 86400, 0, "2w"},
        {"3T,24h", 86400, UINT64_C(3) << 40, "1d,3T"},
        {"none", 0, 0, "none"},
        {"", 0, 0, "none"},
    };
    static const char *const bad[] = {"30",   "d",     "30x",          "-1d",
                                      "30d,", "30d,x", "99999999999d", "1.5d"};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t age, bytes;
        char text[64];
        assert_int_equal(tl_lifetime_parse(cases[i].text, &age, &bytes), TL_OK);
        assert_int_equal(age, cases[i].age);
        assert_int_equal(bytes, cases[i].bytes);
        assert_string_equal(tl_lifetime_text(age, bytes, text), cases[i].back);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint64_t age, bytes;
        if (strcmp(bad[i], "30d,") != 0)
            assert_int_equal(tl_lifetime_parse(bad[i], &age, &bytes), TL_USAGE);
    }
}

/* ---- damage --------------------------------------------------------------------------------- */

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

/* Every byte of every object, one bit each: the object is named, with an offset. */
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
        if (key[0] == 'n' || strstr(key, ".count")) /* a name; counts that are made anew */
            continue;
        tl_buf_reset(&content);
        assert_int_equal(tl_backend_get_all(backend, key, &content, NULL), TL_OK);
        for (size_t i = 0; i < content.n; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const uint8_t bit = (uint8_t)(1 << (random >> 61));
            content.p[i] ^= bit;
            put(key, &content);
            const int findings = verify("t", false, &report);
            if (findings == 0 || !strstr((char *)report.p, key) ||
                !strstr((char *)report.p, "offset 0x"))
                fail_msg("%s byte %zu of %zu: %d findings: %s", key, i, content.n, findings,
                         (char *)report.p);
            content.p[i] ^= bit;
            /* All of the first and last bytes, many in between. */
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
    /* The same bytes again. */
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

/* Lines of `text` that begin with `what`. */
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

/* Lines that are instructions. */
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

/* All instructions are there, whatever else is not. */
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

/*
 * Without raw bytes, and the medium gone bad in any one byte behind the instructions: the shard is
 * made whole from what is left of it, and is what it was, byte for byte.
 */
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
        } else if (content.n != before.n || memcmp(content.p, before.p, before.n) != 0) {
            fail_msg("byte %zu of %zu: made whole, but not what it was", i, before.n);
        }
        assert_int_equal(verify("t", false, &report), 0);
        const bool edge = i < 20 || i + 48 > before.n || (i >= index && i < items);
        i += edge ? 1 : 1 + (random >> 33) % (before.n / 60 + 1);
        if (i >= 20 && i < index) /* instructions themselves are in no other place */
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
    check_text("t"); /* what was decoded when they were whole is not touched */
    assert_int_equal(tl_lake_redecode(lake, "t", NULL, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    lake_text(lake, "t", &text);
    assert_true(count_lines(&text, "G transport") >= 1);
    assert_int_equal(count_lines(&text, "# stream"), 2);
    /* From the next synchronisation on it is there again. */
    const unsigned had = count_lines(&capture.text, "I "), have = count_lines(&text, "I ");
    if (have >= had || have < had / 4)
        fail_msg("%u of %u instructions\n%s", have, had, (char *)report.p);
    tl_buf_fini(&report);
    tl_buf_fini(&text);
}

static void shards_without_raw_are_told(void **state)
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
    /* It can be uploaded again now, and the trace is decoded with it. */
    sim_put_image(lake, &capture.elf, hash);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_int_equal(verify("t", false, &report), 0);
    check_text("t");
    tl_buf_fini(&report);
    free(names);
}

/* ---- the catalog ---------------------------------------------------------------------------- */

static void run_sql(const char *sql)
{
    sqlite3 *db;
    char *error = NULL;
    assert_int_equal(sqlite3_open_v2(backend->ops->catalog_uri(backend), &db,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, NULL),
                     SQLITE_OK);
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
        assert_int_equal(verify("t", false, &report), 0);
    }
    reopen();
    check_text("t");
    tl_buf_fini(&report);
}

static void a_lost_catalog_is_made_anew(void **state)
{
    struct tl_buf report = {0};
    struct tl_image_row *images;
    size_t n;
    (void)state;
    push("a");
    push("b");
    assert_int_equal(tl_lake_set_labels(lake, "a", "board=juno\n", NULL), TL_OK);
    set_rule("trace b", (struct tl_retention){.raw_age_s = 3600});
    assert_int_equal(tl_lake_retain(lake, in_days(1), NULL), 1);
    const uint64_t before = stored("t");
    tl_lake_close(lake);
    assert_int_equal(backend->ops->catalog_reset(backend, NULL), TL_OK);
    lake = open_lake_sized(backend, SHARD, 1);
    assert_int_equal(wait_done(lake, "a"), TL_TRACE_SEALED);
    assert_int_equal(wait_done(lake, "b"), TL_TRACE_SEALED);
    check_text("a");
    check_text("b");
    assert_int_equal(stored("t"), before);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "a", &list), TL_OK);
    assert_string_equal(list.rows[0].labels, "board=juno\n");
    assert_string_equal(list.rows[0].rig, "rig");
    assert_int_equal(list.rows[0].generation, 1); /* nothing was decoded for it */
    tl_trace_list_free(&list);
    assert_int_equal(tl_lake_images(lake, &images, &n), TL_OK);
    assert_int_equal(n, 1);
    assert_string_equal(images[0].name, "program");
    free(images);
    assert_int_equal(verify("", false, &report), 0);
    tl_buf_fini(&report);
}

/* Even without the copies of the rows the raw bytes are kept, and decoded with a setup. */
static void raw_bytes_alone_are_kept(void **state)
{
    (void)state;
    push("t");
    tl_lake_close(lake);
    assert_int_equal(tl_backend_remove_all(backend, "m", NULL), TL_OK);
    assert_int_equal(backend->ops->catalog_reset(backend, NULL), TL_OK);
    lake = open_lake_sized(backend, SHARD, 1);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_FAILED);
    assert_int_equal(tl_lake_redecode(lake, "t", (const char *)capture.setup.p, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    check_text("t");
}

/* ---- many rigs ------------------------------------------------------------------------------ */

enum { RIGS = 100 };

struct rig {
    unsigned number;
    int result;
    uint64_t acked;
};

static void on_ack(void *context, uint64_t offset)
{
    ((struct rig *)context)->acked = offset;
}

static void *run_rig(void *context)
{
    struct rig *rig = context;
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64], name[32];
    uint64_t at;
    snprintf(name, sizeof(name), "rig%u", rig->number);
    const struct tl_ingest_request request = {
        .rig = name, .trace = name, .setup = (const char *)capture.setup.p};
    rig->result = tl_ingest_open(lake, &request, on_ack, rig, &ingest, id, &at, &fail);
    if (rig->result < 0)
        return NULL;
    for (size_t i = 0; i < capture.bytes.n && rig->result >= 0; i += 100) {
        const size_t n = capture.bytes.n - i < 100 ? capture.bytes.n - i : 100;
        rig->result = tl_ingest_append(ingest, i, (struct tl_bytes){capture.bytes.p + i, n}, &fail);
    }
    if (rig->result >= 0)
        rig->result = tl_ingest_finish(ingest, &at, &fail);
    tl_ingest_close(ingest);
    return NULL;
}

static void a_hundred_rigs_at_once(void **state)
{
    static struct rig rigs[RIGS];
    static pthread_t threads[RIGS];
    (void)state;
    for (unsigned i = 0; i < RIGS; i++) {
        rigs[i] = (struct rig){.number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rig, &rigs[i]), 0);
    }
    for (unsigned i = 0; i < RIGS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(rigs[i].result, TL_OK);
        assert_int_equal(rigs[i].acked, capture.bytes.n);
    }
    for (unsigned i = 0; i < RIGS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "rig%u", i);
        assert_int_equal(wait_done(lake, name), TL_TRACE_SEALED);
        if (i % 10 == 0)
            check_text(name);
    }
}

/* ---- images --------------------------------------------------------------------------------- */

static void images_by_build_id(void **state)
{
    static const uint8_t elf[] = {0x7f, 'E', 'L', 'F', 2,   1, 1,    0,    0,    0,   0,
                                  0,    4,   0,   0,   0,   4, 0,    0,    0,    3,   0,
                                  0,    0,   'G', 'N', 'U', 0, 0xde, 0xad, 0xbe, 0xef};
    struct tl_image_row row;
    (void)state;
    assert_false(tl_lake_has_image(lake, "build-id:deadbeef"));
    assert_int_equal(tl_lake_put_image(lake, "x", (struct tl_bytes){elf, sizeof(elf)}, &row, NULL),
                     TL_OK);
    assert_string_equal(row.build_id, "deadbeef");
    assert_true(tl_lake_has_image(lake, "build-id:deadbeef"));
    assert_true(tl_lake_has_image(lake, row.hash));
    assert_false(tl_lake_has_image(lake, "build-id:"));
    assert_false(tl_lake_has_image(lake, "build-id:dead"));
    const uint64_t before = stored("i");
    assert_int_equal(tl_lake_put_image(lake, "x", (struct tl_bytes){elf, sizeof(elf)}, &row, NULL),
                     TL_OK);
    assert_int_equal(stored("i"), before);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(deleting_frees_the_space_at_once),
        TEST(who_reads_goes_on),
        TEST(retention_by_age),
        TEST(decoded_data_comes_back),
        TEST(retention_by_size),
        TEST(the_most_special_rule_counts),
        TEST(running_captures_are_left_alone),
        cmocka_unit_test(texts_of_rules),
        TEST(every_damaged_byte_is_found),
        TEST(shards_are_rebuilt_from_raw),
        TEST(shards_are_mended_without_raw),
        TEST(raw_damage_is_a_gap),
        TEST(shards_without_raw_are_told),
        TEST(images_are_checked),
        TEST(rows_are_checked),
        TEST(a_lost_catalog_is_made_anew),
        TEST(raw_bytes_alone_are_kept),
        TEST(a_hundred_rigs_at_once),
        TEST(images_by_build_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
