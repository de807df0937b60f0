/* SPDX-License-Identifier: MIT */
/*
 * Lines and inlined functions: of the generated program, for which the source line of every
 * instruction is known; of this test program, as the compiler built it; of files with missing
 * parts; of damaged files.
 */
#include "dwarf/dwarf.h"

#include "base/buf.h"
#include "sim/program_dwarf.h"
#include "unit/random.h"

#include <stdio.h>
#include <unistd.h>

static struct tl_sim_program program;
static struct tl_buf elf;

static int set_up(void **state)
{
    const struct tl_sim_program_options options = {.seed = 7, .extra = 20};
    (void)state;
    assert_int_equal(tl_sim_program_init(&program, &options), TL_OK);
    assert_int_equal(tl_sim_program_elf(&program, &elf), TL_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_sim_program_fini(&program);
    tl_buf_fini(&elf);
    return 0;
}

static struct tl_dwarf *opened(const struct tl_buf *file)
{
    struct tl_dwarf *dwarf;
    assert_int_equal(tl_dwarf_open(&dwarf, (struct tl_bytes){file->p, file->n}, NULL), TL_OK);
    return dwarf;
}

static void check_place(struct tl_dwarf *dwarf, uint32_t insn)
{
    struct tl_sim_place truth;
    struct tl_dwarf_place place;
    const uint64_t address = tl_sim_program_address(&program, insn);
    const int r = tl_dwarf_at(dwarf, address, &place);
    assert_true(tl_dwarf_covers(dwarf, address));
    if (!tl_sim_program_place(&program, insn, &truth)) {
        assert_int_equal(r, TL_NOTFOUND);
        return;
    }
    assert_int_equal(r, TL_OK);
    assert_string_equal(place.file, tl_sim_source_paths[truth.source]);
    assert_int_equal(place.line, truth.line);
    assert_int_equal(place.n_inlined, truth.inlined);
    if (!truth.inlined)
        return;
    assert_string_equal(place.inlined[0].function, TL_SIM_INLINED_NAME);
    assert_int_equal(place.inlined[0].call_line, truth.call_line);
    assert_string_equal(place.inlined[0].call_file,
                        tl_sim_source_paths[insn >= program.sections[1].first]);
    assert_true(place.inlined[0].low <= address && address < place.inlined[0].high);
}

static void every_instruction_has_its_line(void **state)
{
    struct tl_dwarf *const dwarf = opened(&elf);
    (void)state;
    assert_string_equal(tl_dwarf_lacks(dwarf), "");
    for (uint32_t i = 0; i < program.n_insns; i++)
        check_place(dwarf, i);
    struct tl_dwarf_place place;
    assert_int_equal(tl_dwarf_at(dwarf, 0x12, &place), TL_NOTFOUND);
    assert_int_equal(tl_dwarf_at(dwarf, UINT64_MAX, &place), TL_NOTFOUND);
    assert_false(tl_dwarf_covers(dwarf, 0x12));
    tl_dwarf_close(dwarf);
}

static void the_source_has_those_lines(void **state)
{
    struct tl_buf text = {0};
    struct tl_sim_place place;
    const struct tl_sim_function *const f = &program.functions[3];
    (void)state;
    assert_true(tl_sim_program_place(&program, f->first, &place));
    assert_int_equal(tl_sim_program_source(&program, place.source, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    const char *line = (const char *)text.p;
    for (uint32_t n = 1; n < place.line - 2; n++)
        line = strchr(line, '\n') + 1;
    char head[80];
    snprintf(head, sizeof head, "void %s(void)\n{\n    step(0);\n", f->name);
    assert_memory_equal(line, head, strlen(head));
    tl_buf_fini(&text);
}

/* ---- what compilers make --------------------------------------------------------------------- */

static const char source[] = "static inline int twice(int x) __attribute__((always_inline));\n"
                             "static inline int twice(int x)\n"
                             "{\n"
                             "    return x * 3 + 1;\n"
                             "}\n"
                             "int work(int a)\n"
                             "{\n"
                             "    int b = twice(a);\n"
                             "    return b ^ 5;\n"
                             "}\n"
                             "int _start(void)\n"
                             "{\n"
                             "    return work(3);\n"
                             "}\n";

/* The address of `work`, from the tool of the compiler's package. */
static uint64_t address_of(const char *dir)
{
    char command[256];
    unsigned long long address = 0;
    snprintf(command, sizeof command, "nm %s/a | awk '$3 == \"work\" { print $1 }'", dir);
    FILE *const pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_int_equal(fscanf(pipe, "%llx", &address), 1);
    pclose(pipe);
    return address;
}

static bool compile(const char *dir, const char *flags, struct tl_buf *out)
{
    char path[128], command[512];
    snprintf(path, sizeof path, "%s/a.c", dir);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs(source, file);
    fclose(file);
    snprintf(command, sizeof command,
             "cd %s && cc -O1 -fno-pie -no-pie -nostdlib -static %s a.c -o a 2>/dev/null", dir,
             flags);
    if (system(command) != 0)
        return false;
    snprintf(path, sizeof path, "%s/a", dir);
    tl_buf_reset(out);
    return tl_buf_read_file(out, path, SIZE_MAX, NULL) == TL_OK;
}

static void check_compiled(struct tl_dwarf *dwarf, uint64_t address, bool inlined)
{
    bool twice = false, outer = false;
    for (unsigned i = 0; i < 12; i++) {
        struct tl_dwarf_place place;
        if (tl_dwarf_at(dwarf, address + i, &place) < 0)
            continue;
        const size_t n = strlen(place.file);
        assert_true(n > 4 && strcmp(place.file + n - 4, "/a.c") == 0);
        assert_true(place.line >= 4 && place.line <= 14);
        twice |= place.line == 4;
        outer |= place.line == 9;
        if (place.n_inlined > 0) {
            assert_true(inlined);
            assert_string_equal(place.inlined[0].function, "twice");
            assert_int_equal(place.inlined[0].call_line, 8);
        } else if (place.line == 4) {
            assert_false(inlined);
        }
    }
    assert_true(twice && outer);
}

static void compilers_are_understood(void **state)
{
    static const struct {
        const char *flags, *lacks;
        bool inlined;
    } kinds[] = {
        {"-g -gdwarf-5", "", true},
        {"-g -gdwarf-4", "", true},
        {"-g -gdwarf-3", "", true},
        {"-g -gz=zlib", "", true},
        {"-g -gsplit-dwarf -gdwarf-5", "split off into .dwo files", false},
        {"-g -gsplit-dwarf -gdwarf-4", "split off into .dwo files", false},
    };
    char dir[] = "/tmp/tl-dwarf-XXXXXX", command[64];
    struct tl_buf file = {0};
    unsigned seen = 0;
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!compile(dir, kinds[i].flags, &file))
            continue;
        struct tl_dwarf *const dwarf = opened(&file);
        if (kinds[i].lacks[0])
            assert_non_null(strstr(tl_dwarf_lacks(dwarf), kinds[i].lacks));
        else
            assert_string_equal(tl_dwarf_lacks(dwarf), "");
        check_compiled(dwarf, address_of(dir), kinds[i].inlined);
        tl_dwarf_close(dwarf);
        seen++;
    }
    print_message("%u kinds of debug information\n", seen);
    assert_true(seen >= 4);
    assert_true(compile(dir, "-s", &file));
    struct tl_dwarf *const dwarf = opened(&file);
    struct tl_dwarf_place place;
    assert_non_null(strstr(tl_dwarf_lacks(dwarf), "no debug information"));
    assert_int_equal(tl_dwarf_at(dwarf, 0x401000, &place), TL_NOTFOUND);
    tl_dwarf_close(dwarf);
    tl_buf_fini(&file);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* ---- what is damaged ------------------------------------------------------------------------- */

static void no_file_is_none(void **state)
{
    struct tl_dwarf *dwarf;
    struct tl_fail fail = {0};
    (void)state;
    assert_int_equal(tl_dwarf_open(&dwarf, (struct tl_bytes){(const uint8_t *)"no", 2}, &fail),
                     TL_BAD);
    assert_int_equal(
        tl_dwarf_open(&dwarf, (struct tl_bytes){(const uint8_t *)"\177ELF\2\1\1...........", 18},
                      &fail),
        TL_BAD);
    tl_dwarf_close(NULL);
}

/* Whatever is damaged, reading terminates, and every returned text can be read. */
static void damage_is_survived(void **state)
{
    struct tl_buf copy = {0};
    size_t reported = 0;
    (void)state;
    for (unsigned round = 0; round < 150; round++) {
        tl_buf_reset(&copy);
        const size_t n = round % 10 == 0 ? next() % elf.n : elf.n;
        assert_int_equal(tl_buf_add(&copy, elf.p, n), TL_OK);
        /* The debug information and the section headers are at the end. */
        for (unsigned i = 0; i < 1 + round % 40 && n > 64; i++)
            copy.p[n - 1 - next() % (n / 2)] = (uint8_t)next();
        struct tl_dwarf *dwarf;
        if (tl_dwarf_open(&dwarf, (struct tl_bytes){copy.p, copy.n}, NULL) < 0)
            continue;
        for (uint32_t i = 0; i < program.n_insns; i += 3) {
            struct tl_dwarf_place place;
            if (tl_dwarf_at(dwarf, tl_sim_program_address(&program, i), &place) < 0)
                continue;
            reported += strlen(place.file) > 0;
            for (size_t k = 0; k < place.n_inlined; k++)
                reported +=
                    strlen(place.inlined[k].function) + strlen(place.inlined[k].call_file) > 0;
        }
        tl_dwarf_close(dwarf);
    }
    tl_buf_fini(&copy);
    assert_true(reported > 0);
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_has_its_line),
        cmocka_unit_test(the_source_has_those_lines),
        cmocka_unit_test(compilers_are_understood),
        cmocka_unit_test(no_file_is_none),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
