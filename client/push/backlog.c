/* SPDX-License-Identifier: MIT */
/*
 * In memory: a ring buffer. In a folder: files of at most an eighth of the capacity, named by the
 * number of their first byte in 16 hex digits, which contain only capture bytes. A file is removed
 * when its last byte is dropped; its length is that of the file.
 */
#include "push/backlog.h"

#include "base/buf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, PART_MIN = 128 << 10, PART_MAX = 64 << 20, NAME = 20 };

struct part {
    uint64_t from, n;
};

struct tl_backlog {
    uint64_t begin, end, most;
    uint8_t *ring; /* NULL: in a folder */
    int folder;
    uint64_t part_max;
    struct part *parts; /* the last one is being written, if `writing` is open */
    size_t n_parts, cap_parts;
    int writing;
    bool splices; /* splice() has not been refused yet */
    int reading;  /* of the part that begins at reading_from */
    uint64_t reading_from;
};

static struct tl_backlog *new_backlog(uint64_t bytes)
{
    struct tl_backlog *const b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->most = bytes;
    b->folder = b->writing = b->reading = -1;
    b->splices = true;
    return b;
}

int tl_backlog_memory(struct tl_backlog **out, uint64_t bytes)
{
    struct tl_backlog *const b = new_backlog((bytes + PAGE - 1) / PAGE * PAGE);
    if (b)
        b->ring = malloc(b->most);
    if (!b || !b->ring) {
        tl_backlog_free(b);
        return TL_NOMEM;
    }
    *out = b;
    return TL_OK;
}

static void part_name(uint64_t from, char out[static NAME + 2])
{
    snprintf(out, NAME + 2, "%016llx.raw", (unsigned long long)from);
}

/* Parse a part's name. */
static bool parse_name(const char *name, uint64_t *from)
{
    char same[NAME + 2];
    *from = strtoull(name, NULL, 16);
    part_name(*from, same);
    return strcmp(name, same) == 0;
}

