/* SPDX-License-Identifier: MIT */
/*
 * The body of an HTTP request being received: kept in memory for a route that accepts one, within
 * the route's limit and the limit of all received messages; otherwise dropped.
 */
#ifndef TL_NET_BODY_H
#define TL_NET_BODY_H

#include "net/netint.h"
#include "net/workers.h"

/* Zero-initialised: none expected. Not thread-safe: to be read once everything has arrived. */
struct tl_body {
    struct tl_buf data;
    size_t most;               /* limit; 0: none expected */
    size_t held;               /* its contribution to tl_net_stats.inbound */
    enum tl_role_class class_; /* class in which `held` is counted */
    int error;                 /* TL_LIMIT, TL_NOMEM: reason for dropping the rest */
};

/*
 * Prepare `body` if the request's route accepts a body, and this client may send one. `headers`
 * include ":authority" or "host", "authorization" and so on.
 */
void tl_body_expect(struct tl_net *net, const char *method, const char *target,
                    const struct tl_fields *headers, const struct tl_caller *caller,
                    struct tl_body *body);
/* Append received bytes. False: they were dropped. */
bool tl_body_add(struct tl_net *net, struct tl_body *body, const uint8_t *p, size_t n);
void tl_body_fini(struct tl_net *net, struct tl_body *body);

#endif
