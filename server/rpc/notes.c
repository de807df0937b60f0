/* SPDX-License-Identifier: MIT */
/*
 * Notes over RPC and HTTP. Both are in one file because they share the conversion, and little else
 * is to be said.
 */
#include "rpc/notes.h"
#include "base/members.h"

#include "lake_rows.h"
#include "lake_traces.h"
#include "rpc/lookups.h"
#include "rpc/lookups_service.h"
#include "rpc/webapi.h"
#include "rpc/webargs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts are borrowed from the row. */
static void fill(struct tl_note *note, Tracelake__V1__Note *out)
{
    tracelake__v1__note__init(out);
    TL_COPY_MEMBERS(out, note, id, stream, at, to, text);
    out->timed = note->has_time;
    if (note->has_time) {
        TL_SET(out, time, note->time);
        TL_SET(out, time_to, note->time_to);
    }
    out->created_ns = note->created_ns;
    out->updated_ns = note->updated_ns;
}

static void fill_row(struct tl_reply *reply, void *message, const void *row)
{
    (void)reply; /* has the row */
    fill((struct tl_note *)(uintptr_t)row, message);
}

int tl_answer_notes(const struct tl_asker *asker, const void *request, struct tl_reply *reply,
                    struct tl_fail *fail)
{
    const Tracelake__V1__ListNotesRequest *const r = request;
    struct tl_note *notes = NULL;
    size_t n = 0;
    Tracelake__V1__ListNotesReply *const m =
        tl_reply_begin(reply, &tracelake__v1__list_notes_reply__descriptor);
    const int rc = m ? tl_lake_notes(asker->lake, r->trace, &notes, &n, fail) : TL_NOMEM;
    tl_reply_keep(reply, notes);
    if (rc >= 0 && !reply->failed)
        TL_REPLY_ROWS(reply, m, notes, note, notes, n, fill_row);
    return tl_reply_done(reply, rc);
}

/* Set the text and the stream's name. TL_USAGE, TL_NOTFOUND. */
static int take_text(struct tl_note *note, const char *stream, struct tl_bytes text,
                     struct tl_fail *fail)
{
    if (text.n >= sizeof note->text)
        return tl_fail_set(fail, TL_USAGE, "a note of %zu bytes; at most %zu", text.n,
                           sizeof note->text - 1);
    if (!*stream)
        return tl_fail_set(fail, TL_USAGE, "on which stream? Name it, as in stream=cs.10");
    if (strlen(stream) >= sizeof note->stream)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no stream of this name");
    snprintf(note->stream, sizeof note->stream, "%s", stream);
    memcpy(note->text, text.p, text.n);
    note->text[text.n] = '\0';
    return TL_OK;
}

/* ---- RPC ------------------------------------------------------------------------------------- */

int tl_run_list_notes(struct tl_call *call, const void *message)
{
    return tl_call_answer(call, message, tl_answer_notes);
}

int tl_run_put_note(struct tl_call *call, const void *message)
{
    const Tracelake__V1__PutNoteRequest *const r = message;
    const Tracelake__V1__Note *const wanted = r->note;
    struct tl_fail *const fail = tl_call_fail(call);
    if (!wanted)
        return tl_fail_set(fail, TL_USAGE, "which note?");
    struct tl_note note = {.id = wanted->id, .at = wanted->at, .to = wanted->to};
    Tracelake__V1__Note reply;
    int rc =
        take_text(&note, wanted->stream,
                  (struct tl_bytes){(const uint8_t *)wanted->text, strlen(wanted->text)}, fail);
    if (rc == TL_OK)
        rc = tl_lake_put_note(tl_call_rpc(call)->lake, r->trace, &note, fail);
    if (rc < 0)
        return tl_explain(fail, rc, r->trace, NULL);
    fill(&note, &reply);
    return tl_call_send(call, &reply.base);
}

int tl_run_delete_note(struct tl_call *call, const void *message)
{
    const Tracelake__V1__DeleteNoteRequest *const r = message;
    const Tracelake__V1__DeleteNoteReply reply = TRACELAKE__V1__DELETE_NOTE_REPLY__INIT;
    const int rc =
        tl_lake_remove_note(tl_call_rpc(call)->lake, r->trace, r->id, tl_call_fail(call));
    return rc < 0 ? tl_explain(tl_call_fail(call), rc, r->trace, NULL)
                  : tl_call_send(call, &reply.base);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

int tl_web_put_note(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_note note = {0};
    struct tl_fail *const fail = &response->fail;
    Tracelake__V1__Note asked = TRACELAKE__V1__NOTE__INIT, reply;
    Tracelake__V1__PutNoteRequest r = TRACELAKE__V1__PUT_NOTE_REQUEST__INIT;
    r.note = &asked;
    int rc = tl_web_fill(request, &r, fail);
    if (!tl_http_query(request, "to"))
        asked.to = asked.at;
    if (rc == TL_OK)
        rc = take_text(&note, asked.stream, request->body, fail);
    TL_COPY_MEMBERS(&note, &asked, id, at, to);
    if (rc == TL_OK)
        rc = tl_lake_put_note(tl_web_lake(request), r.trace, &note, fail);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    fill(&note, &reply);
    return tl_web_respond(request, response, &reply.base, false);
}

int tl_web_delete_note(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__DeleteNoteRequest r = TRACELAKE__V1__DELETE_NOTE_REQUEST__INIT;
    struct tl_fail *const fail = &response->fail;
    int rc = tl_web_fill(request, &r, fail);
    if (rc == TL_OK)
        rc = tl_lake_remove_note(tl_web_lake(request), r.trace, r.id, fail);
    return rc < 0 ? tl_web_explain(request, response, rc) : tl_web_respond_nothing(response);
}
