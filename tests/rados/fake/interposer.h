/* SPDX-License-Identifier: MIT */
/*
 * A layer between a store in RADOS and librados (the library, or librados.h in its place): any
 * operation can be refused, get lost, or be delayed or duplicated, and a client can be cut off.
 * Operations of one client on one object keep their order if one of them is a write, as in Ceph;
 * otherwise a delayed one may be overtaken.
 */
#ifndef TL_TESTS_RADOS_INTERPOSER_H
#define TL_TESTS_RADOS_INTERPOSER_H

#include "rados/rados_library.h"

#include <stdbool.h>
#include <stdint.h>

/* From now on stores are opened through the interposer, with these functions; no faults yet. No
 * store may be open or have pending operations. */
void interpose(const struct tl_librados *functions);
/* The same with the library itself. TL_UNSUPPORTED: it is not installed. */
TL_MUST_USE int interpose_library(struct tl_fail *fail);

enum fault {
    FAULT_REFUSED = 1, /* not done, EIO */
    FAULT_FULL = 2,    /* not done if it is a write: EDQUOT */
    FAULT_LOST = 4,    /* done, but returns ETIMEDOUT */
    FAULT_LATE = 8,    /* done a few milliseconds later */
    FAULT_TWICE = 16,  /* a write is done twice; the result is the second one's */
    FAULTS = 31
};

/* One of `every` operations suffers a fault of `kinds` (a sum), selected by `seed`. Kinds 0: no
 * more faults. */
void interposer_faults(unsigned kinds, unsigned every, uint64_t seed);
/*
 * The `n`-th operation from now on (0: the first) that can suffer one of `kinds` suffers it, and no
 * other.
 */
void interposer_fault_at(unsigned kinds, uint64_t n);
/* Number of operations since then that could have suffered it. */
uint64_t interposer_passed(void);
/* Number of faults since interpose(). */
uint64_t interposer_suffered(void);

/* Clients are numbered from 1 in the order in which they connect after interpose(). Operations of a
 * client that is cut off are not executed and return ETIMEDOUT. */
void interposer_cut_off(unsigned client, bool off);
/*
 * The power of all clients fails at the `n`-th operation from now on (0: the first). Operations
 * pending until one of the clients learns of it are executed or not, depending on `seed`, but in
 * order for each object; all of them, and all later ones, return ETIMEDOUT. Results returned before
 * are durable, as in a cluster.
 */
void interposer_power_fails(uint64_t n, uint64_t seed);
/* Restore the power: clients that connect from now on are served. It does not fail again. */
void interposer_power_returns(void);
/* While set, notifications are lost. */
void interposer_deaf(bool is);

#endif
