/* SPDX-License-Identifier: MIT */
/* Places as messages: positions in all units, hits of searches, what runs at a time. */
#include "base/members.h"
#include "lake_find.h"
#include "lake_insns.h"
#include "lake_tiles.h"
#include "rpc/lookups.h"
#include "rpc/rpcint.h"

#include <string.h>

/* ---- positions ------------------------------------------------------------------------------- */

static Tracelake__V1__Position *position_of(struct tl_reply *reply, const struct tl_position *at)
{
    Tracelake__V1__Position *const m = tl_reply_new(reply, &tracelake__v1__position__descriptor);
    if (!m)
        return NULL;
    m->insn = at->insn;
    m->byte = at->byte;
    m->timed = at->has_time;
    if (!at->has_time)
        return m;
    TL_SET(m, time, at->time);
    if (at->time_to)
        TL_SET(m, time_from, at->time_from);
    if (at->time_to && at->time_to != UINT64_MAX)
        TL_SET(m, time_to, at->time_to);
    return m;
}

int tl_answer_locate(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                     struct tl_fail *fail)
{
    const Tracelake__V1__LocateRequest *const r = request;
    struct tl_position at = {0};
    int rc = tl_check_enum("unit", (unsigned)r->unit, TL_UNITS, fail);
    if (rc >= 0)
        rc = tl_lake_locate(asker->lake, r->trace, r->stream, (enum tl_range_unit)r->unit, r->at,
                            &at, fail);
    if (rc < 0)
        return rc;
    Tracelake__V1__Position *const m = position_of(reply, &at);
    reply->message = m ? &m->base : NULL;
    return tl_reply_done(reply, rc);
}

/* ---- what runs at a time --------------------------------------------------------------------- */

struct moment {
    struct tl_reply *reply;
    Tracelake__V1__Moment *out;
};

static int add_row(void *context, const struct tl_insn_row *row)
{
    struct moment *const moment = context;
    Tracelake__V1__Insn *const m = tl_reply_new(moment->reply, &tracelake__v1__insn__descriptor);
    if (m)
        tl_fill_insn(moment->reply, m, row);
    moment->out->row = m;
    return tl_reply_done(moment->reply, TL_OK);
}

int tl_answer_moments(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                      struct tl_fail *fail)
{
    const Tracelake__V1__LocateRequest *const r = request;
    struct moment moment = {reply, tl_reply_begin(reply, &tracelake__v1__moment__descriptor)};
    struct tl_position at = {0};
    int rc = moment.out ? tl_lake_locate(asker->lake, r->trace, r->stream,
                                         (enum tl_range_unit)r->unit, r->at, &at, fail)
                        : TL_NOMEM;
    if (rc >= 0 && at.insn > 0 && at.time > r->at)
        rc = tl_lake_locate(asker->lake, r->trace, r->stream, TL_UNIT_INSN, at.insn - 1, &at, fail);
    if (rc < 0)
        return rc;
    moment.out->at = position_of(reply, &at);
    rc = tl_lake_insns(asker->lake, r->trace, r->stream, at.insn, 1, add_row, &moment, fail);
    return tl_reply_done(reply, rc);
}

/* ---- searches -------------------------------------------------------------------------------- */

/* What is searched. TL_USAGE. */
static int take_what(const Tracelake__V1__FindRequest *r, struct tl_find_request *out,
                     struct tl_fail *fail)
{
    static const enum tl_find_kind kinds[] = {
        [TRACELAKE__V1__FIND_REQUEST__WHAT_PC] = TL_FIND_PC,
        [TRACELAKE__V1__FIND_REQUEST__WHAT_SYMBOL] = TL_FIND_SYMBOL,
        [TRACELAKE__V1__FIND_REQUEST__WHAT_EVENT] = TL_FIND_EVENT,
        [TRACELAKE__V1__FIND_REQUEST__WHAT_CALL] = TL_FIND_CALL,
        [TRACELAKE__V1__FIND_REQUEST__WHAT_MNEMONIC] = TL_FIND_MNEMONIC,
        [TRACELAKE__V1__FIND_REQUEST__WHAT_OPCODE] = TL_FIND_OPCODE,
        [TRACELAKE__V1__FIND_REQUEST__WHAT_TEXT] = TL_FIND_TEXT,
        [TRACELAKE__V1__FIND_REQUEST__WHAT_LINE] = TL_FIND_LINE,
    };
    if (r->what_case == 0)
        return tl_fail_set(fail, TL_USAGE, "find what? Give a pc, symbol or event");
    out->kind = kinds[r->what_case];
    if (out->kind == TL_FIND_PC) {
        out->pc_from = r->pc->begin;
        out->pc_to = r->pc->to;
    } else {
        out->text = r->symbol; /* all texts share this storage */
    }
    return TL_OK;
}

