/* SPDX-License-Identifier: MIT */
/* Walks a message by its descriptor. Only the kinds of fields that answers have are known to it. */
#include "rpc/messagejson.h"

#include "rpc/webjson.h"

#include <assert.h>
#include <string.h>

static const char *name_of(const ProtobufCFieldDescriptor *field)
{
    static const char *const names[][2] = {{"begin", "from"}, {"time_begin", "time_from"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(field->name, names[i][0]))
            return names[i][1];
    return field->name;
}

static cJSON *number_of(const ProtobufCFieldDescriptor *field, const void *member)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT64:
        return tl_webjson_number(*(const uint64_t *)member);
    case PROTOBUF_C_TYPE_UINT32:
        return tl_webjson_number(*(const uint32_t *)member);
    case PROTOBUF_C_TYPE_DOUBLE:
        return cJSON_CreateNumber(*(const double *)member);
    case PROTOBUF_C_TYPE_BOOL:
        return cJSON_CreateBool(*(const protobuf_c_boolean *)member);
    case PROTOBUF_C_TYPE_STRING:
        return cJSON_CreateString(*(char *const *)member);
    case PROTOBUF_C_TYPE_MESSAGE:
        return tl_messagejson(*(ProtobufCMessage *const *)member);
    default:
        assert(!"a kind of field that answers do not have");
        return NULL;
    }
}

static cJSON *array_of(const ProtobufCFieldDescriptor *field, const void *member, size_t n)
{
    const char *const p = *(char *const *)member;
    cJSON *const array = cJSON_CreateArray();
    bool ok = array != NULL;
    for (size_t i = 0; i < n && ok; i++) /* texts and messages: pointers */
        ok = tl_webjson_add_row(array, number_of(field, p + i * sizeof(void *)));
    return tl_webjson_complete(array, ok);
}

static bool add_field(cJSON *o, const ProtobufCFieldDescriptor *field, const char *message)
{
    const void *const member = message + field->offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return tl_webjson_add(
            o, name_of(field),
            array_of(field, member, *(const size_t *)(message + field->quantifier_offset)));
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && !*(void *const *)member)
        return true;
    if (field->type == PROTOBUF_C_TYPE_INT32)
        return *(const int32_t *)member < 0 ||
               tl_webjson_i64(o, name_of(field), *(const int32_t *)member);
    if (!strcmp(field->name, "pc"))
        return tl_webjson_address(o, field->name, *(const uint64_t *)member);
    return tl_webjson_add(o, name_of(field), number_of(field, member));
}

cJSON *tl_messagejson(const ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *const kind = message->descriptor;
    cJSON *const o = cJSON_CreateObject();
    bool ok = o != NULL;
    for (unsigned i = 0; i < kind->n_fields && ok; i++)
        ok = add_field(o, &kind->fields[i], (const char *)message);
    return tl_webjson_complete(o, ok);
}
