/* SPDX-License-Identifier: MIT */
/* Images that are bound to a trace later, each to one process. */
#include "lake_insns.h"
#include "lake_upkeep.h"
#include "sim/program_dwarf.h"
#include "sim_capture.h"

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;

static int set_up(void **state)
{
    (void)state;
    sim_lake_begin(&backend, &lake, &capture, 2500);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sim_lake_end(backend, lake, &capture);
    return 0;
}

/* The same program with its function names in capitals. */
static void put_renamed(char hash[static 72])
{
    struct tl_buf elf = {0};
    assert_int_equal(tl_buf_add(&elf, capture.elf.p, capture.elf.n), TL_OK);
    static const char first[] = "schedule", second[] = "sys_yield";
    char *const one = memmem(elf.p, elf.n, first, sizeof first);
    char *const two = memmem(elf.p, elf.n, second, sizeof second);
    assert_true(one && two);
    *one = *two = 'S';
    sim_put_image(lake, &elf, hash);
    tl_buf_fini(&elf);
}

struct seen {
    uint64_t process;
    unsigned rows[2]; /* counts of functions: renamed, and with their original names */
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int see_row(void *context, const struct tl_insn_row *row)
{
    struct seen *const seen = context;
    for (const char *line = row->events; *line; line += strcspn(line, "\n") + 1)
        if (begins(line, "C "))
            seen->process = strtoull(line + 2, NULL, 16);
    const bool renamed = begins(row->function, "Schedule") || begins(row->function, "Sys_yield");
    if (renamed || begins(row->function, "schedule") || begins(row->function, "sys_yield")) {
        assert_true(!renamed == (seen->process != 0x100));
        seen->rows[!renamed]++;
    }
    return TL_OK;
}

/* Two processes run different programs at the same address: each process's functions have the names
 * from its program. */
static void images_of_two_processes(void **state)
{
    char hash[2][72];
    struct tl_fail fail = {0};
    (void)state;
    push_sealed(lake, "t", &capture, 3000);
    put_renamed(hash[0]);
    sim_put_image(lake, &capture.elf, hash[1]);
    for (unsigned i = 0; i < 2; i++) {
        const struct tl_lake_binding binding = {
            .hash = hash[i], .context = {.context_id = 0x100 + i, .has_context_id = true}};
        assert_int_equal(tl_lake_bind_image(lake, "t", &binding, &fail), TL_OK);
        assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    }
    struct seen seen = {0};
    assert_int_equal(tl_lake_insns(lake, "t", "cs.10", 0, 4000, see_row, &seen, &fail), TL_OK);
    print_message("%u and %u rows\n", seen.rows[0], seen.rows[1]);
    assert_true(seen.rows[0] > 0 && seen.rows[1] > 0);
}

static struct tl_gen *serving(const char *id)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    assert_non_null(trace);
    struct tl_gen *const gen = tl_trace_serving(trace);
    tl_trace_put(trace);
    return gen;
}

/*
 * Traces of the same program share its image; another address or other content needs another one.
 */
static void programs_are_shared(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct tl_gen *gens[4];
    struct tl_fail fail = {0};
    char hash[72];
    (void)state;
    sim_put_image(lake, &capture.elf, hash);
    for (size_t i = 0; i < 4; i++) {
        const struct tl_lake_binding binding = {.hash = hash, .address = i == 3 ? 0x1000 : 0};
        push_sealed(lake, names[i], &capture, 3000);
        if (i > 0) {
            assert_int_equal(tl_lake_bind_image(lake, names[i], &binding, &fail), TL_OK);
            assert_int_equal(wait_done(lake, names[i]), TL_TRACE_SEALED);
        }
        gens[i] = serving(names[i]);
    }
    const struct tl_image *const image = tl_gen_image(gens[1]);
    assert_non_null(image);
    assert_ptr_equal(tl_gen_image(gens[2]), image);
    assert_ptr_not_equal(tl_gen_image(gens[0]), image);
    assert_ptr_not_equal(tl_gen_image(gens[3]), image);
    tl_gen_put(gens[1]);
    assert_int_equal(tl_lake_delete(lake, "b", &fail), TL_OK);
    size_t n;
    (void)tl_image_symbols(tl_gen_image(gens[2]), &n);
    assert_true(n > 0);
    tl_gen_put(gens[0]);
    tl_gen_put(gens[2]);
    tl_gen_put(gens[3]);
    unsigned programs = 0;
    for (const struct tl_program *p = lake->programs; p; p = p->next)
        programs++;
    assert_int_equal(programs, 3);
    assert_int_equal(tl_lake_delete(lake, "c", &fail), TL_OK);
    assert_int_equal(tl_lake_delete(lake, "d", &fail), TL_OK);
    assert_non_null(lake->programs); /* of "a" */
    assert_null(lake->programs->next);
}

