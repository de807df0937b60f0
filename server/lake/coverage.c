/* SPDX-License-Identifier: MIT */
/*
 * What of the program was executed: by function, source line and branch. Each function that has
 * been entered in the image is decoded from its begin to its end, so that what was not executed is
 * known, too.
 */
#include "base/cancel.h"
#include "base/hash.h"
#include "lake/codecount.h"
#include "lake/debuginfo.h"
#include "lake/query.h"

#include <stdlib.h>
#include <string.h>

#define LOOKS 256 /* processes and times in which code is looked for */

static int add_cut(struct tl_codecount *c, const struct tl_cut *cut,
                   const struct tl_code_request *request, struct tl_fail *fail)
{
    uint64_t from, to;
    int r = tl_cut_resolve(cut, request->unit, request->from, request->to, &from, &to, fail);
    return r < 0 ? r : tl_codecount_add(c, cut, from, to, fail);
}

/* All streams that have instructions; a range of them is one of time. */
static int add_streams(struct tl_codecount *c, struct tl_gen *gen,
                       const struct tl_code_request *request, struct tl_fail *fail)
{
    const bool whole = request->from == 0 && request->to == UINT64_MAX;
    struct tl_lane *lane;
    int r = TL_OK;
    if (request->unit != TL_UNIT_TIME && !whole)
        return tl_fail_set(fail, TL_USAGE, "a range of several streams is one of time");
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        struct tl_cut cut;
        struct tl_code_request one = *request;
        r = tl_cut_of_lane(&cut, gen, lane);
        if (r < 0)
            break;
        const bool timed = cut.n_rows > 0 && cut.rows[cut.n_rows - 1].at.has_time;
        one.unit = whole ? TL_UNIT_INSN : one.unit;
        if (!tl_stream_is_derived(lane->name) &&
            !tl_protocol_has(lane->protocol, TL_TRAIT_SOFTWARE | TL_TRAIT_NOTES) &&
            (whole || timed))
            r = add_cut(c, &cut, &one, fail);
        tl_cut_close(&cut);
    }
    return r;
}

/* Count, and get the generation that was counted. */
static int count(struct tl_codecount *c, struct tl_lake *lake,
                 const struct tl_code_request *request, struct tl_gen **gen, struct tl_fail *fail)
{
    struct tl_cut cut;
    int r;
    if (request->stream && *request->stream) {
        r = tl_cut_open(&cut, lake, request->trace, request->stream, fail);
        if (r < 0)
            return r;
        *gen = tl_gen_get(cut.gen);
        r = add_cut(c, &cut, request, fail);
        tl_cut_close(&cut);
        return r;
    }
    struct tl_trace *const trace = tl_lake_find_content(lake, request->trace);
    if (!trace)
        return tl_no_trace(fail, request->trace);
    *gen = tl_trace_serving(trace);
    tl_trace_put(trace);
    return add_streams(c, *gen, request, fail);
}

/* The instruction set of the streams that were counted, as far as they tell. */
static enum tl_isa isa_of(const struct tl_code_request *request, struct tl_gen *gen)
{
    enum tl_isa isa = TL_ISA_NONE;
    struct tl_lane *lane;
    for (size_t i = 0; isa == TL_ISA_NONE && (lane = tl_gen_lane_at(gen, i)); i++) {
        struct tl_cut cut;
        const bool other =
            request->stream && *request->stream && strcmp(lane->name, request->stream) != 0;
        if (other || tl_cut_of_lane(&cut, gen, lane) < 0)
            continue;
        struct tl_cut_walk walk;
        tl_cut_walk_begin(&walk, &cut, 0, 1);
        walk.walk.detail = TL_WALK_FLOW;
        if (tl_cut_walk_next(&walk, NULL) >= 0)
            for (size_t k = 0; k < walk.walk.n; k++)
                if (walk.walk.items[k].kind == TL_ITEM_BLOCK)
                    isa = (enum tl_isa)walk.walk.items[k].block->isa;
        tl_cut_walk_end(&walk);
        tl_cut_close(&cut);
    }
    return isa;
}

