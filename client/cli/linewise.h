/* SPDX-License-Identifier: MIT */
/* Text that comes in any pieces, line by line. Zero-initialised is empty. Not thread-safe. */
#ifndef TL_CLI_LINEWISE_H
#define TL_CLI_LINEWISE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <string.h>

struct tl_linewise {
    struct tl_buf rest; /* of a line that has not come whole */
};

/* `take` with each line, without its end, as text that it may change; its error ends it. TL_NOMEM.
 */
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

static inline void tl_linewise_fini(struct tl_linewise *w)
{
    tl_buf_fini(&w->rest);
}

#endif
