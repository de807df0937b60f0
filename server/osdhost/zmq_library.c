/* SPDX-License-Identifier: MIT */
/*
 * Loads libzmq's functions by name into a table. Only servers with a host controller need the
 * library, and it would slow down the start of every command.
 */
#include "osdhost/zmq_library.h"

#include "base/library.h"

struct tl_libzmq tl_libzmq;

int tl_libzmq_load(struct tl_fail *fail)
{
#define NAME(function) "zmq_" #function,
    static const char *const names[] = {TL_LIBZMQ(NAME)};
    static const struct tl_library library = {
        .file = "libzmq.so.5",
        .package = "libzmq5",
        .user = "the host controller of Open SoC Debug",
        .names = names,
        .n = sizeof names / sizeof names[0],
        .functions = (void **)&tl_libzmq,
    };
    return tl_library_load(&library, fail);
}
