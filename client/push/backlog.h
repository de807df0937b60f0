/* SPDX-License-Identifier: MIT */
/*
 * Bytes of one capture that have been read and that the server does not have yet, in memory or in
 * the files of a folder. They are numbered from 0, where reading began; [begin, end) are available.
 *
 * One thread adds, one consumes. All calls are made under the owner's lock, with two exceptions:
 * tl_backlog_read() may run beside the others, and tl_backlog_get() of available bytes beside
 * tl_backlog_read().
 */
#ifndef TL_PUSH_BACKLOG_H
#define TL_PUSH_BACKLOG_H

#include "base/err.h"

#include <sys/types.h>

struct tl_backlog;

/* Create a backlog in memory of at most `bytes` (rounded up to 4 KiB). TL_NOMEM. */
TL_MUST_USE int tl_backlog_memory(struct tl_backlog **out, uint64_t bytes);
/*
 * Create a backlog in files of the existing folder `path`, at most `bytes` together, at least 1
 * MiB. Contents left by an earlier process are recovered; they survive this process however it
 * ends. TL_IO, TL_NOMEM; TL_BAD: the files do not fit together.
 */
TL_MUST_USE int tl_backlog_folder(struct tl_backlog **out, const char *path, uint64_t bytes,
                                  struct tl_fail *fail);
/* Set the number of the next byte to `at`; the backlog must be empty. */
void tl_backlog_start(struct tl_backlog *backlog, uint64_t at);
/* Free the memory; the files of a folder stay. Accepts NULL. */
void tl_backlog_free(struct tl_backlog *backlog);

uint64_t tl_backlog_begin(const struct tl_backlog *backlog);
uint64_t tl_backlog_end(const struct tl_backlog *backlog);

/* Prepare to add: return the free capacity in bytes, 0: none until others are dropped. < 0: the
 * disk refuses, see errno; may be retried. */
ssize_t tl_backlog_room(struct tl_backlog *backlog);
/*
 * Read up to `n` bytes, within the free capacity, from `fd`; they become available with
 * tl_backlog_commit(). Returns as read(). From a pipe into a folder the bytes move in a single
 * system call: whenever the process is killed, they are in one of the two.
 */
ssize_t tl_backlog_read(struct tl_backlog *backlog, int fd, size_t n);
void tl_backlog_commit(struct tl_backlog *backlog, size_t n);

/* Copy up to `n` bytes starting at `offset`, which must be available or the end. Returns fewer at
 * the boundary of two files. TL_IO with errno. */
ssize_t tl_backlog_get(struct tl_backlog *backlog, uint64_t offset, uint8_t *p, size_t n);
/* Drop everything before `offset` (at most the end). */
void tl_backlog_drop(struct tl_backlog *backlog, uint64_t offset);

#endif
