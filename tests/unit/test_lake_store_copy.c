/* SPDX-License-Identifier: MIT */
/* `store copy`: the copy is served like the original, wherever and however often copying was
 * interrupted; existing data in the destination is left unchanged. */
#include "lake_upkeep.h"
#include "sim_capture.h"

#include "copy/copy.h"

enum { SHARD = 3000, INSNS = 60000 };

static struct capture capture;
static struct tl_backend *source;

static struct tl_lake *open_lake(struct tl_backend *backend)
{
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = SHARD,
                                            .decode_threads = 1,
                                            .min_free_bytes = 1,
                                            .checkpoint_bytes = 8192,
                                            .segment_bytes = 4096,
                                            .mark_bytes = 1024};
    if (tl_lake_open_on(&lake, backend, &options, &fail) < 0)
        fail_msg("%s", fail.text);
    return lake;
}

static void begin_capture(struct tl_lake *lake, const char *id)
{
    struct tl_ingest *ingest;
    char trace[64];
    uint64_t at;
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = id, .setup = (const char *)capture.setup.p, .resume = true};
    assert_int_equal(tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, NULL), TL_OK);
    assert_int_equal(
        tl_ingest_append(ingest, 0, (struct tl_bytes){capture.bytes.p, capture.bytes.n / 2}, NULL),
        TL_OK);
    tl_ingest_close(ingest);
}

/* A lake with a stored, a virtual and a live trace, an image, a label, a note and a rule. */
static int make_source(void **state)
{
    const struct sim_options options = {
        .seed = 5, .insns = INSNS, .cores = 1, .image = true, .events = true};
    const struct tl_retention rule = {.raw_age_s = 1000000};
    struct tl_note note = {.stream = "cs.10", .at = 10, .to = 20, .text = "here\nit hangs"};
    char hash[72];
    struct tl_lake *lake;
    struct tl_backend *backend;
    lake = open_memory_lake(&backend, SHARD, 1);
    sim_capture(lake, &options, &capture);
    close_memory_lake(backend, lake);
    assert_int_equal(tl_backend_memory(&source), TL_OK);
    lake = open_lake(source);
    sim_put_image(lake, &capture.elf, hash);
    push_sealed(lake, "stored", &capture, 1000);
    assert_int_equal(tl_lake_set_labels(lake, "stored", "team=cpu\n", NULL), TL_OK);
    assert_int_equal(tl_lake_put_note(lake, "stored", &note, NULL), TL_OK);
    begin_capture(lake, "virtual");
    assert_int_equal(tl_lake_set_labels(lake, "virtual", "shards=virtual\n", NULL), TL_OK);
    push_sealed(lake, "virtual", &capture, 1000);
    begin_capture(lake, "live");
    assert_int_equal(tl_lake_set_retention(lake, "label team=cpu", &rule, NULL), TL_OK);
    /* Hashes of the captures. */
    int64_t since = 0;
    for (bool known = false; !known; keep_waiting(&since, "all are hashed")) {
        struct tl_trace_list list;
        assert_int_equal(tl_lake_traces(lake, &list), TL_OK);
        known = true;
        for (size_t i = 0; i < list.n; i++)
            known = known && (strcmp(list.rows[i].id, "live") == 0 || list.rows[i].content[0]);
        tl_trace_list_free(&list);
    }
    tl_lake_close(lake);
    return 0;
}

static int free_source(void **state)
{
    tl_backend_free(source);
    capture_free(&capture);
    return 0;
}

/* The report of the last copy. */
struct reported {
    char text[512];
    uint64_t last, total; /* progress */
    int stop;             /* to be returned by the progress function */
};

static void report(void *context, const char *trace, enum tl_copy_outcome outcome, uint64_t bytes)
{
    static const char *const names[] = {"done", "there", "busy", "other", "damaged", "missing"};
    struct reported *const reported = context;
    const size_t n = strlen(reported->text);
    snprintf(reported->text + n, sizeof reported->text - n, "%s %s\n", trace, names[outcome]);
}

static int progress(void *context, const char *trace, uint64_t done, uint64_t total)
{
    struct reported *const reported = context;
    assert_true(done <= total || total == 0);
    reported->last = done;
    reported->total = total;
    return reported->stop;
}

static int copy(struct tl_backend *to, struct reported *reported, struct tl_fail *fail)
{
    const struct tl_copy_request request = {
        .report = report, .progress = progress, .context = reported};
    *reported = (struct reported){.stop = reported->stop};
    return tl_lake_copy_between(source, to, &request, fail);
}

