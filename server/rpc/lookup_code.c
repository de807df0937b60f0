/* SPDX-License-Identifier: MIT */
/*
 * Makes messages of statistics, rows of disassembly, sources and representative regions. Texts are
 * borrowed from the lake's answer, which lives until the message is sent.
 */
#include "base/members.h"
#include "lake_insns.h"
#include "lake_stats.h"
#include "rpc/lookups.h"
#include "rpc/rpcint.h"

#include <string.h>

/* ---- statistics ------------------------------------------------------------------------------ */

static void fill_stats_function(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_stats_function *const f = row;
    Tracelake__V1__StatsFunction *const m = message;
    m->name = tl_reply_text(reply, f->name ? f->name : "(no symbol)");
    TL_COPY_MEMBERS(m, f, pc, insns, calls);
}

static void fill_silent(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_stats_source *const s = row;
    Tracelake__V1__SilentSource *const m = message;
    m->name = tl_reply_text(reply, s->name);
    m->device = tl_reply_text(reply, s->device);
}

/* Entries of all maps from names to numbers have the same members. */
static void fill_count(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_stats_count *const c = row;
    Tracelake__V1__StatsReply__MixEntry *const m = message;
    m->key = tl_reply_text(reply, c->name);
    m->value = c->n;
}

/* Counts are sorted by group. */
static void fill_counts(struct tl_reply *reply, void *field, size_t *number,
                        const ProtobufCMessageDescriptor *kind, const struct tl_stats *stats,
                        enum tl_stats_group group)
{
    const struct tl_stats_count *const counts = stats->counts;
    size_t begin = 0;
    while (begin < stats->n_counts && counts[begin].group != group)
        begin++;
    size_t end = begin;
    while (end < stats->n_counts && counts[end].group == group)
        end++;
    tl_reply_rows(reply, field, number, kind, counts + begin, end - begin, sizeof *counts,
                  fill_count);
}

