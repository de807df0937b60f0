/* SPDX-License-Identifier: MIT */
/*
 * The space is a file that is simply removed when it is needed. A file is the one way of holding
 * space back that works on every file system and across restarts.
 */
#include "store/reserve.h"

#include "base/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LEAST (UINT64_C(1) << 20)
#define MOST  (UINT64_C(32) << 20)
#define PART  64 /* of the disk */

static const char name[] = "reserve";

uint64_t tl_disk_free(int dir)
{
    struct statvfs st;
    if (fstatvfs(dir, &st) < 0)
        return UINT64_MAX;
    return (uint64_t)st.f_bavail * st.f_frsize;
}

void tl_reserve_find(struct tl_reserve *reserve, int dir)
{
    struct statvfs disk;
    struct stat st;
    const uint64_t part =
        fstatvfs(dir, &disk) == 0 ? (uint64_t)disk.f_blocks * disk.f_frsize / PART : LEAST;
    reserve->dir = dir;
    reserve->bytes = part < LEAST ? LEAST : part > MOST ? MOST : part;
    atomic_store(&reserve->held,
                 fstatat(dir, name, &st, 0) == 0 && (uint64_t)st.st_size >= reserve->bytes);
}

static void drop(struct tl_reserve *reserve)
{
    atomic_store(&reserve->held, false);
    (void)!unlinkat(reserve->dir, name, 0);
}

/* Some file systems cannot promise space, so it is written there. */
static int occupy(int fd, uint64_t bytes)
{
    static const uint8_t none[64 << 10];
    if (fallocate(fd, 0, 0, (off_t)bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP)
        return -1;
    for (uint64_t at = 0; at < bytes; at += sizeof none)
        if (pwrite(fd, none, sizeof none, (off_t)at) != (ssize_t)sizeof none)
            return -1;
    return 0;
}

void tl_reserve_keep(struct tl_reserve *reserve)
{
    if (atomic_load(&reserve->held) || !tl_reserve_spares(reserve))
        return;
    const int fd = openat(reserve->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    const bool whole = occupy(fd, reserve->bytes) == 0;
    close(fd);
    if (whole)
        atomic_store(&reserve->held, true);
    else
        drop(reserve);
}

void tl_reserve_give(struct tl_reserve *reserve)
{
    struct tl_journal_line line;
    if (!atomic_load_explicit(&reserve->held, memory_order_relaxed))
        return;
    const uint64_t left = tl_disk_free(reserve->dir);
    if (left >= reserve->bytes)
        return;
    drop(reserve);
    tl_journal_begin(&line, TL_JOURNAL_WARNING, "disk full: space held back is used for removing");
    tl_journal_number(&line, "free_bytes", left);
    tl_journal_number(&line, "held_back", reserve->bytes);
    tl_journal_end(&line);
}

bool tl_reserve_spares(const struct tl_reserve *reserve)
{
    return atomic_load_explicit(&reserve->held, memory_order_relaxed) ||
           tl_disk_free(reserve->dir) >= 2 * reserve->bytes;
}
