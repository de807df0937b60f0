/* SPDX-License-Identifier: MIT */
/*
 * Builds objects with cJSON and remembers whether any addition failed. cJSON omits what it has no
 * memory for, and an object with a member missing looks complete to its reader.
 */
#include "out/jsonwrite.h"

#include "base/utf8.h"
#include "base/whole.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT (UINT64_C(1) << 53) /* integers from here on are written as strings */

struct tl_json tl_json_begin(void)
{
    cJSON *const object = cJSON_CreateObject();
    return (struct tl_json){object, !object};
}

/* `member` is what cJSON has added: NULL if there is no memory. */
static void check(struct tl_json *json, const cJSON *member)
{
    json->failed |= !member;
}

void tl_json_put_u64(struct tl_json *json, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    check(json, value < EXACT ? cJSON_AddRawToObject(json->object, name, text)
                              : cJSON_AddStringToObject(json->object, name, text));
}

void tl_json_put_address(struct tl_json *json, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, value);
    check(json, cJSON_AddStringToObject(json->object, name, text));
}

void tl_json_put_bytes(struct tl_json *json, const char *name, struct tl_bytes text)
{
    char *const clean = strndup((const char *)text.p, text.n);
    if (clean)
        tl_utf8_clean(clean);
    check(json, clean ? cJSON_AddStringToObject(json->object, name, clean) : NULL);
    free(clean);
}

void tl_json_put_text(struct tl_json *json, const char *name, const char *text)
{
    tl_json_put_bytes(json, name, (struct tl_bytes){(const uint8_t *)text, strlen(text)});
}

void tl_json_put_object(struct tl_json *json, const char *name, struct tl_json *member)
{
    json->failed |= member->failed;
    if (!cJSON_AddItemToObject(json->object, name, member->object)) {
        json->failed = true;
        cJSON_Delete(member->object);
    }
    *member = (struct tl_json){0};
}

int tl_json_line(struct tl_buf *out, struct tl_json *json)
{
    char *const text = json->failed ? NULL : cJSON_PrintUnformatted(json->object);
    const int rc = text ? tl_buf_printf(out, "%s\n", text) : TL_NOMEM;
    cJSON_free(text);
    cJSON_Delete(json->object);
    *json = (struct tl_json){0};
    return rc < 0 ? rc : TL_OK;
}

int tl_json_print(struct tl_json *json)
{
    struct tl_buf out = {0};
    int rc = tl_json_line(&out, json);
    if (rc == TL_OK && !tl_write_all(stdout, out.p, out.n))
        rc = TL_IO;
    tl_buf_fini(&out);
    if (rc == TL_NOMEM)
        errno = ENOMEM;
    return rc;
}