/* Check that a lake on the copy has everything. */
static void check(struct tl_backend *to)
{
    struct tl_lake *const lake = open_lake(to);
    struct tl_buf findings = {0};
    struct tl_trace_list list;
    struct tl_note *notes;
    struct tl_retention_row *rules;
    struct tl_image_row *images;
    size_t n;
    const char *const ids[] = {"stored", "virtual"};
    for (size_t i = 0; i < 2; i++) {
        struct tl_buf text = {0};
        lake_text(lake, ids[i], &text);
        assert_texts_equal(&text, &capture.text);
        tl_buf_fini(&text);
    }
    assert_int_equal(tl_lake_traces(lake, &list), TL_OK);
    assert_int_equal(list.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(list.rows[i].state, TL_TRACE_SEALED);
        assert_int_equal(list.rows[i].raw_bytes, capture.bytes.n);
        assert_string_equal(list.rows[i].labels,
                            strcmp(list.rows[i].id, "stored") ? "shards=virtual\n" : "team=cpu\n");
    }
    tl_trace_list_free(&list);
    assert_int_equal(tl_lake_notes(lake, "stored", &notes, &n, NULL), TL_OK);
    assert_int_equal(n, 1);
    assert_string_equal(notes[0].text, "here\nit hangs");
    free(notes);
    assert_int_equal(tl_lake_retention(lake, &rules, &n), TL_OK);
    assert_int_equal(n, 1);
    free(rules);
    assert_int_equal(tl_lake_images(lake, &images, &n), TL_OK);
    assert_int_equal(n, 1);
    free(images);
    assert_int_equal(tl_lake_verify(lake, "", false, &findings, NULL), TL_OK);
    if (findings.n)
        fail_msg("%.*s", (int)findings.n, (const char *)findings.p);
    tl_buf_fini(&findings);
    tl_lake_close(lake);
}

static int count_key(void *context, const char *key, uint64_t size)
{
    *(uint64_t *)context += size;
    return TL_OK;
}

static uint64_t bytes_of(struct tl_backend *backend)
{
    uint64_t bytes = 0;
    assert_int_equal(backend->ops->list(backend, "", count_key, &bytes, NULL), TL_OK);
    return bytes;
}

static void copies_what_is_sealed(void **state)
{
    struct tl_backend *to;
    struct tl_fail fail = {0};
    struct reported reported = {0};
    assert_int_equal(tl_backend_memory(&to), TL_OK);
    if (copy(to, &reported, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_string_equal(reported.text, "stored done\nvirtual done\nlive busy\n");
    assert_true(reported.total > 0 && reported.last == reported.total);
    assert_int_equal(copy(to, &reported, &fail), TL_OK);
    assert_string_equal(reported.text, "stored there\nvirtual there\nlive busy\n");
    check(to);
    tl_backend_free(to);
}

static void single_traces(void **state)
{
    static const char *const ids[] = {"virtual", "none"};
    struct tl_backend *to;
    struct reported reported = {0};
    const struct tl_copy_request request = {
        .traces = ids, .n_traces = 2, .report = report, .context = &reported};
    assert_int_equal(tl_backend_memory(&to), TL_OK);
    assert_int_equal(tl_lake_copy_between(source, to, &request, NULL), TL_OK);
    assert_string_equal(reported.text, "none missing\nvirtual done\n");
    struct tl_lake *const lake = open_lake(to);
    struct tl_buf text = {0};
    lake_text(lake, "virtual", &text);
    assert_texts_equal(&text, &capture.text);
    tl_buf_fini(&text);
    tl_lake_close(lake);
    /* The rest is added later, regardless of what a server has done in the meantime. */
    assert_int_equal(copy(to, &reported, NULL), TL_OK);
    assert_string_equal(reported.text, "stored done\nvirtual there\nlive busy\n");
    check(to);
    tl_backend_free(to);
}

/* Power fails at each operation in turn; a server can start with the result, and the same call
 * completes it. */
static void continues_after_cuts(void **state)
{
    unsigned cuts = 0;
    for (uint64_t at = 0;; at += 1 + at / 8) {
        struct tl_backend *to;
        struct tl_fail fail = {0};
        struct reported reported = {0};
        assert_int_equal(tl_backend_memory(&to), TL_OK);
        tl_backend_memory_refuse(to, at, 1, TL_OK);
        const int r = copy(to, &reported, &fail);
        if (r >= 0) {
            assert_true(at > 40);
            tl_backend_free(to);
            break;
        }
        assert_int_equal(r, TL_IO);
        tl_backend_memory_boot(to, at);
        if (cuts++ % 3 == 0)
            tl_lake_close(open_lake(to));
        if (copy(to, &reported, &fail) < 0)
            fail_msg("behind a cut at %u: %s", (unsigned)at, fail.text);
        check(to);
        tl_backend_free(to);
    }
    assert_true(cuts > 15);
}

/* If its caller interrupts the copy and continues later, nothing is written twice. */
static void ends_when_told(void **state)
{
    struct tl_backend *to;
    struct reported reported = {.stop = TL_CANCELLED};
    assert_int_equal(tl_backend_memory(&to), TL_OK);
    assert_int_equal(copy(to, &reported, NULL), TL_CANCELLED);
    reported.stop = 0;
    assert_int_equal(copy(to, &reported, NULL), TL_OK);
    check(to);
    tl_backend_free(to);
}

static void leaves_what_is_there(void **state)
{
    struct tl_backend *to, *empty;
    struct tl_fail fail = {0};
    struct reported reported = {0};
    assert_int_equal(tl_backend_memory(&to), TL_OK);
    struct tl_lake *lake = open_lake(to);
    begin_capture(lake, "stored");
    assert_int_equal(copy(to, &reported, &fail), TL_DENIED); /* a server is using it */
    tl_lake_close(lake);
    assert_int_equal(copy(to, &reported, &fail), TL_OK);
    assert_string_equal(reported.text, "stored other\nvirtual done\nlive busy\n");
    lake = open_lake(to);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "stored", &list), TL_OK);
    assert_int_equal(list.rows[0].raw_bytes, capture.bytes.n / 2);
    tl_trace_list_free(&list);
    tl_lake_close(lake);
    /* A store without a catalog is not a lake. */
    assert_int_equal(tl_backend_memory(&empty), TL_OK);
    const struct tl_copy_request request = {0};
    assert_int_equal(tl_lake_copy_between(empty, to, &request, &fail), TL_NOTFOUND);
    tl_backend_free(empty);
    tl_backend_free(to);
}