static int by_from(const void *a, const void *b)
{
    const struct part *const x = a, *const y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int add_part(struct tl_backlog *b, uint64_t from, uint64_t n)
{
    if (tl_grow(&b->parts, &b->cap_parts, b->n_parts + 1, sizeof *b->parts) < 0) {
        errno = ENOMEM;
        return TL_NOMEM;
    }
    b->parts[b->n_parts++] = (struct part){from, n};
    return TL_OK;
}

/* Find what an earlier process left, in order. */
static int find_parts(struct tl_backlog *b, const char *path, struct tl_fail *fail)
{
    DIR *const dir = opendir(path);
    const struct dirent *entry;
    int rc = dir ? TL_OK : tl_fail_set(fail, TL_IO, "cannot be read: %s", strerror(errno));
    while (rc == TL_OK && (entry = readdir(dir))) {
        struct stat st;
        uint64_t from;
        if (!parse_name(entry->d_name, &from))
            continue;
        if (fstatat(b->folder, entry->d_name, &st, 0) < 0)
            rc = tl_fail_set(fail, TL_IO, "%.40s: %s", entry->d_name, strerror(errno));
        else if (add_part(b, from, (uint64_t)st.st_size) < 0)
            rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    if (dir)
        closedir(dir);
    if (rc < 0 || b->n_parts == 0)
        return rc;
    qsort(b->parts, b->n_parts, sizeof *b->parts, by_from);
    for (size_t i = 1; i < b->n_parts; i++)
        if (b->parts[i].from != b->parts[i - 1].from + b->parts[i - 1].n)
            return tl_fail_set(fail, TL_BAD,
                               "bytes are missing before byte %llu; was a file removed?",
                               (unsigned long long)b->parts[i].from);
    b->begin = b->parts[0].from;
    b->end = b->parts[b->n_parts - 1].from + b->parts[b->n_parts - 1].n;
    return TL_OK;
}

int tl_backlog_folder(struct tl_backlog **out, const char *path, uint64_t bytes,
                      struct tl_fail *fail)
{
    struct tl_backlog *const b = new_backlog(bytes > 1 << 20 ? bytes : 1 << 20);
    if (!b)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    b->part_max = b->most / 8 < PART_MAX ? b->most / 8 : PART_MAX;
    b->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc =
        b->folder < 0 ? tl_fail_set(fail, TL_IO, "%s", strerror(errno)) : find_parts(b, path, fail);
    if (rc < 0) {
        tl_backlog_free(b);
        return rc;
    }
    *out = b;
    return TL_OK;
}

void tl_backlog_start(struct tl_backlog *b, uint64_t at)
{
    b->begin = b->end = at;
}

void tl_backlog_free(struct tl_backlog *b)
{
    if (!b)
        return;
    const int fds[] = {b->folder, b->writing, b->reading};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(b->ring);
    free(b->parts);
    free(b);
}

uint64_t tl_backlog_begin(const struct tl_backlog *b)
{
    return b->begin;
}

uint64_t tl_backlog_end(const struct tl_backlog *b)
{
    return b->end;
}

/* ---- adding ------------------------------------------------------------------------------- */

static int new_part(struct tl_backlog *b)
{
    char name[NAME + 2];
    if (b->writing >= 0)
        close(b->writing);
    part_name(b->end, name);
    b->writing = openat(b->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (b->writing < 0)
        return TL_IO;
    if (b->n_parts && b->parts[b->n_parts - 1].n == 0)
        return TL_OK; /* left by an earlier process, with the same name */
    return add_part(b, b->end, 0);
}

/* The part being written, or NULL. */
static struct part *last_part(const struct tl_backlog *b)
{
    return b->n_parts && b->writing >= 0 ? &b->parts[b->n_parts - 1] : NULL;
}

ssize_t tl_backlog_room(struct tl_backlog *b)
{
    /* A file's space is freed only when all of it is dropped. */
    const uint64_t from = b->ring || b->n_parts == 0 ? b->begin : b->parts[0].from;
    uint64_t room = b->most > b->end - from ? b->most - (b->end - from) : 0;
    if (room == 0)
        return 0;
    if (b->ring) {
        const uint64_t straight = b->most - b->end % b->most;
        return (ssize_t)(room < straight ? room : straight);
    }
    const struct part *part = last_part(b);
    if (!part || part->n >= b->part_max) {
        if (new_part(b) < 0)
            return -1;
        part = last_part(b);
    }
    const uint64_t left = b->part_max - part->n;
    return (ssize_t)(room < left ? room : left);
}

/* Copy through memory: `fd` is not a pipe, or the file system does not support splice(). */
static ssize_t copy_in(const struct tl_backlog *b, int fd, size_t n)
{
    uint8_t bytes[64 << 10];
    const ssize_t got = read(fd, bytes, n < sizeof bytes ? n : sizeof bytes);
    for (ssize_t done = 0; done < got;) {
        const ssize_t put = write(b->writing, bytes + done, (size_t)(got - done));
        if (put >= 0)
            done += put;
        else if (errno == ENOSPC || errno == EDQUOT)
            sleep(1); /* the bytes read are nowhere else */
        else if (errno != EINTR)
            return -1;
    }
    return got;
}

ssize_t tl_backlog_read(struct tl_backlog *b, int fd, size_t n)
{
    if (b->ring)
        return read(fd, b->ring + b->end % b->most, n);
    if (b->splices) {
        const ssize_t got = splice(fd, NULL, b->writing, NULL, n, 0);
        if (got >= 0 || (errno != EINVAL && errno != ENOSYS))
            return got;
        b->splices = false;
    }
    return copy_in(b, fd, n);
}

void tl_backlog_commit(struct tl_backlog *b, size_t n)
{
    b->end += n;
    if (!b->ring)
        b->parts[b->n_parts - 1].n += n;
}

/* ---- reading ------------------------------------------------------------------------------ */

static ssize_t get_from_ring(const struct tl_backlog *b, uint64_t offset, uint8_t *p, size_t n)
{
    const uint64_t at = offset % b->most;
    const size_t straight = b->most - at < n ? (size_t)(b->most - at) : n;
    memcpy(p, b->ring + at, straight);
    memcpy(p + straight, b->ring, n - straight);
    return (ssize_t)n;
}

static int open_part(struct tl_backlog *b, const struct part *part)
{
    char name[NAME + 2];
    if (b->reading >= 0 && b->reading_from == part->from)
        return TL_OK;
    if (b->reading >= 0)
        close(b->reading);
    part_name(part->from, name);
    b->reading = openat(b->folder, name, O_RDONLY | O_CLOEXEC);
    b->reading_from = part->from;
    return b->reading < 0 ? TL_IO : TL_OK;
}

ssize_t tl_backlog_get(struct tl_backlog *b, uint64_t offset, uint8_t *p, size_t n)
{
    if (n > b->end - offset)
        n = (size_t)(b->end - offset);
    if (n == 0)
        return 0;
    if (b->ring)
        return get_from_ring(b, offset, p, n);
    const struct part *part = b->parts;
    while (offset - part->from >= part->n)
        part++;
    if (open_part(b, part) < 0)
        return TL_IO;
    if (n > part->from + part->n - offset)
        n = (size_t)(part->from + part->n - offset);
    const ssize_t got = pread(b->reading, p, n, (off_t)(offset - part->from));
    if (got == 0)
        errno = EIO; /* the file was truncated */
    return got > 0 ? got : TL_IO;
}

void tl_backlog_drop(struct tl_backlog *b, uint64_t offset)
{
    if (offset <= b->begin)
        return;
    b->begin = offset;
    if (b->ring)
        return;
    size_t done = 0;
    /* The last part is kept while it can be written to: its name marks the position in the
     * capture. */
    while (done + 1 < b->n_parts && b->parts[done].from + b->parts[done].n <= offset) {
        char name[NAME + 2];
        part_name(b->parts[done++].from, name);
        unlinkat(b->folder, name, 0);
    }
    b->n_parts -= done;
    memmove(b->parts, b->parts + done, b->n_parts * sizeof *b->parts);
}
