/* SPDX-License-Identifier: MIT */
/*
 * Coverage of programs: by function, source line and branch. Each function of an image is decoded
 * from begin to end, so that code that was not executed is known too.
 *
 * A function belongs to a file, wherever that is mapped: at several addresses, in several processes
 * and traces. Counts are by address in programs (shard/codecount.h), so they are summed over all
 * places of the function at which a program executed any of it.
 */
#include "base/cancel.h"
#include "base/hash.h"
#include "base/search.h"
#include "image/names.h"
#include "query/code.h"
#include "query/debuginfo.h"

#include <stdlib.h>
#include <string.h>

/* ---- counts by program ----------------------------------------------------------------------- */

/* Executed code of one program, in order of addresses. */
struct executed {
    uint64_t view;
    /* Change in the number of runs that cover an address: counts apply up to the next edge. */
    struct edge {
        uint64_t at;
        int64_t change;
    } * edges;
    size_t n_edges, cap_edges;
    struct taken {
        uint64_t at, n;
    } * taken; /* taken branches */
    size_t n_taken, cap_taken;
};

static int by_edge(const void *a, const void *b)
{
    const struct edge *const x = a, *const y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int by_branch(const void *a, const void *b)
{
    const struct taken *const x = a, *const y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int add_run(struct executed *e, uint64_t first, uint64_t last, uint64_t n)
{
    const int r = tl_grow(&e->edges, &e->cap_edges, e->n_edges + 2, sizeof *e->edges);
    if (r < 0)
        return r;
    e->edges[e->n_edges++] = (struct edge){first, (int64_t)n};
    e->edges[e->n_edges++] = (struct edge){last + 1, -(int64_t)n};
    return TL_OK;
}

static int add_taken(struct executed *e, uint64_t from, uint64_t n)
{
    const int r = tl_grow(&e->taken, &e->cap_taken, e->n_taken + 1, sizeof *e->taken);
    if (r >= 0)
        e->taken[e->n_taken++] = (struct taken){from, n};
    return r;
}

/* Sort; merge edges at the same address into one with the execution count from there on. */
static void settle(struct executed *e)
{
    size_t kept = 0;
    int64_t sum = 0;
    if (e->n_edges)
        qsort(e->edges, e->n_edges, sizeof *e->edges, by_edge);
    if (e->n_taken)
        qsort(e->taken, e->n_taken, sizeof *e->taken, by_branch);
    for (size_t i = 0; i < e->n_edges; i++) {
        sum += e->edges[i].change;
        if (kept == 0 || e->edges[kept - 1].at != e->edges[i].at)
            kept++;
        e->edges[kept - 1] = (struct edge){e->edges[i].at, sum};
    }
    e->n_edges = kept;
}

/* Execution count of the instruction at an address. */
static uint64_t times_at(const struct executed *e, uint64_t pc)
{
    const size_t n = tl_count_upto(TL_KEYS(e->edges, at), e->n_edges, pc);
    return n ? (uint64_t)e->edges[n - 1].change : 0;
}

/* How often a branch at an address was taken. */
static uint64_t taken_at(const struct executed *e, uint64_t pc)
{
    uint64_t sum = 0;
    size_t i = tl_count_below(TL_KEYS(e->taken, at), e->n_taken, pc);
    for (; i < e->n_taken && e->taken[i].at == pc; i++)
        sum += e->taken[i].n;
    return sum;
}

/* ---- covered code ---------------------------------------------------------------------------- */

/* An instruction of a function that was executed at some place. */
struct cell {
    uint64_t times, taken;
    uint32_t offset; /* in the function */
    uint32_t file, line;
    bool conditional; /* conditional branch */
};

/* A function, at the place where it was found first. */
struct function {
    const struct source *source;
    size_t symbol;
    struct cell *cells; /* NULL: none of it was executed */
    size_t n_cells, cap_cells;
};

/* A trace of the request. */
struct source {
    struct tl_gen *gen;
    const struct tl_image *image;
    enum tl_isa isa;
    struct tl_places places;
};

struct covering {
    const struct tl_code_request *request;
    struct source *sources;
    struct function *functions;
    size_t cap_functions;
    struct tl_numbers numbers; /* index of functions by file and address in it */
    struct tl_numbers files;   /* index of source files by hash of their names */
    struct tl_coverage *out;
    size_t cap_lines, cap_branches, cap_files;
};

/* State for one trace. */
struct looking {
    struct covering *c;
    struct source *source;
    struct executed *programs;
    size_t n_programs;
    const struct tl_symbol *symbols;
    size_t n_symbols;
    uint32_t *functions;     /* by symbol; TL_NO_NUMBER: it is covered by another, or has no size */
    struct tl_numbers found; /* set of symbol << 16 | program that executed some of it */
};

static struct tl_flow_now now_of_symbol(const struct source *source, size_t symbol, uint64_t *view)
{
    const struct tl_symbol *const s = &tl_image_symbols(source->image, &(size_t){0})[symbol];
    struct tl_code_program there = {.time = s->span.from};
    *view = tl_image_symbol_view(source->image, symbol, &there.context);
    return tl_code_now(&there);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Get the number of a source file, adding it if it is new. */
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

/* Get the source location of an instruction. */
static int place(struct covering *c, struct source *source, const struct tl_flow_now *now,
                 uint64_t pc, struct cell *cell)
{
    int r = tl_places_at(&source->places, now, pc);
    const struct tl_dwarf_place *const at = &source->places.place;
    cell->file = TL_COVERAGE_NOWHERE;
    if (r < 0 || !at->file[0] || !at->line)
        return r;
    cell->line = at->line;
    return file_number(c, at->file, &cell->file);
}

/* Receives each instruction of a function. */
typedef int cell_taker(struct covering *c, struct function *f, const struct cell *cell);
static int decode(struct covering *c, struct function *f, cell_taker *take)
{
    static const struct tl_isa_options any_core = {
        .arch_major = 9, .arch_minor = 9, .profile = 'A'};
    struct source *const source = &c->sources[f->source - c->sources];
    const struct tl_symbol *const s = &tl_image_symbols(source->image, &(size_t){0})[f->symbol];
    uint64_t view;
    const struct tl_flow_now now = now_of_symbol(source, f->symbol, &view);
    int r = TL_OK;
    for (uint64_t offset = 0; offset < s->size && r >= 0;) {
        struct tl_insn insn;
        struct cell cell = {.offset = (uint32_t)offset};
        const uint64_t pc = s->address + offset;
        const struct tl_bytes code = tl_image_view_at(source->image, view, s->space, pc);
        const int size =
            code.n ? tl_insn_decode(source->isa, &any_core, pc, code, &insn) : TL_NOTFOUND;
        if ((size <= 0 && size != TL_BAD) || offset > UINT32_MAX)
            break;
        cell.conditional = size > 0 && insn.kind == TL_INSN_BRANCH && insn.conditional;
        if (size > 0)
            r = place(c, source, &now, pc, &cell);
        if (size > 0 && r >= 0)
            r = take(c, f, &cell);
        offset += insn.size ? insn.size : 1; /* data between the code */
    }
    return r < 0 ? r : tl_cancel_check();
}

static int keep_cell(struct covering *c, struct function *f, const struct cell *cell)
{
    (void)c;
    const int r = tl_grow(&f->cells, &f->cap_cells, f->n_cells + 1, sizeof *f->cells);
    if (r >= 0)
        f->cells[f->n_cells++] = *cell;
    return r;
}

/* Determine the symbol's key: its place in its file, or if that is not known, in memory. */
static int identify(struct looking *l, size_t symbol, uint64_t *key)
{
    const struct tl_symbol *const s = &l->symbols[symbol];
    uint64_t view, address = s->address;
    size_t image;
    const struct tl_flow_now now = now_of_symbol(l->source, symbol, &view);
    if (tl_image_view_symbol(l->source->image, view, s->space, s->address) != (int64_t)symbol)
        return TL_NOTFOUND;
    const int r = tl_places_own(&l->source->places, &now, s->address, &image, &address);
    *key = tl_fnv_text(r >= 0 ? l->source->gen->setup.images[image].file : s->name) ^
           tl_mix64(address);
    return r == TL_NOTFOUND ? TL_OK : r;
}

/* Map the symbols to functions. */
static int list_functions(struct looking *l)
{
    struct covering *const c = l->c;
    l->functions = malloc((l->n_symbols + 1) * sizeof *l->functions);
    int r = l->functions ? TL_OK : TL_NOMEM;
    for (size_t i = 0; i < l->n_symbols && r >= 0; i++) {
        uint64_t key;
        l->functions[i] = TL_NO_NUMBER;
        r = l->symbols[i].size > 0 ? identify(l, i, &key) : TL_NOTFOUND;
        if (r == TL_NOTFOUND) {
            r = TL_OK;
            continue;
        }
        if (r >= 0)
            l->functions[i] = tl_numbers_find(&c->numbers, key);
        if (r < 0 || l->functions[i] != TL_NO_NUMBER)
            continue;
        r = tl_grow(&c->functions, &c->cap_functions, c->numbers.n + (size_t)1,
                    sizeof *c->functions);
        if (r >= 0)
            r = tl_numbers_add(&c->numbers, key);
        if (r < 0)
            break;
        l->functions[i] = c->numbers.n - 1;
        c->functions[c->numbers.n - 1] = (struct function){.source = l->source, .symbol = i};
    }
    return r;
}

/* ---- executed instructions ------------------------------------------------------------------- */

#define NESTING 8 /* number of preceding symbols checked for one that covers an address */

static int find(struct looking *l, size_t symbol, size_t program)
{
    const uint64_t key = (uint64_t)symbol << 16 | program;
    return l->functions[symbol] == TL_NO_NUMBER || tl_numbers_find(&l->found, key) != TL_NO_NUMBER
               ? TL_OK
               : tl_numbers_add(&l->found, key);
}

/* The first symbol after an address. */
static size_t first_after(const struct looking *l, uint64_t pc)
{
    return tl_count_upto(TL_KEYS(l->symbols, address), l->n_symbols, pc);
}

/* Find the functions of which a program executed some of [first, end). */
static int find_in(struct looking *l, size_t program, uint64_t first, uint64_t end)
{
    const uint64_t view = l->programs[program].view;
    int r = TL_OK;
    for (size_t at = first_after(l, first), i = at; i-- > 0 && at - i <= NESTING && r >= 0;) {
        const struct tl_symbol *const s = &l->symbols[i];
        if (first - s->address < s->size &&
            tl_image_view_symbol(l->source->image, view, s->space, s->address) == (int64_t)i)
            r = find(l, i, program);
    }
    const int64_t covers = tl_image_view_symbol(l->source->image, view, TL_SPACE_ANY, first);
    if (covers >= 0 && r >= 0)
        r = find(l, (size_t)covers, program);
    for (size_t i = first_after(l, first);
         i < l->n_symbols && l->symbols[i].address < end && r >= 0; i++)
        if (tl_image_view_symbol(l->source->image, view, l->symbols[i].space,
                                 l->symbols[i].address) == (int64_t)i)
            r = find(l, i, program);
    return r;
}

static int find_all(struct looking *l)
{
    int r = TL_OK;
    for (size_t p = 0; p < l->n_programs && r >= 0; p++) {
        const struct executed *const e = &l->programs[p];
        for (size_t i = 0; i + 1 < e->n_edges && r >= 0; i++)
            if (e->edges[i].change > 0)
                r = find_in(l, p, e->edges[i].at, e->edges[i + 1].at);
        if (r >= 0)
            r = tl_cancel_check();
    }
    return r;
}

/* Add what a program executed at the place of a function's symbol. */
static int add_executed(struct looking *l, size_t symbol, const struct executed *e)
{
    struct function *const f = &l->c->functions[l->functions[symbol]];
    const uint64_t begin = l->symbols[symbol].address;
    const int r = f->cells ? TL_OK : decode(l->c, f, keep_cell);
    for (size_t i = 0; i < f->n_cells && r >= 0; i++) {
        struct cell *const cell = &f->cells[i];
        cell->times += times_at(e, begin + cell->offset);
        if (cell->conditional)
            cell->taken += taken_at(e, begin + cell->offset);
    }
    return r;
}

/* Split the counts by program, as far as wanted. */
static int sort_out(struct looking *l, const struct tl_codecount *counts)
{
    int r = TL_OK;
    l->programs = calloc(counts->n_programs + 1, sizeof *l->programs);
    if (!l->programs)
        return TL_NOMEM;
    l->n_programs = counts->n_programs;
    for (size_t i = 0; i < l->n_programs; i++)
        l->programs[i].view = counts->programs[i].view;
    for (uint32_t i = 0; i < counts->runs.n && r >= 0; i++) {
        const struct tl_code_pair run = tl_code_pair(counts, counts->runs.keys[i]);
        if (tl_code_wants(l->c->request, &counts->programs[run.program]))
            r = add_run(&l->programs[run.program], run.from, run.to, counts->run_counts[i]);
    }
    for (uint32_t i = 0; i < counts->branches.n && r >= 0; i++) {
        const struct tl_code_pair pair = tl_code_pair(counts, counts->branches.keys[i]);
        if (tl_code_wants(l->c->request, &counts->programs[pair.program]))
            r = add_taken(&l->programs[pair.program], pair.from, counts->branch_counts[i]);
    }
    for (size_t i = 0; i < l->n_programs; i++)
        settle(&l->programs[i]);
    return r;
}

static int look(struct covering *c, struct source *source, const struct tl_codecount *counts)
{
    struct looking l = {.c = c, .source = source};
    l.symbols = tl_image_symbols(source->image, &l.n_symbols);
    int r = sort_out(&l, counts);
    if (r >= 0)
        r = list_functions(&l);
    if (r >= 0)
        r = find_all(&l);
    for (uint32_t i = 0; i < l.found.n && r >= 0; i++)
        r = add_executed(&l, (size_t)(l.found.keys[i] >> 16),
                         &l.programs[l.found.keys[i] & 0xffff]);
    for (size_t i = 0; i < l.n_programs; i++) {
        free(l.programs[i].edges);
        free(l.programs[i].taken);
    }
    free(l.programs);
    free(l.functions);
    tl_numbers_fini(&l.found);
    return r;
}

/* Instruction set of the counted streams, if known. */
static enum tl_isa isa_of(const struct tl_code_source *source, struct tl_gen *gen)
{
    enum tl_isa isa = TL_ISA_NONE;
    struct tl_lane *lane;
    for (size_t i = 0; isa == TL_ISA_NONE && (lane = tl_gen_lane_at(gen, i)); i++) {
        struct tl_cut cut;
        const bool other =
            source->stream && *source->stream && strcmp(lane->name, source->stream) != 0;
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

static int add_source(struct covering *c, size_t i, struct tl_lake *lake, struct tl_fail *fail)
{
    const struct tl_code_source *const asked = tl_code_source(c->request, i);
    struct source *const source = &c->sources[i];
    struct tl_codecount counts = {0};
    int r = tl_code_count(&counts, lake, c->request, asked, false, &source->gen, fail);
    c->out->gens[i] = source->gen;
    c->out->n_gens = i + 1;
    c->out->truncated |= counts.truncated;
    c->out->behind |= counts.behind;
    source->image = r >= 0 ? tl_gen_image(source->gen) : NULL;
    if (source->image) {
        source->isa = isa_of(asked, source->gen);
        r = tl_places_init(&source->places, source->gen);
    }
    if (source->image && r >= 0)
        r = look(c, source, &counts);
    tl_codecount_fini(&counts);
    return r;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int add_branch(struct covering *c, const struct cell *cell, uint64_t pc)
{
    struct tl_coverage *const out = c->out;
    const int r =
        tl_grow(&out->branches, &c->cap_branches, out->n_branches + 1, sizeof *out->branches);
    if (r >= 0)
        out->branches[out->n_branches++] =
            (struct tl_coverage_branch){cell->file, cell->line, pc, cell->taken,
                                        cell->times > cell->taken ? cell->times - cell->taken : 0};
    return r;
}

/* Add to the most recently added function. */
static int add_cell(struct covering *c, struct function *f, const struct cell *cell)
{
    struct tl_coverage *const out = c->out;
    struct tl_coverage_function *const row = &out->functions[out->n_functions - 1];
    (void)f;
    int r = TL_OK;
    row->insns++;
    row->executed += cell->times > 0;
    if (cell->offset == 0)
        row->calls = cell->times;
    if (cell->file != TL_COVERAGE_NOWHERE) {
        if (row->file == TL_COVERAGE_NOWHERE) {
            row->file = cell->file;
            row->line = cell->line;
        }
        r = tl_grow(&out->lines, &c->cap_lines, out->n_lines + 1, sizeof *out->lines);
        if (r >= 0)
            out->lines[out->n_lines++] =
                (struct tl_coverage_line){cell->file, cell->line, cell->times};
    }
    return r >= 0 && cell->conditional ? add_branch(c, cell, row->pc + cell->offset) : r;
}

static int report(struct covering *c)
{
    struct tl_coverage *const out = c->out;
    int r = TL_OK;
    out->functions = calloc(c->numbers.n + (size_t)1, sizeof *out->functions);
    if (!out->functions)
        return TL_NOMEM;
    for (uint32_t i = 0; i < c->numbers.n && r >= 0; i++) {
        struct function *const f = &c->functions[i];
        const struct tl_symbol *const s =
            &tl_image_symbols(f->source->image, &(size_t){0})[f->symbol];
        out->functions[out->n_functions++] =
            (struct tl_coverage_function){.name = tl_image_symbol_name(f->source->image, f->symbol),
                                          .pc = s->address,
                                          .file = TL_COVERAGE_NOWHERE};
        if (!f->cells)
            r = decode(c, f, add_cell);
        for (size_t k = 0; k < f->n_cells && r >= 0; k++)
            r = add_cell(c, f, &f->cells[k]);
    }
    return r;
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

/* Of a line with several instructions, the highest count is used. */
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

void tl_coverage_fini(struct tl_coverage *coverage)
{
    for (size_t i = 0; i < coverage->n_files; i++)
        free(coverage->files[i]);
    for (size_t i = 0; i < coverage->n_gens; i++)
        tl_gen_put(coverage->gens[i]);
    free(coverage->gens);
    free(coverage->files);
    free(coverage->functions);
    free(coverage->lines);
    free(coverage->branches);
    *coverage = (struct tl_coverage){0};
}

int tl_lake_coverage(struct tl_lake *lake, const struct tl_code_request *request,
                     struct tl_coverage *out, struct tl_fail *fail)
{
    const size_t n = 1 + request->n_also;
    *out = (struct tl_coverage){.gens = calloc(n, sizeof(struct tl_gen *))};
    struct covering c = {.request = request, .out = out, .sources = calloc(n, sizeof *c.sources)};
    int r = out->gens && c.sources ? TL_OK : TL_NOMEM;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = tl_code_result(request, i, add_source(&c, i, lake, fail), fail);
    if (r >= 0)
        r = report(&c);
    if (r >= 0)
        join_lines(out);
    for (size_t i = 0; c.sources && i < n; i++)
        if (c.sources[i].places.gen)
            tl_places_fini(&c.sources[i].places);
    for (uint32_t i = 0; i < c.numbers.n; i++)
        free(c.functions[i].cells);
    free(c.functions);
    free(c.sources);
    tl_numbers_fini(&c.numbers);
    tl_numbers_fini(&c.files);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
