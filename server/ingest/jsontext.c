/* SPDX-License-Identifier: MIT */
#include "ingest/jsontext.h"

#include <string.h>

int tl_json_string(struct tl_buf *out, const char *text, size_t n)
{
    int r = tl_buf_add(out, "\"", 1);
    for (size_t i = 0; i < n && r >= 0; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            r = tl_buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            r = tl_buf_printf(out, "\\u%04x", c);
        else
            r = tl_buf_add(out, text + i, 1);
    }
    return r < 0 ? r : tl_buf_add(out, "\"", 1);
}

int tl_json_text(struct tl_buf *out, const char *text)
{
    return tl_json_string(out, text ? text : "", text ? strlen(text) : 0);
}
