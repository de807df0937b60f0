/* SPDX-License-Identifier: MIT */
/* A store in the Ceph cluster that TL_RADOS names (rados:POOL?conf=FILE), in a namespace of its
 * own.
 */
#ifndef TL_TESTS_POOL_H
#define TL_TESTS_POOL_H

#include "store/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef TL_WITH_RADOS
#include "rados/rados.h"
#endif

static char pool_url[1200];

/* Another namespace; false: there is no cluster, and the test is to be ended by skip_pool(). */
static inline bool choose_pool(void)
{
    static unsigned serial;
    const char *const pool = getenv("TL_RADOS");
    if (pool)
        snprintf(pool_url, sizeof pool_url, "%s&namespace=test-%d-%u&index=5&lease=60", pool,
                 (int)getpid(), serial++);
    return pool != NULL;
}

static inline void skip_pool(void)
{
    print_message("skipped: TL_RADOS is not set\n");
    skip();
}

static inline struct tl_backend *open_pool(void)
{
#ifdef TL_WITH_RADOS
    struct tl_backend *backend;
    struct tl_fail fail = {0};
    if (tl_backend_rados(&backend, pool_url, &fail) < 0)
        fail_msg("%s", fail.text);
    return backend;
#else
    return NULL;
#endif
}

#endif
