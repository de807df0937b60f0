/* SPDX-License-Identifier: MIT */
/*
 * The client of a connection: its address, its account, and the names in its client certificate.
 * Shared by the connection and its requests; immutable once requests have it, except `recent`.
 */
#ifndef TL_NET_CALLER_H
#define TL_NET_CALLER_H

#include "net/shares.h"

#include <stdatomic.h>
#include <sys/socket.h>

struct tl_caller {
    atomic_uint refs;
    char address[64];           /* "10.0.0.7:41234", "[fe80::1]:41234" */
    struct tl_buf names;        /* NUL-terminated names; empty without a certificate */
    struct tl_account *account; /* of the address */
    /* Of the token that was used last; belongs to the thread that receives the requests. */
    struct tl_account *recent;
};

struct tl_grant;

/* Create, taking over the reference to `account`, also on failure. NULL: out of memory. */
struct tl_caller *tl_caller_new(const struct sockaddr_storage *peer, socklen_t n,
                                struct tl_account *account);
/* The account of a request with this grant, a reference. On the thread that receives requests. */
struct tl_account *tl_caller_account(struct tl_caller *caller, const struct tl_grant *grant);
struct tl_caller *tl_caller_get(struct tl_caller *caller);
void tl_caller_put(struct tl_caller *caller); /* accepts NULL */

#endif
