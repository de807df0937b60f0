/* SPDX-License-Identifier: MIT */
/*
 * The body of an HTTP request as it comes in: kept whole in memory for a route that takes one, up
 * to the route's limit and to what all received messages may take together; else dropped.
 */
#ifndef TL_NET_BODY_H
#define TL_NET_BODY_H

#include "net/netint.h"
#include "net/workers.h"

/* Zeroed: none is wanted. Not thread-safe: whoever reads it does so once all has come. */
struct tl_body {
    struct tl_buf data;
    size_t most;               /* 0: none is wanted */
    size_t held;               /* what it counts towards tl_net_stats.inbound … */
    enum tl_role_class class_; /* … of this class */
    int error;                 /* TL_LIMIT, TL_NOMEM: why the rest was dropped */
};

/*
 * Does the request's route take a body, and may this client send it one? Then `body` takes what
 * comes. `headers` with ":authority" or "host", "authorization" and so on.
 */
void tl_body_expect(struct tl_net *net, const char *method, const char *target,
                    const struct tl_fields *headers, const struct tl_caller *caller,
                    struct tl_body *body);
/* The next bytes. False: they were dropped. */
bool tl_body_add(struct tl_net *net, struct tl_body *body, const uint8_t *p, size_t n);
void tl_body_fini(struct tl_net *net, struct tl_body *body);

#endif
