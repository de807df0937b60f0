/* SPDX-License-Identifier: MIT */
/* Splits text that arrives in arbitrary pieces into lines. Zero-initialise. Not thread-safe. */
#ifndef TL_OUT_LINEWISE_H
#define TL_OUT_LINEWISE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <string.h>

struct tl_linewise {
    struct tl_buf rest; /* of an incomplete line */
};

/* Call `take` with each line, without its end, as a string that it may modify; an error from it
 * ends the call. TL_NOMEM. */
TL_MUST_USE static inline int tl_linewise_push(struct tl_linewise *w, struct tl_bytes text,
                                               int (*take)(void *context, char *line),
                                               void *context)
{
    while (text.n > 0) {
        const uint8_t *const end = memchr(text.p, '\n', text.n);
        const size_t n = end ? (size_t)(end - text.p) : text.n;
        if (tl_buf_add(&w->rest, text.p, n) < 0)
            return TL_NOMEM;
        if (!end)
            return TL_OK;
        int r = tl_buf_add(&w->rest, "", 1);
        if (r >= 0)
            r = take(context, (char *)w->rest.p);
        tl_buf_reset(&w->rest);
        if (r < 0)
            return r;
        text.p += n + 1;
        text.n -= n + 1;
    }
    return TL_OK;
}

/* Value of a lower-case hex digit; -1: not one. */
static inline int tl_line_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Convert pairs of hex digits to bytes, at most `most`. Returns their number. */
static inline size_t tl_line_bytes(const char *hex, uint8_t *out, size_t most)
{
    size_t n = 0;
    for (; n < most && tl_line_digit(hex[2 * n]) >= 0 && tl_line_digit(hex[2 * n + 1]) >= 0; n++)
        out[n] = (uint8_t)(tl_line_digit(hex[2 * n]) << 4 | tl_line_digit(hex[2 * n + 1]));
    return n;
}

static inline void tl_linewise_fini(struct tl_linewise *w)
{
    tl_buf_fini(&w->rest);
}

#endif
