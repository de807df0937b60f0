/* SPDX-License-Identifier: MIT */
/* A sink for a packetizer that keeps all packets. */
#ifndef TL_TESTS_ETM4_COLLECT_H
#define TL_TESTS_ETM4_COLLECT_H

#include "base/buf.h"
#include "etm4/packetizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Free `p`. */
struct packets {
    struct tl_etm4_packet *p;
    size_t n, cap;
    size_t stop_at; /* the sink fails at this number of packets; 0: never */
};

static inline int collect(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct packets *all = context;
    assert_true(n >= 1 && n <= TL_ETM4_BATCH);
    assert_int_equal(tl_grow(&all->p, &all->cap, all->n + n, sizeof *all->p), 0);
    memcpy(all->p + all->n, packets, n * sizeof *packets);
    all->n += n;
    return all->stop_at > 0 && all->n >= all->stop_at ? TL_CANCELLED : 0;
}

#endif
