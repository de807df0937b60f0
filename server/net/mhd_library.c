/* SPDX-License-Identifier: MIT */
#include "net/mhd_library.h"

#include "base/library.h"

struct tl_libmhd tl_libmhd;

int tl_libmhd_load(struct tl_fail *fail)
{
#define NAME(function) "MHD_" #function,
    static const char *const names[] = {TL_LIBMHD(NAME)};
    static const struct tl_library library = {
        .file = "libmicrohttpd.so.12",
        .package = "libmicrohttpd12",
        .user = "the HTTP/1.1 server",
        .names = names,
        .n = sizeof names / sizeof names[0],
        .functions = (void **)&tl_libmhd,
    };
    return tl_library_load(&library, fail);
}
