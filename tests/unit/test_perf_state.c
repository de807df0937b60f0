/* SPDX-License-Identifier: MIT */
/*
 * A decode of perf.data that is repeatedly saved and loaded gives the result of an undisturbed one:
 * files and pipes, both byte orders, compressed records, snapshots, CoreSight, streams of threads
 * and events. A modified state is refused, or gives some result.
 */
#include "import/perf.h"
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

/* ---- states that were changed ---------------------------------------------------------------- */

/* Half of the capture's state, with some bytes changed, and what comes behind it. */
static void go_on_changed(const struct run *run, const struct tl_buf *saved, size_t half,
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
            go_on_changed(&run, &saved, half, &rng);
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
        cmocka_unit_test(changed_states),
        cmocka_unit_test(real_captures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
