/* SPDX-License-Identifier: MIT */
/*
 * A medium that fails, under a real folder: this program's own write(), fsync(), rename() and so on
 * stand in front of the C library's, for our code and for SQLite's. Every change of a file is
 * counted and may be refused (ENOSPC, EIO), cut short, or be the last one before the power goes.
 */
#ifndef TL_TESTS_MEDIUM_H
#define TL_TESTS_MEDIUM_H

#include <stdint.h>

enum medium_fault {
    MEDIUM_ENOSPC,
    MEDIUM_EIO,
    MEDIUM_SHORT, /* half of it is written, then ENOSPC for the rest */
    MEDIUM_POWER  /* the process ends; only what was synced stays */
};

/* Watch changes below `dir`; others pass. Nothing is refused yet. NULL: stop watching. */
void medium_watch(const char *dir);
/* Let `after` changes pass, then refuse `count` of them. */
void medium_refuse(uint64_t after, uint64_t count, enum medium_fault fault);
/* How many changes there were. */
uint64_t medium_changes(void);
/* How many were refused since medium_refuse(). */
uint64_t medium_refused(void);

/*
 * Keep track of what a power cut would leave below the watched folder; call it before anything is
 * opened there. With MEDIUM_POWER the folder is put into that state and the process ends with
 * status MEDIUM_CUT; `seed` draws what of the unsynced is there after all.
 */
#define MEDIUM_CUT 77
void medium_track(uint64_t seed);

#endif
