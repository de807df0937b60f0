/* SPDX-License-Identifier: MIT */
/* libmicrohttpd, loaded by a server when it starts: see base/library.h. */
#ifndef TL_NET_MHD_LIBRARY_H
#define TL_NET_MHD_LIBRARY_H

#include "base/err.h"

#include <microhttpd.h>

/* The functions used, without "MHD_". */
#define TL_LIBMHD(X)                                                                               \
    X(add_connection)                                                                              \
    X(add_response_header)                                                                         \
    X(create_response_from_buffer)                                                                 \
    X(create_response_from_callback)                                                               \
    X(destroy_response)                                                                            \
    X(get_connection_info)                                                                         \
    X(get_connection_values_n)                                                                     \
    X(queue_response)                                                                              \
    X(start_daemon)                                                                                \
    X(stop_daemon)

struct tl_libmhd {
#define TL_LIBMHD_MEMBER(name) __typeof__(MHD_##name) *name;
    TL_LIBMHD(TL_LIBMHD_MEMBER)
#undef TL_LIBMHD_MEMBER
};
extern struct tl_libmhd tl_libmhd; /* written only by tl_libmhd_load() */

/* Load it, once; from any thread. TL_UNSUPPORTED: it is not installed. */
TL_MUST_USE int tl_libmhd_load(struct tl_fail *fail);

#endif
