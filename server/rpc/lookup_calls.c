/* SPDX-License-Identifier: MIT */
/*
 * Makes messages of calls, call trees and comparisons. Their fields are those of lake_analysis.h,
 * so that RPC and HTTP give one answer.
 */
#include "base/members.h"
#include "rpc/lookups.h"
#include "rpc/scoped.h"

/* ---- a call ---------------------------------------------------------------------------------- */

static void fill_time(Tracelake__V1__CallReply *m, const struct tl_call_info *c)
{
    if (!c->has_time)
        return;
    TL_SET(m, time_begin, c->time_from);
    TL_SET(m, time_to, c->time_to);
    TL_SET(m, time_unit_ns, c->time_unit_ns);
    TL_SET(m, time_least, c->time_least);
    if (c->time_most != UINT64_MAX)
        TL_SET(m, time_most, c->time_most);
}

static void fill_totals(Tracelake__V1__CallTotals *m, const struct tl_call_info *c)
{
    TL_COPY_MEMBERS(m, c, calls, finished, total, min, max);
    if (c->finished > 0)
        TL_SET(m, longest, c->longest);
    if (c->has_previous)
        TL_SET(m, previous, c->previous);
    if (c->has_next)
        TL_SET(m, next, c->next);
}

static void fill_call(struct tl_reply *reply, Tracelake__V1__CallReply *m,
                      const struct tl_call_info *c)
{
    m->name = tl_reply_text(reply, c->name);
    m->kind = (Tracelake__V1__CallReply__Kind)c->kind; /* the enums have the same values */
    TL_COPY_MEMBERS(m, c, depth, deepest, pc, to, self, ended);
    m->begin = c->from;
    m->insns = c->to - c->from;
    if (c->behind)
        TL_SET(m, behind_from, c->behind_from);
    fill_time(m, c);
    if (c->kind == TL_CALL_EXCEPTION && c->exception >= 0)
        TL_SET(m, exception, (uint32_t)c->exception);
    if (c->kind == TL_CALL_EXCEPTION && c->interrupt)
        TL_SET(m, interrupt, true);
    if (c->return_pc)
        TL_SET(m, return_pc, c->return_pc);
    if (c->depth > 0) {
        TL_SET(m, caller, tl_reply_text(reply, c->caller));
        TL_SET(m, caller_begin, c->caller_from);
    }
    if (c->kind != TL_CALL_ROOT && *c->name)
        TL_SET(m, number, c->number);
    if (*c->name && (m->all = tl_reply_new(reply, &tracelake__v1__call_totals__descriptor)))
        fill_totals(m->all, c);
}

int tl_answer_call(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                   struct tl_fail *fail)
{
    const Tracelake__V1__CallRequest *const r = request;
    struct tl_call_info info = {0};
    Tracelake__V1__CallReply *const m =
        tl_reply_begin(reply, &tracelake__v1__call_reply__descriptor);
    const int rc = m ? tl_lake_call(asker->lake, r->trace, r->stream, r->at,
                                    r->innermost ? TL_CALL_INNERMOST : r->depth, &info, fail)
                     : TL_NOMEM;
    if (rc >= 0)
        fill_call(reply, m, &info);
    tl_call_info_fini(&info);
    return tl_reply_done(reply, rc);
}

/* ---- a call tree ----------------------------------------------------------------------------- */

static void fill_node(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_profile_node *const n = row;
    Tracelake__V1__ProfileNode *const m = message;
    TL_COPY_MEMBERS(m, n, depth, total, self, calls);
    m->name = tl_reply_text(reply, n->name);
}

static void fill_profile_function(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_profile_function *const f = row;
    Tracelake__V1__ProfileFunction *const m = message;
    m->name = tl_reply_text(reply, f->name);
    TL_COPY_MEMBERS(m, f, pc, self, total, calls, finished, length, min, max);
}

static void fill_profile(struct tl_reply *reply, Tracelake__V1__ProfileReply *m,
                         const struct tl_profile *p)
{
    if (p->weight != TL_WEIGHT_INSNS) {
        TL_SET(m, weight, (Tracelake__V1__Weight)p->weight);
        m->ran = p->insns;
        m->sum_case = TRACELAKE__V1__PROFILE_REPLY__SUM_RAN;
    } else {
        m->insns = p->insns;
        m->sum_case = TRACELAKE__V1__PROFILE_REPLY__SUM_INSNS;
    }
    if (p->has_time)
        TL_SET(m, time, p->time);
    m->truncated = p->truncated;
    if (p->behind)
        TL_SET(m, behind, true);
    if (p->sampled) {
        TL_SET(m, sampled, true);
        TL_SET(m, asleep, p->asleep);
    }
    TL_REPLY_ROWS(reply, m, nodes, profile_node, p->nodes, p->n_nodes, fill_node);
    TL_REPLY_ROWS(reply, m, functions, profile_function, p->functions, p->n_functions,
                  fill_profile_function);
}

