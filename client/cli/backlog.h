/* SPDX-License-Identifier: MIT */
/*
 * Bytes of one capture that were read and that the server does not have yet, in memory or in the
 * files of a folder. They are numbered from 0, where reading began; [begin, end) are there.
 *
 * One thread adds, one takes. All calls are made under the owner's lock, but tl_backlog_read()
 * beside the others, and tl_backlog_get() of bytes that are there beside tl_backlog_read().
 */
#ifndef TL_CLI_BACKLOG_H
#define TL_CLI_BACKLOG_H

#include "base/err.h"

#include <sys/types.h>

struct tl_backlog;

/* In memory, at most `bytes` (rounded up to 4 KiB). TL_NOMEM. */
TL_MUST_USE int tl_backlog_memory(struct tl_backlog **out, uint64_t bytes);
/*
 * In files of the folder `path` (exists), at most `bytes` together, at least 1 MiB. What is there
 * already from a process before is found again: it survives this process' end, however that comes.
 * TL_IO, TL_NOMEM; TL_BAD: the files do not fit together.
 */
TL_MUST_USE int tl_backlog_folder(struct tl_backlog **out, const char *path, uint64_t bytes,
                                  struct tl_fail *fail);
/* It is empty: bytes are numbered from `at` on. */
void tl_backlog_start(struct tl_backlog *backlog, uint64_t at);
/* Frees memory; the files of a folder stay. NULL is fine. */
void tl_backlog_free(struct tl_backlog *backlog);

uint64_t tl_backlog_begin(const struct tl_backlog *backlog);
uint64_t tl_backlog_end(const struct tl_backlog *backlog);

/* Make ready to add: how many bytes there is room for, 0: none before others are dropped. < 0: the
 * disk refuses, errno says why; it may be tried again. */
ssize_t tl_backlog_room(struct tl_backlog *backlog);
/*
 * Read up to `n` bytes, for which there is room, of `fd`; they are not there before
 * tl_backlog_commit(). Returns as read(). Out of a pipe into a folder the bytes go in one step of
 * the system: they are in the one or the other, whenever the process is killed.
 */
ssize_t tl_backlog_read(struct tl_backlog *backlog, int fd, size_t n);
void tl_backlog_commit(struct tl_backlog *backlog, size_t n);

/* Up to `n` bytes from `offset` on, which is there or the end. Fewer where files meet. TL_IO and
 * errno. */
ssize_t tl_backlog_get(struct tl_backlog *backlog, uint64_t offset, uint8_t *p, size_t n);
/* Nothing in front of `offset` (at most the end) is needed any more. */
void tl_backlog_drop(struct tl_backlog *backlog, uint64_t offset);

#endif
