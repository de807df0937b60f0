/* SPDX-License-Identifier: MIT */
/*
 * Execution counts and coverage: Code and Coverage of tracelake.v1.Ranges. Rows are sent in
 * batches, since a program has millions of them.
 */
#include "lake_analysis.h"
#include "lake_ranges.h"
#include "rpc/rpcint.h"

#include "base/members.h"
#include "base/utf8.h"
#include "rpc/scoped.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 4096 /* per reply */

/* A converted request; also[] must live as long. */
struct request {
    struct tl_code_request code;
    struct tl_code_source *also;
};

static int read_request(struct tl_call *call, const Tracelake__V1__CodeRequest *r,
                        struct request *out)
{
    struct tl_fail *const fail = tl_call_fail(call);
    *out = (struct request){.also = calloc(r->n_also + 1, sizeof *out->also)};
    if (!out->also)
        return TL_NOMEM;
    out->code = (struct tl_code_request){.of = {r->trace, r->stream},
                                         .also = out->also,
                                         .n_also = r->n_also,
                                         .unit = (enum tl_range_unit)r->unit,
                                         .from = r->begin,
                                         .to = r->end ? r->end : UINT64_MAX,
                                         .contexts = r->contexts,
                                         .n_contexts = r->n_contexts,
                                         .image = r->image};
    if ((unsigned)r->unit >= TL_UNITS)
        return tl_fail_set(fail, TL_USAGE, "unit %u is not known", (unsigned)r->unit);
    for (size_t i = 0; i < r->n_also; i++) {
        out->also[i] = (struct tl_code_source){r->also[i]->trace, r->also[i]->stream};
        /* The dispatcher has checked the first trace. */
        const int rc =
            tl_scoped_covers(tl_call_rpc(call)->lake, tl_call_scope(call), r->also[i]->trace, fail);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

/* Rows of one reply: messages and the pointers to them that protobuf-c needs. */
struct rows {
    Tracelake__V1__CodeCount counts[ROWS];
    Tracelake__V1__CodeCount *p[ROWS];
};

static size_t fill(struct rows *rows, const struct tl_code_count *counts, size_t n)
{
    n = n < ROWS ? n : ROWS;
    for (size_t i = 0; i < n; i++) {
        tracelake__v1__code_count__init(&rows->counts[i]);
        rows->counts[i].source = counts[i].from;
        rows->counts[i].target = counts[i].to;
        rows->counts[i].count = counts[i].count;
        rows->p[i] = &rows->counts[i];
    }
    return n;
}

static int send_code(struct tl_call *call, const struct tl_code *code)
{
    struct rows *const rows = malloc(sizeof *rows);
    int rc = rows ? TL_OK : TL_NOMEM;
    size_t runs = 0, branches = 0;
    for (bool first = true;
         rc >= 0 && (first || runs < code->n_runs || branches < code->n_branches); first = false) {
        Tracelake__V1__CodeReply reply = TRACELAKE__V1__CODE_REPLY__INIT;
        if (first) {
            TL_COPY_MEMBERS(&reply, code, insns, truncated, behind);
        }
        if (runs < code->n_runs) {
            reply.n_runs = fill(rows, code->runs + runs, code->n_runs - runs);
            reply.runs = rows->p;
            runs += reply.n_runs;
        } else {
            reply.n_branches = fill(rows, code->branches + branches, code->n_branches - branches);
            reply.branches = rows->p;
            branches += reply.n_branches;
        }
        rc = tl_call_send(call, &reply.base);
    }
    free(rows);
    return rc;
}

int tl_run_code(struct tl_call *call, const void *message)
{
    const Tracelake__V1__CodeRequest *const r = message;
    struct request request;
    struct tl_code code = {0};
    int rc = read_request(call, r, &request);
    if (rc >= 0)
        rc = tl_lake_code(tl_call_rpc(call)->lake, &request.code, &code, tl_call_fail(call));
    if (rc >= 0)
        rc = send_code(call, &code);
    tl_code_fini(&code);
    free(request.also);
    return tl_explain(tl_call_fail(call), rc, r->trace, NULL);
}

/* ---- coverage -------------------------------------------------------------------------------- */

/* In the message 0 means no file. */
static uint32_t file_of(uint32_t file)
{
    return file == TL_COVERAGE_NOWHERE ? 0 : file + 1;
}

static int send_files(struct tl_call *call, const struct tl_coverage *c)
{
    int rc = TL_OK;
    for (size_t at = 0; at < c->n_files && rc >= 0; at += ROWS) {
        Tracelake__V1__CoverageReply reply = TRACELAKE__V1__COVERAGE_REPLY__INIT;
        reply.files = c->files + at;
        reply.n_files = c->n_files - at < ROWS ? c->n_files - at : ROWS;
        for (size_t i = 0; i < reply.n_files; i++)
            tl_utf8_clean(reply.files[i]);
        rc = tl_call_send(call, &reply.base);
    }
    return rc;
}

static int send_functions(struct tl_call *call, const struct tl_coverage *c)
{
    int rc = TL_OK;
    for (size_t i = 0; i < c->n_functions && rc >= 0;) {
        Tracelake__V1__CoverageReply reply = TRACELAKE__V1__COVERAGE_REPLY__INIT;
        Tracelake__V1__CoveredFunction rows[64], *p[64];
        char names[64][512];
        for (; i < c->n_functions && reply.n_functions < 64; i++, reply.n_functions++) {
            const struct tl_coverage_function *const f = &c->functions[i];
            Tracelake__V1__CoveredFunction *const row = &rows[reply.n_functions];
            char *const name = names[reply.n_functions];
            tracelake__v1__covered_function__init(row);
            snprintf(name, sizeof names[0], "%s", f->name);
            tl_utf8_clean(name);
            row->name = name;
            TL_COPY_MEMBERS(row, f, pc, calls, insns, executed, line);
            row->file = file_of(f->file);
            p[reply.n_functions] = row;
        }
        reply.functions = p;
        rc = tl_call_send(call, &reply.base);
    }
    return rc;
}

static int send_lines(struct tl_call *call, const struct tl_coverage *c)
{
    int rc = TL_OK;
    for (size_t i = 0; i < c->n_lines && rc >= 0;) {
        Tracelake__V1__CoverageReply reply = TRACELAKE__V1__COVERAGE_REPLY__INIT;
        Tracelake__V1__CoveredLine rows[512], *p[512];
        for (; i < c->n_lines && reply.n_lines < 512; i++, reply.n_lines++) {
            tracelake__v1__covered_line__init(&rows[reply.n_lines]);
            rows[reply.n_lines].file = file_of(c->lines[i].file);
            rows[reply.n_lines].line = c->lines[i].line;
            rows[reply.n_lines].count = c->lines[i].count;
            p[reply.n_lines] = &rows[reply.n_lines];
        }
        reply.lines = p;
        rc = tl_call_send(call, &reply.base);
    }
    return rc;
}

static int send_branches(struct tl_call *call, const struct tl_coverage *c)
{
    int rc = TL_OK;
    for (size_t i = 0; i < c->n_branches && rc >= 0;) {
        Tracelake__V1__CoverageReply reply = TRACELAKE__V1__COVERAGE_REPLY__INIT;
        Tracelake__V1__CoveredBranch rows[512], *p[512];
        for (; i < c->n_branches && reply.n_branches < 512; i++, reply.n_branches++) {
            const struct tl_coverage_branch *const b = &c->branches[i];
            Tracelake__V1__CoveredBranch *const row = &rows[reply.n_branches];
            tracelake__v1__covered_branch__init(row);
            row->file = file_of(b->file);
            TL_COPY_MEMBERS(row, b, line, pc, taken, not_taken);
            p[reply.n_branches] = row;
        }
        reply.branches = p;
        rc = tl_call_send(call, &reply.base);
    }
    return rc;
}

int tl_run_coverage(struct tl_call *call, const void *message)
{
    const Tracelake__V1__CodeRequest *const r = message;
    struct request request;
    struct tl_coverage coverage = {0};
    Tracelake__V1__CoverageReply last = TRACELAKE__V1__COVERAGE_REPLY__INIT;
    int rc = read_request(call, r, &request);
    if (rc >= 0)
        rc =
            tl_lake_coverage(tl_call_rpc(call)->lake, &request.code, &coverage, tl_call_fail(call));
    if (rc >= 0)
        rc = send_files(call, &coverage);
    if (rc >= 0)
        rc = send_functions(call, &coverage);
    if (rc >= 0)
        rc = send_lines(call, &coverage);
    if (rc >= 0)
        rc = send_branches(call, &coverage);
    last.truncated = coverage.truncated;
    last.behind = coverage.behind;
    if (rc >= 0)
        rc = tl_call_send(call, &last.base);
    tl_coverage_fini(&coverage);
    free(request.also);
    return tl_explain(tl_call_fail(call), rc, r->trace, NULL);
}
