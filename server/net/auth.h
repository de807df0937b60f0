/* SPDX-License-Identifier: MIT */
/*
 * Authorisation: tokens, browser logins made from them, and client certificate names. Immutable
 * once read: thread-safe.
 */
#ifndef TL_NET_AUTH_H
#define TL_NET_AUTH_H

#include "base/bytes.h"
#include "net/tokens.h"

struct tl_auth;

/* Read a file of tokens (net/tokens.h). TL_BAD with the line number, or if there is no token;
 * TL_IO. */
TL_MUST_USE int tl_auth_read(struct tl_auth **out, const char *path, struct tl_fail *fail);
void tl_auth_free(struct tl_auth *auth);

/* Permissions of a request. */
struct tl_grant {
    unsigned roles;                  /* 0: none */
    const char *why;                 /* what is wrong with the presented credentials; constant */
    struct tl_scope *scope;          /* NULL: unrestricted. The receiver's reference */
    bool known;                      /* by its token or certificate: `digest` is set */
    uint8_t digest[TL_TOKEN_DIGEST]; /* of the line that grants it */
    struct tl_holder *holder;        /* NULL: no quota. The receiver\'s reference */
    int64_t expires;                 /* s since 1970; 0: never */
};

/*
 * Authorise by an Authorization value: "Bearer TOKEN", or "Basic …" with the token as password. The
 * time taken reveals nothing about the tokens.
 */
struct tl_grant tl_auth_by_token(const struct tl_auth *auth, const char *authorization);
/* Authorise by the digest of a token. */
struct tl_grant tl_auth_by_digest(const struct tl_auth *auth,
                                  const uint8_t digest[static TL_TOKEN_DIGEST]);
/* Authorise by a certificate's names, NUL-terminated: the first one with a grant. */
struct tl_grant tl_auth_by_names(const struct tl_auth *auth, struct tl_bytes names);

#endif
