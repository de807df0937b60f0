/* SPDX-License-Identifier: MIT */
/*
 * `tracelake coverage`: prints the executed parts of a program, for people or as lcov's tracefile.
 * The server has the debug information, so that only lines and counts are sent.
 */
#include "cli/cli.h"
#include "cli/codeof.h"
#include "out/outfile.h"
#include "terminal/plain.h"
#include "terminal/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum form { FORM_TEXT, FORM_LCOV, FORM_JSON };

struct options {
    struct tl_remote remote;
    struct tl_codeof_options of;
    const char *as, *out;
    enum form form;
};

/* ---- lcov: man geninfo, "FILES" -------------------------------------------------------------- */

static int functions_by_file(const void *a, const void *b)
{
    const struct tracelake_covered_function *const x = a, *const y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

static int branches_by_file(const void *a, const void *b)
{
    const struct tracelake_covered_branch *const x = a, *const y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

/* Each of these prints the entries of `file` beginning at index `i`, and returns the index of the
 * next file's. */

static size_t lcov_functions(const struct tracelake_coverage *c, size_t i, uint32_t file, FILE *out)
{
    size_t found = 0, hit = 0;
    for (; i < c->n_functions && c->functions[i].file <= file; i++) {
        const struct tracelake_covered_function *const f = &c->functions[i];
        if (f->file == 0)
            continue;
        fprintf(out, "FN:%u,%s\nFNDA:%" PRIu64 ",%s\n", f->line, f->name, f->calls, f->name);
        found++;
        hit += f->calls > 0;
    }
    fprintf(out, "FNF:%zu\nFNH:%zu\n", found, hit);
    return i;
}

/* Both outcomes of each conditional branch; "-": not executed at all. */
static size_t lcov_branches(const struct tracelake_coverage *c, size_t i, uint32_t file, FILE *out)
{
    size_t found = 0, hit = 0;
    for (; i < c->n_branches && c->branches[i].file <= file; i++) {
        const struct tracelake_covered_branch *const b = &c->branches[i];
        const uint64_t ways[] = {b->taken, b->not_taken};
        for (int way = 0; way < 2 && b->file; way++) {
            fprintf(out, "BRDA:%u,%zu,%d,", b->line, i, way);
            if (b->taken + b->not_taken)
                fprintf(out, "%" PRIu64 "\n", ways[way]);
            else
                fputs("-\n", out);
            found++;
            hit += ways[way] > 0;
        }
    }
    fprintf(out, "BRF:%zu\nBRH:%zu\n", found, hit);
    return i;
}

static size_t lcov_lines(const struct tracelake_coverage *c, size_t i, uint32_t file, FILE *out)
{
    size_t found = 0, hit = 0;
    for (; i < c->n_lines && c->lines[i].file <= file; i++, found++) {
        fprintf(out, "DA:%u,%" PRIu64 "\n", c->lines[i].line, c->lines[i].count);
        hit += c->lines[i].count > 0;
    }
    fprintf(out, "LF:%zu\nLH:%zu\n", found, hit);
    return i;
}

static void print_lcov(struct tracelake_coverage *c, FILE *out)
{
    size_t function = 0, branch = 0, line = 0;
    if (c->n_functions)
        qsort(c->functions, c->n_functions, sizeof *c->functions, functions_by_file);
    if (c->n_branches)
        qsort(c->branches, c->n_branches, sizeof *c->branches, branches_by_file);
    fputs("TN:\n", out);
    for (uint32_t file = 1; file <= c->n_files; file++) {
        fprintf(out, "SF:%s\n", c->files[file - 1]);
        function = lcov_functions(c, function, file, out);
        branch = lcov_branches(c, branch, file, out);
        line = lcov_lines(c, line, file, out);
        fputs("end_of_record\n", out);
    }
}

/* ---- for people ------------------------------------------------------------------------------ */

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_text(const struct tracelake_coverage *c, FILE *out)
{
    uint64_t insns = 0, executed = 0, entered = 0, lines = 0, both = 0;
    for (size_t i = 0; i < c->n_functions; i++) {
        insns += c->functions[i].insns;
        executed += c->functions[i].executed;
        entered += c->functions[i].executed > 0;
    }
    for (size_t i = 0; i < c->n_lines; i++)
        lines += c->lines[i].count > 0;
    for (size_t i = 0; i < c->n_branches; i++)
        both += c->branches[i].taken && c->branches[i].not_taken;
    fprintf(out, "%-14s %10s %10s %8s\n", "#", "there", "executed", "");
    fprintf(out, "%-14s %10zu %10" PRIu64 " %7.1f%%\n", "functions", c->n_functions, entered,
            percent(entered, c->n_functions));
    fprintf(out, "%-14s %10" PRIu64 " %10" PRIu64 " %7.1f%%\n", "instructions", insns, executed,
            percent(executed, insns));
    if (c->n_lines)
        fprintf(out, "%-14s %10zu %10" PRIu64 " %7.1f%%\n", "source lines", c->n_lines, lines,
                percent(lines, c->n_lines));
    fprintf(out, "%-14s %10zu %10" PRIu64 " %7.1f%%  both ways\n", "branches", c->n_branches, both,
            percent(both, c->n_branches));
    fputs("# share  executed      of     calls  function\n", out);
    for (size_t i = 0; i < c->n_functions; i++) {
        const struct tracelake_covered_function *const f = &c->functions[i];
        if (f->executed == 0)
            continue;
        fprintf(out, "%6.1f%% %9" PRIu64 " %7" PRIu64 " %9" PRIu64 "  ",
                percent(f->executed, f->insns), f->executed, f->insns, f->calls);
        tl_print_plain(out, f->name, 0);
        putc('\n', out);
    }
}

static void json_text(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < ' ' || *p == '"' || *p == '\\')
            fprintf(out, "\\u%04x", *p);
        else
            putc(*p, out);
    }
    putc('"', out);
}

