/* SPDX-License-Identifier: MIT */
#include "sim/program_dwarf.h"

#include <string.h>

/*
 * A function has five lines, and one for every two of its instructions:
 *
 *     void name(void)
 *     {
 *         step(0);
 *         …
 *     }
 */
enum { HEAD_LINES = 2, TAIL_LINES = 2, INLINED_MIN = 16, INLINED_FROM = 4, INLINED_TO = 8 };
enum { INLINED_LINE = 3 }; /* of the header: the first line of its function with code */

const char *const tl_sim_source_paths[TL_SIM_SOURCES] = {
    "/firmware/src/tasks.c", "/firmware/src/kernel.c", "/firmware/include/mix.h"};

static unsigned section_of(const struct tl_sim_program *program, uint32_t insn)
{
    return insn >= program->sections[1].first;
}

static uint32_t body_lines(const struct tl_sim_function *f)
{
    return (f->n + 1) / 2;
}

static bool has_inlined(const struct tl_sim_function *f)
{
    return f->n >= INLINED_MIN;
}

/* The function's first line. */
static uint32_t first_line(const struct tl_sim_program *program, const struct tl_sim_function *f)
{
    uint32_t line = 3; /* after the include and an empty line */
    for (const struct tl_sim_function *g = program->functions; g < f; g++)
        if (section_of(program, g->first) == section_of(program, f->first))
            line += HEAD_LINES + body_lines(g) + TAIL_LINES;
    return line;
}

static void place_in(const struct tl_sim_program *program, const struct tl_sim_function *f,
                     uint32_t first, uint32_t insn, struct tl_sim_place *out)
{
    const uint32_t at = insn - f->first;
    *out = (struct tl_sim_place){.source = section_of(program, f->first),
                                 .line = first + HEAD_LINES + at / 2};
    if (!has_inlined(f) || at < INLINED_FROM || at >= INLINED_TO)
        return;
    out->inlined = true;
    out->call_line = first + HEAD_LINES + INLINED_FROM / 2;
    out->source = 2;
    out->line = INLINED_LINE + (at - INLINED_FROM) / 2;
}

bool tl_sim_program_place(const struct tl_sim_program *program, uint32_t insn,
                          struct tl_sim_place *out)
{
    for (size_t i = 0; i < program->n_functions; i++) {
        const struct tl_sim_function *const f = &program->functions[i];
        if (insn - f->first >= f->n)
            continue;
        place_in(program, f, first_line(program, f), insn, out);
        return true;
    }
    return false;
}

int tl_sim_program_source(const struct tl_sim_program *program, unsigned source, struct tl_buf *out)
{
    if (source == 2)
        return tl_buf_printf(out, "static inline void %s(void)\n{\n    step(4);\n    step(6);\n}\n",
                             TL_SIM_INLINED_NAME);
    int r = tl_buf_printf(out, "#include \"mix.h\"\n\n");
    for (size_t i = 0; i < program->n_functions && r >= 0; i++) {
        const struct tl_sim_function *const f = &program->functions[i];
        if (section_of(program, f->first) != source)
            continue;
        r = tl_buf_printf(out, "void %s(void)\n{\n", f->name);
        for (uint32_t at = 0; at < f->n && r >= 0; at += 2) {
            if (has_inlined(f) && at == INLINED_FROM)
                r = tl_buf_printf(out, "    %s();\n", TL_SIM_INLINED_NAME);
            else
                r = tl_buf_printf(out, "    step(%u);\n", at);
        }
        if (r >= 0)
            r = tl_buf_printf(out, "}\n\n");
    }
    return r;
}

/* ---- debug information ----------------------------------------------------------------------- */

enum { UNIT = 1, FUNCTION, PLAIN_FUNCTION, ABSTRACT, INLINED };

static const uint8_t abbreviations[] = {
    /* compile_unit with children: name, comp_dir, stmt_list, low_pc, high_pc */
    UNIT, 0x11, 1, 0x03, 0x08, 0x1b, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0,
    /* subprogram, with and without children: name, low_pc, high_pc */
    FUNCTION, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, PLAIN_FUNCTION, 0x2e, 0, 0x03,
    0x08, 0x11, 0x01, 0x12, 0x07, 0, 0,
    /* subprogram: name, inline */
    ABSTRACT, 0x2e, 0, 0x03, 0x08, 0x20, 0x0b, 0, 0,
    /* inlined_subroutine: abstract_origin, low_pc, high_pc, call_file, call_line */
    INLINED, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0x59, 0x06, 0, 0, 0};

static void put(struct tl_buf *out, int *r, const void *p, size_t n)
{
    if (*r >= 0)
        *r = tl_buf_add(out, p, n);
}

static void put_byte(struct tl_buf *out, int *r, uint8_t value)
{
    put(out, r, &value, 1);
}

static void put_number(struct tl_buf *out, int *r, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        put_byte(out, r, (uint8_t)(value >> 8 * i));
}

static void put_text(struct tl_buf *out, int *r, const char *text)
{
    put(out, r, text, strlen(text) + 1);
}

static void put_unsigned(struct tl_buf *out, int *r, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(out, r, (uint8_t)(value | 0x80));
    put_byte(out, r, (uint8_t)value);
}

static void put_signed(struct tl_buf *out, int *r, int64_t value)
{
    for (; value < -64 || value > 63; value >>= 7)
        put_byte(out, r, (uint8_t)((value & 0x7f) | 0x80));
    put_byte(out, r, (uint8_t)(value & 0x7f));
}

