/* SPDX-License-Identifier: MIT */
/*
 * A failing medium below a real folder: this program's own write(), fsync(), rename() and so on
 * replace those of the C library, for our code and for SQLite's. Every change of a file is counted,
 * and may be refused (ENOSPC, EIO), cut short, or be the last one before a power cut.
 */
#ifndef TL_TESTS_MEDIUM_H
#define TL_TESTS_MEDIUM_H

#include <stdint.h>

enum medium_fault {
    MEDIUM_ENOSPC,
    MEDIUM_EIO,
    MEDIUM_SHORT, /* half of it is written, then ENOSPC for the rest */
    MEDIUM_POWER  /* the process ends; only synced data remains */
};

/* Watch changes below `dir`; changes elsewhere are not affected. Nothing is refused yet. NULL: stop
 * watching. */
void medium_watch(const char *dir);
/* Let the next `after` changes pass, then refuse `count` of them. */
void medium_refuse(uint64_t after, uint64_t count, enum medium_fault fault);
/* Number of changes so far. */
uint64_t medium_changes(void);
/* Number of changes refused since medium_refuse(). */
uint64_t medium_refused(void);

/*
 * Record what a power cut would leave below the watched folder; call it before anything is opened
 * there. With MEDIUM_POWER the folder is put into that state and the process ends with status
 * MEDIUM_CUT; `seed` determines which unsynced changes survive anyway.
 */
#define MEDIUM_CUT 77
void medium_track(uint64_t seed);

#endif
