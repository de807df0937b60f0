/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes notes at places of a trace. Their texts are copied, since people keep a list
 * longer than a message.
 */
#include "ask.h"
#include "base/members.h"
#include "tracelake/v1/catalog.pb-c.h"

#include <stdlib.h>
#include <string.h>

static int nomem(struct tracelake_error *error)
{
    return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}

static int copy_note(struct tracelake_note *out, const Tracelake__V1__Note *from)
{
    TL_COPY_MEMBERS(out, from, id, at, to, time, time_to, created_ns, updated_ns);
    out->has_time = from->timed;
    out->stream = strdup(from->stream);
    out->text = strdup(from->text);
    return out->stream && out->text ? TRACELAKE_OK : TRACELAKE_NOMEM;
}

void tracelake_notes_free(struct tracelake_notes *notes)
{
    if (!notes)
        return;
    for (size_t i = 0; i < notes->n; i++) {
        free(notes->notes[i].stream);
        free(notes->notes[i].text);
    }
    free(notes->notes);
    free(notes);
}

int tracelake_list_notes(struct tracelake *lake, const char *trace, struct tracelake_notes **out,
                         struct tracelake_error *error)
{
    Tracelake__V1__ListNotesRequest request = TRACELAKE__V1__LIST_NOTES_REQUEST__INIT;
    Tracelake__V1__ListNotesReply *reply;
    request.trace = tl_ask_text(trace);
    int result = tl_ask_once(lake, "/tracelake.v1.Catalog/ListNotes", 0, &request.base,
                             &tracelake__v1__list_notes_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    struct tracelake_notes *const notes = calloc(1, sizeof *notes);
    if (notes)
        notes->notes = calloc(reply->n_notes + 1, sizeof *notes->notes);
    result = notes && notes->notes ? TRACELAKE_OK : TRACELAKE_NOMEM;
    for (size_t i = 0; i < reply->n_notes && result == TRACELAKE_OK; i++)
        result = copy_note(&notes->notes[notes->n++], reply->notes[i]);
    tracelake__v1__list_notes_reply__free_unpacked(reply, NULL);
    if (result < 0) {
        tracelake_notes_free(notes);
        return nomem(error);
    }
    *out = notes;
    return TRACELAKE_OK;
}

int tracelake_put_note(struct tracelake *lake, const char *trace, const struct tracelake_note *note,
                       uint64_t *id, struct tracelake_error *error)
{
    Tracelake__V1__PutNoteRequest request = TRACELAKE__V1__PUT_NOTE_REQUEST__INIT;
    Tracelake__V1__Note wanted = TRACELAKE__V1__NOTE__INIT;
    Tracelake__V1__Note *reply;
    TL_COPY_MEMBERS(&wanted, note, id, at, to);
    wanted.stream = tl_ask_text(note->stream);
    wanted.text = tl_ask_text(note->text);
    request.trace = tl_ask_text(trace);
    request.note = &wanted;
    const int result = tl_ask_once(lake, "/tracelake.v1.Catalog/PutNote", 0, &request.base,
                                   &tracelake__v1__note__descriptor, &reply, error);
    if (result < 0)
        return result;
    if (id)
        *id = reply->id;
    tracelake__v1__note__free_unpacked(reply, NULL);
    return TRACELAKE_OK;
}

int tracelake_delete_note(struct tracelake *lake, const char *trace, uint64_t id,
                          struct tracelake_error *error)
{
    Tracelake__V1__DeleteNoteRequest request = TRACELAKE__V1__DELETE_NOTE_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.id = id;
    return tl_ask_done(lake, "/tracelake.v1.Catalog/DeleteNote", &request.base,
                       &tracelake__v1__delete_note_reply__descriptor, error);
}
