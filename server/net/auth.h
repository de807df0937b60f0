/* SPDX-License-Identifier: MIT */
/*
 * Who may do what: tokens, logins of browsers made from them, and names of client certificates.
 * Read once, then read-only: thread-safe.
 */
#ifndef TL_NET_AUTH_H
#define TL_NET_AUTH_H

#include "base/bytes.h"
#include "net/tokens.h"

struct tl_auth;

/* Read a file of tokens (net/tokens.h). TL_BAD with the line's number, or without a token; TL_IO.
 */
TL_MUST_USE int tl_auth_read(struct tl_auth **out, const char *path, struct tl_fail *fail);
void tl_auth_free(struct tl_auth *auth);

/* What a request may do. */
struct tl_grant {
    unsigned roles;         /* 0: nothing, and … */
    const char *why;        /* … what is wrong with what it shows; constant */
    struct tl_scope *scope; /* NULL: everything. The receiver's reference */
    const uint8_t *digest;  /* of the line that grants it; lasts as long as the tl_auth */
    int64_t expires;        /* s since 1970; 0: never */
};

/*
 * By an Authorization value: "Bearer TOKEN", or "Basic …" with the token as password. How long it
 * takes tells nothing about the tokens.
 */
struct tl_grant tl_auth_by_token(const struct tl_auth *auth, const char *authorization);
/* By the digest of a token. */
struct tl_grant tl_auth_by_digest(const struct tl_auth *auth,
                                  const uint8_t digest[static TL_TOKEN_DIGEST]);
/* By a certificate's names, each with a NUL behind it: the first that grants anything. */
struct tl_grant tl_auth_by_names(const struct tl_auth *auth, struct tl_bytes names);

#endif
