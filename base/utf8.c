/* SPDX-License-Identifier: MIT */
/*
 * The second byte of a character is checked as well as its length: overlong forms and surrogates
 * are no UTF-8, and receivers reject the whole message with them. An invalid byte becomes one
 * character, so that cleaning needs no space.
 */
#include "base/utf8.h"

#include <stdbool.h>

size_t tl_utf8_length(const char *text)
{
    const unsigned char *const p = (const unsigned char *)text;
    if (p[0] < 0x80)
        return 1;
    const size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0; /* including the end of the text */
    const bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    const bool outside = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || outside ? 0 : n;
}

void tl_utf8_clean(char *text)
{
    while (*text) {
        const size_t n = tl_utf8_length(text);
        if (!n)
            *text = '?';
        text += n ? n : 1;
    }
}
