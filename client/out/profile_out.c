/* SPDX-License-Identifier: MIT */
/*
 * Prints code counts and call stacks in the formats of profile tools. Names are escaped, since
 * these formats separate frames and counts by characters that names of C++ and Rust contain.
 */
#include "out/profile_out.h"

#include "base/jsonout.h"
#include "base/whole.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 4096 /* maximum frames of a stack */

enum tl_profile_form tl_profile_parse(const char *name)
{
    static const char *const names[TL_PROFILE_FORMS] = {
        [TL_PROFILE_AUTOFDO] = "autofdo", [TL_PROFILE_LLVM_PROFGEN] = "llvm-profgen",
        [TL_PROFILE_BOLT] = "bolt",       [TL_PROFILE_BRANCHES] = "perf-branches",
        [TL_PROFILE_FOLDED] = "folded",   [TL_PROFILE_SPEEDSCOPE] = "speedscope",
        [TL_PROFILE_PPROF] = "pprof",     [TL_PROFILE_JSON] = "json"};
    for (unsigned i = 0; i < TL_PROFILE_FORMS; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum tl_profile_form)i;
    return TL_PROFILE_FORMS;
}

bool tl_profile_of_code(enum tl_profile_form form)
{
    return form <= TL_PROFILE_BOLT;
}

/* ---- counts of code -------------------------------------------------------------------------- */

static bool is_of(const struct tl_profile_binary *binary, const struct tracelake_code_count *c)
{
    return c->from >= binary->bias && c->to >= binary->bias && c->from < binary->end &&
           c->to < binary->end;
}

static size_t how_many(const struct tl_profile_binary *binary,
                       const struct tracelake_code_count *counts, size_t n)
{
    size_t some = 0;
    for (size_t i = 0; i < n; i++)
        some += is_of(binary, &counts[i]);
    return some;
}

/* Print the number of lines and the lines, "FROM" between "TO:COUNT". */
static void print_section(const struct tl_profile_binary *binary,
                          const struct tracelake_code_count *counts, size_t n, const char *between,
                          FILE *file)
{
    fprintf(file, "%zu\n", how_many(binary, counts, n));
    for (size_t i = 0; i < n; i++)
        if (is_of(binary, &counts[i]))
            fprintf(file, "%" PRIx64 "%s%" PRIx64 ":%" PRIu64 "\n", counts[i].from - binary->bias,
                    between, counts[i].to - binary->bias, counts[i].count);
}

bool tl_profile_write_code(enum tl_profile_form form, const struct tracelake_code *code,
                           const struct tl_profile_binary *binary, FILE *file)
{
    if (form == TL_PROFILE_BOLT) {
        for (size_t i = 0; i < code->n_branches; i++)
            if (is_of(binary, &code->branches[i]))
                fprintf(file, "B %" PRIx64 " %" PRIx64 " %" PRIu64 " 0\n",
                        code->branches[i].from - binary->bias, code->branches[i].to - binary->bias,
                        code->branches[i].count);
        for (size_t i = 0; i < code->n_runs; i++)
            if (is_of(binary, &code->runs[i]))
                fprintf(file, "F %" PRIx64 " %" PRIx64 " %" PRIu64 "\n",
                        code->runs[i].from - binary->bias, code->runs[i].to - binary->bias,
                        code->runs[i].count);
        return !ferror(file);
    }
    print_section(binary, code->runs, code->n_runs, "-", file);
    if (form == TL_PROFILE_AUTOFDO)
        fputs("0\n", file); /* single addresses: none */
    print_section(binary, code->branches, code->n_branches, "->", file);
    if (form == TL_PROFILE_AUTOFDO && binary->build_id)
        fprintf(file, "// build_id: 0x%s\n", binary->build_id);
    return !ferror(file);
}

/* ---- call stacks ----------------------------------------------------------------------------- */

/* Is it a blank and digits up to the end, which would be read as the count of another profile? */
static bool is_count(const char *p)
{
    const size_t digits = strspn(p + 1, "0123456789.");
    return *p == ' ' && digits && !p[1 + digits];
}

/* The length of what ends lines or stacks here, also a character of UTF-8 (U+0080 to U+009F, U+2028
 * and U+2029); 0: nothing. */
static size_t separator(const char *p)
{
    const unsigned char c = (unsigned char)*p, next = c ? (unsigned char)p[1] : 0;
    const unsigned char last = next ? (unsigned char)p[2] : 0;
    if (c == ';' || c < ' ' || c == 0x7f)
        return 1;
    if (c == 0xc2 && next >= 0x80 && next <= 0x9f)
        return 2;
    return c == 0xe2 && next == 0x80 && (last == 0xa8 || last == 0xa9) ? 3 : 0;
}

/*
 * Readers split a line at its last blank, and stacks at semicolons; so in names these, control
 * characters and backslashes are written as C writes them in strings.
 */
