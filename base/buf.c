/* SPDX-License-Identifier: MIT */
/*
 * A buffer that grows. Capacities double, so that appending costs a constant time per byte however
 * small the pieces are. tl_grow() accesses the caller's pointer with memcpy(), since it may point
 * to any type and would be aliased otherwise.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void tl_buf_fini(struct tl_buf *b)
{
    free(b->p);
    *b = (struct tl_buf){0};
}

int tl_grow(void *p, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return TL_OK;
    size_t want = *cap ? *cap : 16;
    while (want < need) {
        if (want > SIZE_MAX / 2)
            return TL_NOMEM;
        want *= 2;
    }
    if (want > SIZE_MAX / size)
        return TL_NOMEM;
    void *old;
    memcpy(&old, p, sizeof old);
    void *const grown = realloc(old, want * size);
    if (!grown)
        return TL_NOMEM;
    memcpy(p, &grown, sizeof grown);
    *cap = want;
    return TL_OK;
}

int tl_buf_grow(struct tl_buf *b, size_t more)
{
    if (more > SIZE_MAX - b->n)
        return TL_NOMEM;
    return tl_grow(&b->p, &b->cap, b->n + more, 1);
}

int tl_buf_add(struct tl_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return TL_OK;
    const int rc = tl_buf_reserve(b, n);
    if (rc < 0)
        return rc;
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return TL_OK;
}

int tl_buf_printf(struct tl_buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    int rc = len < 0 ? TL_BAD : tl_buf_reserve(b, (size_t)len + 1);
    if (rc == TL_OK) {
        vsnprintf((char *)b->p + b->n, (size_t)len + 1, format, again);
        b->n += (size_t)len;
    }
    va_end(again);
    return rc;
}

/* A device may have no end, such as /dev/zero. */
static bool is_device(const struct stat *st)
{
    return S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode);
}

#define PIECE 65536u

/* How much to read at first: of a file one byte more than it has, which finds its end. */
static size_t first_piece(const struct stat *st, size_t limit)
{
    const bool known = S_ISREG(st->st_mode) && st->st_size > 0 && (uintmax_t)st->st_size <= limit;
    return known ? (size_t)st->st_size + 1 : PIECE;
}

int tl_buf_read_file(struct tl_buf *b, const char *path, size_t limit, struct tl_fail *fail)
{
    enum { DEVICE_MAX = 1 << 20 };
    struct stat st = {0};
    FILE *const f = fopen(path, "rb");
    if (!f)
        return tl_fail_set(fail, TL_IO, "%.160s: %s", path, strerror(errno));
    (void)fstat(fileno(f), &st);
    if (limit > DEVICE_MAX && is_device(&st))
        limit = DEVICE_MAX;
    int rc = TL_OK;
    size_t piece = first_piece(&st, limit);
    for (size_t total = 0; rc == TL_OK; piece = PIECE) {
        rc = tl_buf_reserve(b, piece);
        if (rc < 0) {
            rc = tl_fail_set(fail, TL_NOMEM, "%.160s: out of memory", path);
            break;
        }
        const size_t got = fread(b->p + b->n, 1, piece, f);
        b->n += got;
        total += got;
        if (total > limit)
            rc = tl_fail_set(fail, TL_LIMIT, "%.160s: larger than %zu bytes", path, limit);
        else if (ferror(f))
            rc = tl_fail_set(fail, TL_IO, "%.160s: %s", path, strerror(errno));
        else if (got < piece) /* its end */
            break;
    }
    fclose(f);
    return rc;
}

void tl_buf_drop(struct tl_buf *b, size_t n)
{
    b->n -= n;
    if (n && b->n)
        memmove(b->p, b->p + n, b->n);
}
