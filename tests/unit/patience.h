/* SPDX-License-Identifier: MIT */
/* Waiting for what other threads or processes do: for (int64_t since = 0; !done();)
 * keep_waiting(&since, "done"); */
#ifndef TL_UNIT_PATIENCE_H
#define TL_UNIT_PATIENCE_H

#include "base/now.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_S 240 /* only reached if something hangs, since machines can be busy */

/* Sleep for a moment, 1 to 10 ms. Fails the test if it has been waiting for too long; `*since` is 0
 * at first. */
static inline void keep_waiting(int64_t *since, const char *what)
{
    const int64_t now = tl_monotonic_ms();
    if (!*since)
        *since = now;
    const int64_t waited = now - *since;
    if (waited > PATIENCE_S * 1000)
        fail_msg("waited for %d s: %s", PATIENCE_S, what);
    usleep(waited < 10 ? 1000 : waited < 100 ? (useconds_t)waited * 100 : 10000);
}

#endif
