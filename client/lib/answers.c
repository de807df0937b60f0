/* SPDX-License-Identifier: MIT */
/*
 * Gives answers about calls, profiles, counters and log as C structs. An answer keeps the message
 * that its texts are in, so that they need not be copied.
 */
#include "base/members.h"
#include "lookups.h"

#include <stdlib.h>

/* An empty answer; `size` includes its rows, behind it. NULL and no memory: the message is freed.
 */
static void *begin(ProtobufCMessage *message, size_t size, struct tracelake_error *error)
{
    void *const answer = calloc(1, size);
    if (answer)
        return answer;
    protobuf_c_message_free_unpacked(message, NULL);
    (void)!tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    return NULL;
}

static void end(void *answer, ProtobufCMessage *message)
{
    protobuf_c_message_free_unpacked(message, NULL);
    free(answer);
}

/* ---- a call ---------------------------------------------------------------------------------- */

static void fill_totals(struct tracelake_call_details *out, const Tracelake__V1__CallTotals *m)
{
    TL_COPY_MEMBERS(out, m, calls, finished, total, min, max);
    if (m->opt_longest_case)
        out->longest = m->longest;
    if (m->opt_previous_case)
        out->previous = m->previous;
    if (m->opt_next_case)
        out->next = m->next;
}

static void fill_call(struct tracelake_call_details *out, Tracelake__V1__CallReply *m)
{
    *out = (struct tracelake_call_details){
        .kind = (enum tracelake_call_kind)m->kind, /* the enums have the same values */
        .exception = m->opt_exception_case ? (int)m->exception : -1,
        .interrupt = m->opt_interrupt_case && m->interrupt,
        .return_pc = m->opt_return_pc_case ? m->return_pc : 0,
        .caller = m->opt_caller_case ? m->caller : "",
        .caller_from = m->opt_caller_begin_case ? m->caller_begin : TRACELAKE_END,
        .from = m->begin,
        .has_time = m->opt_time_begin_case != 0,
        .number = m->opt_number_case ? m->number : 0,
        .longest = TRACELAKE_END,
        .previous = TRACELAKE_END,
        .next = TRACELAKE_END,
        .behind_from = m->opt_behind_from_case ? m->behind_from : TRACELAKE_END,
        .message = m};
    TL_COPY_MEMBERS(out, m, name, depth, deepest, pc, to, insns, self, ended);
    if (out->has_time) {
        out->time_unit_ns = m->opt_time_unit_ns_case && m->time_unit_ns;
        out->time_from = m->time_begin;
        out->time_to = m->opt_time_to_case ? m->time_to : 0;
        out->time = (struct tracelake_duration){out->time_to - out->time_from,
                                                m->opt_time_least_case ? m->time_least : 0,
                                                m->opt_time_most_case ? m->time_most : UINT64_MAX};
    }
    if (m->all)
        fill_totals(out, m->all);
}

int tracelake_get_call(struct tracelake *lake, const char *trace, const char *stream, uint64_t insn,
                       uint32_t depth, struct tracelake_call_details **out,
                       struct tracelake_error *error)
{
    Tracelake__V1__CallReply *m;
    const int r = tl_lookup_call(lake, trace, stream, insn, depth, &m, error);
    if (r < 0)
        return r;
    struct tracelake_call_details *const call = begin(&m->base, sizeof *call, error);
    if (!call)
        return TRACELAKE_NOMEM;
    fill_call(call, m);
    *out = call;
    return TRACELAKE_OK;
}

void tracelake_call_details_free(struct tracelake_call_details *call)
{
    if (call)
        end(call, call->message);
}

/* ---- a call tree ----------------------------------------------------------------------------- */

static void fill_tree(struct tracelake_profile_tree *out, Tracelake__V1__ProfileReply *m)
{
    const bool insns = m->sum_case == TRACELAKE__V1__PROFILE_REPLY__SUM_INSNS;
    const bool ran = m->sum_case == TRACELAKE__V1__PROFILE_REPLY__SUM_RAN;
    out->by_cycles = m->opt_weight_case && m->weight == TRACELAKE__V1__WEIGHT__WEIGHT_CYCLES;
    out->by_time = ran && !out->by_cycles;
    out->sum = ran ? m->ran : insns ? m->insns : 0;
    out->sampled = m->opt_sampled_case && m->sampled;
    out->asleep = m->opt_asleep_case ? m->asleep : 0;
    out->truncated = m->truncated;
    out->behind = m->opt_behind_case && m->behind;
    out->has_time = m->opt_time_case != 0;
    out->time = out->has_time ? m->time : 0;
    for (; out->n_nodes < m->n_nodes; out->n_nodes++) {
        const Tracelake__V1__ProfileNode *const n = m->nodes[out->n_nodes];
        out->nodes[out->n_nodes] =
            (struct tracelake_profile_node){n->name, n->depth, n->total, n->self, n->calls};
    }
    for (; out->n_functions < m->n_functions; out->n_functions++) {
        const Tracelake__V1__ProfileFunction *const f = m->functions[out->n_functions];
        out->functions[out->n_functions] = (struct tracelake_profile_function){
            f->name, f->pc, f->self, f->total, f->calls, f->finished, f->length, f->min, f->max};
    }
}

