/* SPDX-License-Identifier: MIT */
/* Notes on traces: written, changed, removed, and read again after a restart and from a rebuilt
 * catalog. */
#include "lake_upkeep.h"
#include "sim_capture.h"

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;

static int set_up(void **state)
{
    (void)state;
    sim_lake_begin(&backend, &lake, &capture, 2500);
    push_sealed(lake, "t", &capture, 3000);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sim_lake_end(backend, lake, &capture);
    return 0;
}

static struct tl_note made(uint64_t at, uint64_t to, const char *text)
{
    struct tl_note note = {.stream = "cs.10", .at = at, .to = to};
    snprintf(note.text, sizeof note.text, "%s", text);
    return note;
}

static uint64_t put(struct tl_note note)
{
    struct tl_fail fail = {0};
    if (tl_lake_put_note(lake, "t", &note, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_true(note.has_time && note.created_ns > 0 && note.updated_ns >= note.created_ns);
    struct tl_position at;
    assert_int_equal(tl_lake_locate(lake, "t", "cs.10", TL_UNIT_INSN, note.at, &at, &fail), TL_OK);
    assert_true(note.time == at.time && note.time_to >= note.time);
    return note.id;
}

/* "ID AT-TO TEXT|…" */
static void expect(const char *text)
{
    struct tl_note *notes;
    size_t n;
    struct tl_buf all = {0};
    assert_int_equal(tl_lake_notes(lake, "t", &notes, &n, NULL), TL_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(tl_buf_printf(&all, "%llu %llu-%llu %s|", (unsigned long long)notes[i].id,
                                       (unsigned long long)notes[i].at,
                                       (unsigned long long)notes[i].to, notes[i].text),
                         TL_OK);
    free(notes);
    assert_int_equal(tl_buf_add(&all, "", 1), TL_OK);
    assert_string_equal((char *)all.p, text);
    tl_buf_fini(&all);
}

static void notes_are_kept(void **state)
{
    struct tl_fail fail = {0};
    (void)state;
    expect("");
    assert_int_equal(put(made(100, 100, "first")), 1);
    assert_int_equal(put(made(2000, 3000, "two\nlines = more")), 2);
    assert_int_equal(put(made(50, 50, "")), 3);
    expect("1 100-100 first|2 2000-3000 two\nlines = more|3 50-50 |");
    struct tl_note note = made(101, 102, "changed \xff");
    note.id = 1;
    assert_int_equal(put(note), 1);
    assert_int_equal(tl_lake_remove_note(lake, "t", 3, &fail), TL_OK);
    assert_int_equal(tl_lake_remove_note(lake, "t", 3, &fail), TL_NOTFOUND);
    const char *const now = "1 101-102 changed ?|2 2000-3000 two\nlines = more|";
    expect(now);
    /* The notes are unchanged, and the store is intact. */
    struct tl_buf report = {0};
    assert_int_equal(tl_lake_verify(lake, "t", false, &report, &fail), 0);
    tl_buf_fini(&report);
    tl_lake_close(lake);
    lake = open_lake_sized(backend, 2500, 1);
    expect(now);
    tl_lake_close(lake);
    const struct tl_lake_options options = {.shard_insns = 2500,
                                            .decode_threads = 1,
                                            .min_free_bytes = 1,
                                            .checkpoint_bytes = 8192,
                                            .rebuild_catalog = true};
    assert_int_equal(tl_lake_open_on(&lake, backend, &options, &fail), TL_OK);
    expect(now);
    assert_int_equal(put(made(7, 7, "behind")), 3);
}

static void notes_have_limits(void **state)
{
    struct tl_fail fail = {0};
    struct tl_note *notes;
    size_t n;
    struct tl_note note = made(5, 4, "x");
    (void)state;
    assert_int_equal(tl_lake_put_note(lake, "t", &note, &fail), TL_USAGE);
    note = made(5, 5, "\x1b[2J");
    assert_int_equal(tl_lake_put_note(lake, "t", &note, &fail), TL_USAGE);
    note = made(5, 5, "x");
    note.id = 9;
    assert_int_equal(tl_lake_put_note(lake, "t", &note, &fail), TL_NOTFOUND);
    note = made(5, 5, "x");
    snprintf(note.stream, sizeof note.stream, "cs.77");
    assert_int_equal(tl_lake_put_note(lake, "t", &note, &fail), TL_NOTFOUND);
    note = made(5, 5, "x");
    assert_int_equal(tl_lake_put_note(lake, "nobody", &note, &fail), TL_NOTFOUND);
    assert_int_equal(tl_lake_notes(lake, "nobody", &notes, &n, &fail), TL_NOTFOUND);
    assert_int_equal(tl_lake_remove_note(lake, "nobody", 1, &fail), TL_NOTFOUND);
    expect("");
    /* A new trace of the same name has no notes. */
    assert_int_equal(put(made(5, 5, "x")), 1);
    assert_int_equal(tl_lake_delete(lake, "t", &fail), TL_OK);
    push_sealed(lake, "t", &capture, 3000);
    expect("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(notes_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(notes_have_limits, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("lake_notes", tests, NULL, NULL);
}
