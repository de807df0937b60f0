/* SPDX-License-Identifier: MIT */
/*
 * Notes over RPC and HTTP. Both are in one file because they share the conversion, and little else
 * is to be said.
 */
#include "rpc/notes.h"

#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include "tracelake/v1/catalog.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts are borrowed from the row. */
static void fill(struct tl_note *note, Tracelake__V1__Note *out)
{
    tracelake__v1__note__init(out);
    out->id = note->id;
    out->stream = note->stream;
    out->at = note->at;
    out->to = note->to;
    out->text = note->text;
    out->has_time = note->has_time;
    out->time = note->time;
    out->time_to = note->time_to;
    out->created_ns = note->created_ns;
    out->updated_ns = note->updated_ns;
}

static int take_text(struct tl_note *note, const char *stream, struct tl_bytes text,
                     struct tl_fail *fail)
{
    if (text.n >= sizeof note->text)
        return tl_fail_set(fail, TL_USAGE, "a note of %zu bytes; at most %zu", text.n,
                           sizeof note->text - 1);
    if (strlen(stream) >= sizeof note->stream)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no stream of this name");
    snprintf(note->stream, sizeof note->stream, "%s", stream);
    memcpy(note->text, text.p, text.n);
    note->text[text.n] = '\0';
    return TL_OK;
}

/* ---- RPC --------------------------------------------------------------------------------------
 */

int tl_run_list_notes(struct tl_call *call, const void *message)
{
    const Tracelake__V1__ListNotesRequest *const r = message;
    Tracelake__V1__ListNotesReply reply = TRACELAKE__V1__LIST_NOTES_REPLY__INIT;
    struct tl_note *notes = NULL;
    size_t n = 0;
    int rc = tl_lake_notes(tl_call_rpc(call)->lake, r->trace, &notes, &n, tl_call_fail(call));
    if (rc < 0)
        return tl_explain(tl_call_fail(call), rc, r->trace, NULL);
    Tracelake__V1__Note *const rows = calloc(n + 1, sizeof *rows);
    reply.notes = calloc(n + 1, sizeof *reply.notes);
    rc = rows && reply.notes ? TL_OK : TL_NOMEM;
    for (; rc == TL_OK && reply.n_notes < n; reply.n_notes++) {
        fill(&notes[reply.n_notes], &rows[reply.n_notes]);
        reply.notes[reply.n_notes] = &rows[reply.n_notes];
    }
    if (rc == TL_OK)
        rc = tl_call_send(call, &reply.base);
    free(reply.notes);
    free(rows);
    free(notes);
    return rc;
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

/* ---- HTTP -------------------------------------------------------------------------------------
 */

static void write_note(struct tl_jsonout *j, const struct tl_note *note)
{
    tl_jsonout_open(j, '{');
    tl_webjson_u64(j, "id", note->id);
    tl_webjson_text(j, "stream", note->stream);
    tl_webjson_u64(j, "at", note->at);
    tl_webjson_u64(j, "to", note->to);
    if (note->has_time) {
        tl_webjson_u64(j, "time", note->time);
        tl_webjson_u64(j, "time_to", note->time_to);
    }
    tl_webjson_i64(j, "created_ns", note->created_ns);
    tl_webjson_i64(j, "updated_ns", note->updated_ns);
    tl_webjson_text(j, "text", note->text);
    tl_jsonout_close(j, '}');
}

int tl_web_notes(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_note *notes = NULL;
    size_t n = 0;
    const int rc =
        tl_lake_notes(tl_web_lake(request), request->part[0], &notes, &n, &response->fail);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_jsonout_open(&json, '[');
    for (size_t i = 0; i < n; i++)
        write_note(&json, &notes[i]);
    tl_jsonout_close(&json, ']');
    free(notes);
    return tl_webjson_respond(response, &json);
}

int tl_web_put_note(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_note note = {0};
    struct tl_fail *const fail = &response->fail;
    const char *const stream = tl_http_query(request, "stream");
    const struct tl_http_arg args[] = {{"id", TL_HTTP_U64, &note.id},
                                       {"at", TL_HTTP_U64, &note.at},
                                       {"at", TL_HTTP_U64, &note.to}, /* unless there is: */
                                       {"to", TL_HTTP_U64, &note.to},
                                       {0}};
    int rc = tl_http_args(request, args, fail);
    if (rc == TL_OK)
        rc = take_text(&note, stream ? stream : "", request->body, fail);
    if (rc == TL_OK)
        rc = tl_lake_put_note(tl_web_lake(request), request->part[0], &note, fail);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    write_note(&json, &note);
    return tl_webjson_respond(response, &json);
}

int tl_web_delete_note(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_fail *const fail = &response->fail;
    uint64_t id;
    int rc = tl_http_parse_number(request->part[1], "the note", &id, fail);
    if (rc == TL_OK)
        rc = tl_lake_remove_note(tl_web_lake(request), request->part[0], id, fail);
    return rc < 0 ? tl_web_explain(request, response, rc) : tl_web_respond_nothing(response);
}
