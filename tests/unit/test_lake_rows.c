/* SPDX-License-Identifier: MIT */
/*
 * Flipped bits in catalog.db: every answer is right, or an error that says so; verification finds
 * the damage, and repair mends it. Where the file's structure suffers, the server does not start,
 * and makes the catalog anew.
 */
#include "lake_upkeep.h"
#include "sim_capture.h"
#include "unit/seed.h"

#include <ftw.h>
#include <unistd.h>

#define ANSWERS 10

static struct capture capture;
static struct tl_backend *backend;
static struct tl_lake *lake;
static char folder[] = "/tmp/tracelake-rows-XXXXXX";
static char catalog[64];

/* ---- a lake in a folder ---------------------------------------------------------------------- */

static int try_open(struct tl_fail *fail)
{
    const struct tl_lake_options options = {
        .shard_insns = 2500, .decode_threads = 1, .min_free_bytes = 1};
    int r = tl_backend_folder(&backend, folder, fail);
    if (r >= 0)
        r = tl_lake_open_on(&lake, backend, &options, fail);
    if (r < 0) {
        tl_backend_free(backend);
        backend = NULL;
    }
    return r;
}

static void close_lake(void)
{
    tl_lake_close(lake);
    tl_backend_free(backend);
    backend = NULL;
}

static void open_lake(void)
{
    struct tl_fail fail = {0};
    if (try_open(&fail) < 0)
        fail_msg("%s", fail.text);
}

static void fill(const char *id)
{
    struct tl_note note = {.stream = "cs.10", .at = 5, .to = 6, .text = "look here"};
    struct tl_fail fail = {0};
    push_sealed(lake, id, &capture, 3000);
    assert_int_equal(tl_lake_set_labels(lake, id, "team=cpu", &fail), TL_OK);
    assert_int_equal(tl_lake_put_note(lake, id, &note, &fail), TL_OK);
}

/* Until its raw bytes have a name. */
static void wait_hashed(const char *id)
{
    for (int64_t since = 0;;) {
        struct tl_trace_list list;
        assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
        const bool hashed = list.rows[0].content[0];
        tl_trace_list_free(&list);
        if (hashed)
            return;
        keep_waiting(&since, id);
    }
}

