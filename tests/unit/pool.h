/* SPDX-License-Identifier: MIT */
/*
 * A store in the Ceph cluster named by TL_RADOS (rados:POOL?conf=FILE), in its own namespace.
 * Without TL_RADOS: over a model of a cluster, rados/fake/librados.h.
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
#include "rados/fake/librados.h"
#include "rados/rados.h"
#endif

enum { POOL_LEASE_S = 60 };

static char pool_url[1200];

/* Select a new namespace; false: the build has no cluster support, and the test must end with
 * skip_pool(). */
static inline bool choose_pool(void)
{
#ifdef TL_WITH_RADOS
    static unsigned serial;
    const char *const pool = getenv("TL_RADOS");
    if (!pool)
        fake_librados();
    snprintf(pool_url, sizeof pool_url, "%s&namespace=test-%d-%u&index=5&lease=%d",
             pool ? pool : "rados:fake?conf=none", (int)getpid(), serial++, POOL_LEASE_S);
    return true;
#else
    return false;
#endif
}

static inline void skip_pool(void)
{
    print_message("skipped: there is no librados\n");
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
