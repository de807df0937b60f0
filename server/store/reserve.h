/* SPDX-License-Identifier: MIT */
/*
 * Space of a disk that is held back for removing: the catalog needs some to record that something
 * is gone. DIR/reserve only occupies it, a 64th of the disk, from 1 to 32 MiB. It is given up
 * before the catalog needs space that is not there, and held back again when there is twice as
 * much.
 *
 * Thread-safe, except tl_reserve_find() and _keep(): one thread at a time.
 */
#ifndef TL_STORE_RESERVE_H
#define TL_STORE_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Appended to messages about a full disk. */
#define TL_SPACE_ADVICE                                                                            \
    "; free some: remove traces ('tracelake rm'), limit them ('tracelake retain'), or other files"

struct tl_reserve {
    int dir; /* borrowed */
    uint64_t bytes;
    atomic_bool held;
};

/* Bytes that can still be written to the disk of a folder; UINT64_MAX: not known. */
uint64_t tl_disk_free(int dir);

/* Initialise; finds what an earlier process has held back. */
void tl_reserve_find(struct tl_reserve *reserve, int dir);
/* Hold the space back if it is not, and there is enough. */
void tl_reserve_keep(struct tl_reserve *reserve);
/* Give it up if there is less than that left otherwise. */
void tl_reserve_give(struct tl_reserve *reserve);
/*
 * May others write, without using what is to be held back? While the space is given up: only when
 * there is enough to hold it back again.
 */
bool tl_reserve_spares(const struct tl_reserve *reserve);

#endif