static int set_up(void **state)
{
    const struct sim_options options = {
        .seed = 5, .insns = 6000, .cores = 2, .image = true, .events = true};
    const struct tl_retention rule = {.raw_age_s = 1000000};
    struct tl_fail fail = {0};
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(catalog, sizeof catalog, "%s/catalog.db", folder);
    open_lake();
    sim_capture(lake, &options, &capture);
    fill("first");
    fill("second");
    assert_int_equal(tl_lake_set_retention(lake, "label team=cpu", &rule, &fail), TL_OK);
    wait_hashed("first");
    wait_hashed("second");
    close_lake();
    return 0;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *place)
{
    (void)s, (void)type, (void)place;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    capture_free(&capture);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answers {
    struct tl_buf text[ANSWERS];
    int result[ANSWERS];
};

static void add_row(struct tl_buf *out, const struct tl_trace_row *row)
{
    assert_true(tl_buf_printf(out, "%s %s %d %s %lld %llu %llu %llu %d %s %s %zu\n", row->id,
                              row->rig, row->state, row->format, (long long)row->created_ns,
                              (unsigned long long)row->raw_bytes,
                              (unsigned long long)row->decoded_bytes,
                              (unsigned long long)row->generation, row->raw_removed, row->content,
                              row->labels ? row->labels : "", row->n_streams) >= 0);
    for (size_t i = 0; i < row->n_streams; i++)
        assert_true(tl_buf_printf(out, "  %s %llu\n", row->streams[i].name,
                                  (unsigned long long)row->streams[i].insns) >= 0);
}

static int ask_trace(const char *id, struct tl_buf *out)
{
    struct tl_trace_list list = {0};
    const int r = tl_lake_trace(lake, id, &list);
    if (r >= 0 && list.rows[0].state == TL_TRACE_SEALED)
        add_row(out, &list.rows[0]);
    const bool damaged = r >= 0 && list.rows[0].state != TL_TRACE_SEALED;
    tl_trace_list_free(&list);
    return damaged ? TL_BAD : r;
}

/* A list shows a damaged trace as failed, and says why; others are right. */
static int ask_list(struct tl_buf *out)
{
    struct tl_trace_list list = {0};
    int r = tl_lake_page(lake, NULL, 10, &list), damaged = 0;
    for (size_t i = 0; r >= 0 && i < list.n; i++) {
        if (list.rows[i].state == TL_TRACE_FAILED && strstr(list.rows[i].message, "damaged"))
            damaged++;
        else
            add_row(out, &list.rows[i]);
    }
    tl_trace_list_free(&list);
    return r < 0 ? r : damaged ? TL_BAD : TL_OK;
}

static int ask_text(const char *id, struct tl_buf *out)
{
    const struct tl_range_request request = {
        .trace = id, .stream = "cs.10", .to = 6000, .format = TL_FORMAT_TEXT};
    struct tl_range *range;
    int r = tl_range_open(lake, &request, &range, NULL);
    const bool open = r >= 0;
    while (r >= 0)
        r = tl_range_next(range, out, NULL);
    if (open)
        tl_range_close(range);
    return r == TL_EOF ? TL_OK : r;
}

static int ask_notes(const char *id, struct tl_buf *out)
{
    struct tl_note *notes = NULL;
    size_t n = 0;
    const int r = tl_lake_notes(lake, id, &notes, &n, NULL);
    for (size_t i = 0; r >= 0 && i < n; i++)
        assert_true(tl_buf_printf(out, "%s %llu %s\n", notes[i].stream,
                                  (unsigned long long)notes[i].at, notes[i].text) >= 0);
    free(notes);
    return r;
}

static int ask_images(struct tl_buf *out)
{
    struct tl_image_row *rows = NULL;
    size_t n = 0;
    const int r = tl_lake_images(lake, &rows, &n);
    for (size_t i = 0; r >= 0 && i < n; i++)
        assert_true(tl_buf_printf(out, "%s %s %s %llu\n", rows[i].hash, rows[i].name,
                                  rows[i].build_id, (unsigned long long)rows[i].size) >= 0);
    free(rows);
    return r;
}

static int ask_rules(struct tl_buf *out)
{
    struct tl_retention_row *rows = NULL;
    size_t n = 0;
    const int r = tl_lake_retention(lake, &rows, &n);
    for (size_t i = 0; r >= 0 && i < n; i++)
        assert_true(tl_buf_printf(out, "%s %llu %llu\n", rows[i].scope,
                                  (unsigned long long)rows[i].rule.raw_age_s,
                                  (unsigned long long)rows[i].rule.decoded_age_s) >= 0);
    free(rows);
    return r;
}

static void ask(struct answers *a)
{
    struct tl_buf *const t = a->text;
    for (size_t i = 0; i < ANSWERS; i++)
        tl_buf_reset(&t[i]);
    a->result[0] = ask_list(&t[0]);
    a->result[1] = ask_trace("first", &t[1]);
    a->result[2] = ask_trace("second", &t[2]);
    a->result[3] = ask_text("first", &t[3]);
    a->result[4] = ask_text("second", &t[4]);
    a->result[5] = tl_lake_setup(lake, "first", &t[5], NULL);
    a->result[6] = ask_notes("first", &t[6]);
    a->result[7] = ask_notes("second", &t[7]);
    a->result[8] = ask_images(&t[8]);
    a->result[9] = ask_rules(&t[9]);
}

/* The number of errors; every other answer is right. */
static unsigned compare(const struct answers *want, const struct answers *got, size_t at,
                        size_t from)
{
    unsigned errors = 0;
    for (size_t i = from; i < ANSWERS; i++) {
        const struct tl_buf *const a = &want->text[i], *const b = &got->text[i];
        const bool same = a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
        errors += got->result[i] < 0;
        if (got->result[i] >= 0 && !same)
            fail_msg("bit %zu: answer %zu was\n%.*s\nis\n%.*s", at, i,
                     (int)(a->n < 900 ? a->n : 900), (char *)a->p, (int)(b->n < 900 ? b->n : 900),
                     (char *)b->p);
    }
    return errors;
}

static void answers_fini(struct answers *a)
{
    for (size_t i = 0; i < ANSWERS; i++)
        tl_buf_fini(&a->text[i]);
}

/* ---- flips ----------------------------------------------------------------------------------- */

static void put_catalog(const struct tl_buf *bytes, size_t bit)
{
    char path[80];
    snprintf(path, sizeof path, "%s-wal", catalog);
    unlink(path);
    snprintf(path, sizeof path, "%s-shm", catalog);
    unlink(path);
    bytes->p[bit / 8] ^= (uint8_t)(1u << bit % 8);
    FILE *const f = fopen(catalog, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes->p, 1, bytes->n, f), bytes->n);
    assert_int_equal(fclose(f), 0);
    bytes->p[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

struct outcome {
    unsigned refused, errors, unseen, found;
};

static void try_flip(const struct tl_buf *bytes, size_t bit, const struct answers *want,
                     struct answers *got, struct outcome *out)
{
    struct tl_fail fail = {0};
    struct tl_buf report = {0};
    put_catalog(bytes, bit);
    if (try_open(&fail) < 0) {
        out->refused++;
        assert_true(fail.text[0]);
        return;
    }
    ask(got);
    const unsigned errors = compare(want, got, bit, 0);
    const int found = tl_lake_verify(lake, "", true, &report, &fail);
    if (errors > 0 && found <= 0)
        fail_msg("bit %zu: %u errors, and verify finds %d: %s", bit, errors, found, fail.text);
    out->errors += errors > 0;
    out->found += found > 0;
    out->unseen += errors == 0;
    if (found > 0) {
        for (size_t i = 0; i < 2; i++)
            (void)!tl_lake_verify(lake, "", true, &report, &fail);
        const int left = tl_lake_verify(lake, "", false, (tl_buf_reset(&report), &report), &fail);
        if (left != 0)
            fail_msg("bit %zu: %d left: %s%s", bit, left, (char *)report.p, fail.text);
        ask(got);
        /* A damaged rule cannot be made anew. */
        tl_buf_reset(&got->text[9]);
        assert_int_equal(tl_buf_add(&got->text[9], want->text[9].p, want->text[9].n), TL_OK);
        assert_int_equal(compare(want, got, bit, 0), 0);
    }
    tl_buf_fini(&report);
    close_lake();
}

static void flipped_bits(void **state)
{
    struct answers want = {0}, got = {0};
    struct tl_buf bytes = {0};
    struct outcome out = {0};
    uint64_t random = test_seed();
    (void)state;
    open_lake();
    ask(&want);
    for (size_t i = 0; i < ANSWERS; i++)
        assert_true(want.result[i] >= 0 && want.text[i].n > 0);
    close_lake();
    read_file(catalog, &bytes);
    for (unsigned i = 0; i < 200; i++) {
        size_t bit = 0;
        /* Three of four where there is something. */
        for (unsigned k = 0; k < 4000 && (k == 0 || (i % 4 > 0 && bytes.p[bit / 8] == 0)); k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bit = (size_t)(random >> 20) % (bytes.n * 8);
        }
        try_flip(&bytes, bit, &want, &got, &out);
    }
    print_message("%u refused at the start, %u errors, %u found by verify, %u without effect\n",
                  out.refused, out.errors, out.found, out.unseen);
    assert_true(out.errors > 5);
    answers_fini(&want);
    answers_fini(&got);
    tl_buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(flipped_bits, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
