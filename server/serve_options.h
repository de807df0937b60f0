/* SPDX-License-Identifier: MIT */
/* Inside of server/: what the options of serve.h mean. Not thread-safe. */
#ifndef TL_SERVE_OPTIONS_H
#define TL_SERVE_OPTIONS_H

#include "base/journal.h"
#include "net/net.h"
#include "serve.h"

/* Where it listens, and with which certificate; zeroed there is nothing. */
struct tl_serve_net {
    struct tl_listen *listen;
    size_t n_listen;
    char *cert, *key; /* files */
};

void tl_serve_net_fini(struct tl_serve_net *net);
/* The listeners; what can be reached from elsewhere is encrypted and asks for tokens. TL_USAGE. */
TL_MUST_USE int tl_serve_listeners(struct tl_serve_net *net, const struct tl_serve_options *o,
                                   struct tl_fail *fail);
/* The certificate's files, whether they are there or not. TL_USAGE, TL_NOMEM. */
TL_MUST_USE int tl_serve_certificate(struct tl_serve_net *net, const struct tl_serve_options *o,
                                     struct tl_fail *fail);
/* What of the options the network half has to do with; borrowed of both. */
struct tl_net_options tl_serve_net_options(const struct tl_serve_net *net,
                                           const struct tl_serve_options *o);

/* Numbers that fit, and that leave a server which can be used. TL_USAGE. */
TL_MUST_USE int tl_serve_limits(const struct tl_serve_options *o, struct tl_fail *fail);
/* What is said of an age or a lifetime: what is not said stays as it was. TL_USAGE. */
TL_MUST_USE int tl_serve_age(const char *option, const char *text, uint64_t *age_s,
                             struct tl_fail *fail);
TL_MUST_USE int tl_serve_lifetime(const char *option, const char *text, uint64_t *age_s,
                                  uint64_t *bytes, struct tl_fail *fail);
TL_MUST_USE int tl_serve_retention(const struct tl_serve_options *o, struct tl_fail *fail);
/* Can it keep what it has to where it is told to? */
TL_MUST_USE int tl_serve_store(const struct tl_serve_options *o, struct tl_fail *fail);
/* Open the journal as they say. TL_USAGE. */
TL_MUST_USE int tl_serve_journal(const struct tl_serve_options *o, struct tl_fail *fail);
/* Neither raw TCP nor ZeroMQ asks who is there: may it be told to listen at `address`? TL_USAGE. */
TL_MUST_USE int tl_serve_local(const struct tl_serve_options *o, const char *option,
                               const char *address, struct tl_fail *fail);

#endif
