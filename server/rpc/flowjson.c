/* SPDX-License-Identifier: MIT */
#include "rpc/flowjson.h"

#include "rpc/webjson.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { WORD, REST, NUMBER, ADDRESS };

struct field {
    const char *name;
    enum type type;
};

#define FIELDS_MOST 3

/* What stands behind the letter, in its order. */
static const struct {
    char kind;
    struct field fields[FIELDS_MOST];
} kinds[] = {
    {'I', {{"pc", ADDRESS}, {"encoding", WORD}}},
    {'N', {{"pc", ADDRESS}}},
    {'B', {{"from", ADDRESS}, {"to", ADDRESS}}},
    {'X', {{"exception", WORD}, {"number", NUMBER}, {"pc", ADDRESS}}},
    {'M', {{"mode", WORD}}},
    {'C', {{"context", ADDRESS}, {"vmid", ADDRESS}}},
    {'T', {{"time", NUMBER}}},
    {'Y', {{"cycles", NUMBER}}},
    {'V', {{"bits", ADDRESS}}},
    {'S', {{"source", WORD}, {"channel", WORD}, {"payload", WORD}}},
    {'G', {{"reason", WORD}, {"count", NUMBER}}},
    {'A', {{"what", WORD}, {"details", REST}}},
};

static const struct field *fields_of(char kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return kinds[i].fields;
    return NULL;
}

static bool add_field(cJSON *o, const struct field *field, const char *p, size_t n)
{
    char number[32];
    if (n == 0 || (n == 1 && *p == '-'))
        return true;
    if (field->type == WORD || field->type == REST)
        return tl_webjson_bytes(o, field->name, p, n);
    snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n : sizeof number - 1), p);
    /* "12+" is twelve at least. */
    return field->type == ADDRESS ? tl_webjson_address(o, field->name, strtoull(number, NULL, 16))
                                  : tl_webjson_u64(o, field->name, strtoull(number, NULL, 10));
}

static bool add_fields(cJSON *o, const struct field *field, const char *p, size_t n)
{
    bool ok = true;
    for (int i = 0; i < FIELDS_MOST && field[i].name && n > 0 && ok; i++) {
        const char *const space = field[i].type == REST ? NULL : memchr(p, ' ', n);
        const size_t size = space ? (size_t)(space - p) : n;
        const size_t whole = space ? size + 1 : size;
        ok = add_field(o, &field[i], p, size);
        p += whole;
        n -= whole;
    }
    return ok;
}

cJSON *tl_flowjson(uint64_t at, struct tl_bytes line)
{
    const char *const p = (const char *)line.p;
    cJSON *const o = cJSON_CreateObject();
    bool ok = o && tl_webjson_u64(o, "at", at) && tl_webjson_bytes(o, "kind", p, 1);
    if (line.n > 2) {
        const struct field *const fields = fields_of(*p);
        ok = ok && tl_webjson_bytes(o, "text", p + 2, line.n - 2) &&
             (!fields || add_fields(o, fields, p + 2, line.n - 2));
    }
    return tl_webjson_complete(o, ok);
}
