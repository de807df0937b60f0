/* SPDX-License-Identifier: MIT */
/*
 * The client of a connection: its address, and the names in its client certificate. Shared by the
 * connection and its requests; immutable once requests have it.
 */
#ifndef TL_NET_CALLER_H
#define TL_NET_CALLER_H

#include "base/buf.h"

#include <stdatomic.h>
#include <sys/socket.h>

struct tl_caller {
    atomic_uint refs;
    char address[64];    /* "10.0.0.7:41234", "[fe80::1]:41234" */
    struct tl_buf names; /* NUL-terminated names; empty without a certificate */
};

/* Create. NULL: out of memory. */
struct tl_caller *tl_caller_new(const struct sockaddr_storage *peer, socklen_t n);
struct tl_caller *tl_caller_get(struct tl_caller *caller);
void tl_caller_put(struct tl_caller *caller); /* accepts NULL */

#endif
