/* SPDX-License-Identifier: MIT */
/*
 * Walks a message by its descriptor. What descriptors do not say follows from names: the rules are
 * few, and tests compare the answers with documented ones.
 */
#include "json/messagejson.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---------------------------------------------------------------------------------- */

/* Does the name end with this word? */
static bool ends_with(const char *name, const char *word)
{
    const size_t n = strlen(name), m = strlen(word);
    return n >= m && !strcmp(name + n - m, word) && (n == m || name[n - m - 1] == '_');
}

const char *tl_messagejson_name(const ProtobufCFieldDescriptor *field, char room[TL_FIELD_NAME])
{
    if (!strcmp(field->name, "timed"))
        return "has_time";
    if (!ends_with(field->name, "begin"))
        return field->name;
    snprintf(room, TL_FIELD_NAME, "%.*sfrom", (int)(strlen(field->name) - strlen("begin")),
             field->name);
    return room;
}

static bool is_address(const ProtobufCFieldDescriptor *field)
{
    return ends_with(field->name, "pc") || !strcmp(field->name, "context") ||
           !strcmp(field->name, "vmid");
}

/* Arrays and maps that are absent if they are empty; others are [] or {}. */
static bool is_absent_if_empty(const ProtobufCFieldDescriptor *field)
{
    static const char *const names[] = {"inlined", "events",      "silent", "records",
                                        "cycles",  "cycle_insns", "time"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(field->name, names[i]))
            return true;
    return false;
}

const char *tl_messagejson_word(const ProtobufCEnumDescriptor *kind,
                                const ProtobufCEnumValue *value, char room[TL_FIELD_NAME])
{
    const char *const first = kind->values[0].name;
    size_t same = strlen(first);
    for (unsigned i = 1; i < kind->n_values; i++)
        while (strncmp(first, kind->values[i].name, same) != 0)
            same--;
    while (same > 0 && first[same - 1] != '_')
        same--;
    size_t n = 0;
    for (const char *p = value->name + same; *p && n + 1 < TL_FIELD_NAME; p++)
        room[n++] = *p == '_' ? '-' : (char)tolower((unsigned char)*p);
    room[n] = '\0';
    return room;
}

/* ---- values --------------------------------------------------------------------------------- */

static void write_word(struct tl_jsonout *j, const ProtobufCEnumDescriptor *kind, int number)
{
    char room[TL_FIELD_NAME];
    const ProtobufCEnumValue *const value = protobuf_c_enum_descriptor_get_value(kind, number);
    if (value)
        tl_jsonout_text(j, tl_messagejson_word(kind, value, room));
    else
        tl_jsonout_i64(j, number);
}

static void write_value(struct tl_jsonout *j, const ProtobufCFieldDescriptor *field,
                        const void *member)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT64:
        if (is_address(field))
            tl_jsonout_address(j, *(const uint64_t *)member);
        else
            tl_jsonout_u64(j, *(const uint64_t *)member);
        return;
    case PROTOBUF_C_TYPE_INT64:
        tl_jsonout_i64(j, *(const int64_t *)member);
        return;
    case PROTOBUF_C_TYPE_UINT32:
        tl_jsonout_u64(j, *(const uint32_t *)member);
        return;
    case PROTOBUF_C_TYPE_INT32:
        tl_jsonout_i64(j, *(const int32_t *)member);
        return;
    case PROTOBUF_C_TYPE_DOUBLE:
        tl_jsonout_double(j, *(const double *)member);
        return;
    case PROTOBUF_C_TYPE_BOOL:
        tl_jsonout_bool(j, *(const protobuf_c_boolean *)member);
        return;
    case PROTOBUF_C_TYPE_STRING:
        tl_jsonout_text(j, *(char *const *)member);
        return;
    case PROTOBUF_C_TYPE_ENUM:
        write_word(j, field->descriptor, *(const int *)member);
        return;
    case PROTOBUF_C_TYPE_MESSAGE:
        tl_messagejson(j, *(ProtobufCMessage *const *)member);
        return;
    default:
        assert(!"a kind of field that answers do not have");
        tl_jsonout_null(j);
    }
}

/* ---- arrays and maps ------------------------------------------------------------------------ */

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    default:
        return 4;
    }
}

/* A map is an array of messages with a key and a value, whose name is that of the map. */
static bool is_map(const ProtobufCFieldDescriptor *field)
{
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *const entry = field->descriptor;
    return entry->n_fields == 2 && !strcmp(entry->fields[0].name, "key") &&
           !strcmp(entry->fields[1].name, "value") && strlen(entry->short_name) > 5 &&
           !strcmp(entry->short_name + strlen(entry->short_name) - 5, "Entry");
}

static void write_entry(struct tl_jsonout *j, const ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *const fields = entry->descriptor->fields;
    const char *const p = (const char *)entry;
    tl_jsonout_name(j, *(char *const *)(p + fields[0].offset));
    write_value(j, &fields[1], p + fields[1].offset);
}

static size_t count_of(const ProtobufCFieldDescriptor *field, const char *message)
{
    return *(const size_t *)(message + field->quantifier_offset);
}

static void write_array(struct tl_jsonout *j, const ProtobufCFieldDescriptor *field,
                        const char *message, bool lines)
{
    const char *const p = *(char *const *)(message + field->offset);
    const size_t n = count_of(field, message);
    const bool map = is_map(field);
    tl_jsonout_open(j, map ? '{' : '[');
    for (size_t i = 0; i < n && j->rc >= 0; i++) {
        if (lines)
            tl_jsonout_line(j);
        if (map)
            write_entry(j, ((ProtobufCMessage *const *)p)[i]);
        else
            write_value(j, field, p + i * size_of(field));
    }
    tl_jsonout_close(j, map ? '}' : ']');
}

/* ---- messages ------------------------------------------------------------------------------- */

static bool is_there(const ProtobufCFieldDescriptor *field, const char *message)
{
    const void *const member = message + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return count_of(field, message) > 0 || !is_absent_if_empty(field);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(message + field->quantifier_offset) == field->id;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)member != NULL;
    return field->type != PROTOBUF_C_TYPE_INT32 || *(const int32_t *)member >= 0;
}

/* A position `at` is not a member: its members are. */
static bool is_in_place(const ProtobufCFieldDescriptor *field)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE && !strcmp(field->name, "at");
}

static void write_members(struct tl_jsonout *j, const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *const kind = message->descriptor;
    const char *const p = (const char *)message;
    char room[TL_FIELD_NAME];
    for (unsigned i = 0; i < kind->n_fields && j->rc >= 0; i++) {
        const ProtobufCFieldDescriptor *const field = &kind->fields[i];
        if (!is_there(field, p))
            continue;
        if (is_in_place(field)) {
            write_members(j, *(ProtobufCMessage *const *)(p + field->offset));
            continue;
        }
        tl_jsonout_name(j, tl_messagejson_name(field, room));
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            write_array(j, field, p, false);
        else
            write_value(j, field, p + field->offset);
    }
}

void tl_messagejson(struct tl_jsonout *j, const ProtobufCMessage *message)
{
    tl_jsonout_open(j, '{');
    write_members(j, message);
    tl_jsonout_close(j, '}');
}

void tl_messagejson_rows(struct tl_jsonout *j, const ProtobufCMessage *message)
{
    write_array(j, &message->descriptor->fields[0], (const char *)message, true);
}

int tl_messagejson_text(struct tl_buf *out, const ProtobufCMessage *message)
{
    struct tl_jsonout j = {.out = out};
    tl_messagejson(&j, message);
    return j.rc < 0 ? j.rc : tl_buf_add(out, "\n", 1);
}