/* ---- counts as they are ---------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const struct tl_code_count *const x = a, *const y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static struct tl_code_count *list(const struct tl_codecount *c, const struct tl_numbers *pairs,
                                  const uint64_t *counts)
{
    struct tl_code_count *const out = calloc(pairs->n + (size_t)1, sizeof *out);
    for (uint32_t i = 0; out && i < pairs->n; i++)
        out[i] = (struct tl_code_count){c->addresses.keys[pairs->keys[i] >> 32],
                                        c->addresses.keys[(uint32_t)pairs->keys[i]], counts[i]};
    if (out)
        qsort(out, pairs->n, sizeof *out, by_place);
    return out;
}

static int list_counts(const struct tl_codecount *c, struct tl_code *out)
{
    out->insns = c->insns;
    out->truncated = c->truncated;
    out->runs = list(c, &c->runs, c->run_counts);
    out->n_runs = out->runs ? c->runs.n : 0;
    out->branches = list(c, &c->branches, c->branch_counts);
    out->n_branches = out->branches ? c->branches.n : 0;
    return out->runs && out->branches ? TL_OK : TL_NOMEM;
}

void tl_code_fini(struct tl_code *code)
{
    free(code->runs);
    free(code->branches);
    *code = (struct tl_code){0};
}

int tl_lake_code(struct tl_lake *lake, const struct tl_code_request *request, struct tl_code *out,
                 struct tl_fail *fail)
{
    struct tl_codecount c = {0};
    struct tl_gen *gen = NULL;
    *out = (struct tl_code){0};
    int r = count(&c, lake, request, &gen, fail);
    if (r >= 0)
        r = list_counts(&c, out);
    tl_gen_put(gen);
    tl_codecount_fini(&c);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

/* ---- coverage -------------------------------------------------------------------------------- */

struct covering {
    const struct tl_image *image;
    /* The processes and times in which the images are there: where code is looked for. */
    struct look {
        uint64_t view; /* of the image */
        struct tl_flow_now now;
    } * looks;
    size_t n_looks, cap_looks;
    struct tl_code code;
    /* How many runs begin or have ended at an address, in order of addresses. */
    struct edge {
        uint64_t at;
        int64_t change;
    } * edges;
    size_t n_edges;
    struct tl_places places;
    struct tl_coverage *out;
    size_t cap_lines, cap_branches, cap_functions, cap_files;
    struct tl_numbers files; /* by hash of their names */
};

static int by_edge(const void *a, const void *b)
{
    const struct edge *const x = a, *const y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Runs as changes of the count from address to address; summed up, the count behind each. */
static int make_edges(struct covering *c)
{
    const size_t n = c->code.n_runs;
    c->edges = malloc((2 * n + 1) * sizeof *c->edges);
    if (!c->edges)
        return TL_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct tl_code_count *const run = &c->code.runs[i];
        c->edges[2 * i] = (struct edge){run->from, (int64_t)run->count};
        c->edges[2 * i + 1] = (struct edge){run->to + 1, -(int64_t)run->count};
    }
    c->n_edges = 2 * n;
    qsort(c->edges, c->n_edges, sizeof *c->edges, by_edge);
    for (size_t i = 1; i < c->n_edges; i++)
        c->edges[i].change += c->edges[i - 1].change;
    return TL_OK;
}

/* How often the instruction at an address was executed. */
static uint64_t executed(const struct covering *c, uint64_t pc)
{
    size_t low = 0, high = c->n_edges; /* the first edge behind pc */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c->edges[middle].at <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? (uint64_t)c->edges[low - 1].change : 0;
}

/* How often a branch at an address was taken. */
static uint64_t taken(const struct covering *c, uint64_t pc)
{
    size_t low = 0, high = c->code.n_branches;
    uint64_t sum = 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c->code.branches[middle].from < pc)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < c->code.n_branches && c->code.branches[low].from == pc; low++)
        sum += c->code.branches[low].count;
    return sum;
}

