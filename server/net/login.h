/* SPDX-License-Identifier: MIT */
/*
 * Browser logins: a cookie that stands for a token, so that the page's script never stores the
 * token. Its value contains the token's digest and an expiry time of one week, signed with a key
 * generated at server start. A revoked or expired token ends its logins; so does a restart.
 *
 * Thread-safe once initialised.
 */
#ifndef TL_NET_LOGIN_H
#define TL_NET_LOGIN_H

#include "net/auth.h"
#include "net/fields.h"

#define TL_LOGIN_S (7 * 86400)

struct tl_logins {
    uint8_t key[32];
    char name[24]; /* of the cookie: cookies of servers on other ports of the host are also sent */
};

/* TL_IO: the system provides no random bytes. */
TL_MUST_USE int tl_logins_init(struct tl_logins *logins, struct tl_fail *fail);

/* Add a Set-Cookie field for a grant; `grant` NULL: one that ends the login. TL_NOMEM. */
TL_MUST_USE int tl_login_cookie(const struct tl_logins *logins, const struct tl_grant *grant,
                                bool tls, struct tl_fields *headers);

/*
 * Get the digest of the token that a request's cookies stand for. False: no login, not one of this
 * server, or expired.
 */
bool tl_login_find(const struct tl_logins *logins, const struct tl_fields *headers,
                   uint8_t digest[static TL_TOKEN_DIGEST]);

#endif
