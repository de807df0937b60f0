/* SPDX-License-Identifier: MIT */
#include "setup/snapshot_join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

static int write_all(int fd, const uint8_t *p, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, p, n);
        if (done < 0 && errno != EINTR)
            return TL_IO;
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return TL_OK;
}

static int append(int to, const char *path, struct tl_fail *fail)
{
    static const char cannot[] = "%.180s: cannot be read";
    uint8_t bytes[PIECE];
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    int rc = from < 0 ? tl_fail_set(fail, TL_IO, cannot, path) : TL_OK;
    while (rc == TL_OK) {
        const ssize_t got = read(from, bytes, sizeof bytes);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            rc = tl_fail_set(fail, TL_IO, cannot, path);
        if (got > 0 && write_all(to, bytes, (size_t)got) < 0)
            rc = tl_fail_set(fail, TL_IO, "no room in the temporary folder to join trace files");
    }
    if (from >= 0)
        close(from);
    return rc;
}

static int open_unnamed(void)
{
    const char *const dir = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/tracelake-XXXXXX", dir && *dir ? dir : "/tmp") < 0)
        return -1;
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}

/* The next name of the list, in its folder, or NULL (also where memory is out: *n is SIZE_MAX). */
static char *next_path(const char *dir, const char **files, size_t *n)
{
    const char *const blank = " \t,\"'";
    *files += strspn(*files, blank);
    size_t len = strcspn(*files, ",");
    const char *const name = *files;
    *files += len;
    while (len && strchr(blank, name[len - 1]))
        len--;
    if (!len)
        return NULL;
    char *path = NULL;
    if (asprintf(&path, "%s/%.*s", dir, (int)len, name) < 0) {
        *n = SIZE_MAX;
        return NULL;
    }
    ++*n;
    return path;
}

int tl_snapshot_join(struct tl_snapshot_buffer *buffer, const char *dir, const char *files,
                     struct tl_fail *fail)
{
    size_t n = 0;
    int rc = TL_OK;
    buffer->path = next_path(dir, &files, &n);
    if (n == 0)
        return tl_fail_set(fail, TL_BAD, "buffer %s has no file=", buffer->name);
    for (char *path; rc == TL_OK && (path = next_path(dir, &files, &n));) {
        if (buffer->joined < 0) {
            buffer->joined = open_unnamed();
            rc = buffer->joined < 0 ? tl_fail_set(fail, TL_IO, "cannot make a temporary file")
                                    : append(buffer->joined, buffer->path, fail);
        }
        if (rc == TL_OK)
            rc = append(buffer->joined, path, fail);
        free(path);
    }
    if (rc == TL_OK && buffer->joined >= 0) {
        free(buffer->path);
        if (asprintf(&buffer->path, "/proc/self/fd/%d", buffer->joined) < 0) {
            buffer->path = NULL;
            n = SIZE_MAX;
        }
    }
    return n == SIZE_MAX ? tl_fail_set(fail, TL_NOMEM, "out of memory") : rc;
}
