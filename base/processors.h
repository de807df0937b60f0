/* SPDX-License-Identifier: MIT */
/* Header only, thread-safe. */
#ifndef TL_BASE_PROCESSORS_H
#define TL_BASE_PROCESSORS_H

#include <sched.h>

/* Number of processors this process may use, respecting CPU affinity. */
static inline unsigned tl_processors(void)
{
    cpu_set_t ours;
    return sched_getaffinity(0, sizeof(ours), &ours) == 0 ? (unsigned)CPU_COUNT(&ours) : 1;
}

#endif
