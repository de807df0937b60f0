/* SPDX-License-Identifier: MIT */
/*
 * Receives execution counts and coverage of code. The server sends them in several messages, which
 * are appended to one another.
 */
#include "ask.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* Send the request, and have each reply processed. */
static int ask(struct tracelake *lake, const char *method,
               const struct tracelake_code_request *asked, const ProtobufCMessageDescriptor *kind,
               tl_ask_take_reply *take, void *context, struct tracelake_error *error)
{
    Tracelake__V1__CodeRequest request = TRACELAKE__V1__CODE_REQUEST__INIT;
    Tracelake__V1__CodeSource *const also = calloc(asked->n_also + 1, sizeof *also);
    request.also = calloc(asked->n_also + 1, sizeof(Tracelake__V1__CodeSource *));
    int r = also && request.also ? TRACELAKE_OK
                                 : tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    for (size_t i = 0; i < asked->n_also && r >= 0; i++) {
        tracelake__v1__code_source__init(&also[i]);
        also[i].trace = tl_ask_text(asked->also[i].trace);
        also[i].stream = tl_ask_text(asked->also[i].stream);
        request.also[i] = &also[i];
    }
    request.n_also = asked->n_also;
    request.contexts = (uint64_t *)(uintptr_t)asked->contexts; /* only read */
    request.n_contexts = asked->n_contexts;
    request.trace = tl_ask_text(asked->range.trace);
    request.stream = tl_ask_text(asked->range.stream);
    request.unit = (Tracelake__V1__Unit)asked->range.unit;
    request.begin = asked->range.from;
    request.end = tl_ask_end_of(asked->range.to);
    request.image = tl_ask_text(asked->image);
    if (r >= 0)
        r = tl_ask_each(lake, method, -1, &request.base, kind, take, context, error);
    free(request.also);
    free(also);
    return r;
}

/* Reserve capacity for `more` elements after the first `n` of an array. */
static int grow(void *array, size_t n, size_t more, size_t size)
{
    void **const p = array;
    void *const bigger = realloc(*p, (n + more + 1) * size);
    if (!bigger)
        return TRACELAKE_NOMEM;
    *p = bigger;
    return TRACELAKE_OK;
}

static int add_counts(struct tracelake_code_count **out, size_t *n,
                      Tracelake__V1__CodeCount *const *rows, size_t more)
{
    if (grow(out, *n, more, sizeof **out) < 0)
        return TRACELAKE_NOMEM;
    for (size_t i = 0; i < more; i++)
        (*out)[(*n)++] =
            (struct tracelake_code_count){rows[i]->source, rows[i]->target, rows[i]->count};
    return TRACELAKE_OK;
}

static int take_code(void *context, const void *message)
{
    struct tracelake_code *const code = context;
    const Tracelake__V1__CodeReply *const reply = message;
    code->insns += reply->insns;
    code->truncated |= reply->truncated;
    code->behind |= reply->behind;
    const int r = add_counts(&code->runs, &code->n_runs, reply->runs, reply->n_runs);
    return r < 0
               ? r
               : add_counts(&code->branches, &code->n_branches, reply->branches, reply->n_branches);
}

void tracelake_code_free(struct tracelake_code *code)
{
    if (!code)
        return;
    free(code->runs);
    free(code->branches);
    free(code);
}

int tracelake_code(struct tracelake *lake, const struct tracelake_code_request *request,
                   struct tracelake_code **out, struct tracelake_error *error)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    const int r = ask(lake, "/tracelake.v1.Ranges/Code", request,
                      &tracelake__v1__code_reply__descriptor, take_code, *out, error);
    if (r < 0) {
        tracelake_code_free(*out);
        *out = NULL;
    }
    return r;
}

/* ---- coverage -------------------------------------------------------------------------------- */

static int take_texts(struct tracelake_coverage *c, const Tracelake__V1__CoverageReply *reply)
{
    if (grow(&c->files, c->n_files, reply->n_files, sizeof *c->files) < 0 ||
        grow(&c->functions, c->n_functions, reply->n_functions, sizeof *c->functions) < 0)
        return TRACELAKE_NOMEM;
    for (size_t i = 0; i < reply->n_files; i++)
        if (!(c->files[c->n_files++] = strdup(reply->files[i])))
            return TRACELAKE_NOMEM;
    for (size_t i = 0; i < reply->n_functions; i++) {
        const Tracelake__V1__CoveredFunction *const f = reply->functions[i];
        struct tracelake_covered_function *const row = &c->functions[c->n_functions++];
        *row = (struct tracelake_covered_function){strdup(f->name), f->pc,   f->calls, f->insns,
                                                   f->executed,     f->file, f->line};
        if (!row->name)
            return TRACELAKE_NOMEM;
    }
    return TRACELAKE_OK;
}

static int take_coverage(void *context, const void *message)
{
    struct tracelake_coverage *const c = context;
    const Tracelake__V1__CoverageReply *const reply = message;
    c->truncated |= reply->truncated;
    c->behind |= reply->behind;
    if (take_texts(c, reply) < 0 ||
        grow(&c->lines, c->n_lines, reply->n_lines, sizeof *c->lines) < 0 ||
        grow(&c->branches, c->n_branches, reply->n_branches, sizeof *c->branches) < 0)
        return TRACELAKE_NOMEM;
    for (size_t i = 0; i < reply->n_lines; i++)
        c->lines[c->n_lines++] = (struct tracelake_covered_line){
            reply->lines[i]->file, reply->lines[i]->line, reply->lines[i]->count};
    for (size_t i = 0; i < reply->n_branches; i++) {
        const Tracelake__V1__CoveredBranch *const b = reply->branches[i];
        c->branches[c->n_branches++] =
            (struct tracelake_covered_branch){b->file, b->line, b->pc, b->taken, b->not_taken};
    }
    return TRACELAKE_OK;
}

void tracelake_coverage_free(struct tracelake_coverage *coverage)
{
    if (!coverage)
        return;
    for (size_t i = 0; i < coverage->n_files; i++)
        free(coverage->files[i]);
    for (size_t i = 0; i < coverage->n_functions; i++)
        free(coverage->functions[i].name);
    free(coverage->files);
    free(coverage->functions);
    free(coverage->lines);
    free(coverage->branches);
    free(coverage);
}

int tracelake_coverage(struct tracelake *lake, const struct tracelake_code_request *request,
                       struct tracelake_coverage **out, struct tracelake_error *error)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    const int r = ask(lake, "/tracelake.v1.Ranges/Coverage", request,
                      &tracelake__v1__coverage_reply__descriptor, take_coverage, *out, error);
    if (r < 0) {
        tracelake_coverage_free(*out);
        *out = NULL;
    }
    return r;
}
