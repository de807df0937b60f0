/* SPDX-License-Identifier: MIT */
/*
 * Shared libraries that are loaded when something first needs them: together with all that they
 * depend on, they would multiply the time that each command takes to start.
 */
#ifndef TL_BASE_LIBRARY_H
#define TL_BASE_LIBRARY_H

#include "base/err.h"

#include <stddef.h>

/* A shared library, and the functions used of it. */
struct tl_library {
    const char *file;         /* its name with its version: "libzmq.so.5" */
    const char *package;      /* Debian's package that installs it */
    const char *user;         /* what needs it */
    const char *const *names; /* of its functions */
    size_t n;
    void **functions; /* their addresses; the last is NULL until all are found */
};

/*
 * Load it unless that is done; it stays. From any thread: before the first call of a function in
 * each thread. TL_UNSUPPORTED: the library, or one of these functions, is not installed.
 */
TL_MUST_USE int tl_library_load(const struct tl_library *library, struct tl_fail *fail);

#endif
