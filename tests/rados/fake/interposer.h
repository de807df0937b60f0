/* SPDX-License-Identifier: MIT */
/*
 * Between a store in RADOS and librados, the library or librados.h in its place: any operation can
 * be refused, get lost, come late or twice, and a client can be cut off.
 *
 * Operations of one client on one object keep their order where one of them writes, as they do in
 * Ceph; otherwise a late one is overtaken.
 */
#ifndef TL_TESTS_RADOS_INTERPOSER_H
#define TL_TESTS_RADOS_INTERPOSER_H

#include "rados/rados_library.h"

#include <stdbool.h>
#include <stdint.h>

/* From now on stores are opened through it, with these functions; nothing goes wrong yet. No store
 * is open, or has operations under way. */
void interpose(const struct tl_librados *functions);
/* The same with the library itself. TL_UNSUPPORTED: it is not installed. */
TL_MUST_USE int interpose_library(struct tl_fail *fail);

enum fault {
    FAULT_REFUSED = 1, /* not done: EIO */
    FAULT_FULL = 2,    /* the same of what writes: EDQUOT */
    FAULT_LOST = 4,    /* done, but the answer is ETIMEDOUT */
    FAULT_LATE = 8,    /* done a few milliseconds later, as the answer is */
    FAULT_TWICE = 16,  /* what writes is done twice; the answer is that of the second time */
    FAULTS = 31
};

/* Of every `every` operations one suffers a fault of `kinds` (a sum), chosen by `seed`. Kinds 0: no
 * more. */
void interposer_faults(unsigned kinds, unsigned every, uint64_t seed);
/* The `n`-th operation from now on (0: the first) that can suffer one of `kinds` does, no other. */
void interposer_fault_at(unsigned kinds, uint64_t n);
/* How many operations since then could have suffered it. */
uint64_t interposer_passed(void);
/* How many have suffered one since interpose(). */
uint64_t interposer_suffered(void);

/* Clients are numbered from 1 on as they connect since interpose(). One that is cut off gets no
 * answers: ETIMEDOUT, and nothing is done. */
void interposer_cut_off(unsigned client, bool off);
/* Notifications reach nobody. */
void interposer_deaf(bool is);

#endif
