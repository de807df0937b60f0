/* SPDX-License-Identifier: MIT */
/*
 * Cache of open files of recently read objects: a fetch reads each shard several times, and opening
 * costs as much as reading tens of kilobytes. A file that has since been removed or replaced, by
 * any process, is not used again.
 *
 * Internally locked.
 */
#ifndef TL_STORE_OPENFILES_H
#define TL_STORE_OPENFILES_H

#include "base/err.h"

#include <sys/stat.h>

struct tl_openfiles;

/* Create a cache for files below the directory `at`, which is borrowed. NULL: out of memory. */
struct tl_openfiles *tl_openfiles_new(int at);
void tl_openfiles_free(struct tl_openfiles *files); /* accepts NULL */

struct tl_openfile {
    int fd;
    struct stat st; /* as of when it was taken */
    int slot;       /* < 0: not in the cache */
};

/* Open for reading; release with tl_openfiles_give(). < 0: see errno. */
TL_MUST_USE int tl_openfiles_take(struct tl_openfiles *files, const char *key,
                                  struct tl_openfile *out);
void tl_openfiles_give(struct tl_openfiles *files, const struct tl_openfile *file);
/* The file was removed: drop it, so that its space is freed. */
void tl_openfiles_forget(struct tl_openfiles *files, const char *key);

#endif