/* ---- sources --------------------------------------------------------------------------------- */

struct sourced {
    struct tl_sim_program program;
    unsigned lines, inlined;
};

static int check_source(void *context, const struct tl_insn_row *row)
{
    struct sourced *const s = context;
    struct tl_sim_place truth;
    for (uint32_t i = 0; i < s->program.n_insns; i++) {
        if (tl_sim_program_address(&s->program, i) != row->pc)
            continue;
        if (!tl_sim_program_place(&s->program, i, &truth))
            break;
        assert_string_equal(row->file, tl_sim_source_paths[truth.source]);
        assert_int_equal(row->line, truth.line);
        assert_int_equal(row->n_inlined, truth.inlined);
        s->lines++;
        if (truth.inlined) {
            assert_string_equal(row->inlined[0].function, TL_SIM_INLINED_NAME);
            assert_int_equal(row->inlined[0].line, truth.call_line);
            s->inlined++;
        }
        return TL_OK;
    }
    assert_string_equal(row->file, "");
    return TL_OK;
}

static void give_source(const char *path, const char *name, struct tl_bytes text)
{
    struct tl_buf content = {0};
    struct tl_image_row row;
    assert_int_equal(tl_buf_printf(&content, "%s\n", path), TL_OK);
    assert_int_equal(tl_buf_add(&content, text.p, text.n), TL_OK);
    assert_int_equal(
        tl_lake_put_image(lake, name, (struct tl_bytes){content.p, content.n}, &row, NULL), TL_OK);
    tl_buf_fini(&content);
}

/* Every instruction has the line known from the simulation; the line's text is available once it is
 * uploaded. */
static void instructions_have_lines(void **state)
{
    static const uint8_t other[] = "other", same[] = "\001line 1\nline 2\n";
    struct sourced s = {0};
    struct tl_source_file source;
    struct tl_fail fail = {0};
    (void)state;
    const struct tl_sim_program_options options = {.seed = 5, .extra = 20, .short_loops = true};
    assert_int_equal(tl_sim_program_init(&s.program, &options), TL_OK);
    push_sealed(lake, "t", &capture, 3000);
    assert_int_equal(tl_lake_insns(lake, "t", "cs.10", 0, 4096, check_source, &s, &fail), TL_OK);
    print_message("%u lines, %u inlined\n", s.lines, s.inlined);
    assert_true(s.lines > 3000 && s.inlined > 100);

    assert_int_equal(tl_lake_source(lake, "t", "cs.10", 1000, 0, &source, &fail), TL_OK);
    assert_false(source.has_text);
    assert_non_null(strstr(source.why, "was not given"));
    char path[200], name[260];
    snprintf(path, sizeof path, "/elsewhere%s", strrchr(source.file, '/'));
    tl_source_file_fini(&source);
    give_source("/x/tasks.cc", "source:/x/tasks.cc", (struct tl_bytes){other, sizeof other});
    snprintf(name, sizeof name, "source:%s", path);
    give_source(path, name, (struct tl_bytes){same, sizeof same - 1});
    assert_int_equal(tl_lake_source(lake, "t", "cs.10", 1000, 0, &source, &fail), TL_OK);
    assert_true(source.has_text && source.line > 0 && !source.why[0]);
    assert_int_equal(source.text.n, sizeof same - 1);
    assert_memory_equal(source.text.p, same, sizeof same - 1);
    tl_source_file_fini(&source);
    /* Several files have this path: the one for this image is used, not the newest. */
    static const uint8_t own[] = "own";
    char hash[72];
    const char *const tail = strrchr(path, '/');
    sim_put_image(lake, &capture.elf, hash);
    snprintf(name, sizeof name, "source:%.12s:%s", hash + 7, tail);
    give_source(name, name, (struct tl_bytes){own, sizeof own});
    snprintf(name, sizeof name, "source:0123456789ab:%s", path);
    give_source(name, name, (struct tl_bytes){other, sizeof other});
    snprintf(name, sizeof name, "source:%s", path);
    give_source(name, name, (struct tl_bytes){other, sizeof other});
    assert_int_equal(tl_lake_source(lake, "t", "cs.10", 1000, 0, &source, &fail), TL_OK);
    assert_int_equal(source.text.n, sizeof own);
    tl_source_file_fini(&source);
    assert_int_equal(tl_lake_source(lake, "t", "cs.10", 1000, 9, &source, &fail), TL_NOTFOUND);
    tl_source_file_fini(&source);
    assert_int_equal(tl_lake_source(lake, "t", "cs.10", UINT64_MAX, 0, &source, NULL), TL_NOTFOUND);
    tl_source_file_fini(&source);
    tl_sim_program_fini(&s.program);
}

