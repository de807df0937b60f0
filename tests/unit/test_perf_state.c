/* SPDX-License-Identifier: MIT */
/*
 * A decode of perf.data that is repeatedly saved and loaded gives the same result as an undisturbed
 * one: files and pipes, both byte orders, compressed records, snapshots, CoreSight, streams of
 * threads and events. A modified state is refused or gives some result.
 */
#include "import/perf.h"
#include "perf/attr.h"
#include "perf/reader.h"
#include "unit/data.h"
#include "unit/hand_on.h"

#include <dirent.h>
#include <stdlib.h>

static void load_file(struct tl_buf *out, const char *dir, const char *name)
{
    char path[5000];
    struct tl_fail fail = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (tl_buf_read_file(out, path, 64 << 20, &fail) < 0)
        fail_msg("%s", fail.text);
}

static void corpus_dir(char *out, size_t size)
{
    snprintf(out, size, "%s/tests/fuzz/corpus/perf", TL_SOURCE_DIR);
}

/* ---- captures without code ------------------------------------------------------------------- */

static void run_of(struct run *run, struct tl_setup *setup, const struct tl_buf *file, bool all)
{
    tl_setup_init(setup);
    assert_int_equal(tl_setup_format(setup, all ? "perf,threads=yes,events=yes" : "perf", NULL),
                     TL_OK);
    /* The first byte of the corpus' files is the fuzz target's. */
    *run = (struct run){.setup = setup, .in = {file->p + 1, file->n - 1}, .paths = true};
}

static void files_and_pipes(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {21};
    char dir[4096];
    corpus_dir(dir, sizeof dir);
    DIR *const list = opendir(dir);
    assert_non_null(list);
    for (const struct dirent *e; (e = readdir(list));) {
        struct tl_buf file = {0};
        if (e->d_name[0] == '.')
            continue;
        load_file(&file, dir, e->d_name);
        for (unsigned all = 0; all < 2; all++) {
            struct tl_setup setup;
            struct run run;
            run_of(&run, &setup, &file, all);
            assert_true(compare(&run, 40, &rng) > 0);
            assert_true(compare(&run, file.n / 5, &rng) > 0);
            tl_setup_fini(&setup);
        }
        tl_buf_fini(&file);
    }
    closedir(list);
}

/* ---- bad records ----------------------------------------------------------------------------- */

/*
 * The offset of record `n`, counting those followed by at least `most` bytes; 0 if there are fewer.
 */
static size_t find_record(struct tl_bytes in, unsigned n, size_t most)
{
    const bool swap = tl_le64(in.p) != TL_PERF_MAGIC;
    const bool piped = tl_perf_u64(swap, in.p + 8) == 16;
    uint64_t at = piped ? 16 : tl_perf_u64(swap, in.p + 40);
    const uint64_t end = piped ? in.n : at + tl_perf_u64(swap, in.p + 48);
    while (at + most <= end) {
        const uint32_t type = tl_perf_u32(swap, in.p + at);
        const uint64_t area = type == TL_PERF_AUXTRACE       ? tl_perf_u64(swap, in.p + at + 8)
                              : type == TL_PERF_TRACING_DATA ? tl_perf_u32(swap, in.p + at + 8)
                                                             : 0;
        if (n-- == 0)
            return (size_t)at;
        at += tl_perf_u16(swap, in.p + at + 6) + area;
    }
    return 0;
}

/* After a record without a size, the next good one is searched for, with chunks smaller than the
 * distance to it. */
static void bad_records(void **state)
{
    enum { PIECE = 12, BETWEEN = 64 };
    (void)state;
    struct tl_sim_rng rng = {24};
    unsigned searched = 0;
    char dir[4096];
    corpus_dir(dir, sizeof dir);
    DIR *const list = opendir(dir);
    assert_non_null(list);
    for (const struct dirent *e; (e = readdir(list));) {
        struct tl_buf file = {0};
        if (e->d_name[0] == '.')
            continue;
        load_file(&file, dir, e->d_name);
        struct tl_setup setup;
        struct run run;
        run_of(&run, &setup, &file, true);
        for (unsigned n = tl_sim_below(&rng, 4); tl_perf_is(run.in.p, run.in.n) && n < 40;
             n += 1 + tl_sim_below(&rng, 12)) {
            const size_t at = find_record(run.in, n, BETWEEN);
            if (at == 0)
                break;
            uint8_t *const size = file.p + 1 + at + 6, was[2] = {size[0], size[1]};
            struct log all = {0}, parts = {0};
            size[0] = size[1] = 0;
            undisturbed(&run, PIECE, rng, &all);
            assert_true(handed_on(&run, PIECE, rng, &parts) > 0);
            assert_same(&all, &parts);
            const struct tl_buf *const losses = &all.losses[STREAMS];
            searched += memmem(losses->p, losses->n, "a record's size", 15) != NULL;
            memcpy(size, was, sizeof was);
            log_fini(&all);
            log_fini(&parts);
        }
        tl_setup_fini(&setup);
        tl_buf_fini(&file);
    }
    closedir(list);
    assert_true(searched > 20);
}

