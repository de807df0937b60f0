/* SPDX-License-Identifier: MIT */
/*
 * The system may read or write less than it was asked for, which is no error, and be interrupted,
 * which is none either. Whoever wants all of it would write the same loop again.
 */
#include "base/whole.h"

#include <errno.h>
#include <unistd.h>

int tl_read_at(int fd, void *p, size_t n, uint64_t offset)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = pread(fd, (uint8_t *)p + at, n - at, (off_t)(offset + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0 ? TL_EOF : TL_IO;
        at += (size_t)got;
    }
    return TL_OK;
}

int tl_write_at(int fd, const void *p, size_t n, uint64_t offset)
{
    for (size_t at = 0; at < n;) {
        const ssize_t done = pwrite(fd, (const uint8_t *)p + at, n - at, (off_t)(offset + at));
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return TL_IO;
        at += (size_t)done;
    }
    return TL_OK;
}

bool tl_write_all(FILE *file, const void *p, size_t n)
{
    return n == 0 || fwrite(p, 1, n, file) == n;
}