/* Without debug information, the answer says so. */
static void a_stripped_image_says_so(void **state)
{
    struct tl_buf elf = {0};
    struct tl_source_file source;
    struct tl_fail fail = {0};
    char hash[72];
    (void)state;
    assert_int_equal(tl_buf_add(&elf, capture.elf.p, capture.elf.n), TL_OK);
    char *const at = memmem(elf.p, elf.n, ".debug_info", 11);
    assert_non_null(at);
    at[1] = 'x';
    push_sealed(lake, "t", &capture, 3000);
    sim_put_image(lake, &elf, hash);
    assert_int_equal(tl_lake_bind_image(lake, "t", &(struct tl_lake_binding){.hash = hash}, &fail),
                     TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_int_equal(tl_lake_source(lake, "t", "cs.10", 1000, 0, &source, &fail), TL_OK);
    assert_string_equal(source.file, "");
    assert_non_null(strstr(source.why, "no debug information"));
    tl_source_file_fini(&source);
    tl_buf_fini(&elf);
}

/* ---- images that no trace refers to ---------------------------------------------------------- */

#define HOUR_NS INT64_C(3600000000000)

/* An image that has this text in it, besides others; `name` may be that of a source. */
static void put_text(const char *name, const char *text, size_t n, char hash[static 72])
{
    struct tl_image_row row;
    struct tl_buf content = {0};
    struct tl_fail fail = {0};
    while (content.n < n)
        assert_int_equal(tl_buf_add(&content, text, strlen(text)), TL_OK);
    assert_int_equal(
        tl_lake_put_image(lake, name, (struct tl_bytes){content.p, content.n}, &row, &fail), TL_OK);
    memcpy(hash, row.hash, sizeof row.hash);
    tl_buf_fini(&content);
}

static void bind_and_wait(const char *trace, const char *hash)
{
    const struct tl_lake_binding binding = {.hash = hash, .address = 0x7000000};
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_bind_image(lake, trace, &binding, &fail), TL_OK);
    assert_int_equal(wait_done(lake, trace), TL_TRACE_SEALED);
}

static void expect_removal(const char *name, bool force, int code, const char *says)
{
    struct tl_image_row row;
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_remove_image(lake, name, force, &row, &fail), code);
    if (says && !strstr(fail.text, says))
        fail_msg("\"%s\" does not say \"%s\"", fail.text, says);
}

static size_t count_images(void)
{
    struct tl_image_row *rows;
    size_t n;
    assert_int_equal(tl_lake_images(lake, &rows, &n), TL_OK);
    free(rows);
    return n;
}

/* By all of its names; not one that a trace refers to, unless that is said twice. */
static void images_are_removed(void **state)
{
    char used[72], other[72], twin[72], again[72], prefix[16];
    (void)state;
    push_sealed(lake, "t", &capture, 3000);
    const size_t before = count_images();
    put_text("used", "used code ", 100, used);
    put_text("other", "other code ", 100, other);
    put_text("other", "other code, too ", 100, twin);
    bind_and_wait("t", used);
    expect_removal("nobody", false, TL_NOTFOUND, "tracelake images");
    expect_removal("", true, TL_NOTFOUND, NULL);
    expect_removal("other", false, TL_USAGE, "2 images are named other");
    expect_removal("used", false, TL_DENIED, "1 trace is decoded with it, t; remove that trace");
    expect_removal(used, false, TL_DENIED, "--force");
    assert_true(tl_lake_has_image(lake, used));
    snprintf(prefix, sizeof prefix, "%.15s", other);
    expect_removal("sha256:", true, TL_NOTFOUND, NULL);
    expect_removal(prefix, false, TL_OK, NULL);
    expect_removal("other", false, TL_OK, NULL); /* it is the only one now */
    assert_false(tl_lake_has_image(lake, other) || tl_lake_has_image(lake, twin));
    expect_removal("used", true, TL_OK, NULL);
    assert_false(tl_lake_has_image(lake, used));
    assert_int_equal(count_images(), before);
    put_text("used", "used code ", 100, again);
    assert_string_equal(again, used);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_true(tl_lake_has_image(lake, used));
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_delete(lake, "t", &fail), TL_OK);
    expect_removal("used", false, TL_OK, NULL);
}

