/* SPDX-License-Identifier: MIT */
/*
 * Data of lanes as messages: call stacks, software trace, states and execution speed of a range.
 * One function fills each kind of answer for RPC, HTTP and SQL alike.
 */
#include "lake_lanes.h"
#include "rpc/lookups.h"

#include <inttypes.h>
#include <stdio.h>

int tl_check_enum(const char *what, unsigned value, unsigned n, struct tl_fail *fail)
{
    return value < n ? TL_OK : tl_fail_set(fail, TL_USAGE, "%s %u is not known", what, value);
}

/* ---- call stacks ----------------------------------------------------------------------------- */

/* "main", "exception 5 vector", "interrupt vector" (its number is unknown), or its address. */
static char *name_of(struct tl_reply *reply, const struct tl_stack_slice *s)
{
    char text[512], number[16] = "";
    if (s->exception >= 0)
        snprintf(number, sizeof number, " %d", s->exception);
    if (s->is_exception)
        snprintf(text, sizeof text, "%s%s%s%s", s->interrupt ? "interrupt" : "exception", number,
                 *s->name ? " " : "", s->name);
    else if (!*s->name)
        snprintf(text, sizeof text, "0x%" PRIx64, s->pc);
    return tl_reply_text(reply, s->is_exception || !*s->name ? text : s->name);
}

static void fill_slice(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_stack_slice *const s = row;
    Tracelake__V1__Slice *const m = message;
    m->depth = s->depth;
    m->begin = s->from;
    m->to = s->to;
    if (!s->exact)
        TL_SET(m, exact, false);
    m->name = name_of(reply, s);
}

int tl_answer_slices(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                     struct tl_fail *fail)
{
    const Tracelake__V1__LaneRequest *const r = request;
    const struct tl_slices_request wanted = {.trace = r->trace,
                                             .stream = r->stream,
                                             .axis = (enum tl_range_unit)r->axis,
                                             .from = r->begin,
                                             .to = tl_end_of(r->to),
                                             .columns = r->columns};
    struct tl_slices slices = {0};
    if ((unsigned)r->axis >= TL_UNITS || r->axis == TRACELAKE__V1__UNIT__UNIT_BYTE)
        return tl_fail_set(fail, TL_USAGE, "the axis is instructions or time");
    Tracelake__V1__SlicesReply *const m =
        tl_reply_begin(reply, &tracelake__v1__slices_reply__descriptor);
    const int rc = m ? tl_lake_slices(asker->lake, &wanted, &slices, fail) : TL_NOMEM;
    if (rc >= 0) {
        m->truncated = slices.truncated;
        m->resolution = slices.resolution;
        TL_REPLY_ROWS(reply, m, slices, slice, slices.p, slices.n, fill_slice);
    }
    tl_slices_fini(&slices);
    return tl_reply_done(reply, rc);
}

/* ---- software trace -------------------------------------------------------------------------- */

static void fill_entry(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_soft_entry *const e = row;
    Tracelake__V1__LogEntry *const m = message;
    char channel[TL_SOFT_CHANNEL];
    m->at = e->at;
    m->last = e->last;
    if (e->has_time)
        TL_SET(m, time, e->time);
    m->source = tl_reply_text(reply, e->source);
    if (e->has_channel)
        TL_SET(m, channel, tl_reply_text(reply, tl_soft_channel(e, channel)));
    if (e->form)
        TL_SET(m, form, tl_reply_text(reply, tl_port_form_name(e->form)));
    m->records = e->records;
    if (!e->is_text)
        TL_SET(m, size, e->size);
    m->text = tl_reply_text(reply, e->text); /* or `value`: the same member of a union */
    m->said_case =
        e->is_text ? TRACELAKE__V1__LOG_ENTRY__SAID_TEXT : TRACELAKE__V1__LOG_ENTRY__SAID_VALUE;
}

void tl_log_of(const Tracelake__V1__LogRequest *r, struct tl_soft_request *out)
{
    *out = (struct tl_soft_request){.trace = r->trace,
                                    .stream = r->stream,
                                    .unit = (enum tl_range_unit)r->unit,
                                    .from = r->begin,
                                    .to = tl_end_of(r->to),
                                    .limit = r->limit,
                                    .last = r->last,
                                    .one_channel = r->one_port,
                                    .channel = r->port};
}

int tl_answer_log(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                  struct tl_fail *fail)
{
    const Tracelake__V1__LogRequest *const r = request;
    struct tl_soft_request wanted;
    struct tl_soft_log log = {0};
    Tracelake__V1__LogReply *const m = tl_reply_begin(reply, &tracelake__v1__log_reply__descriptor);
    int rc = m ? tl_check_enum("unit", (unsigned)r->unit, TL_UNITS, fail) : TL_NOMEM;
    tl_log_of(r, &wanted);
    if (rc >= 0)
        rc = tl_lake_log(asker->lake, &wanted, &log, fail);
    if (rc >= 0) {
        m->more = log.more;
        TL_REPLY_ROWS(reply, m, entries, log_entry, log.entries, log.n, fill_entry);
    }
    tl_soft_log_fini(&log);
    return tl_reply_done(reply, rc);
}

