/* SPDX-License-Identifier: MIT */
/*
 * Memory for messages that are answers. Memory of a reply is kept in a list and freed at once, so
 * that what fills messages has no errors to handle; a reply that ran out of it remembers that.
 */
#include "rpc/reply.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void tl_reply_free(struct tl_reply *reply)
{
    for (size_t i = 0; i < reply->n; i++)
        free(reply->memory[i]);
    free(reply->memory);
    *reply = (struct tl_reply){0};
}

static bool has_room(struct tl_reply *reply)
{
    const bool has = tl_grow(&reply->memory, &reply->cap, reply->n + 1, sizeof *reply->memory) >= 0;
    reply->failed |= !has;
    return has;
}

void *tl_reply_take(struct tl_reply *reply, size_t size)
{
    void *const p = has_room(reply) ? calloc(1, size) : NULL;
    if (p)
        reply->memory[reply->n++] = p;
    else
        reply->failed = true;
    return p;
}

void tl_reply_keep(struct tl_reply *reply, void *memory)
{
    if (!memory)
        return;
    if (has_room(reply))
        reply->memory[reply->n++] = memory;
    else
        free(memory);
}

void *tl_reply_new(struct tl_reply *reply, const ProtobufCMessageDescriptor *kind)
{
    void *const message = tl_reply_take(reply, kind->sizeof_message);
    if (message)
        protobuf_c_message_init(kind, message);
    return message;
}

void *tl_reply_begin(struct tl_reply *reply, const ProtobufCMessageDescriptor *kind)
{
    reply->message = tl_reply_new(reply, kind);
    return reply->message;
}

char *tl_reply_bytes(struct tl_reply *reply, const char *text, size_t n)
{
    char *const copy = tl_reply_take(reply, n + 1);
    if (copy) {
        memcpy(copy, text, n);
        tl_utf8_clean(copy);
    }
    return copy;
}

char *tl_reply_text(struct tl_reply *reply, const char *text)
{
    return tl_reply_bytes(reply, text, strlen(text));
}

void tl_reply_rows(struct tl_reply *reply, void *field, size_t *number,
                   const ProtobufCMessageDescriptor *kind, const void *rows, size_t n, size_t size,
                   tl_reply_fill *fill)
{
    void **const array = tl_reply_take(reply, (n + 1) * sizeof *array);
    memcpy(field, &array, sizeof array);
    for (*number = 0; array && *number < n; ++*number) {
        void *const message = tl_reply_new(reply, kind);
        if (!message)
            return;
        fill(reply, message, (const char *)rows + *number * size);
        array[*number] = message;
    }
}

void tl_reply_present(ProtobufCMessage *message, const void *member)
{
    const ProtobufCMessageDescriptor *const kind = message->descriptor;
    const size_t offset = (size_t)((const char *)member - (const char *)message);
    for (unsigned i = 0; i < kind->n_fields; i++) {
        const ProtobufCFieldDescriptor *const field = &kind->fields[i];
        if (field->offset == offset && (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
            memcpy((char *)message + field->quantifier_offset, &field->id, sizeof field->id);
            return;
        }
    }
    assert(!"a member of a oneof");
}