static void print_json(const struct tracelake_coverage *c, FILE *out)
{
    fputs("{\"files\":[", out);
    for (size_t i = 0; i < c->n_files; i++) {
        fputs(i ? "," : "", out);
        json_text(out, c->files[i]);
    }
    fputs("],\"functions\":[", out);
    for (size_t i = 0; i < c->n_functions; i++) {
        const struct tracelake_covered_function *const f = &c->functions[i];
        fputs(i ? ",{\"name\":" : "{\"name\":", out);
        json_text(out, f->name);
        fprintf(out,
                ",\"pc\":\"0x%" PRIx64 "\",\"calls\":%" PRIu64 ",\"insns\":%" PRIu64
                ",\"executed\":%" PRIu64 ",\"file\":%u,\"line\":%u}",
                f->pc, f->calls, f->insns, f->executed, f->file, f->line);
    }
    fputs("],\"lines\":[", out);
    for (size_t i = 0; i < c->n_lines; i++)
        fprintf(out, "%s[%u,%u,%" PRIu64 "]", i ? "," : "", c->lines[i].file, c->lines[i].line,
                c->lines[i].count);
    fputs("],\"branches\":[", out);
    for (size_t i = 0; i < c->n_branches; i++) {
        const struct tracelake_covered_branch *const b = &c->branches[i];
        fprintf(out,
                "%s{\"pc\":\"0x%" PRIx64 "\",\"file\":%u,\"line\":%u,\"taken\":%" PRIu64
                ",\"not_taken\":%" PRIu64 "}",
                i ? "," : "", b->pc, b->file, b->line, b->taken, b->not_taken);
    }
    fputs("]}\n", out);
}

static int run(const void *context, struct tracelake *lake, struct tl_codeof *of, FILE *out)
{
    const struct options *const o = context;
    struct tracelake_error error;
    struct tracelake_coverage *coverage;
    const char *const name = of->names[0].trace;
    for (size_t i = 0; i <= of->request.n_also; i++)
        tl_progress_wait(of->names[i].trace);
    const int result = tracelake_coverage(lake, &of->request, &coverage, &error);
    tl_progress_end();
    if (result < 0)
        return tl_codeof_fail(of, "coverage", &error);
    if (coverage->n_functions == 0)
        tl_cli_warn(name, "its images have no functions: coverage is of the functions of an "
                          "ELF file with symbols");
    else if (coverage->n_files == 0 && o->form == FORM_LCOV)
        tl_cli_warn(name, "its images have no source lines: build with -g");
    if (coverage->truncated)
        tl_cli_warn(name, "there are more places than are counted; the coverage is not whole");
    if (coverage->behind)
        tl_cli_behind(name, UINT64_MAX);
    if (o->form == FORM_LCOV)
        print_lcov(coverage, out);
    else if (o->form == FORM_JSON)
        print_json(coverage, out);
    else
        print_text(coverage, out);
    tracelake_coverage_free(coverage);
    if (!ferror(out))
        return TL_CLI_DONE;
    tl_cli_warn(o->out, "cannot write: %s", strerror(errno));
    return TL_CLI_BAD;
}

int tl_cmd_coverage(int argc, char **argv)
{
    struct options o = {.as = "text"};
    bool json = false;
    const struct tl_option args[] = {
        {"as", 0, TL_ARG_TEXT, &o.as, "text|lcov|json", "form of the report (default: text)"},
        {"json", 0, TL_ARG_FLAG, &json, NULL, "the same as --as json"},
        TL_SPAN_ARGS(o.of.span),

        {"context", 0, TL_ARG_TEXT, &o.of.contexts, "N[,N…]",
         "only code run with these context IDs"},
        TL_OUTPUT_ARGS(o.out, "FILE", "write to this file instead of standard output"),
        TL_NAMES_ARG(o.remote),
        TL_REMOTE_ARGS(o.remote),
        {0},
    };
    static const char *const forms[] = {"text", "lcov", "json"};
    int first;
    const int status = tl_args_parse(argc, argv, args, &first);
    if (status != TL_ARGS_GO)
        return status;
    if (json)
        o.as = "json";
    while (o.form <= FORM_JSON && strcmp(o.as, forms[o.form]) != 0)
        o.form++;
    if (o.form > FORM_JSON)
        return tl_cli_usage("coverage", "--as %s: it is text, lcov or json", o.as);
    return tl_codeof_run("coverage", &o.of, &o.remote, o.out, argv + first, argc - first, run, &o);
}