int tl_answer_profile(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                      struct tl_fail *fail)
{
    const Tracelake__V1__ProfileRequest *const r = request;
    const struct tl_profile_request wanted = {.trace = r->trace,
                                              .stream = r->stream,
                                              .unit = (enum tl_range_unit)r->unit,
                                              .from = r->begin,
                                              .to = tl_end_of(r->to),
                                              .weight = (enum tl_weight)r->weight,
                                              .callers = r->callers,
                                              .nodes = r->nodes};
    struct tl_profile profile = {0};
    Tracelake__V1__ProfileReply *const m =
        tl_reply_begin(reply, &tracelake__v1__profile_reply__descriptor);
    int rc = m ? tl_check_enum("unit", (unsigned)r->unit, TL_UNITS, fail) : TL_NOMEM;
    if (rc >= 0)
        rc = tl_check_enum("weight", (unsigned)r->weight, TL_WEIGHTS, fail);
    if (rc >= 0)
        rc = tl_lake_profile(asker->lake, &wanted, &profile, fail);
    if (rc >= 0)
        fill_profile(reply, m, &profile);
    tl_profile_fini(&profile);
    return tl_reply_done(reply, rc);
}

/* ---- two runs compared ---------------------------------------------------------------------- */

static Tracelake__V1__CompareSide *
side_of(struct tl_reply *reply, const struct tl_compare_side *side, uint64_t from, uint64_t to)
{
    Tracelake__V1__CompareSide *const m =
        tl_reply_new(reply, &tracelake__v1__compare_side__descriptor);
    if (!m)
        return NULL;
    m->trace = tl_reply_text(reply, side->trace);
    m->stream = tl_reply_text(reply, side->stream);
    m->begin = from;
    m->to = to;
    return m;
}

static void fill_frame(struct tl_reply *reply, void *message, const void *row)
{
    ((Tracelake__V1__CompareFrame *)message)->name =
        tl_reply_text(reply, *(const char *const *)row);
}

static void fill_hunk(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_compare_hunk *const h = row;
    Tracelake__V1__CompareHunk *const m = message;
    (void)reply;
    m->a_begin = h->a_from;
    m->a_to = h->a_to;
    m->b_begin = h->b_from;
    m->b_to = h->b_to;
}

static void fill_difference(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_compare_function *const f = row;
    Tracelake__V1__CompareFunction *const m = message;
    m->name = tl_reply_text(reply, f->name);
    TL_COPY_MEMBERS(m, f, self_a, self_b, calls_a, calls_b, total_a, total_b);
}

static void fill_compare(struct tl_reply *reply, Tracelake__V1__CompareReply *m,
                         const struct tl_compare_request *r, const struct tl_compare *c)
{
    m->a = side_of(reply, &r->a, c->a_from, c->a_to);
    m->b = side_of(reply, &r->b, c->b_from, c->b_to);
    m->total = c->total_hunks;
    TL_COPY_MEMBERS(m, c, only_a, only_b, lost);
    if (c->behind)
        TL_SET(m, behind, true);
    if (c->weight != TL_WEIGHT_INSNS)
        TL_SET(m, weight, (Tracelake__V1__Weight)c->weight);
    if (c->weight == TL_WEIGHT_TIME)
        TL_SET(m, time_unit_ns, c->time_unit_ns);
    TL_REPLY_ROWS(reply, m, stack_a, compare_frame, c->stack_a, c->n_stack_a, fill_frame);
    TL_REPLY_ROWS(reply, m, stack_b, compare_frame, c->stack_b, c->n_stack_b, fill_frame);
    TL_REPLY_ROWS(reply, m, hunks, compare_hunk, c->hunks, c->n_hunks, fill_hunk);
    TL_REPLY_ROWS(reply, m, functions, compare_function, c->functions, c->n_functions,
                  fill_difference);
}

int tl_answer_compare(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                      struct tl_fail *fail)
{
    const Tracelake__V1__CompareRequest *const r = request;
    const Tracelake__V1__CompareSide *const other = r->other;
    struct tl_compare compare = {0};
    if (!other)
        return tl_fail_set(fail, TL_USAGE, "compare with what?");
    const struct tl_compare_request wanted = {
        .a = {r->trace, r->stream, r->begin, tl_end_of(r->to)},
        .b = {other->trace, other->stream, other->begin, tl_end_of(other->to)},
        .calls = r->calls,
        .hunks = r->hunks,
        .weight = (enum tl_weight)r->weight};
    Tracelake__V1__CompareReply *const m =
        tl_reply_begin(reply, &tracelake__v1__compare_reply__descriptor);
    int rc = m ? tl_scoped_covers(asker->lake, asker->scope, other->trace, fail) : TL_NOMEM;
    if (rc >= 0)
        rc = tl_check_enum("weight", (unsigned)r->weight, TL_WEIGHTS, fail);
    if (rc >= 0)
        rc = tl_lake_compare(asker->lake, &wanted, &compare, fail);
    if (rc >= 0)
        fill_compare(reply, m, &wanted, &compare);
    tl_compare_fini(&compare);
    return tl_reply_done(reply, rc);
}
