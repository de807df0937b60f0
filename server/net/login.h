/* SPDX-License-Identifier: MIT */
/*
 * Logins of browsers: a cookie that stands for a token, so that the page's script never keeps it.
 * The value names the token by its digest and ends after a week; a key that is made when the server
 * starts signs it. A token that is revoked or expires ends its logins; so does a restart.
 *
 * Thread-safe once made.
 */
#ifndef TL_NET_LOGIN_H
#define TL_NET_LOGIN_H

#include "net/auth.h"
#include "net/fields.h"

#define TL_LOGIN_S (7 * 86400)

struct tl_logins {
    uint8_t key[32];
    char name[24]; /* of the cookie: servers on other ports of this host have cookies, too */
};

/* TL_IO: the system gives no random bytes. */
TL_MUST_USE int tl_logins_init(struct tl_logins *logins, struct tl_fail *fail);

/* A Set-Cookie value for what was granted; `grant` NULL: one that ends a login. TL_NOMEM. */
TL_MUST_USE int tl_login_cookie(const struct tl_logins *logins, const struct tl_grant *grant,
                                bool tls, struct tl_fields *headers);

/*
 * The digest of the token that a request's cookies stand for. False: there is no login in them, or
 * none of this server, or it is over.
 */
bool tl_login_find(const struct tl_logins *logins, const struct tl_fields *headers,
                   uint8_t digest[static TL_TOKEN_DIGEST]);

#endif