/* ---- states and counters --------------------------------------------------------------------- */

static struct tl_lane_request lane_of(const Tracelake__V1__LaneRequest *r)
{
    return (struct tl_lane_request){
        .trace = r->trace,
        .stream = r->stream,
        .axis = (unsigned)r->axis < TL_UNITS ? (enum tl_range_unit)r->axis : TL_UNIT_BYTE,
        .from = r->begin,
        .to = tl_end_of(r->to),
        .columns = r->columns};
}

static void fill_state(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_state_run *const run = row;
    Tracelake__V1__StateRun *const m = message;
    m->begin = run->from;
    m->to = run->to;
    if (run->has_mode)
        TL_SET(m, mode, tl_reply_text(reply, run->mode_text));
    if (run->has_context)
        TL_SET(m, context, run->context);
    if (run->has_vmid)
        TL_SET(m, vmid, run->vmid);
    if (run->name[0])
        TL_SET(m, name, tl_reply_text(reply, run->name));
    if (run->mixed)
        TL_SET(m, mixed, true);
}

int tl_answer_states(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                     struct tl_fail *fail)
{
    const struct tl_lane_request wanted = lane_of(request);
    struct tl_states states = {0};
    Tracelake__V1__StatesReply *const m =
        tl_reply_begin(reply, &tracelake__v1__states_reply__descriptor);
    const int rc = m ? tl_lake_states(asker->lake, &wanted, &states, fail) : TL_NOMEM;
    if (rc >= 0) {
        m->sampled = states.sampled;
        TL_REPLY_ROWS(reply, m, runs, state_run, states.runs, states.n, fill_state);
    }
    tl_states_fini(&states);
    return tl_reply_done(reply, rc);
}

/* An array with one member of each column, at this offset. */
static uint64_t *column_of(struct tl_reply *reply, const struct tl_counters *counters,
                           size_t member, size_t *n)
{
    uint64_t *const values = tl_reply_take(reply, (counters->n + 1) * sizeof *values);
    for (*n = 0; values && *n < counters->n; ++*n) {
        const char *const column = (const char *)&counters->p[*n];
        values[*n] = *(const uint64_t *)(column + member);
    }
    return values;
}

static void fill_counters(struct tl_reply *reply, Tracelake__V1__CountersReply *m,
                          const struct tl_counters *c)
{
    m->sampled = c->sampled;
    m->begin = c->from;
    m->to = c->to;
    m->insns = column_of(reply, c, offsetof(struct tl_counter, insns), &m->n_insns);
    if (c->has_time)
        m->time = column_of(reply, c, offsetof(struct tl_counter, time), &m->n_time);
    if (!c->has_cycles)
        return;
    m->cycles = column_of(reply, c, offsetof(struct tl_counter, cycles), &m->n_cycles);
    m->cycle_insns =
        column_of(reply, c, offsetof(struct tl_counter, cycle_insns), &m->n_cycle_insns);
}

int tl_answer_counters(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                       struct tl_fail *fail)
{
    const struct tl_lane_request wanted = lane_of(request);
    struct tl_counters counters = {0};
    Tracelake__V1__CountersReply *const m =
        tl_reply_begin(reply, &tracelake__v1__counters_reply__descriptor);
    const int rc = m ? tl_lake_counters(asker->lake, &wanted, &counters, fail) : TL_NOMEM;
    if (rc >= 0)
        fill_counters(reply, m, &counters);
    tl_counters_fini(&counters);
    return tl_reply_done(reply, rc);
}

/* ---- hits of a search ------------------------------------------------------------------------ */

int tl_answer_hits(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                   struct tl_fail *fail)
{
    const Tracelake__V1__HitsRequest *const r = request;
    const struct tl_lane_request wanted = {
        .trace = r->trace,
        .stream = r->stream,
        .axis = (unsigned)r->axis < TL_UNITS ? (enum tl_range_unit)r->axis : TL_UNIT_BYTE,
        .from = r->begin,
        .to = tl_end_of(r->to),
        .columns = r->columns};
    struct tl_hit_columns columns = {0};
    Tracelake__V1__HitsReply *const m =
        tl_reply_begin(reply, &tracelake__v1__hits_reply__descriptor);
    const int rc =
        m ? tl_lake_hit_columns(asker->lake, &wanted, r->text, &columns, fail) : TL_NOMEM;
    if (rc >= 0) {
        m->begin = columns.from;
        m->to = columns.to;
        m->total = columns.total;
        m->hits = tl_reply_take(reply, (columns.n + 1) * sizeof *m->hits);
        m->n_hits = m->hits ? columns.n : 0;
        for (size_t i = 0; i < m->n_hits; i++)
            m->hits[i] = columns.hits[i];
    }
    tl_hit_columns_fini(&columns);
    return tl_reply_done(reply, rc);
}