static int add_look(struct covering *c, const struct tl_image_context *context, uint64_t time)
{
    const uint64_t view = tl_image_view(c->image, context, time, NULL);
    for (size_t i = 0; i < c->n_looks; i++)
        if (c->looks[i].view == view)
            return TL_OK;
    const int r = tl_grow(&c->looks, &c->cap_looks, c->n_looks + 1, sizeof *c->looks);
    if (r >= 0)
        c->looks[c->n_looks++] = (struct look){.view = view,
                                               .now = {.context = context->context_id,
                                                       .has_context = context->has_context_id,
                                                       .vmid = context->vmid,
                                                       .has_vmid = context->has_vmid,
                                                       .time = time,
                                                       .has_time = time != 0}};
    return r;
}

static int list_looks(struct covering *c, const struct tl_setup *setup)
{
    static const struct tl_image_context none;
    int r = add_look(c, &none, 0);
    for (size_t i = 0; i < setup->n_images && r >= 0 && c->n_looks < LOOKS; i++)
        r = add_look(c, &setup->images[i].context, setup->images[i].span.from);
    return r;
}

/* The code at an address, where it is there first, and what holds there. */
static struct tl_bytes code_at(const struct covering *c, uint64_t pc,
                               const struct tl_flow_now **now)
{
    for (size_t i = 0; i < c->n_looks; i++) {
        const struct tl_bytes code = tl_image_view_at(c->image, c->looks[i].view, TL_SPACE_ANY, pc);
        *now = &c->looks[i].now;
        if (code.n)
            return code;
    }
    return (struct tl_bytes){0};
}