int tracelake_get_profile(struct tracelake *lake, const struct tracelake_range *range,
                          enum tracelake_weight weight, bool callers, uint32_t nodes,
                          struct tracelake_profile_tree **out, struct tracelake_error *error)
{
    Tracelake__V1__ProfileReply *m;
    const int r = tl_lookup_profile(lake, range, weight, callers, nodes, &m, error);
    if (r < 0)
        return r;
    struct tracelake_profile_tree *const tree = begin(
        &m->base,
        sizeof *tree + m->n_nodes * sizeof *tree->nodes + m->n_functions * sizeof *tree->functions,
        error);
    if (!tree)
        return TRACELAKE_NOMEM;
    tree->message = m;
    tree->nodes = (void *)(tree + 1);
    tree->functions = (void *)(tree->nodes + m->n_nodes);
    fill_tree(tree, m);
    *out = tree;
    return TRACELAKE_OK;
}

void tracelake_profile_tree_free(struct tracelake_profile_tree *tree)
{
    if (tree)
        end(tree, tree->message);
}

/* ---- call stacks over a range ---------------------------------------------------------------- */

int tracelake_get_slices(struct tracelake *lake, const struct tracelake_range *range,
                         uint32_t columns, struct tracelake_call_stacks **out,
                         struct tracelake_error *error)
{
    Tracelake__V1__SlicesReply *m;
    const int r = tl_lookup_slices(lake, range, columns, &m, error);
    if (r < 0)
        return r;
    struct tracelake_call_stacks *const stacks =
        begin(&m->base, sizeof *stacks + m->n_slices * sizeof *stacks->p, error);
    if (!stacks)
        return TRACELAKE_NOMEM;
    *stacks = (struct tracelake_call_stacks){.p = (void *)(stacks + 1),
                                             .truncated = m->truncated,
                                             .resolution = m->resolution,
                                             .message = m};
    for (; stacks->n < m->n_slices; stacks->n++) {
        const Tracelake__V1__Slice *const s = m->slices[stacks->n];
        stacks->p[stacks->n] = (struct tracelake_slice){
            s->name, s->depth, !s->opt_exact_case || s->exact, s->begin, s->to};
    }
    *out = stacks;
    return TRACELAKE_OK;
}

void tracelake_call_stacks_free(struct tracelake_call_stacks *stacks)
{
    if (stacks)
        end(stacks, stacks->message);
}

/* ---- execution speed ------------------------------------------------------------------------- */

static uint64_t element(const uint64_t *p, size_t n, size_t i)
{
    return i < n ? p[i] : 0;
}

int tracelake_get_counters(struct tracelake *lake, const struct tracelake_range *range,
                           uint32_t columns, struct tracelake_counters **out,
                           struct tracelake_error *error)
{
    Tracelake__V1__CountersReply *m;
    const int r = tl_lookup_counters(lake, range, columns, &m, error);
    if (r < 0)
        return r;
    struct tracelake_counters *const counters =
        begin(&m->base, sizeof *counters + m->n_insns * sizeof *counters->p, error);
    if (!counters)
        return TRACELAKE_NOMEM;
    *counters = (struct tracelake_counters){.p = (void *)(counters + 1),
                                            .from = m->begin,
                                            .to = m->to,
                                            .sampled = m->sampled,
                                            .message = m};
    for (size_t i = 0; i < m->n_insns; i++)
        counters->p[i] = (struct tracelake_counter){m->insns[i], element(m->time, m->n_time, i),
                                                    element(m->cycles, m->n_cycles, i),
                                                    element(m->cycle_insns, m->n_cycle_insns, i)};
    counters->n = m->n_insns;
    *out = counters;
    return TRACELAKE_OK;
}

void tracelake_counters_free(struct tracelake_counters *counters)
{
    if (counters)
        end(counters, counters->message);
}

/* ---- software trace -------------------------------------------------------------------------- */

static struct tracelake_log_entry entry_of(const Tracelake__V1__LogEntry *m)
{
    return (struct tracelake_log_entry){
        .at = m->at,
        .last = m->last,
        .has_time = m->opt_time_case != 0,
        .time = m->opt_time_case ? m->time : 0,
        .source = m->source,
        .channel = m->opt_channel_case ? m->channel : "",
        .form = m->opt_form_case ? m->form : "",
        .is_text = m->said_case == TRACELAKE__V1__LOG_ENTRY__SAID_TEXT,
        .text = m->said_case ? m->text : "", /* or `value`: the same member of a union */
        .records = m->records,
        .size = m->opt_size_case ? m->size : 0};
}

int tracelake_get_log(struct tracelake *lake, const struct tracelake_range *range, uint32_t limit,
                      bool last, struct tracelake_log_lines **out, struct tracelake_error *error)
{
    Tracelake__V1__LogReply *m;
    const int r = tl_lookup_log(lake, range, limit, last, &m, error);
    if (r < 0)
        return r;
    struct tracelake_log_lines *const lines =
        begin(&m->base, sizeof *lines + m->n_entries * sizeof *lines->p, error);
    if (!lines)
        return TRACELAKE_NOMEM;
    *lines = (struct tracelake_log_lines){.p = (void *)(lines + 1), .more = m->more, .message = m};
    for (; lines->n < m->n_entries; lines->n++)
        lines->p[lines->n] = entry_of(m->entries[lines->n]);
    *out = lines;
    return TRACELAKE_OK;
}

void tracelake_log_lines_free(struct tracelake_log_lines *lines)
{
    if (lines)
        end(lines, lines->message);
}