static const struct tl_backend_ops *honest;

/* Reports data as stored that was not. */
static int forgetful_put(struct tl_backend *backend, const struct tl_object *objects, size_t n,
                         struct tl_fail *fail)
{
    struct tl_object less = objects[n - 1];
    less.bytes.n--;
    const int r = honest->put_all(backend, objects, n, fail);
    return r < 0 ? r : honest->put_all(backend, &less, 1, fail);
}

static void compares_what_it_wrote(void **state)
{
    struct tl_backend *to;
    struct tl_fail fail = {0};
    struct reported reported = {0};
    assert_int_equal(tl_backend_memory(&to), TL_OK);
    honest = to->ops;
    struct tl_backend_ops ops = *to->ops;
    ops.put_all = forgetful_put;
    to->ops = &ops;
    assert_int_equal(copy(to, &reported, &fail), TL_IO);
    assert_non_null(strstr(fail.text, "reads back as something else"));
    to->ops = honest;
    assert_int_equal(copy(to, &reported, &fail), TL_OK);
    check(to);
    tl_backend_free(to);
}

static int damage_raw(void *context, const char *key, uint64_t size)
{
    snprintf(context, 128, "%s", key);
    return 1;
}

/* Damaged data is copied unchanged, and reported. */
static void reports_damage(void **state)
{
    struct tl_backend *to, *again;
    struct tl_buf bytes = {0};
    struct reported reported = {0};
    char key[128];
    assert_int_equal(tl_backend_memory(&to), TL_OK);
    assert_int_equal(copy(to, &reported, NULL), TL_OK);
    assert_int_equal(to->ops->list(to, "r/stored", damage_raw, key, NULL), 1);
    assert_int_equal(tl_backend_get_all(to, key, &bytes, NULL), TL_OK);
    bytes.p[bytes.n / 2] ^= 1;
    assert_int_equal(tl_backend_put(to, key, (struct tl_bytes){bytes.p, bytes.n}, NULL), TL_OK);
    tl_buf_fini(&bytes);
    assert_int_equal(tl_backend_memory(&again), TL_OK);
    const struct tl_copy_request request = {.report = report, .context = &reported};
    reported = (struct reported){0};
    assert_int_equal(tl_lake_copy_between(to, again, &request, NULL), TL_OK);
    assert_string_equal(reported.text, "stored damaged\nvirtual done\n");
    assert_int_equal(bytes_of(again), bytes_of(to));
    tl_backend_free(again);
    tl_backend_free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_what_is_sealed), cmocka_unit_test(single_traces),
        cmocka_unit_test(continues_after_cuts),  cmocka_unit_test(ends_when_told),
        cmocka_unit_test(leaves_what_is_there),  cmocka_unit_test(compares_what_it_wrote),
        cmocka_unit_test(reports_damage),
    };
    return cmocka_run_group_tests(tests, make_source, free_source);
}
