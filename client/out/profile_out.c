/* SPDX-License-Identifier: MIT */
/*
 * Prints code counts and call stacks in the formats of profile tools. Names are escaped, since
 * these formats separate frames and counts by characters that names of C++ and Rust contain.
 */
#include "out/profile_out.h"
#include "out/jsonread.h"

#include <cJSON.h>
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

/* "main;parse;read 1200" */
static void print_folded(const cJSON *const *stack, size_t depth, double self, FILE *file)
{
    for (size_t i = 0; i < depth; i++) {
        if (i)
            putc(';', file);
        print_frame(tl_json_function(stack[i], "name"), file);
    }
    fprintf(file, " %.0f\n", self);
}

static bool write_folded(const cJSON *nodes, FILE *file)
{
    const cJSON *stack[DEEPEST], *node;
    cJSON_ArrayForEach(node, nodes)
    {
        const double depth = tl_json_number(node, "depth"), self = tl_json_number(node, "self");
        if (depth < 0 || depth >= DEEPEST)
            continue;
        stack[(size_t)depth] = node;
        if (self > 0)
            print_folded(stack, (size_t)depth + 1, self, file);
    }
    return !ferror(file);
}

/* Append `item`, taking it over. False: out of memory. */
static bool append(cJSON *array, cJSON *item)
{
    if (cJSON_AddItemToArray(array, item))
        return true;
    cJSON_Delete(item);
    return false;
}

/* Names become frames; each stack with own instructions is a sample. NULL: out of memory. */
static cJSON *speedscope(const cJSON *nodes, bool time)
{
    cJSON *const tree = cJSON_CreateObject();
    cJSON *const frames = cJSON_AddArrayToObject(cJSON_AddObjectToObject(tree, "shared"), "frames");
    cJSON *const profile = cJSON_CreateObject();
    cJSON *const samples = cJSON_AddArrayToObject(profile, "samples");
    cJSON *const weights = cJSON_AddArrayToObject(profile, "weights");
    int path[DEEPEST], frame = 0;
    double total = 0;
    bool ok = true;
    const cJSON *node;
    cJSON_ArrayForEach(node, nodes)
    {
        const double depth = tl_json_number(node, "depth"), self = tl_json_number(node, "self");
        if (depth < 0 || depth >= DEEPEST)
            continue;
        cJSON *const one = cJSON_CreateObject();
        ok &= cJSON_AddStringToObject(one, "name", tl_json_function(node, "name")) != NULL;
        ok &= append(frames, one);
        path[(size_t)depth] = frame++;
        if (self <= 0)
            continue;
        ok &= append(samples, cJSON_CreateIntArray(path, (int)depth + 1));
        ok &= append(weights, cJSON_CreateNumber(self));
        total += self;
    }
    ok &= cJSON_AddStringToObject(profile, "type", "sampled") &&
          cJSON_AddStringToObject(profile, "name", time ? "time" : "instructions") &&
          cJSON_AddStringToObject(profile, "unit", time ? "nanoseconds" : "none") &&
          cJSON_AddNumberToObject(profile, "startValue", 0) &&
          cJSON_AddNumberToObject(profile, "endValue", total) &&
          cJSON_AddStringToObject(tree, "$schema",
                                  "https://www.speedscope.app/file-format-schema.json");
    ok &= append(cJSON_AddArrayToObject(tree, "profiles"), profile);
    if (ok)
        return tree;
    cJSON_Delete(tree);
    return NULL;
}

bool tl_profile_write_stacks(enum tl_profile_form form, const cJSON *nodes, bool time, FILE *file)
{
    if (form == TL_PROFILE_FOLDED)
        return write_folded(nodes, file);
    cJSON *const tree = speedscope(nodes, time);
    char *const text = tree ? cJSON_PrintUnformatted(tree) : NULL;
    cJSON_Delete(tree);
    const bool written = text && fprintf(file, "%s\n", text) > 0;
    free(text);
    return written;
}
