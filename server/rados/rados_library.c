/* SPDX-License-Identifier: MIT */
/*
 * Loads librados' functions by name into a table, which tests can replace. The table is the only
 * way to the cluster, so that tests without one run the same code above it.
 */
#include "rados/rados_library.h"

#include "base/library.h"

struct tl_librados tl_librados;

int tl_librados_load(struct tl_fail *fail)
{
#define NAME(function) "rados_" #function,
    static const char *const names[] = {TL_LIBRADOS(NAME)};
    static const struct tl_library library = {
        .file = "librados.so.2",
        .package = "librados2",
        .user = "a store in a cluster",
        .names = names,
        .n = sizeof names / sizeof names[0],
        .functions = (void **)&tl_librados,
    };
    return tl_library_load(&library, fail);
}

void tl_librados_use(const struct tl_librados *functions)
{
    tl_librados = *functions;
}
