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

/* From now on stores are opened through it, with these functions; no faults yet. No store may be
 * open or have pending operations. */
void interpose(const struct tl_librados *functions);
/* The same with the library itself. TL_UNSUPPORTED: it is not installed. */
TL_MUST_USE int interpose_library(struct tl_fail *fail);

enum fault {
    FAULT_REFUSED = 1, /* not done: EIO */
    FAULT_FULL = 2,    /* the same for writes: EDQUOT */
    FAULT_LOST = 4,    /* done, but the answer is ETIMEDOUT */
    FAULT_LATE = 8,    /* done a few milliseconds later, as is the answer */
    FAULT_TWICE = 16,  /* a write is done twice; the answer is that of the second time */
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

/* Clients are numbered from 1 in the order in which they connect after interpose(). A client that
 * is cut off gets no answers: ETIMEDOUT, and nothing is done. */
void interposer_cut_off(unsigned client, bool off);
/*
 * The power of all clients fails at the `n`-th operation from now on (0: the first). Until one of
 * them is told so, operations were under way: each is done or not, as drawn from `seed`, but for
 * one object in order; all of them, and all others, get no answer: ETIMEDOUT. What was answered
 * before is durable, as in a cluster.
 */
void interposer_power_fails(uint64_t n, uint64_t seed);
/* It is back: clients that connect from now on are served. It does not fail any more. */
void interposer_power_returns(void);
/* Notifications are lost. */
void interposer_deaf(bool is);

#endif
