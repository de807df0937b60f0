/* SPDX-License-Identifier: MIT */
/*
 * A library to be preloaded into a server: shifts its wall clock and limits its disk, as a file in
 * memory says, while it runs. Written so that a test can do both to the real program without
 * privileges: a clock that is set and a disk that is full look exactly so to a process.
 *
 * $TL_WORLD names the file, of struct world. The clock concerns CLOCK_REALTIME alone. A regular
 * file that grows takes bytes of what is free, or gets ENOSPC; removing, replacing and shortening
 * files gives them back.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct world {
    _Atomic int64_t wall_shift_s; /* added to the wall clock */
    _Atomic int64_t free_bytes;   /* of the disk; below zero: no limit */
};

static struct world calm = {.free_bytes = -1};
static struct world *world = &calm;

__attribute__((constructor)) static void open_world(void)
{
    const char *path = getenv("TL_WORLD");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *shared = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED)
        world = shared;
    close(fd);
}

/* The C library's own function of that name. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- the clock --------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *t)
{
    static __typeof__(&clock_gettime) real;
    if (!real)
        real = REAL(clock_gettime);
    int r = real(clock, t);
    if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += world->wall_shift_s;
    return r;
}

time_t time(time_t *out)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    (void)zone;
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    *tv = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
    return 0;
}

/* ---- the disk ---------------------------------------------------------------------------- */

/* Bytes by which a write of `n` at `at` makes a regular file longer. Standard output and error may
 * be files, too, of the test. */
static int64_t growth(int fd, size_t n, int64_t at)
{
    struct stat st;
    if (world->free_bytes < 0 || fd <= STDERR_FILENO || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    const int64_t end = at + (int64_t)n;
    return end > st.st_size ? end - st.st_size : 0;
}

/* Takes `n` bytes of what is free, if the disk has a limit; false: they are not there. */
static int take(int64_t n)
{
    int64_t was = world->free_bytes;
    while (was >= 0 && n > 0) {
        if (was < n) {
            errno = ENOSPC;
            return 0;
        }
        if (atomic_compare_exchange_weak(&world->free_bytes, &was, was - n))
            return 1;
    }
    return 1;
}

static void give_back(int64_t n)
{
    int64_t was = world->free_bytes;
    while (was >= 0 && !atomic_compare_exchange_weak(&world->free_bytes, &was, was + n))
        ;
}

static size_t length_of(const struct iovec *v, int n)
{
    size_t all = 0;
    for (int i = 0; i < n; i++)
        all += v[i].iov_len;
    return all;
}

ssize_t write(int fd, const void *p, size_t n)
{
    return take(growth(fd, n, lseek(fd, 0, SEEK_CUR))) ? REAL(write)(fd, p, n) : -1;
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    return take(growth(fd, length_of(v, n), lseek(fd, 0, SEEK_CUR))) ? REAL(writev)(fd, v, n) : -1;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return take(growth(fd, n, at)) ? REAL(pwrite)(fd, p, n, at) : -1;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    return take(growth(fd, n, at)) ? REAL(pwrite64)(fd, p, n, at) : -1;
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    return take(growth(fd, length_of(v, n), at)) ? REAL(pwritev)(fd, v, n, at) : -1;
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    return take(growth(fd, (size_t)n, at)) ? REAL(fallocate)(fd, mode, at, n) : -1;
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    return take(growth(fd, (size_t)n, at)) ? REAL(posix_fallocate)(fd, at, n) : ENOSPC;
}

int ftruncate(int fd, off_t size)
{
    struct stat st;
    const int64_t freed =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > size ? st.st_size - size : 0;
    int r = REAL(ftruncate)(fd, size);
    if (r == 0)
        give_back(freed);
    return r;
}

int ftruncate64(int fd, off64_t size)
{
    return ftruncate(fd, size);
}

/* Space of the last name of a regular file. */
static int64_t space_of(int dir, const char *path)
{
    struct stat st;
    return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
                   st.st_nlink == 1
               ? st.st_size
               : 0;
}

int unlinkat(int dir, const char *path, int flags)
{
    const int64_t freed = space_of(dir, path);
    int r = REAL(unlinkat)(dir, path, flags);
    if (r == 0)
        give_back(freed);
    return r;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int renameat(int from, const char *old, int to, const char *new)
{
    const int64_t freed = space_of(to, new);
    int r = REAL(renameat)(from, old, to, new);
    if (r == 0)
        give_back(freed);
    return r;
}

int rename(const char *old, const char *new)
{
    return renameat(AT_FDCWD, old, AT_FDCWD, new);
}

static void limit(struct statvfs *s)
{
    const int64_t free_bytes = world->free_bytes;
    if (free_bytes >= 0)
        s->f_bfree = s->f_bavail = (fsblkcnt_t)free_bytes / s->f_frsize;
}

int statvfs(const char *restrict path, struct statvfs *restrict s)
{
    int r = REAL(statvfs)(path, s);
    if (r == 0)
        limit(s);
    return r;
}

int fstatvfs(int fd, struct statvfs *s)
{
    int r = REAL(fstatvfs)(fd, s);
    if (r == 0)
        limit(s);
    return r;
}
