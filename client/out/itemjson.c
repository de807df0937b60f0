/* SPDX-License-Identifier: MIT */
/*
 * Splits the text forms of elements, packets and records into JSON members. Texts have a single
 * grammar, so a new kind of packet or record needs no code here.
 */
#include "out/itemjson.h"

#include "decode/point.h"
#include "flow/line.h"
#include "out/jsonwrite.h"

#include <stdlib.h>
#include <string.h>

/* ---- elements ----------------------------------------------------------------------------- */

static void begin_object(struct tl_json *o, const char *buffer, const char *stream)
{
    if (buffer)
        tl_json_put_text(o, "buffer", buffer);
    if (stream)
        tl_json_put_text(o, "stream", stream);
}

static void put_field(struct tl_json *o, const struct tl_line_field *field)
{
    if (field->type == TL_LINE_NUMBER)
        tl_json_put_u64(o, field->name, field->value);
    else if (field->type == TL_LINE_ADDRESS)
        tl_json_put_address(o, field->name, field->value);
    else
        tl_json_put_bytes(o, field->name, field->text);
}

static int add_line(const struct tl_itemjson *j, uint64_t at, struct tl_bytes line,
                    struct tl_buf *out)
{
    struct tl_line_field fields[TL_LINE_FIELDS];
    struct tl_json o = tl_json_begin();
    begin_object(&o, j->buffer, j->stream);
    tl_json_put_u64(&o, "at", at);
    tl_json_put_bytes(&o, "kind", (struct tl_bytes){line.p, 1});
    if (line.n > 2)
        tl_json_put_bytes(&o, "text", (struct tl_bytes){line.p + 2, line.n - 2});
    const size_t n = tl_line_fields(line, fields);
    for (size_t i = 0; i < n; i++)
        put_field(&o, &fields[i]);
    return tl_json_line(out, &o);
}

int tl_itemjson_add(struct tl_itemjson *j, const struct tl_item *items, size_t n,
                    struct tl_buf *out)
{
    int rc = TL_OK;
    for (size_t i = 0; i < n && rc == TL_OK; i++) {
        uint64_t at = j->next;
        tl_buf_reset(&j->lines);
        rc = tl_item_text(&j->lines, &items[i], 1);
        for (size_t k = 0; rc == TL_OK && k < j->lines.n;) {
            const uint8_t *const line = j->lines.p + k;
            const uint8_t *const end = memchr(line, '\n', j->lines.n - k);
            const size_t size = end ? (size_t)(end - line) : j->lines.n - k;
            /* Only blocks have several positions, one per instruction; messages about one follow
             * it. */
            if (items[i].kind == TL_ITEM_BLOCK && *line == 'I')
                at = j->next++;
            rc = add_line(j, at, (struct tl_bytes){line, size}, out);
            k += size + 1;
        }
        j->next += tl_item_is_point(j->protocol, items[i].kind);
    }
    return rc;
}

void tl_itemjson_fini(struct tl_itemjson *j)
{
    tl_buf_fini(&j->lines);
}

/* ---- NAME=VALUE … ------------------------------------------------------------------------- */

/* Repeated names get an array. */
static void put_value(struct tl_json *fields, const char *name, const char *value)
{
    cJSON *member = cJSON_GetObjectItemCaseSensitive(fields->object, name);
    if (!member) {
        tl_json_put_text(fields, name, value);
        return;
    }
    if (!cJSON_IsArray(member)) {
        cJSON *const first = cJSON_DetachItemViaPointer(fields->object, member);
        member = cJSON_AddArrayToObject(fields->object, name);
        if (!cJSON_AddItemToArray(member, first))
            cJSON_Delete(first);
    }
    cJSON *const one = cJSON_CreateString(value);
    if (!cJSON_AddItemToArray(member, one)) {
        fields->failed = true;
        cJSON_Delete(one);
    }
}

/* End of the word at `p`; name="text" ends after the closing quote. */
static char *end_of(char *p)
{
    for (bool quoted = false; *p && (quoted || *p != ' '); p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (*p == '\\' && quoted && p[1])
            p++;
    }
    return p;
}

/* The text between the quotes, unchanged; without quotes, the value. */
static const char *unquoted(char *value)
{
    const size_t n = strlen(value);
    if (n < 2 || value[0] != '"' || value[n - 1] != '"')
        return value;
    value[n - 1] = '\0';
    return value + 1;
}

/* Words without "=" go to bare[0..most). Returns their number. */
static size_t put_words(struct tl_json *fields, char *text, char **bare, size_t most)
{
    size_t n = 0;
    for (char *word = text; *word;) {
        char *const end = end_of(word);
        char *const next = *end ? end + 1 : end;
        char *const equals = memchr(word, '=', (size_t)(end - word));
        *end = '\0';
        if (equals) {
            *equals = '\0';
            put_value(fields, word, unquoted(equals + 1));
        } else if (*word) {
            if (n < most)
                bare[n] = word;
            n++;
        }
        word = next;
    }
    return n;
}

/* ---- packets ------------------------------------------------------------------------------ */

int tl_itemjson_packet(const char *buffer, const char *stream, const char *line, struct tl_buf *out)
{
    char *const copy = strdup(line);
    char *bare[2];
    if (!copy)
        return TL_NOMEM;
    char *rest; /* after the offset, which some containers write as "@16" */
    struct tl_json o = tl_json_begin(), fields = tl_json_begin();
    begin_object(&o, buffer, stream);
    tl_json_put_u64(&o, "offset", strtoull(copy + (*copy == '@'), &rest, 10));
    tl_json_put_text(&o, "text", *rest ? rest + 1 : rest);
    const size_t n = put_words(&fields, rest, bare, 2), name = stream != NULL;
    if (name && n > 0)
        tl_json_put_text(&o, "id", bare[0]);
    if (n > name)
        tl_json_put_text(&o, "packet", bare[name]);
    tl_json_put_object(&o, "fields", &fields);
    free(copy);
    return tl_json_line(out, &o);
}

/* ---- records ------------------------------------------------------------------------------ */

int tl_itemjson_record(uint64_t index, const struct tl_stf_record *record, uint64_t pc,
                       uint64_t insn, struct tl_buf *out)
{
    struct tl_buf text = {0};
    int rc = tl_stf_record_fields(record, &text);
    if (rc >= 0)
        rc = tl_buf_add(&text, "", 1);
    if (rc < 0) {
        tl_buf_fini(&text);
        return rc;
    }
    char *bare[3]; /* TYPE, and after a semicolon the name of its number */
    struct tl_json o = tl_json_begin(), fields = tl_json_begin();
    const size_t n = put_words(&fields, (char *)text.p, bare, 3);
    tl_json_put_u64(&o, "record", index);
    tl_json_put_u64(&o, "offset", record->offset);
    tl_json_put_u64(&o, "size", record->size);
    tl_json_put_text(&o, "type", tl_stf_type_name(record->type));
    if (record->type == TL_STF_INST_32 || record->type == TL_STF_INST_16) {
        tl_json_put_address(&o, "pc", pc);
        tl_json_put_u64(&o, "insn", insn);
    }
    if (n > 2)
        tl_json_put_text(&o, "name", bare[2]);
    tl_json_put_object(&o, "fields", &fields);
    tl_buf_fini(&text);
    return tl_json_line(out, &o);
}