static struct tl_retention_victim victims[8];
static char victim_names[8][72];
static size_t n_victims;

static int note_victim(void *context, const struct tl_retention_victim *victim)
{
    (void)context;
    assert_true(n_victims < 8);
    victims[n_victims] = *victim;
    snprintf(victim_names[n_victims++], 72, "%s", victim->trace);
    return TL_OK;
}

static size_t plan(void)
{
    bool paused;
    struct tl_fail fail = {0};
    n_victims = 0;
    assert_true(tl_lake_plan_retention(lake, NULL, note_victim, NULL, &paused, &fail) >= 0);
    return n_victims;
}

static int retain_at(int64_t now)
{
    struct tl_fail fail = {0};
    return tl_lake_retain(lake, now, &fail);
}

/* Behind the lake's back, whose housekeeper would apply it at once, at another time. */
static void set_rule(uint64_t age_s, uint64_t bytes)
{
    const struct tl_retention rule = {.raw_age_s = age_s, .raw_bytes = bytes};
    assert_int_equal(lake->catalog->ops->set_retention(lake->catalog, "images",
                                                       age_s + bytes ? &rule : NULL, NULL),
                     TL_OK);
}

static void expect_unused(uint64_t n)
{
    struct tl_buf text = {0};
    char line[64];
    assert_int_equal(tl_lake_metrics(lake, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    snprintf(line, sizeof line, "\ntracelake_images_unused %llu\n", (unsigned long long)n);
    if (!strstr((char *)text.p, line))
        fail_msg("not %s: %.60s", line + 1, strstr((char *)text.p, "\ntracelake_images_unused "));
    tl_buf_fini(&text);
}

/* The time is since no trace refers to an image, not since it was uploaded; it outlives the
 * server, and begins anew when somebody wants the image. */
static void unused_images_are_removed_by_age(void **state)
{
    char used[72], unused[72], wanted[72], source[72], general[72], name[64];
    const int64_t now = tl_lake_now(lake), day = 24 * HOUR_NS;
    (void)state;
    push_sealed(lake, "t", &capture, 3000);
    put_text("used", "used code ", 100, used);
    snprintf(name, sizeof name, "source:%.12s:/a.c", used + 7);
    put_text(name, "int main;\n", 100, source);
    put_text("source:/b.c", "int x;\n", 100, general);
    bind_and_wait("t", used);
    put_text("unused", "unused code ", 100, unused);
    put_text("wanted", "wanted code ", 100, wanted);
    assert_int_equal(retain_at(now), 0); /* without a rule nothing goes */
    set_rule(5 * 86400, 0);
    assert_int_equal(retain_at(now), 0);
    expect_unused(2);
    assert_int_equal(retain_at(now + 4 * day), 0);
    put_text("wanted", "wanted code ", 100, wanted);
    assert_int_equal(retain_at(now + 4 * day), 0);
    assert_int_equal(retain_at(now + 6 * day), 1);
    assert_false(tl_lake_has_image(lake, unused));
    assert_true(tl_lake_has_image(lake, wanted) && tl_lake_has_image(lake, used));
    assert_int_equal(retain_at(now + 10 * day), 1);
    assert_false(tl_lake_has_image(lake, wanted));
    expect_unused(0);
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_delete(lake, "t", &fail), TL_OK);
    assert_int_equal(retain_at(now + 10 * day), 0); /* seen unused now */
    assert_true(tl_lake_has_image(lake, used));
    tl_image_unused_fini(&lake->unused); /* as after a start */
    assert_int_equal(retain_at(now + 14 * day), 0);
    assert_true(retain_at(now + 16 * day) > 0);
    assert_false(tl_lake_has_image(lake, used) || tl_lake_has_image(lake, source));
    assert_true(tl_lake_has_image(lake, general));
}

/* Those unused longest go until the rest is small enough, and none that is only an hour old: it may
 * be waiting for its trace. */
static void unused_images_are_removed_by_size(void **state)
{
    char hash[3][72];
    const int64_t now = tl_lake_now(lake);
    (void)state;
    struct tl_image_row *rows;
    size_t n;
    assert_int_equal(tl_lake_images(lake, &rows, &n), TL_OK);
    for (size_t i = 0; i < n; i++) /* those of the capture, which is not pushed */
        expect_removal(rows[i].hash, false, TL_OK, NULL);
    free(rows);
    set_rule(0, 250);
    for (unsigned i = 0; i < 3; i++) {
        const char name[2] = {(char)('a' + i)};
        put_text(name, name, 100, hash[i]);
        assert_int_equal(retain_at(now - 9 * HOUR_NS + i * HOUR_NS / 3), 0);
    }
    assert_int_equal(plan(), 1);
    assert_string_equal(victim_names[0], hash[0]);
    assert_string_equal(victims[0].what, "image");
    assert_string_equal(victims[0].scope, "images");
    assert_false(victims[0].by_age);
    assert_int_equal(victims[0].bytes, 100);
    assert_true(victims[0].age_s >= 9 * 3600 && victims[0].age_s < 10 * 3600);
    assert_true(tl_lake_has_image(lake, hash[0])); /* it was only asked */
    assert_int_equal(retain_at(now), 1);
    assert_false(tl_lake_has_image(lake, hash[0]));
    assert_true(tl_lake_has_image(lake, hash[1]) && tl_lake_has_image(lake, hash[2]));
    assert_int_equal(plan(), 0);
    set_rule(0, 0);
}

/* A damaged list only means that all begin anew. */
static void a_damaged_list_ages_nothing(void **state)
{
    static const char bad[] = "sha256:00 0\nsum 00000000\n";
    char hash[72];
    const int64_t now = tl_lake_now(lake);
    (void)state;
    put_text("x", "y", 100, hash);
    assert_int_equal(tl_backend_put(backend, "k/unused",
                                    (struct tl_bytes){(const uint8_t *)bad, sizeof bad - 1}, NULL),
                     TL_OK);
    set_rule(60, 0);
    assert_int_equal(retain_at(now), 0);
    assert_true(tl_lake_has_image(lake, hash));
    set_rule(0, 0);
}

/* ---- several at once ------------------------------------------------------------------------- */

#define BINDERS 8
#define BOUND   2000 /* images before them, so that reading the setup takes a while */

struct binder {
    pthread_t thread;
    pthread_barrier_t *together;
    char hash[72];
    int result;
};

static void *bind_one(void *context)
{
    struct binder *const b = context;
    const struct tl_lake_binding binding = {.hash = b->hash, .address = 0x7000000};
    (void)pthread_barrier_wait(b->together);
    b->result = tl_lake_bind_image(lake, "t", &binding, NULL);
    return NULL;
}

static void give_long_setup(const char *hash)
{
    char line[200];
    struct tl_buf text = {0};
    assert_int_equal(tl_buf_add(&text, capture.setup.p, strlen((char *)capture.setup.p)), TL_OK);
    for (unsigned i = 0; i < BOUND; i++) {
        const int n = snprintf(line, sizeof line, "[image p%u]\nfile=%s\naddress=0x%x\n", i, hash,
                               0x8000000 + i * 0x1000);
        assert_int_equal(tl_buf_add(&text, line, (size_t)n), TL_OK);
    }
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    assert_int_equal(tl_lake_redecode(lake, "t", (char *)text.p, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    tl_buf_fini(&text);
}

/* Images that are bound at the same time are all bound. */
static void images_at_once(void **state)
{
    struct binder binders[BINDERS] = {0};
    struct tl_trace_images images;
    pthread_barrier_t together;
    (void)state;
    push_sealed(lake, "t", &capture, 3000);
    assert_int_equal(pthread_barrier_init(&together, NULL, BINDERS), 0);
    for (unsigned i = 0; i < BINDERS; i++) {
        const char text[] = {'a' + (char)i, '\n', 0};
        put_text("part.bin", text, 64, binders[i].hash);
        binders[i].together = &together;
    }
    give_long_setup(binders[0].hash);
    for (unsigned i = 0; i < BINDERS; i++)
        assert_int_equal(pthread_create(&binders[i].thread, NULL, bind_one, &binders[i]), 0);
    for (unsigned i = 0; i < BINDERS; i++)
        assert_int_equal(pthread_join(binders[i].thread, NULL), 0);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    assert_int_equal(tl_lake_trace_images(lake, "t", &images, NULL), TL_OK);
    for (unsigned i = 0; i < BINDERS; i++) {
        size_t found = 0;
        for (size_t k = 0; k < images.setup.n_images; k++)
            found += images.setup.images[k].address == 0x7000000 &&
                     !strcmp(images.setup.images[k].file, binders[i].hash);
        assert_int_equal(binders[i].result, TL_OK);
        assert_int_equal(found, 1);
    }
    tl_trace_images_fini(&images);
    (void)pthread_barrier_destroy(&together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images_of_two_processes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(programs_are_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(instructions_have_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stripped_image_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(images_are_removed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unused_images_are_removed_by_age, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unused_images_are_removed_by_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_list_ages_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(images_at_once, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("lake_images", tests, NULL, NULL);
}