/* ---- modified states ------------------------------------------------------------------------- */

/* Continue from a state saved halfway, with some bytes changed, and decode the rest. */
static void continue_changed(const struct run *run, const struct tl_buf *saved, size_t half,
                             struct tl_sim_rng *rng)
{
    struct tl_buf changed = {0};
    struct log log = {0};
    assert_int_equal(tl_buf_add(&changed, saved->p, saved->n), TL_OK);
    for (unsigned i = 1 + tl_sim_below(rng, 3); i > 0; i--)
        changed.p[tl_sim_below(rng, (uint32_t)changed.n)] ^= (uint8_t)(1 << tl_sim_below(rng, 8));
    struct tl_decode *const d = begin(run, &log);
    if (tl_decode_load(d, (struct tl_bytes){changed.p, changed.n}) == TL_OK) {
        assert_int_equal(tl_decode_push(d, run->in.p + half, run->in.n - half), TL_OK);
        assert_int_equal(tl_decode_finish(d), TL_OK);
    }
    tl_decode_free(d);
    log_fini(&log);
    tl_buf_fini(&changed);
}

static void changed_states(void **state)
{
    (void)state;
    static const char *const names[] = {"compressed.pipe", "coresight.pipe", "remap.file",
                                        "snapshot.pipe", "threads.pipe"};
    struct tl_sim_rng rng = {22};
    char dir[4096];
    corpus_dir(dir, sizeof dir);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tl_buf file = {0}, saved = {0};
        struct tl_setup setup;
        struct run run;
        struct log log = {0};
        load_file(&file, dir, names[i]);
        run_of(&run, &setup, &file, true);
        const size_t half = run.in.n / 2;
        struct tl_decode *const d = begin(&run, &log);
        assert_int_equal(tl_decode_push(d, run.in.p, half), TL_OK);
        assert_int_equal(tl_decode_save(d, &saved), TL_OK);
        tl_decode_free(d);
        for (unsigned round = 0; round < 300; round++)
            continue_changed(&run, &saved, half, &rng);
        log_fini(&log);
        tl_setup_fini(&setup);
        tl_buf_fini(&saved);
        tl_buf_fini(&file);
    }
}

/* ---- real captures --------------------------------------------------------------------------- */

static void hand_on_capture(const struct tl_buf *file, const struct tl_code_places *places,
                            const char *format, struct tl_sim_rng *rng)
{
    struct tl_perf_import *import;
    struct tl_setup setup;
    struct tl_image *image;
    struct tl_fail fail = {0};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, format, &fail), TL_OK);
    assert_int_equal(tl_perf_import_new(&import, places, NULL, NULL), TL_OK);
    assert_int_equal(tl_perf_import_push(import, (struct tl_bytes){file->p, file->n}), TL_OK);
    assert_int_equal(tl_perf_import_finish(import), TL_OK);
    assert_int_equal(tl_perf_import_setup(import, &setup), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&setup, image, NULL, NULL, &fail), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    struct run run = {.setup = &setup, .image = image, .in = {file->p, file->n}, .paths = true};
    assert_true(compare(&run, file->n / 12, rng) > 0);
    tl_image_free(image);
    tl_perf_import_free(import);
    tl_setup_fini(&setup);
}

static void hand_on_folder(const char *name, const struct tl_code_places *places)
{
    struct tl_sim_rng rng = {23};
    char dir[4096];
    DIR *const list = test_data(dir, sizeof dir, name) ? opendir(dir) : NULL;
    assert_non_null(list);
    for (const struct dirent *e; (e = readdir(list));) {
        struct tl_buf file = {0};
        const size_t n = strlen(e->d_name);
        if (n < 5 || strcmp(e->d_name + n - 5, ".data") != 0)
            continue;
        load_file(&file, dir, e->d_name);
        hand_on_capture(&file, places, "perf", &rng);
        hand_on_capture(&file, places, "perf,threads=yes,events=yes", &rng);
        tl_buf_fini(&file);
    }
    closedir(list);
}

static void real_captures(void **state)
{
    (void)state;
    static const char *const folders[] = {"perf/pt", "perf/cs", "perf/real", "perf/sw"};
    char symfs[4096], buildid[4096];
    if (!test_data(symfs, sizeof symfs, "perf/symfs") ||
        !test_data(buildid, sizeof buildid, "perf/buildid")) {
        print_message("skipped: no captures here\n");
        skip();
    }
    const struct tl_code_places places = {.symfs = symfs, .buildid_dir = buildid};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        hand_on_folder(folders[i], &places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_and_pipes),
        cmocka_unit_test(bad_records),
        cmocka_unit_test(changed_states),
        cmocka_unit_test(real_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
