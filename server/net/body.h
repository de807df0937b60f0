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
    size_t most;  /* limit; 0: none expected */
    size_t held;  /* charged to `account` */
    unsigned use; /* as this */
    struct tl_account *account;
    int error; /* TL_LIMIT, TL_NOMEM: reason for dropping the rest */
};

/*
 * Prepare `body` if the request's route accepts a body, and a client with these `roles` may send
 * one; it is charged to `account`, which is borrowed. `headers` include ":authority" or "host".
 */
void tl_body_expect(struct tl_net *net, const char *method, const char *target,
                    const struct tl_fields *headers, unsigned roles, struct tl_account *account,
                    struct tl_body *body);
/* Append received bytes. False: they were dropped. */
bool tl_body_add(struct tl_body *body, const uint8_t *p, size_t n);
void tl_body_fini(struct tl_body *body);

#endif
