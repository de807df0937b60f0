/* SPDX-License-Identifier: MIT */
/*
 * Execution counts of one or several traces, as used by compilers. Addresses in memory are
 * converted to those of the file, since a compiler knows only these.
 */
#include "query/code.h"

#include "lake/locate.h"
#include "query/codecount.h"
#include "query/debuginfo.h"
#include "query/samples.h"

#include <stdlib.h>
#include <string.h>

struct counting {
    struct tl_codecount *counts;
    const struct tl_code_request *request;
    bool samples; /* those of samples, too */
};

static int add_cut(void *context, const struct tl_cut *cut, enum tl_range_unit unit,
                   struct tl_fail *fail)
{
    const struct counting *const c = context;
    uint64_t from, to;
    int r = tl_cut_resolve(cut, unit, c->request->from, c->request->to, &from, &to, fail);
    c->counts->behind |= cut->behind;
    if (r < 0)
        return r;
    if (tl_protocol_has(cut->lane->protocol, TL_TRAIT_SAMPLES))
        return c->samples ? tl_samples_code(c->counts, cut, from, to, fail) : TL_OK;
    return tl_codecount_add(c->counts, cut, from, to, fail);
}

int tl_code_count(struct tl_codecount *c, struct tl_lake *lake,
                  const struct tl_code_request *request, const struct tl_code_source *source,
                  bool samples, struct tl_gen **gen, struct tl_fail *fail)
{
    struct counting counting = {c, request, samples};
    return tl_cuts_of_flow(lake, source->trace, source->stream, request->unit, request->from,
                           request->to, add_cut, &counting, gen, fail);
}

const struct tl_code_source *tl_code_source(const struct tl_code_request *request, size_t i)
{
    return i == 0 ? &request->of : i <= request->n_also ? &request->also[i - 1] : NULL;
}

int tl_code_result(const struct tl_code_request *request, size_t i, int r, struct tl_fail *fail)
{
    const char *const trace = tl_code_source(request, i)->trace;
    if (r >= 0 || r == TL_NOMEM || request->n_also == 0)
        return r;
    const struct tl_fail what = *fail;
    tl_fail_at(fail, (enum tl_err)r, what.offset, "%.63s: %.150s", trace,
               what.text[0] ? what.text : tl_err_name(r));
    return r;
}

bool tl_code_wants(const struct tl_code_request *request, const struct tl_code_program *program)
{
    bool wanted = request->n_contexts == 0;
    for (size_t i = 0; i < request->n_contexts && !wanted; i++)
        wanted =
            program->context.has_context_id && program->context.context_id == request->contexts[i];
    return wanted;
}

struct tl_flow_now tl_code_now(const struct tl_code_program *program)
{
    return (struct tl_flow_now){.context = program->context.context_id,
                                .has_context = program->context.has_context_id,
                                .vmid = program->context.vmid,
                                .has_vmid = program->context.has_vmid,
                                .time = program->time,
                                .has_time = program->time != 0};
}

/* ---- code of one file ------------------------------------------------------------------------ */

/* Maps addresses in memory to addresses of a file. */
struct mapping {
    const char *name; /* as requested; NULL: none, addresses stay unchanged */
    struct tl_places places;
    bool *is_file; /* for each of the setup's images */
    bool any;
};

static bool is_named(const struct tl_image_row *row, const char *name)
{
    const char *const slash = strrchr(row->name, '/');
    return strcmp(row->name, name) == 0 || (slash && strcmp(slash + 1, name) == 0);
}

/* Determine which of the setup's images are the file. */
static int find_file(struct mapping *m, struct tl_lake *lake, struct tl_fail *fail)
{
    const struct tl_setup *const setup = &m->places.gen->setup;
    struct tl_image_row *rows = NULL;
    size_t n = 0;
    char wanted[72], hash[72];
    if (tl_lake_image_hash(lake, m->name, wanted) < 0)
        wanted[0] = '\0';
    int r = tl_lake_images(lake, &rows, &n);
    if (r >= 0 && !(m->is_file = calloc(setup->n_images + 1, sizeof *m->is_file)))
        r = TL_NOMEM;
    for (size_t i = 0; i < setup->n_images && r >= 0; i++) {
        if (tl_lake_image_hash(lake, setup->images[i].file, hash) < 0)
            continue;
        m->is_file[i] = strcmp(hash, wanted) == 0;
        for (size_t k = 0; k < n && !m->is_file[i]; k++)
            m->is_file[i] = strcmp(rows[k].hash, hash) == 0 && is_named(&rows[k], m->name);
        m->any |= m->is_file[i];
    }
    free(rows);
    return r >= 0 && !m->any
               ? tl_fail_set(fail, TL_NOTFOUND, "%.100s is none of the trace's images", m->name)
               : r;
}

