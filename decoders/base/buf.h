/* SPDX-License-Identifier: MIT */
/* A growable byte buffer. Not thread-safe. Zero-initialised is empty and valid. */
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

/* Free the memory and make it empty again. */
void tl_buf_fini(struct tl_buf *b);

/* Forget the contents, keep the memory. */
static inline void tl_buf_reset(struct tl_buf *b)
{
    b->n = 0;
}

/* Make room for `more` bytes behind the used ones, where there is not enough. TL_NOMEM leaves the
 * buffer as it was. */
TL_MUST_USE int tl_buf_grow(struct tl_buf *b, size_t more);

TL_MUST_USE static inline int tl_buf_reserve(struct tl_buf *b, size_t more)
{
    return more <= b->cap - b->n ? TL_OK : tl_buf_grow(b, more);
}

/* Append. TL_NOMEM leaves the buffer as it was. */
TL_MUST_USE int tl_buf_add(struct tl_buf *b, const void *p, size_t n);

/* Append text as printf writes it, without its NUL. */
TL_MUST_USE int tl_buf_printf(struct tl_buf *b, const char *format, ...) TL_PRINTF(2, 3);

/* Append a whole file of at most `limit` bytes. TL_IO, TL_LIMIT, TL_NOMEM; `fail` names it. */
TL_MUST_USE int tl_buf_read_file(struct tl_buf *b, const char *path, size_t limit,
                                 struct tl_fail *fail);

/* Drop the first `n` bytes (n <= b->n). */
void tl_buf_drop(struct tl_buf *b, size_t n);

/*
 * Grow an array `*p` of `*cap` elements of `size` bytes to hold at least `need` elements,
 * at least doubling it. TL_NOMEM leaves it as it was.
 */
TL_MUST_USE int tl_grow(void *p, size_t *cap, size_t need, size_t size);

TL_C_END

#endif
