/* SPDX-License-Identifier: MIT */
/*
 * librados over model.h, in place of the library: a store in RADOS without a cluster, whose
 * operations can be refused, get lost, come late or twice, at any place of what a test does.
 *
 * Operations of one client on one object keep their order where one of them writes, as they do in
 * Ceph; otherwise a late one is overtaken.
 */
#ifndef TL_TESTS_RADOS_LIBRADOS_H
#define TL_TESTS_RADOS_LIBRADOS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on stores are opened in the model, which is emptied. `url` names any store. */
void fake_librados(void);

enum fake_fault {
    FAKE_REFUSED = 1, /* not done: EIO */
    FAKE_FULL = 2,    /* the same of what writes: EDQUOT */
    FAKE_LOST = 4,    /* done, but the answer is ETIMEDOUT */
    FAKE_LATE = 8,    /* done a few milliseconds later, as the answer is */
    FAKE_TWICE = 16,  /* what writes is done twice; the answer is that of the second time */
};

/* Of every `every` operations one suffers a fault of `kinds` (a sum), chosen by `seed`. Kinds 0: no
 * more. */
void fake_faults(unsigned kinds, unsigned every, uint64_t seed);
/* How many have suffered one. */
uint64_t fake_faults_so_far(void);

/* Clients are numbered from 1 on as they connect since fake_librados(). One that is cut off gets no
 * answers: ETIMEDOUT, and nothing is done. */
void fake_cut_off(unsigned client, bool off);
/* Notifications reach nobody. */
void fake_deaf(bool is);

#endif
