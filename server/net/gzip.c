/* SPDX-License-Identifier: MIT */
/*
 * Compresses and decompresses whole buffers with zlib. One byte beyond the limit is asked for when
 * decompressing, which tells a message of exactly the limit from one that is too large.
 */
#include "net/gzip.h"

#include <limits.h>
#include <zlib.h>

#define GZIP_WINDOW (MAX_WBITS + 16) /* selects the gzip wrapper in zlib */

int tl_gzip(struct tl_bytes in, int level, struct tl_buf *out)
{
    z_stream z = {0};
    if (in.n > UINT_MAX)
        return TL_LIMIT;
    if (deflateInit2(&z, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return TL_NOMEM;
    const size_t bound = deflateBound(&z, in.n);
    int rc = bound > UINT_MAX ? TL_LIMIT : tl_buf_reserve(out, bound);
    if (rc == TL_OK) {
        z.next_in = (Bytef *)(uintptr_t)in.p;
        z.avail_in = (uInt)in.n;
        z.next_out = out->p + out->n;
        z.avail_out = (uInt)bound;
        rc = deflate(&z, Z_FINISH) == Z_STREAM_END ? TL_OK : TL_NOMEM;
        if (rc == TL_OK)
            out->n += z.total_out;
    }
    deflateEnd(&z);
    return rc;
}

static int inflate_all(z_stream *z, size_t max, struct tl_buf *out)
{
    const size_t before = out->n;
    for (;;) {
        const size_t left = max - (out->n - before);
        /* One byte more than allowed distinguishes "exactly at the limit" from "too much". */
        size_t room = z->avail_in * 4 + 1024;
        if (room > left)
            room = left + 1;
        const int grown = tl_buf_reserve(out, room);
        if (grown < 0)
            return grown;
        z->next_out = out->p + out->n;
        z->avail_out = (uInt)room;
        const int rc = inflate(z, Z_NO_FLUSH);
        out->n += room - z->avail_out;
        if (out->n - before > max)
            return TL_LIMIT;
        if (rc == Z_STREAM_END)
            return z->avail_in ? TL_BAD : TL_OK;
        if (rc == Z_MEM_ERROR)
            return TL_NOMEM;
        if (rc != Z_OK || (z->avail_out && !z->avail_in))
            return TL_BAD;
    }
}

int tl_gunzip(struct tl_bytes in, size_t max, struct tl_buf *out)
{
    z_stream z = {0};
    if (in.n > UINT_MAX / 8 || max > UINT_MAX / 8)
        return TL_LIMIT;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return TL_NOMEM;
    const size_t before = out->n;
    z.next_in = (Bytef *)(uintptr_t)in.p;
    z.avail_in = (uInt)in.n;
    const int rc = inflate_all(&z, max, out);
    inflateEnd(&z);
    if (rc < 0)
        out->n = before;
    return rc;
}