static void fill_hit(struct tl_reply *reply, void *message, const void *row)
{
    const struct tl_hit *const hit = row;
    Tracelake__V1__Hit *const m = message;
    m->at = position_of(reply, &hit->at);
    m->pc = hit->pc;
    m->text = tl_reply_text(reply, hit->text);
    m->stream = tl_reply_text(reply, hit->stream);
}

/* How many of the hits fit into a message. */
static size_t fitting(const struct tl_found *found)
{
    enum { OVERHEAD = 64 }; /* numbers and tags, at most */
    size_t n = 0;
    for (size_t bytes = 0; n < found->n && bytes < TL_REPLY_BYTES; n++)
        bytes += strlen(found->hits[n].text) + strlen(found->hits[n].stream) + OVERHEAD;
    return n;
}

static void fill_found(struct tl_reply *reply, Tracelake__V1__FindReply *m,
                       const struct tl_found *found, bool counted)
{
    const size_t n = fitting(found);
    m->what = tl_reply_text(reply, found->what);
    TL_REPLY_ROWS(reply, m, hits, hit, found->hits, n, fill_hit);
    m->more = found->more || n < found->n;
    if (m->more && n > 0)
        TL_SET(m, skip, found->hits[n - 1].nth);
    if (found->functions > 0)
        TL_SET(m, functions, found->functions);
    if (counted) {
        TL_SET(m, total, found->total);
        TL_SET(m, before, found->before);
    }
    if (found->behind) {
        TL_SET(m, behind_stream, tl_reply_text(reply, found->behind_stream));
        TL_SET(m, behind_from, found->behind_from);
    }
}

int tl_answer_find(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                   struct tl_fail *fail)
{
    const Tracelake__V1__FindRequest *const r = request;
    struct tl_find_request wanted = {
        .from = r->begin, .to = tl_end_of(r->to), .near = *r->near ? r->near : NULL};
    struct tl_found found = {0};
    Tracelake__V1__FindReply *const m =
        tl_reply_begin(reply, &tracelake__v1__find_reply__descriptor);
    TL_COPY_MEMBERS(&wanted, r, trace, stream, at, skip, backward, count, limit);
    int rc = m ? take_what(r, &wanted, fail) : TL_NOMEM;
    if (rc >= 0)
        rc = tl_lake_find(asker->lake, &wanted, &found, fail);
    if (rc >= 0)
        fill_found(reply, m, &found, r->count);
    tl_found_fini(&found);
    return tl_reply_done(reply, rc);
}

/* ---- names of functions ---------------------------------------------------------------------- */

int tl_answer_names(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                    struct tl_fail *fail)
{
    const Tracelake__V1__GetTraceRequest *const r = request;
    struct tl_functions functions = {0};
    Tracelake__V1__FunctionNames *const m =
        tl_reply_begin(reply, &tracelake__v1__function_names__descriptor);
    const int rc = m ? tl_lake_functions(asker->lake, r->trace, &functions, fail) : TL_NOMEM;
    Tracelake__V1__FunctionName *const names =
        tl_reply_take(reply, (functions.n + 1) * sizeof *names);
    if (m)
        m->functions = tl_reply_take(reply, (functions.n + 1) * sizeof *m->functions);
    for (size_t i = 0; !reply->failed && i < functions.n; i++) {
        tracelake__v1__function_name__init(&names[i]);
        names[i].id = i;
        names[i].name = tl_reply_text(reply, functions.p[i].name);
        names[i].pc = functions.p[i].pc;
        m->functions[m->n_functions++] = &names[i];
    }
    tl_functions_fini(&functions);
    return tl_reply_done(reply, rc);
}
