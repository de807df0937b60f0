/* SPDX-License-Identifier: MIT */
/*
 * A protobuf message as JSON of the HTTP interface, by its descriptor (docs/http.md; the rules are
 * at the head of tracelake/v1/lookups.proto). Stateless, thread-safe.
 */
#ifndef TL_JSON_MESSAGEJSON_H
#define TL_JSON_MESSAGEJSON_H

#include "base/bytes.h"
#include "base/jsonout.h"

#include <protobuf-c/protobuf-c.h>

/*
 * Write the message's fields in order. Absent are: members of a oneof that are not set, messages
 * that are not there, negative int32, which stand for something unknown, and empty arrays that
 * docs/http.md has only where there is something.
 */
void tl_messagejson(struct tl_jsonout *j, const ProtobufCMessage *message);
/* The same as text with a line end, appended to `out`. TL_NOMEM. */
TL_MUST_USE int tl_messagejson_text(struct tl_buf *out, const ProtobufCMessage *message);
/* The array of the message's only field, an element in each line. */
void tl_messagejson_rows(struct tl_jsonout *j, const ProtobufCMessage *message);

/*
 * A new message whose field `map`, of texts, has the members of a JSON object. The caller frees it
 * by protobuf_c_message_free_unpacked(). TL_BAD: it is no JSON object; TL_USAGE: a member is no
 * text; TL_NOMEM.
 */
TL_MUST_USE int tl_messagejson_read(const ProtobufCMessageDescriptor *kind, const char *map,
                                    struct tl_bytes json, ProtobufCMessage **out);

/* The name that a field has in JSON and as an argument of HTTP. */
#define TL_FIELD_NAME 64
const char *tl_messagejson_name(const ProtobufCFieldDescriptor *field,
                                char room[TL_AT_LEAST(TL_FIELD_NAME)]);
/* The word of an enum's value: its name in lower case, without what all names of the enum begin
 * with, up to a '_'. Returns `room`. */
const char *tl_messagejson_word(const ProtobufCEnumDescriptor *kind,
                                const ProtobufCEnumValue *value,
                                char room[TL_AT_LEAST(TL_FIELD_NAME)]);

#endif
