/* SPDX-License-Identifier: MIT */
/* A growable byte buffer. Not thread-safe. A zero-initialised one is empty and valid. */
#ifndef TL_BASE_BUF_H
#define TL_BASE_BUF_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

TL_C_BEGIN

struct tl_buf {
    uint8_t *p;
    size_t n;   /* bytes used */
    size_t cap; /* bytes allocated */
};

/* Free the memory and reset to empty. */
void tl_buf_fini(struct tl_buf *b);

/* Discard the contents, keep the memory. */
static inline void tl_buf_reset(struct tl_buf *b)
{
    b->n = 0;
}

/* Ensure capacity for `more` bytes after the used ones. On TL_NOMEM the buffer is unchanged. */
TL_MUST_USE int tl_buf_grow(struct tl_buf *b, size_t more);

TL_MUST_USE static inline int tl_buf_reserve(struct tl_buf *b, size_t more)
{
    return more <= b->cap - b->n ? TL_OK : tl_buf_grow(b, more);
}

/* Append. On TL_NOMEM the buffer is unchanged. */
TL_MUST_USE int tl_buf_add(struct tl_buf *b, const void *p, size_t n);

/* Append printf-formatted text, without a NUL. TL_NOMEM. */
TL_MUST_USE int tl_buf_printf(struct tl_buf *b, const char *format, ...) TL_PRINTF(2, 3);

/* Append a whole file of at most `limit` bytes; a device, which may have no end, of at most 1 MiB.
 * Returns TL_IO, TL_LIMIT, TL_NOMEM; `fail` names the file. */
TL_MUST_USE int tl_buf_read_file(struct tl_buf *b, const char *path, size_t limit,
                                 struct tl_fail *fail);

/* Remove the first `n` bytes (n <= b->n). */
void tl_buf_drop(struct tl_buf *b, size_t n);

/*
 * Grow the array `*p` of `*cap` elements of `size` bytes to at least `need` elements, at least
 * doubling it. On TL_NOMEM it is unchanged.
 */
TL_MUST_USE int tl_grow(void *p, size_t *cap, size_t need, size_t size);

TL_C_END

#endif
