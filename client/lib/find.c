/* SPDX-License-Identifier: MIT */
/*
 * Sends searches, and converts hits. The position after which to continue is part of the answer, so
 * that a search of any length can be resumed.
 */
#include "ask.h"
#include "base/members.h"
#include "position.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_what(Tracelake__V1__FindRequest *request, Tracelake__V1__PcRange *pc,
                     const struct tracelake_query *query)
{
    static const Tracelake__V1__FindRequest__WhatCase cases[] = {
        [TRACELAKE_FIND_PC] = TRACELAKE__V1__FIND_REQUEST__WHAT_PC,
        [TRACELAKE_FIND_SYMBOL] = TRACELAKE__V1__FIND_REQUEST__WHAT_SYMBOL,
        [TRACELAKE_FIND_EVENT] = TRACELAKE__V1__FIND_REQUEST__WHAT_EVENT,
        [TRACELAKE_FIND_CALL] = TRACELAKE__V1__FIND_REQUEST__WHAT_CALL,
        [TRACELAKE_FIND_MNEMONIC] = TRACELAKE__V1__FIND_REQUEST__WHAT_MNEMONIC,
        [TRACELAKE_FIND_OPCODE] = TRACELAKE__V1__FIND_REQUEST__WHAT_OPCODE,
        [TRACELAKE_FIND_TEXT] = TRACELAKE__V1__FIND_REQUEST__WHAT_TEXT,
        [TRACELAKE_FIND_LINE] = TRACELAKE__V1__FIND_REQUEST__WHAT_LINE,
    };
    if ((size_t)query->kind >= sizeof cases / sizeof *cases)
        return;
    request->what_case = cases[query->kind];
    if (query->kind == TRACELAKE_FIND_PC) {
        pc->begin = query->pc_from;
        pc->to = query->pc_to;
        request->pc = pc;
    } else {
        request->symbol = tl_ask_text(query->text); /* all text members share this storage */
    }
}

static int copy_hits(const Tracelake__V1__FindReply *reply, struct tracelake_found *found)
{
    found->hits = calloc(reply->n_hits + 1, sizeof *found->hits);
    if (!found->hits)
        return TRACELAKE_NOMEM;
    for (size_t i = 0; i < reply->n_hits; i++) {
        struct tracelake_hit *const hit = &found->hits[i];
        tl_client_position(&hit->at, reply->hits[i]->at);
        hit->pc = reply->hits[i]->pc;
        snprintf(hit->text, sizeof hit->text, "%s", reply->hits[i]->text);
        snprintf(hit->stream, sizeof hit->stream, "%s", reply->hits[i]->stream);
    }
    found->n = reply->n_hits;
    TL_COPY_MEMBERS(found, reply, more, total, before, skip, functions);
    snprintf(found->what, sizeof found->what, "%s", reply->what);
    found->behind_from = reply->opt_behind_from_case ? reply->behind_from : TRACELAKE_END;
    snprintf(found->behind_stream, sizeof found->behind_stream, "%s",
             reply->opt_behind_stream_case ? reply->behind_stream : "");
    return TRACELAKE_OK;
}

void tracelake_found_free(struct tracelake_found *found)
{
    if (found)
        free(found->hits);
    free(found);
}

int tracelake_search(struct tracelake *lake, const struct tracelake_query *query,
                     struct tracelake_found **out, struct tracelake_error *error)
{
    Tracelake__V1__FindRequest request = TRACELAKE__V1__FIND_REQUEST__INIT;
    Tracelake__V1__PcRange pc = TRACELAKE__V1__PC_RANGE__INIT;
    Tracelake__V1__FindReply *reply;
    request.trace = tl_ask_text(query->trace);
    request.stream = tl_ask_text(query->stream);
    request.begin = query->from;
    request.to = tl_ask_end_of(query->to);
    TL_COPY_MEMBERS(&request, query, limit, at, skip, backward, count);
    request.near = tl_ask_text(query->near);
    set_what(&request, &pc, query);
    int result = tl_ask_once(lake, "/tracelake.v1.Ranges/Find", 0, &request.base,
                             &tracelake__v1__find_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    struct tracelake_found *const found = calloc(1, sizeof *found);
    result = found ? copy_hits(reply, found) : TRACELAKE_NOMEM;
    tracelake__v1__find_reply__free_unpacked(reply, NULL);
    if (result < 0) {
        tracelake_found_free(found);
        return tl_client_fail(error, result, "out of memory");
    }
    *out = found;
    return TRACELAKE_OK;
}

int tracelake_find(struct tracelake *lake, const struct tracelake_query *query,
                   struct tracelake_hit **hits, size_t *n, bool *more,
                   struct tracelake_error *error)
{
    struct tracelake_found *found;
    const int result = tracelake_search(lake, query, &found, error);
    if (result < 0)
        return result;
    *hits = found->hits;
    *n = found->n;
    *more = found->more;
    free(found);
    return TRACELAKE_OK;
}
