/* SPDX-License-Identifier: MIT */
/* Images that are bound to a trace later, each to one process. */
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
    push_all(lake, "t", &capture, 3000);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
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
        push_all(lake, names[i], &capture, 3000);
        assert_int_equal(wait_done(lake, names[i]), TL_TRACE_SEALED);
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

/* ---- sources ----------------------------------------------------------------------------------
 */

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
    push_all(lake, "t", &capture, 3000);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
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
    push_all(lake, "t", &capture, 3000);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images_of_two_processes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(programs_are_shared, set_up, tear_down),
        cmocka_unit_test_setup_teardown(instructions_have_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stripped_image_says_so, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("lake_images", tests, NULL, NULL);
}
