/* SPDX-License-Identifier: MIT */
/*
 * Writes fields of CSV (RFC 4180). Only what needs quotes has them, so that columns of numbers and
 * names are read by any program.
 */
#include "base/csv.h"

#include <string.h>

int tl_csv_field(struct tl_buf *out, const char *text, char end)
{
    const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    int r = quoted ? tl_buf_add(out, "\"", 1) : TL_OK;
    while (r >= 0 && *text) {
        const size_t n = strcspn(text, "\"");
        r = tl_buf_add(out, text, n);
        text += n;
        if (r >= 0 && *text) {
            r = tl_buf_add(out, "\"\"", 2);
            text++;
        }
    }
    if (r >= 0 && quoted)
        r = tl_buf_add(out, "\"", 1);
    return r < 0 ? r : tl_buf_add(out, &end, 1);
}
