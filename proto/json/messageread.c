/* SPDX-License-Identifier: MIT */
/*
 * JSON to messages, as far as requests have it: an object of texts, which is a map. It becomes the
 * bytes of a message first, so that the message owns its memory as any other that was received.
 */
#include "json/messagejson.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { KEY = 1 << 3 | 2, VALUE = 2 << 3 | 2 }; /* tags of a map's entry, whose fields are texts */

static size_t size_of_varint(size_t n)
{
    size_t size = 1;
    while (n >>= 7)
        size++;
    return size;
}

static int put_varint(struct tl_buf *out, size_t n)
{
    uint8_t bytes[10];
    size_t k = 0;
    for (; n > 0x7f; n >>= 7)
        bytes[k++] = (uint8_t)(n | 0x80);
    bytes[k++] = (uint8_t)n;
    return tl_buf_add(out, bytes, k);
}

static size_t size_of_text(const char *text)
{
    const size_t n = strlen(text);
    return 1 + size_of_varint(n) + n;
}

static int put_text(struct tl_buf *out, uint8_t tag, const char *text)
{
    const size_t n = strlen(text);
    int rc = put_varint(out, tag);
    if (rc >= 0)
        rc = put_varint(out, n);
    return rc < 0 ? rc : tl_buf_add(out, text, n);
}

static int put_entry(struct tl_buf *out, unsigned field, const char *key, const char *value)
{
    int rc = put_varint(out, (size_t)field << 3 | 2);
    if (rc >= 0)
        rc = put_varint(out, size_of_text(key) + size_of_text(value));
    if (rc >= 0)
        rc = put_text(out, KEY, key);
    return rc < 0 ? rc : put_text(out, VALUE, value);
}

int tl_messagejson_read(const ProtobufCMessageDescriptor *kind, const char *map,
                        struct tl_bytes json, ProtobufCMessage **out)
{
    const unsigned field = protobuf_c_message_descriptor_get_field_by_name(kind, map)->id;
    cJSON *const object = cJSON_ParseWithLength((const char *)json.p, json.n);
    struct tl_buf bytes = {0};
    int rc = cJSON_IsObject(object) ? TL_OK : TL_BAD;
    const cJSON *item;
    cJSON_ArrayForEach(item, object)
    {
        const char *const value = cJSON_GetStringValue(item);
        if (rc >= 0)
            rc = value ? put_entry(&bytes, field, item->string, value) : TL_USAGE;
    }
    cJSON_Delete(object);
    if (rc >= 0) {
        *out = protobuf_c_message_unpack(kind, NULL, bytes.n, bytes.p);
        rc = *out ? TL_OK : TL_NOMEM;
    }
    tl_buf_fini(&bytes);
    return rc;
}