/* The number of a source file, which is kept. */
static int file_number(struct covering *c, const char *name, uint32_t *out)
{
    const uint64_t key = tl_fnv_text(name);
    *out = tl_numbers_find(&c->files, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    int r = tl_grow(&c->out->files, &c->cap_files, c->files.n + (size_t)1, sizeof *c->out->files);
    if (r >= 0 && !(c->out->files[c->files.n] = strdup(name)))
        r = TL_NOMEM;
    if (r < 0)
        return r;
    c->out->n_files++;
    r = tl_numbers_add(&c->files, key);
    *out = c->files.n - 1;
    return r;
}

static int add_branch(struct covering *c, const struct tl_coverage_line *line, uint64_t pc)
{
    struct tl_coverage *const out = c->out;
    const uint64_t went = taken(c, pc);
    const int r =
        tl_grow(&out->branches, &c->cap_branches, out->n_branches + 1, sizeof *out->branches);
    if (r >= 0)
        out->branches[out->n_branches++] = (struct tl_coverage_branch){
            line->file, line->line, pc, went, line->count > went ? line->count - went : 0};
    return r;
}

static int add_insn(struct covering *c, struct tl_coverage_function *f, const struct tl_insn *insn,
                    uint64_t pc, const struct tl_flow_now *now)
{
    struct tl_coverage *const out = c->out;
    struct tl_coverage_line line = {.file = TL_COVERAGE_NOWHERE, .count = executed(c, pc)};
    f->insns++;
    f->executed += line.count > 0;
    int r = tl_places_at(&c->places, now, pc);
    if (r < 0)
        return r;
    if (c->places.place.file[0] && c->places.place.line) {
        r = file_number(c, c->places.place.file, &line.file);
        line.line = c->places.place.line;
        if (f->file == TL_COVERAGE_NOWHERE && r >= 0) {
            f->file = line.file;
            f->line = line.line;
        }
    }
    if (r >= 0 && line.file != TL_COVERAGE_NOWHERE)
        r = tl_grow(&out->lines, &c->cap_lines, out->n_lines + 1, sizeof *out->lines);
    if (r >= 0 && line.file != TL_COVERAGE_NOWHERE)
        out->lines[out->n_lines++] = line;
    if (r >= 0 && insn->kind == TL_INSN_BRANCH && insn->conditional)
        r = add_branch(c, &line, pc);
    return r;
}

/* The instruction set of a function: that of the code that was executed of it, else of most. */
static int add_function(struct covering *c, const struct tl_symbol *symbol, enum tl_isa isa)
{
    static const struct tl_isa_options any_core = {
        .arch_major = 9, .arch_minor = 9, .profile = 'A'};
    struct tl_coverage *const out = c->out;
    const uint64_t end = symbol->address + symbol->size;
    int r =
        tl_grow(&out->functions, &c->cap_functions, out->n_functions + 1, sizeof *out->functions);
    if (r < 0)
        return r;
    struct tl_coverage_function *const f = &out->functions[out->n_functions++];
    *f = (struct tl_coverage_function){.name = symbol->name,
                                       .pc = symbol->address,
                                       .file = TL_COVERAGE_NOWHERE,
                                       .calls = executed(c, symbol->address)};
    for (uint64_t pc = symbol->address; pc < end && r >= 0;) {
        struct tl_insn insn;
        const struct tl_flow_now *now;
        const struct tl_bytes code = code_at(c, pc, &now);
        const int size = code.n ? tl_insn_decode(isa, &any_core, pc, code, &insn) : TL_NOTFOUND;
        if (size <= 0 && size != TL_BAD)
            break;
        if (size > 0)
            r = add_insn(c, f, &insn, pc, now);
        pc += insn.size ? insn.size : 1; /* data between the code */
    }
    return r < 0 ? r : tl_cancel_check();
}

static int by_line(const void *a, const void *b)
{
    const struct tl_coverage_line *const x = a, *const y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->count > y->count ? -1 : x->count < y->count;
}

/* Of several instructions of a line the one that was executed most counts. */
static void join_lines(struct tl_coverage *out)
{
    size_t kept = 0;
    if (out->n_lines)
        qsort(out->lines, out->n_lines, sizeof *out->lines, by_line);
    for (size_t i = 0; i < out->n_lines; i++)
        if (i == 0 || out->lines[i].file != out->lines[i - 1].file ||
            out->lines[i].line != out->lines[i - 1].line)
            out->lines[kept++] = out->lines[i];
    out->n_lines = kept;
}

static int cover(struct covering *c, struct tl_gen *gen, enum tl_isa isa)
{
    size_t n = 0;
    int r = make_edges(c);
    c->image = tl_gen_image(gen);
    const struct tl_symbol *const symbols = c->image ? tl_image_symbols(c->image, &n) : NULL;
    if (r >= 0)
        r = tl_places_init(&c->places, gen);
    if (r >= 0 && c->image)
        r = list_looks(c, &gen->setup);
    for (size_t i = 0; i < n && r >= 0; i++)
        if (symbols[i].size > 0 && (i == 0 || symbols[i].address != symbols[i - 1].address))
            r = add_function(c, &symbols[i], isa);
    join_lines(c->out);
    return r;
}

void tl_coverage_fini(struct tl_coverage *coverage)
{
    for (size_t i = 0; i < coverage->n_files; i++)
        free(coverage->files[i]);
    free(coverage->files);
    free(coverage->functions);
    free(coverage->lines);
    free(coverage->branches);
    tl_gen_put(coverage->gen);
    *coverage = (struct tl_coverage){0};
}

int tl_lake_coverage(struct tl_lake *lake, const struct tl_code_request *request,
                     struct tl_coverage *out, struct tl_fail *fail)
{
    struct tl_codecount counts = {0};
    struct covering c = {.out = out};
    *out = (struct tl_coverage){0};
    int r = count(&counts, lake, request, &out->gen, fail);
    if (r >= 0)
        r = list_counts(&counts, &c.code);
    tl_codecount_fini(&counts);
    if (r >= 0)
        r = cover(&c, out->gen, isa_of(request, out->gen));
    out->truncated = c.code.truncated;
    tl_places_fini(&c.places);
    tl_numbers_fini(&c.files);
    tl_code_fini(&c.code);
    free(c.edges);
    free(c.looks);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
