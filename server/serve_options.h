/* SPDX-License-Identifier: MIT */
/* Internal to server/: interpretation of the options in serve.h. Not thread-safe. */
#ifndef TL_SERVE_OPTIONS_H
#define TL_SERVE_OPTIONS_H

#include "base/journal.h"
#include "net/net.h"
#include "serve.h"

/* Listeners and their certificate; zero-initialised: none. */
struct tl_serve_net {
    struct tl_listen *listen;
    size_t n_listen;
    char *cert, *key; /* files */
};

void tl_serve_net_fini(struct tl_serve_net *net);
/*
 * Determine the listeners; those reachable from other hosts are encrypted and require tokens.
 * TL_USAGE.
 */
TL_MUST_USE int tl_serve_listeners(struct tl_serve_net *net, const struct tl_serve_options *o,
                                   struct tl_fail *fail);
/* Determine the certificate's files, whether or not they exist. TL_USAGE, TL_NOMEM. */
TL_MUST_USE int tl_serve_certificate(struct tl_serve_net *net, const struct tl_serve_options *o,
                                     struct tl_fail *fail);
/* The options for the network layer; borrows from both arguments. */
struct tl_net_options tl_serve_net_options(const struct tl_serve_net *net,
                                           const struct tl_serve_options *o);

/* Check that numbers are in range, and leave a usable server. TL_USAGE. */
TL_MUST_USE int tl_serve_limits(const struct tl_serve_options *o, struct tl_fail *fail);
/* Parse an age or lifetime; what the text does not give is unchanged. TL_USAGE. */
TL_MUST_USE int tl_serve_age(const char *option, const char *text, uint64_t *age_s,
                             struct tl_fail *fail);
TL_MUST_USE int tl_serve_lifetime(const char *option, const char *text, uint64_t *age_s,
                                  uint64_t *bytes, struct tl_fail *fail);
TL_MUST_USE int tl_serve_retention(const struct tl_serve_options *o, struct tl_fail *fail);
/* Check that the data can be stored at the configured place. */
TL_MUST_USE int tl_serve_store(const struct tl_serve_options *o, struct tl_fail *fail);
/* Open the journal as configured. TL_USAGE. */
TL_MUST_USE int tl_serve_journal(const struct tl_serve_options *o, struct tl_fail *fail);
/* Check that a listener may use `address`; raw TCP and ZeroMQ have no authentication. TL_USAGE. */
TL_MUST_USE int tl_serve_local(const struct tl_serve_options *o, const char *option,
                               const char *address, struct tl_fail *fail);

struct tl_rpc;
/* Set the quotas of rigs; `rpc` NULL: only check them. TL_USAGE, TL_NOMEM. */
TL_MUST_USE int tl_serve_quotas(const struct tl_serve_options *o, struct tl_rpc *rpc,
                                struct tl_fail *fail);

#endif
