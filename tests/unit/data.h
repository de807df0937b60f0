/* SPDX-License-Identifier: MIT */
/* Location of real captures, for tests that use them if available. */
#ifndef TL_TEST_DATA_H
#define TL_TEST_DATA_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The path of `name` below $TL_DATA, or ../shared/data next to the source tree. Returns false if it
 * is not available. */
static inline bool test_data(char *out, size_t size, const char *name)
{
    const char *const dir = getenv("TL_DATA");
    if (dir)
        snprintf(out, size, "%s/%s", dir, name);
    else
        snprintf(out, size, "%s/../shared/data/%s", TL_SOURCE_DIR, name);
    return access(out, R_OK) == 0;
}

#endif
