/* SPDX-License-Identifier: MIT */
/*
 * Turns a line of flow text into a JSON object by the fields that flow/line.h finds. Text and JSON
 * thus have one grammar, and an element cannot differ between them.
 */
#include "rpc/flowjson.h"

#include "flow/line.h"
#include "rpc/webjson.h"

static bool add_field(cJSON *o, const struct tl_line_field *field)
{
    switch (field->type) {
    case TL_LINE_NUMBER:
        return tl_webjson_u64(o, field->name, field->value);
    case TL_LINE_ADDRESS:
        return tl_webjson_address(o, field->name, field->value);
    default:
        return tl_webjson_bytes(o, field->name, (const char *)field->text.p, field->text.n);
    }
}

cJSON *tl_flowjson(uint64_t at, struct tl_bytes line)
{
    const char *const p = (const char *)line.p;
    struct tl_line_field fields[TL_LINE_FIELDS];
    cJSON *const o = cJSON_CreateObject();
    bool ok = o && tl_webjson_u64(o, "at", at) && tl_webjson_bytes(o, "kind", p, 1);
    if (ok && line.n > 2)
        ok = tl_webjson_bytes(o, "text", p + 2, line.n - 2);
    const size_t n = tl_line_fields(line, fields);
    for (size_t i = 0; i < n && ok; i++)
        ok = add_field(o, &fields[i]);
    return tl_webjson_complete(o, ok);
}
