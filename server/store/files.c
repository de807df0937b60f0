/* SPDX-License-Identifier: MIT */
/*
 * Reading, writing and naming files for the folder backend. A name is durable only when its folder
 * is synced, for which there is no call that does both.
 */
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int tl_files_read_some(int fd, uint64_t offset, size_t n, struct tl_buf *out)
{
    while (n > 0) {
        const ssize_t done = pread(fd, out->p + out->n, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        if (done == 0)
            break;
        out->n += (size_t)done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return 0;
}

size_t tl_files_limit_to_size(uint64_t size, uint64_t offset, size_t n)
{
    const uint64_t there = offset < size ? size - offset : 0;
    return n < there ? n : (size_t)there;
}

int tl_files_make_parents(int at, const char *key)
{
    char path[544];
    snprintf(path, sizeof(path), "%s", key);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(at, path, 0777) == 0) {
            char parent[544];
            snprintf(parent, sizeof(parent), "%s", path);
            char *last = strrchr(parent, '/');
            if (last)
                *last = '\0';
            const int fd = openat(at, last ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            const int r = fd < 0 ? -1 : fsync(fd);
            if (fd >= 0)
                close(fd);
            if (r < 0)
                return -1;
        } else if (errno != EEXIST) {
            return -1;
        }
        *slash = '/';
    }
    return 0;
}

int tl_files_sync_parent(int at, const char *key)
{
    char path[544];
    snprintf(path, sizeof(path), "%s", key);
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    const int fd = openat(at, slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const int r = fsync(fd);
    const int e = errno;
    close(fd);
    errno = e;
    return r;
}

/* The folder of `key`. False: it has none. */
static bool folder_name(char out[static 544], const char *key)
{
    snprintf(out, 544, "%s", key);
    char *const slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

int tl_files_make_folder_of(int at, const char *key)
{
    char folder[544];
    if (!folder_name(folder, key))
        return 0;
    if (tl_files_make_parents(at, folder) < 0)
        return -1;
    return mkdirat(at, folder, 0777) < 0 && errno != EEXIST ? -1 : 0;
}

int tl_files_sync_names(int at, const char *key)
{
    char folder[544];
    if (folder_name(folder, key) && tl_files_sync_parent(at, folder) < 0)
        return -1;
    return tl_files_sync_parent(at, key);
}
