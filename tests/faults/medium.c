/* SPDX-License-Identifier: MIT */
/*
 * Contents after a power cut: of each file the bytes at its last fsync (kept as a copy beside the
 * watched folder, by inode), of each folder the names at its last fsync. Later writes may or may
 * not survive, in pieces of 512 bytes; a name that was not synced is gone, or still the old one.
 */
#include "medium.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char watched[PATH_MAX];
static size_t watched_n;
static uint64_t changes, pass, refuse, refused;
static enum medium_fault kind;
static bool planned, tracking;
static uint64_t random_state;

/* ---- the system's own calls ------------------------------------------------------------------ */

static ssize_t sys_pwrite(int fd, const void *p, size_t n, off_t at)
{
    return syscall(SYS_pwrite64, fd, p, n, at);
}

static int sys_openat(int dir, const char *path, int flags, unsigned mode)
{
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

static int sys_fsync(int fd)
{
    /* The callers are tested, not the disk. */
    return fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

/* ---- what would survive a power cut ---------------------------------------------------------- */

struct name {
    char name[256];
    ino_t inode;
    bool folder;
};

struct node {
    struct node *next;
    ino_t inode;
    bool folder;
    bool synced;    /* at least once */
    uint8_t *bytes; /* of a file, as last synced */
    size_t n;
    struct name *names; /* of a folder, as last synced */
    size_t n_names;
};

static struct node *nodes;

static uint64_t draw(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static struct node *node_of(ino_t inode)
{
    for (struct node *n = nodes; n; n = n->next)
        if (n->inode == inode)
            return n;
    return NULL;
}

static struct node *make_node(ino_t inode, bool folder)
{
    struct node *n = node_of(inode);
    if (!n) {
        n = calloc(1, sizeof *n);
        n->inode = inode;
        n->next = nodes;
        nodes = n;
    }
    if (n->folder != folder) /* the inode number was reused */
        n->synced = false;
    n->folder = folder;
    return n;
}

/* Call when a new file or folder got the inode of a removed one. If the removal was not synced, the
 * old one may come back: its synced bytes are kept under a number that no inode has. */
static void forget(ino_t inode)
{
    static ino_t unused = (ino_t)1 << 48;
    struct node *gone = node_of(inode);
    if (!gone)
        return;
    gone->inode = ++unused;
    for (struct node *n = nodes; n; n = n->next)
        for (size_t i = 0; i < n->n_names; i++)
            if (n->names[i].inode == inode)
                n->names[i].inode = gone->inode;
}

static void read_file(int fd, uint8_t **bytes, size_t *n)
{
    struct stat st;
    fstat(fd, &st);
    free(*bytes);
    *bytes = malloc((size_t)st.st_size + 1);
    *n = 0;
    ssize_t got;
    while (*n < (size_t)st.st_size &&
           (got = pread(fd, *bytes + *n, (size_t)st.st_size - *n, (off_t)*n)) > 0)
        *n += (size_t)got;
}

static void sync_folder(int fd, struct node *node)
{
    const int copy = sys_openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *e;
    node->n_names = 0;
    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        node->names = realloc(node->names, (node->n_names + 1) * sizeof *node->names);
        struct name *name = &node->names[node->n_names++];
        snprintf(name->name, sizeof name->name, "%s", e->d_name);
        name->inode = e->d_ino;
        name->folder = e->d_type == DT_DIR;
    }
    if (d)
        closedir(d);
}

static void note_sync(int fd)
{
    struct stat st;
    if (!tracking || fstat(fd, &st) < 0)
        return;
    struct node *node = make_node(st.st_ino, S_ISDIR(st.st_mode));
    node->synced = true;
    if (node->folder) {
        sync_folder(fd, node);
        return;
    }
    char link[64]; /* `fd` may be write-only */
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const int in = sys_openat(AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    if (in < 0)
        abort();
    read_file(in, &node->bytes, &node->n);
    close(in);
}

/* ---- the power cut --------------------------------------------------------------------------- */

/* Write a file's content after the cut: as synced, with some of the later writes. */
static void write_survivor(const struct node *node, const char *now_path, const char *to)
{
    const int out = sys_openat(AT_FDCWD, to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    uint8_t *now = NULL;
    size_t n_now = 0;
    const int in = now_path ? sys_openat(AT_FDCWD, now_path, O_RDONLY, 0) : -1;
    struct stat st;
    if (in >= 0 && fstat(in, &st) == 0 && st.st_ino == node->inode)
        read_file(in, &now, &n_now);
    const size_t n_old = node->synced ? node->n : 0;
    size_t n = n_old;
    if (n_now > n_old)
        n += draw() % (n_now - n_old + 1);
    for (size_t at = 0; at < n; at += 512) {
        uint8_t piece[512] = {0};
        const size_t part = n - at < 512 ? n - at : 512;
        const bool fresh = draw() % 2 || at >= n_old;
        for (size_t i = 0; i < part; i++)
            piece[i] = fresh && at + i < n_now ? now[at + i]
                       : at + i < n_old        ? node->bytes[at + i]
                                               : 0;
        if (at >= n_old && draw() % 4 == 0)
            memset(piece, 0, part);
        if (sys_pwrite(out, piece, part, (off_t)at) < 0)
            abort();
    }
    free(now);
    if (in >= 0)
        close(in);
    close(out);
}

static void write_folder(const struct node *folder, const char *now, const char *to)
{
    syscall(SYS_mkdirat, AT_FDCWD, to, 0777);
    for (size_t i = 0; folder && i < folder->n_names; i++) {
        const struct name *name = &folder->names[i];
        char from[PATH_MAX], path[PATH_MAX];
        if (snprintf(from, sizeof from, "%s/%s", now, name->name) >= (int)sizeof from ||
            snprintf(path, sizeof path, "%s/%s", to, name->name) >= (int)sizeof path)
            abort();
        const struct node *node = node_of(name->inode);
        const struct node nothing = {.inode = name->inode};
        if (name->folder)
            write_folder(node, from, path);
        else
            write_survivor(node ? node : &nothing, from, path);
    }
}

/* Called with the lock held, so that no other thread changes anything any more. */
static void cut_power(void)
{
    char after[256], aside[256], command[600];
    struct stat st;
    tracking = planned = false;
    if (stat(watched, &st) < 0)
        abort();
    snprintf(after, sizeof after, "%.200s.after", watched);
    snprintf(aside, sizeof aside, "%.200s.before", watched);
    write_folder(node_of(st.st_ino), watched, after);
    if (rename(watched, aside) < 0 || rename(after, watched) < 0)
        abort();
    snprintf(command, sizeof command, "rm -rf '%s'", aside);
    if (system(command) != 0)
        abort();
    _exit(MEDIUM_CUT);
}

/* ---- counting and refusing changes ----------------------------------------------------------- */

static bool below_watched(int dir, const char *path)
{
    char whole[PATH_MAX], link[64];
    if (watched_n == 0)
        return false;
    if (path && *path == '/')
        return strncmp(path, watched, watched_n) == 0;
    if (dir == AT_FDCWD)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    const ssize_t n = readlink(link, whole, sizeof whole - 1);
    if (n < 0)
        return false;
    whole[n] = '\0';
    return strncmp(whole, watched, watched_n) == 0 && !strstr(whole, "-shm") &&
           !strstr(whole, "/turns");
}

/* Called with the lock held before every change. Returns 0 or an errno. */
static int may_change(void)
{
    changes++;
    if (!planned)
        return 0;
    if (pass > 0) {
        pass--;
        return 0;
    }
    if (kind == MEDIUM_POWER)
        cut_power();
    planned = --refuse > 0;
    refused++;
    return kind == MEDIUM_EIO ? EIO : ENOSPC;
}

/* Wraps a system call that changes something. */
#define GATED(dir, path, call)                                                                     \
    do {                                                                                           \
        if (!below_watched(dir, path))                                                             \
            return call;                                                                           \
        pthread_mutex_lock(&lock);                                                                 \
        const int e_ = may_change();                                                               \
        const int r_ = e_ ? -1 : (int)(call);                                                      \
        const int errno_ = e_ ? e_ : errno;                                                        \
        pthread_mutex_unlock(&lock);                                                               \
        errno = errno_;                                                                            \
        return r_;                                                                                 \
    } while (0)

static ssize_t gated_write(int fd, const void *p, size_t n, off_t at)
{
    if (!below_watched(fd, NULL))
        return at < 0 ? syscall(SYS_write, fd, p, n) : sys_pwrite(fd, p, n, at);
    pthread_mutex_lock(&lock);
    const int e = may_change();
    const bool half = e && kind == MEDIUM_SHORT && n > 1;
    if (half)
        n /= 2;
    ssize_t r = -1;
    if (!e || half)
        r = at < 0 ? syscall(SYS_write, fd, p, n) : sys_pwrite(fd, p, n, at);
    const int saved = e && !half ? e : errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
    return r;
}

ssize_t write(int fd, const void *p, size_t n);
ssize_t pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t pwrite64(int fd, const void *p, size_t n, off_t at);

ssize_t write(int fd, const void *p, size_t n)
{
    return gated_write(fd, p, n, -1);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return gated_write(fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    return gated_write(fd, p, n, at);
}

static int gated_sync(int fd)
{
    if (!below_watched(fd, NULL))
        return sys_fsync(fd);
    pthread_mutex_lock(&lock);
    const int e = may_change();
    if (!e)
        note_sync(fd);
    pthread_mutex_unlock(&lock);
    errno = e;
    return e ? -1 : 0;
}

int fsync(int fd)
{
    return gated_sync(fd);
}

int fdatasync(int fd)
{
    return gated_sync(fd);
}

int ftruncate(int fd, off_t size)
{
    GATED(fd, NULL, syscall(SYS_ftruncate, fd, size));
}

int ftruncate64(int fd, off_t size);
int ftruncate64(int fd, off_t size)
{
    GATED(fd, NULL, syscall(SYS_ftruncate, fd, size));
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    struct stat st;
    if (!below_watched(dir, path))
        return (int)syscall(SYS_mkdirat, dir, path, mode);
    pthread_mutex_lock(&lock);
    /* Creating a folder that exists is not a change. */
    const int there = fstatat(dir, path, &st, 0) == 0 ? EEXIST : 0;
    const int e = there ? there : may_change();
    const int r = e ? -1 : (int)syscall(SYS_mkdirat, dir, path, mode);
    const int saved = e ? e : errno;
    if (r == 0 && tracking && fstatat(dir, path, &st, 0) == 0)
        forget(st.st_ino);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return r;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    GATED(from_dir, from, syscall(SYS_renameat2, from_dir, from, to_dir, to, 0));
}

int unlinkat(int dir, const char *path, int flags)
{
    GATED(dir, path, syscall(SYS_unlinkat, dir, path, flags));
}

int unlink(const char *path)
{
    GATED(AT_FDCWD, path, syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

/* Creating a file is a change; only opening it is not. */
static int gated_open(int dir, const char *path, int flags, unsigned mode)
{
    struct stat st;
    if (!(flags & O_CREAT) || !below_watched(dir, path) ||
        fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return sys_openat(dir, path, flags, mode);
    pthread_mutex_lock(&lock);
    const int e = may_change();
    const int fd = e ? -1 : sys_openat(dir, path, flags, mode);
    const int saved = e ? e : errno;
    if (fd >= 0 && tracking && fstat(fd, &st) == 0)
        forget(st.st_ino);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return fd;
}

static unsigned mode_of(int flags, va_list args)
{
    return flags & O_CREAT ? va_arg(args, unsigned) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...);                                                    \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        const unsigned mode = mode_of(flags, args);                                                \
        va_end(args);                                                                              \
        return gated_open(AT_FDCWD, path, flags, mode);                                            \
    }
#define OPENAT(name)                                                                               \
    int name(int dir, const char *path, int flags, ...);                                           \
    int name(int dir, const char *path, int flags, ...)                                            \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        const unsigned mode = mode_of(flags, args);                                                \
        va_end(args);                                                                              \
        return gated_open(dir, path, flags, mode);                                                 \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

/* ---- control --------------------------------------------------------------------------------- */

void medium_watch(const char *dir)
{
    pthread_mutex_lock(&lock);
    planned = false;
    watched_n = dir ? (size_t)snprintf(watched, sizeof watched, "%s", dir) : 0;
    pthread_mutex_unlock(&lock);
}

void medium_refuse(uint64_t after, uint64_t count, enum medium_fault fault)
{
    pthread_mutex_lock(&lock);
    planned = count > 0;
    pass = after;
    refuse = count;
    kind = fault;
    refused = 0;
    pthread_mutex_unlock(&lock);
}

uint64_t medium_changes(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t n = changes;
    pthread_mutex_unlock(&lock);
    return n;
}

uint64_t medium_refused(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t n = refused;
    pthread_mutex_unlock(&lock);
    return n;
}

/* Everything present when tracking begins counts as synced. */
static void note_all(const char *path)
{
    struct stat st;
    const int fd = sys_openat(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    note_sync(fd);
    if (S_ISDIR(st.st_mode)) {
        const struct node *node = node_of(st.st_ino);
        for (size_t i = 0; i < node->n_names; i++) {
            char below[PATH_MAX];
            if (snprintf(below, sizeof below, "%s/%s", path, node->names[i].name) <
                (int)sizeof below)
                note_all(below);
        }
    }
    close(fd);
}

void medium_track(uint64_t seed)
{
    pthread_mutex_lock(&lock);
    random_state = seed;
    tracking = true;
    note_all(watched);
    pthread_mutex_unlock(&lock);
}