#define FILL_COUNTS(name, group)                                                                   \
    fill_counts(reply, &m->name, &m->n_##name,                                                     \
                &tracelake__v1__stats_reply__##name##_entry__descriptor, s, group)

static void fill_lost(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_stats_lost *const l = row;
    Tracelake__V1__StatsReply__LostEntry *const m = message;
    m->key = tl_reply_text(reply, l->name);
    m->value = tl_reply_new(reply, &tracelake__v1__lost_time__descriptor);
    if (!m->value)
        return;
    TL_COPY_MEMBERS(m->value, l, n, total, longest, longest_at);
}

static void fill_stats(struct tl_reply *reply, Tracelake__V1__StatsReply *m,
                       const struct tl_stats *s, size_t functions)
{
    m->begin = s->from;
    TL_COPY_MEMBERS(m, s, to, insns, taken);
    TL_REPLY_ROWS(reply, m, functions, stats_function, s->functions,
                  s->n_functions < functions ? s->n_functions : functions, fill_stats_function);
    m->functions_run = s->n_run;
    if (s->behind)
        TL_SET(m, behind, true);
    FILL_COUNTS(mix, TL_STATS_MIX);
    FILL_COUNTS(modes, TL_STATS_MODE);
    FILL_COUNTS(items, TL_STATS_ITEM);
    FILL_COUNTS(gaps, TL_STATS_GAP);
    FILL_COUNTS(records, TL_STATS_RECORD);
    TL_REPLY_ROWS(reply, m, lost, stats_reply__lost_entry, s->lost, s->n_lost, fill_lost);
    TL_REPLY_ROWS(reply, m, silent, silent_source, s->silent, s->n_silent, fill_silent);
    if (s->reads + s->writes > 0 &&
        (m->memory = tl_reply_new(reply, &tracelake__v1__memory_accesses__descriptor))) {
        m->memory->reads = s->reads;
        m->memory->writes = s->writes;
    }
}

int tl_answer_stats(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                    struct tl_fail *fail)
{
    enum { FUNCTIONS = 50 };
    const Tracelake__V1__StatsRequest *const r = request;
    struct tl_stats stats = {0};
    Tracelake__V1__StatsReply *const m =
        tl_reply_begin(reply, &tracelake__v1__stats_reply__descriptor);
    const int rc = m ? tl_lake_stats(asker->lake, r->trace, *r->stream ? r->stream : NULL, r->begin,
                                     tl_end_of(r->to), &stats, fail)
                     : TL_NOMEM;
    if (rc >= 0)
        fill_stats(reply, m, &stats, r->functions ? r->functions : FUNCTIONS);
    tl_stats_fini(&stats);
    return tl_reply_done(reply, rc);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void fill_inlined(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_insn_inlined *const inlined = row;
    Tracelake__V1__InlinedFunction *const m = message;
    m->function = tl_reply_text(reply, inlined->function);
    if (!*inlined->file)
        return;
    TL_SET(m, file, tl_reply_text(reply, inlined->file));
    TL_SET(m, line, inlined->line);
}

static void fill_events(struct tl_reply *reply, Tracelake__V1__Insn *m, const char *lines)
{
    size_t n = 0;
    for (const char *p = lines; *p; p++)
        n += *p == '\n' || !p[1];
    m->events = tl_reply_take(reply, (n + 1) * sizeof *m->events);
    for (size_t length; m->events && m->n_events < n; lines += length + 1) {
        length = strcspn(lines, "\n");
        m->events[m->n_events++] = tl_reply_bytes(reply, lines, length);
    }
}

void tl_fill_insn(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_insn_row *const insn = row;
    Tracelake__V1__Insn *const m = message;
    m->insn = insn->insn;
    m->pc = insn->pc;
    if (*insn->function)
        TL_SET(m, function, tl_reply_text(reply, insn->function));
    if (*insn->mode)
        TL_SET(m, mode, tl_reply_text(reply, insn->mode));
    if (*insn->encoding)
        TL_SET(m, encoding, tl_reply_text(reply, insn->encoding));
    m->text = tl_reply_text(reply, insn->text);
    if (insn->has_time)
        TL_SET(m, time, insn->time);
    if (*insn->file) {
        TL_SET(m, file, tl_reply_text(reply, insn->file));
        TL_SET(m, line, insn->line);
        if (insn->column)
            TL_SET(m, column, insn->column);
    }
    if (insn->n_inlined > 0)
        TL_REPLY_ROWS(reply, m, inlined, inlined_function, insn->inlined, insn->n_inlined,
                      fill_inlined);
    if (*insn->events)
        fill_events(reply, m, insn->events);
}

struct rows {
    struct tl_reply *reply;
    Tracelake__V1__InsnsReply *out; /* has room for all */
    size_t bytes;
};

static int add_row(void *context, const struct tl_insn_row *row)
{
    struct rows *const rows = context;
    if (rows->bytes > TL_REPLY_BYTES)
        return TL_EOF;
    Tracelake__V1__Insn *const m = tl_reply_new(rows->reply, &tracelake__v1__insn__descriptor);
    if (!m)
        return TL_NOMEM;
    tl_fill_insn(rows->reply, m, row);
    rows->out->insns[rows->out->n_insns++] = m;
    if (rows->reply->failed)
        return TL_NOMEM;
    rows->bytes += protobuf_c_message_get_packed_size(&m->base);
    return TL_OK;
}

int tl_answer_insns(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                    struct tl_fail *fail)
{
    enum { SOME = 100, MOST = 4096 };
    const Tracelake__V1__InsnsRequest *const r = request;
    const uint64_t all = r->to == 0         ? UINT64_MAX
                         : r->to > r->begin ? r->to - r->begin
                                            : 0,
                   wanted = r->count > 0 ? r->count
                            : r->to > 0  ? all
                                         : SOME,
                   most = wanted < all ? wanted : all;
    const uint32_t n = most < MOST ? (uint32_t)most : MOST;
    struct rows rows = {.reply = reply,
                        .out = tl_reply_begin(reply, &tracelake__v1__insns_reply__descriptor)};
    if (rows.out)
        rows.out->insns = tl_reply_take(reply, (n + 1) * sizeof *rows.out->insns);
    int rc = reply->failed ? TL_NOMEM
             : n == 0      ? TL_OK
                      : tl_lake_insns(asker->lake, r->trace, r->stream, r->begin, n, add_row, &rows,
                                      fail);
    return rc == TL_EOF ? TL_OK : rc;
}

int tl_answer_source(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                     struct tl_fail *fail)
{
    const Tracelake__V1__SourceRequest *const r = request;
    struct tl_source_file source = {0};
    Tracelake__V1__SourceReply *const m =
        tl_reply_begin(reply, &tracelake__v1__source_reply__descriptor);
    const int rc =
        m ? tl_lake_source(asker->lake, r->trace, r->stream, r->at, r->frame, &source, fail)
          : TL_NOMEM;
    if (rc >= 0) {
        m->file = tl_reply_text(reply, source.file);
        m->line = source.line;
        if (source.has_text)
            TL_SET(m, text, tl_reply_bytes(reply, (const char *)source.text.p, source.text.n));
        if (*source.why)
            TL_SET(m, why, tl_reply_text(reply, source.why));
    }
    tl_source_file_fini(&source);
    return tl_reply_done(reply, rc);
}

/* ---- representative regions ------------------------------------------------------------------ */

static void fill_region(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_simpoint *const p = row;
    Tracelake__V1__SimPointRegion *const m = message;
    (void)reply;
    m->begin = p->first;
    m->to = p->first + p->insns;
    TL_COPY_MEMBERS(m, p, interval, weight, intervals);
}

int tl_answer_simpoints(struct tl_lake *lake, const struct tl_simpoints_request *request,
                        struct tl_reply *reply, struct tl_fail *fail)
{
    struct tl_simpoints_found found = {0};
    Tracelake__V1__SimPoints *const m =
        tl_reply_begin(reply, &tracelake__v1__sim_points__descriptor);
    const int rc = m ? tl_lake_simpoints(lake, request, &found, fail) : TL_NOMEM;
    if (rc >= 0) {
        m->begin = found.from;
        m->to = found.to;
        m->interval = request->interval;
        m->intervals = found.intervals;
        TL_REPLY_ROWS(reply, m, regions, sim_point_region, found.p, found.n, fill_region);
    }
    tl_simpoints_found_fini(&found);
    return tl_reply_done(reply, rc);
}

int tl_answer_regions(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                      struct tl_fail *fail)
{
    const Tracelake__V1__SimPointsRequest *const r = request;
    const struct tl_simpoints_request wanted = {.trace = r->trace,
                                                .stream = r->stream,
                                                .from = r->begin,
                                                .to = tl_end_of(r->end),
                                                .interval = r->interval,
                                                .most = r->most ? r->most : TL_SIMPOINTS};
    return tl_answer_simpoints(asker->lake, &wanted, reply, fail);
}