static void put_length(struct tl_buf *out, int r, size_t at)
{
    const uint32_t n = (uint32_t)(out->n - at - 4);
    if (r >= 0)
        for (unsigned i = 0; i < 4; i++)
            out->p[at + i] = (uint8_t)(n >> 8 * i);
}

/* Write the rows of one function, a sequence of its own. File 1 is the section's, file 2 the
 * header. */
static void put_rows(const struct tl_sim_program *program, const struct tl_sim_function *f,
                     struct tl_buf *out, int *r)
{
    const uint32_t first = first_line(program, f);
    uint32_t line = 1, file = 1;
    put(out, r, "\0\x09\x02", 3); /* set_address */
    put_number(out, r, tl_sim_program_address(program, f->first), 8);
    for (uint32_t at = 0; at < f->n; at += 2) {
        struct tl_sim_place place;
        place_in(program, f, first, f->first + at, &place);
        const uint32_t now = place.source == 2 ? 2 : 1;
        if (at > 0)
            put(out, r, "\x02\x08", 2); /* advance_pc */
        if (now != file) {
            put_byte(out, r, 4); /* set_file */
            put_unsigned(out, r, now);
        }
        put_byte(out, r, 3); /* advance_line */
        put_signed(out, r, (int64_t)place.line - line);
        put_byte(out, r, 1); /* copy */
        file = now;
        line = place.line;
    }
    put_byte(out, r, 2);
    put_unsigned(out, r, 4ull * (f->n - (f->n - 1) / 2 * 2));
    put(out, r, "\0\x01\x01", 3); /* end_sequence */
}

static void put_lines(const struct tl_sim_program *program, unsigned section, struct tl_buf *out,
                      int *r)
{
    static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    const size_t at = out->n;
    put_number(out, r, 0, 4);
    put_number(out, r, 4, 2);
    const size_t header = out->n;
    put_number(out, r, 0, 4);
    put(out, r, (const uint8_t[]){1, 1, 1, 0xfb, 14, 13}, 6);
    put(out, r, operands, sizeof operands);
    put_text(out, r, "/firmware/src");
    put_text(out, r, "/firmware/include");
    put_byte(out, r, 0);
    put_text(out, r, section ? "kernel.c" : "tasks.c");
    put(out, r, "\x01\0\0", 3);
    put_text(out, r, "mix.h");
    put(out, r, "\x02\0\0", 3);
    put_byte(out, r, 0);
    put_length(out, *r, header);
    for (size_t i = 0; i < program->n_functions; i++)
        if (section_of(program, program->functions[i].first) == section)
            put_rows(program, &program->functions[i], out, r);
    put_length(out, *r, at);
}

static void put_function(const struct tl_sim_program *program, const struct tl_sim_function *f,
                         uint32_t origin, struct tl_buf *out, int *r)
{
    struct tl_sim_place place;
    const uint64_t address = tl_sim_program_address(program, f->first);
    put_byte(out, r, has_inlined(f) ? FUNCTION : PLAIN_FUNCTION);
    put_text(out, r, f->name);
    put_number(out, r, address, 8);
    put_number(out, r, 4ull * f->n, 8);
    if (!has_inlined(f))
        return;
    place_in(program, f, first_line(program, f), f->first + INLINED_FROM, &place);
    put_byte(out, r, INLINED);
    put_number(out, r, origin, 4);
    put_number(out, r, address + 4ull * INLINED_FROM, 8);
    put_number(out, r, 4ull * (INLINED_TO - INLINED_FROM), 8);
    put_byte(out, r, 1);
    put_number(out, r, place.call_line, 4);
    put_byte(out, r, 0); /* no more children */
}

static void put_unit(const struct tl_sim_program *program, unsigned section, size_t lines,
                     struct tl_buf *out, int *r)
{
    const struct tl_sim_section *const s = &program->sections[section];
    const size_t at = out->n;
    put_number(out, r, 0, 4);
    put_number(out, r, 4, 2);
    put_number(out, r, 0, 4); /* abbreviations */
    put_byte(out, r, 8);
    put_byte(out, r, UNIT);
    put_text(out, r, section ? "src/kernel.c" : "src/tasks.c");
    put_text(out, r, "/firmware");
    put_number(out, r, lines, 4);
    put_number(out, r, s->base, 8);
    put_number(out, r, 4ull * s->n, 8);
    const uint32_t origin = (uint32_t)(out->n - at);
    put_byte(out, r, ABSTRACT);
    put_text(out, r, TL_SIM_INLINED_NAME);
    put_byte(out, r, 1);
    for (size_t i = 0; i < program->n_functions; i++)
        if (section_of(program, program->functions[i].first) == section)
            put_function(program, &program->functions[i], origin, out, r);
    put_byte(out, r, 0);
    put_length(out, *r, at);
}

int tl_sim_program_dwarf(const struct tl_sim_program *program, struct tl_buf *abbrev,
                         struct tl_buf *info, struct tl_buf *line)
{
    int r = tl_buf_add(abbrev, abbreviations, sizeof abbreviations);
    const size_t start = line->n;
    for (unsigned section = 0; section < 2; section++) {
        const size_t lines = line->n - start;
        put_lines(program, section, line, &r);
        put_unit(program, section, lines, info, &r);
    }
    return r;
}
