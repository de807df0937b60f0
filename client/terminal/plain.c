/* SPDX-License-Identifier: MIT */
/*
 * Prints untrusted text with control characters escaped. Names and notes come from traces, whose
 * bytes could otherwise change the terminal's state or forge lines of output.
 */
#include "terminal/plain.h"

#include <stdbool.h>

#define ESCAPED 4 /* width of \xHH */

int tl_control_at(const char *text)
{
    const unsigned char *const p = (const unsigned char *)text;
    if (!p[0])
        return 0;
    if (p[0] < 0x20 || p[0] == 0x7f)
        return 1;
    if (p[0] == 0xc2)
        return p[1] >= 0x80 && p[1] < 0xa0 ? 2 : 0;
    const bool is_format = p[0] == 0xe2 && ((p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||
                                            (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
    return is_format ? 3 : 0;
}

int tl_plain_width(const char *text)
{
    int width = 0;
    for (int n; *text; text += n ? n : 1) {
        n = tl_control_at(text);
        width += n ? n * ESCAPED : 1;
    }
    return width;
}

int tl_print_plain(FILE *out, const char *text, int width)
{
    int column = 0;
    while (*text) {
        const int n = tl_control_at(text);
        for (int i = 0; i < n; i++)
            fprintf(out, "\\x%02x", (unsigned char)*text++);
        if (!n)
            putc(*text++, out);
        column += n ? n * ESCAPED : 1;
    }
    for (; column < width; column++)
        putc(' ', out);
    return column;
}

int tl_plain_append(struct tl_buf *out, const char *text)
{
    int rc = TL_OK;
    while (rc == TL_OK && *text) {
        int n = tl_control_at(text);
        if (!n)
            rc = tl_buf_add(out, text++, 1);
        for (; rc == TL_OK && n > 0; n--)
            rc = tl_buf_printf(out, "\\x%02x", (unsigned char)*text++);
    }
    return rc;
}
