/* SPDX-License-Identifier: MIT */
#include "cli/jsonwrite.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT (UINT64_C(1) << 53) /* integers from here on are written as strings */

void tl_json_put_u64(cJSON *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    if (value < EXACT)
        cJSON_AddRawToObject(object, name, text);
    else
        cJSON_AddStringToObject(object, name, text);
}

void tl_json_put_address(cJSON *object, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, value);
    cJSON_AddStringToObject(object, name, text);
}

void tl_json_put_bytes(cJSON *object, const char *name, struct tl_bytes text)
{
    char *const clean = strndup((const char *)text.p, text.n);
    if (clean) {
        tl_utf8_clean(clean);
        cJSON_AddStringToObject(object, name, clean);
    }
    free(clean);
}

void tl_json_put_text(cJSON *object, const char *name, const char *text)
{
    tl_json_put_bytes(object, name, (struct tl_bytes){(const uint8_t *)text, strlen(text)});
}

int tl_json_line(struct tl_buf *out, cJSON *object)
{
    char *const text = object ? cJSON_PrintUnformatted(object) : NULL;
    const int rc = text ? tl_buf_printf(out, "%s\n", text) : TL_NOMEM;
    cJSON_free(text);
    cJSON_Delete(object);
    return rc < 0 ? rc : TL_OK;
}

int tl_json_print(cJSON *object)
{
    struct tl_buf out = {0};
    int rc = tl_json_line(&out, object);
    if (rc == TL_OK && fwrite(out.p, 1, out.n, stdout) != out.n)
        rc = TL_IO;
    tl_buf_fini(&out);
    return rc;
}
