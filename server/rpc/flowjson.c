/* SPDX-License-Identifier: MIT */
/*
 * Turns a line of flow text into a JSON object by the fields that flow/line.h finds. Text and JSON
 * thus have one grammar, and an element cannot differ between them.
 */
#include "rpc/flowjson.h"

#include "flow/line.h"
#include "rpc/webjson.h"

static void write_bytes(struct tl_jsonout *j, const char *name, struct tl_bytes text)
{
    tl_jsonout_name(j, name);
    tl_jsonout_bytes(j, (const char *)text.p, text.n);
}

static void write_field(struct tl_jsonout *j, const struct tl_line_field *field)
{
    switch (field->type) {
    case TL_LINE_NUMBER:
        tl_webjson_u64(j, field->name, field->value);
        return;
    case TL_LINE_ADDRESS:
        tl_webjson_address(j, field->name, field->value);
        return;
    default:
        write_bytes(j, field->name, field->text);
    }
}

void tl_flowjson(struct tl_jsonout *j, uint64_t at, struct tl_bytes line)
{
    struct tl_line_field fields[TL_LINE_FIELDS];
    const size_t n = tl_line_fields(line, fields);
    tl_jsonout_open(j, '{');
    tl_webjson_u64(j, "at", at);
    write_bytes(j, "kind", (struct tl_bytes){line.p, 1});
    if (line.n > 2)
        write_bytes(j, "text", (struct tl_bytes){line.p + 2, line.n - 2});
    for (size_t i = 0; i < n; i++)
        write_field(j, &fields[i]);
    tl_jsonout_close(j, '}');
}