static void print_frame(const char *name, FILE *file)
{
    for (const char *p = name; *p;) {
        const bool at_edge = *p == ' ' && (p == name || !p[1] || is_count(p));
        size_t n = at_edge ? 1 : separator(p);
        if (*p == '\\')
            putc('\\', file);
        if (!n)
            putc(*p++, file);
        for (; n; n--)
            fprintf(file, "\\x%02x", (unsigned char)*p++);
    }
}

static const char *name_of(const struct tracelake_profile_node *node)
{
    return *node->name ? node->name : "(no symbol)";
}

/* "main;parse;read 1200" */
static void print_folded(const struct tracelake_profile_node *const *stack, size_t depth,
                         uint64_t self, FILE *file)
{
    for (size_t i = 0; i < depth; i++) {
        if (i)
            putc(';', file);
        print_frame(name_of(stack[i]), file);
    }
    fprintf(file, " %" PRIu64 "\n", self);
}

static bool write_folded(const struct tracelake_profile_tree *tree, FILE *file)
{
    const struct tracelake_profile_node *stack[DEEPEST];
    for (size_t i = 0; i < tree->n_nodes; i++) {
        const struct tracelake_profile_node *const node = &tree->nodes[i];
        if (node->depth >= DEEPEST)
            continue;
        stack[node->depth] = node;
        if (node->self > 0)
            print_folded(stack, node->depth + 1, node->self, file);
    }
    return !ferror(file);
}

/* Names become frames; each stack with own instructions is a sample. */
static void write_samples(struct tl_jsonout *j, const struct tracelake_profile_tree *tree,
                          struct tl_jsonout *frames, struct tl_jsonout *weights, uint64_t *total)
{
    uint64_t path[DEEPEST];
    for (size_t i = 0, frame = 0; i < tree->n_nodes; i++) {
        const struct tracelake_profile_node *const node = &tree->nodes[i];
        if (node->depth >= DEEPEST)
            continue;
        path[node->depth] = frame++;
        tl_jsonout_open(frames, '{');
        tl_jsonout_name(frames, "name");
        tl_jsonout_text(frames, name_of(node));
        tl_jsonout_close(frames, '}');
        if (node->self == 0)
            continue;
        tl_jsonout_open(j, '[');
        for (uint32_t k = 0; k <= node->depth; k++)
            tl_jsonout_u64(j, path[k]);
        tl_jsonout_close(j, ']');
        tl_jsonout_double(weights, (double)node->self);
        *total += node->self;
    }
}

static void put_text(struct tl_jsonout *j, const char *name, const char *text)
{
    tl_jsonout_name(j, name);
    tl_jsonout_text(j, text);
}

/* An array whose elements were written elsewhere. */
static void put_array(struct tl_jsonout *j, const char *name, const struct tl_jsonout *elements)
{
    tl_jsonout_name(j, name);
    tl_jsonout_open(j, '[');
    if (elements->out->n > 0)
        tl_jsonout_raw(j, (const char *)elements->out->p, elements->out->n);
    tl_jsonout_close(j, ']');
    if (elements->rc < 0)
        j->rc = elements->rc;
}

static void write_speedscope(struct tl_jsonout *j, const struct tracelake_profile_tree *tree,
                             struct tl_buf parts[3])
{
    struct tl_jsonout samples = {.out = &parts[0]}, frames = {.out = &parts[1]},
                      weights = {.out = &parts[2]};
    uint64_t total = 0;
    write_samples(&samples, tree, &frames, &weights, &total);
    tl_jsonout_open(j, '{');
    tl_jsonout_name(j, "shared");
    tl_jsonout_open(j, '{');
    put_array(j, "frames", &frames);
    tl_jsonout_close(j, '}');
    put_text(j, "$schema", "https://www.speedscope.app/file-format-schema.json");
    tl_jsonout_name(j, "profiles");
    tl_jsonout_open(j, '[');
    tl_jsonout_open(j, '{');
    put_array(j, "samples", &samples);
    put_array(j, "weights", &weights);
    put_text(j, "type", "sampled");
    put_text(j, "name", tree->by_time ? "time" : tree->by_cycles ? "cycles" : "instructions");
    put_text(j, "unit", tree->by_time ? "nanoseconds" : "none");
    tl_jsonout_name(j, "startValue");
    tl_jsonout_u64(j, 0);
    tl_jsonout_name(j, "endValue");
    tl_jsonout_double(j, (double)total);
    tl_jsonout_close(j, '}');
    tl_jsonout_close(j, ']');
    tl_jsonout_close(j, '}');
}

bool tl_profile_write_stacks(enum tl_profile_form form, const struct tracelake_profile_tree *tree,
                             FILE *file)
{
    if (form == TL_PROFILE_FOLDED)
        return write_folded(tree, file);
    struct tl_buf text = {0}, parts[3] = {{0}, {0}, {0}};
    struct tl_jsonout j = {.out = &text};
    write_speedscope(&j, tree, parts);
    const bool written = j.rc >= 0 && tl_write_all(file, text.p, text.n) && putc('\n', file) != EOF;
    for (size_t i = 0; i < 3; i++)
        tl_buf_fini(&parts[i]);
    tl_buf_fini(&text);
    return written;
}
