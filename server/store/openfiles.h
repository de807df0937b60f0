/* SPDX-License-Identifier: MIT */
/*
 * Files of objects that were read a moment ago, held open: a fetch reads each shard several times,
 * and opening costs as much as reading tens of kilobytes. A file that was removed or replaced
 * since, by whatever process, is not used again.
 *
 * Internally locked.
 */
#ifndef TL_STORE_OPENFILES_H
#define TL_STORE_OPENFILES_H

#include "base/err.h"

#include <sys/stat.h>

struct tl_openfiles;

/* Of files below the directory `at`, which is borrowed. NULL: out of memory. */
struct tl_openfiles *tl_openfiles_new(int at);
void tl_openfiles_free(struct tl_openfiles *files); /* NULL is fine */

struct tl_openfile {
    int fd;
    struct stat st; /* as it was when it was taken */
    int slot;       /* < 0: nobody else's */
};

/* Open for reading, to be given back. < 0: errno tells why not. */
TL_MUST_USE int tl_openfiles_take(struct tl_openfiles *files, const char *key,
                                  struct tl_openfile *out);
void tl_openfiles_give(struct tl_openfiles *files, const struct tl_openfile *file);
/* It has been removed: its space shall be free. */
void tl_openfiles_forget(struct tl_openfiles *files, const char *key);

#endif