static int mapping_init(struct mapping *m, struct tl_lake *lake, struct tl_gen *gen,
                        const char *name, struct tl_fail *fail)
{
    *m = (struct mapping){.name = name && *name ? name : NULL};
    if (!m->name)
        return TL_OK;
    const int r = tl_places_init(&m->places, gen);
    return r < 0 ? r : find_file(m, lake, fail);
}

static void mapping_fini(struct mapping *m)
{
    if (m->places.gen)
        tl_places_fini(&m->places);
    free(m->is_file);
}

/* Quick check: can any of the file be mapped at an address? */
static bool may_be(const struct mapping *m, uint64_t pc)
{
    const struct tl_setup *const setup = &m->places.gen->setup;
    for (size_t i = 0; i < setup->n_images; i++)
        if (m->is_file[i] && (setup->images[i].length == UINT64_MAX ||
                              pc - setup->images[i].address < setup->images[i].length))
            return true;
    return false;
}

/* Convert `*pc` to the file's address. TL_NOTFOUND: it belongs to another file. */
static int map(struct mapping *m, const struct tl_flow_now *now, uint64_t *pc)
{
    size_t image;
    if (!m->name)
        return TL_OK;
    const int r = may_be(m, *pc) ? tl_places_own(&m->places, now, *pc, &image, pc) : TL_NOTFOUND;
    return r >= 0 && !m->is_file[image] ? TL_NOTFOUND : r;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const struct tl_code_count *const x = a, *const y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Sort, and merge entries for the same addresses. */
static size_t join(struct tl_code_count *v, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(v, n, sizeof *v, by_place);
    for (size_t i = 0; i < n; i++)
        if (kept && by_place(&v[kept - 1], &v[i]) == 0)
            v[kept - 1].count += v[i].count;
        else
            v[kept++] = v[i];
    return kept;
}

/* Append the entries of wanted programs; `straight`: ranges that must be contiguous in memory. */
static int list(const struct tl_code_request *request, const struct tl_codecount *c,
                const struct tl_numbers *pairs, const uint64_t *counts, bool straight,
                struct mapping *m, struct tl_code_count **out, size_t *n)
{
    struct tl_code_count *const v = realloc(*out, (*n + pairs->n + 1) * sizeof *v);
    if (!v)
        return TL_NOMEM;
    *out = v;
    for (uint32_t i = 0; i < pairs->n; i++) {
        struct tl_code_pair pair = tl_code_pair(c, pairs->keys[i]);
        const struct tl_flow_now now = tl_code_now(&c->programs[pair.program]);
        const uint64_t length = pair.to - pair.from;
        if (!tl_code_wants(request, &c->programs[pair.program]))
            continue;
        int r = map(m, &now, &pair.from);
        if (straight)
            pair.to = pair.from + length;
        else if (r >= 0)
            r = map(m, &now, &pair.to);
        if (r == TL_NOTFOUND)
            continue;
        if (r < 0)
            return r;
        v[(*n)++] = (struct tl_code_count){pair.from, pair.to, counts[i]};
    }
    return TL_OK;
}

static int add_source(struct tl_code *out, struct tl_lake *lake,
                      const struct tl_code_request *request, const struct tl_code_source *source,
                      struct tl_fail *fail)
{
    struct tl_codecount c = {0};
    struct tl_gen *gen = NULL;
    struct mapping m = {0};
    int r = tl_code_count(&c, lake, request, source, true, &gen, fail);
    if (r >= 0)
        r = mapping_init(&m, lake, gen, request->image, fail);
    if (r >= 0)
        r = list(request, &c, &c.runs, c.run_counts, true, &m, &out->runs, &out->n_runs);
    if (r >= 0)
        r = list(request, &c, &c.branches, c.branch_counts, false, &m, &out->branches,
                 &out->n_branches);
    for (size_t i = 0; i < c.n_programs; i++)
        out->insns += tl_code_wants(request, &c.programs[i]) ? c.programs[i].insns : 0;
    out->truncated |= c.truncated;
    out->behind |= c.behind;
    mapping_fini(&m);
    tl_gen_put(gen);
    tl_codecount_fini(&c);
    return r;
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
    const struct tl_code_source *source;
    int r = TL_OK;
    *out = (struct tl_code){0};
    for (size_t i = 0; r >= 0 && (source = tl_code_source(request, i)); i++)
        r = tl_code_result(request, i, add_source(out, lake, request, source, fail), fail);
    out->n_runs = join(out->runs, out->n_runs);
    out->n_branches = join(out->branches, out->n_branches);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
