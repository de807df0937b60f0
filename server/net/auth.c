/* SPDX-License-Identifier: MIT */
/*
 * Looks up the grant of a token, a login or a certificate's name by digest. All digests are
 * compared, each in constant time, so that the time taken reveals nothing of a token.
 */
#include "net/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

struct tl_auth {
    struct tl_token *tokens;
    size_t n;
};

int tl_auth_read(struct tl_auth **out, const char *path, struct tl_fail *fail)
{
    struct tl_auth *const auth = calloc(1, sizeof *auth);
    int rc = auth ? tl_tokens_read(&auth->tokens, &auth->n, path, fail) : TL_NOMEM;
    if (rc == TL_OK && !auth->n)
        rc = tl_fail_set(fail, TL_BAD, "%.120s: it contains no token: nobody could log in", path);
    if (rc < 0)
        tl_auth_free(auth);
    else
        *out = auth;
    return rc;
}

void tl_auth_free(struct tl_auth *auth)
{
    if (!auth)
        return;
    tl_tokens_free(auth->tokens, auth->n);
    free(auth);
}

struct tl_grant tl_auth_by_digest(const struct tl_auth *auth,
                                  const uint8_t digest[static TL_TOKEN_DIGEST])
{
    const struct tl_token *found = NULL;
    for (size_t i = 0; i < auth->n; i++)
        if (!CRYPTO_memcmp(digest, auth->tokens[i].digest, TL_TOKEN_DIGEST))
            found = &auth->tokens[i];
    if (!found)
        return (struct tl_grant){.why = "the token is not known"};
    if (found->expires && found->expires <= (int64_t)time(NULL))
        return (struct tl_grant){.why = "the token has expired"};
    struct tl_grant grant = {.roles = found->roles,
                             .scope = tl_scope_get(found->scope),
                             .known = true,
                             .holder = tl_holder_get(found->holder),
                             .expires = found->expires};
    memcpy(grant.digest, found->digest, sizeof grant.digest);
    return grant;
}

/* A token must not be able to collide with the digest of a certificate's name. */
static struct tl_grant look_up(const struct tl_auth *auth, const char *token, size_t n)
{
    uint8_t digest[TL_TOKEN_DIGEST];
    if (n == 0 || n > TL_TOKEN_MAX || (n >= 5 && !memcmp(token, "cert:", 5)) ||
        tl_token_digest(token, n, digest) < 0)
        return (struct tl_grant){.why = "the token is not known"};
    return tl_auth_by_digest(auth, digest);
}

/* user:password in base64; the user name is ignored. */
static struct tl_grant look_up_basic(const struct tl_auth *auth, const char *text)
{
    static const struct tl_grant broken = {.why = "the password is not well encoded"};
    unsigned char plain[TL_TOKEN_MAX * 2];
    const size_t n = strlen(text);
    if (n == 0 || n % 4 || n / 4 * 3 > sizeof plain)
        return broken;
    int got = EVP_DecodeBlock(plain, (const unsigned char *)text, (int)n);
    if (got < 0)
        return broken;
    got -= (text[n - 1] == '=') + (text[n - 2] == '='); /* the count includes padding */
    const unsigned char *const colon = got > 0 ? memchr(plain, ':', (size_t)got) : NULL;
    if (!colon)
        return broken;
    const size_t skip = (size_t)(colon + 1 - plain);
    return look_up(auth, (const char *)colon + 1, (size_t)got - skip);
}

struct tl_grant tl_auth_by_token(const struct tl_auth *auth, const char *authorization)
{
    const size_t scheme = strcspn(authorization, " ");
    const char *const rest = authorization + scheme + strspn(authorization + scheme, " ");
    if (scheme == 6 && !strncasecmp(authorization, "Bearer", 6))
        return look_up(auth, rest, strlen(rest));
    if (scheme == 5 && !strncasecmp(authorization, "Basic", 5))
        return look_up_basic(auth, rest);
    return (struct tl_grant){.why = "only Bearer and Basic are known for authorization"};
}

struct tl_grant tl_auth_by_names(const struct tl_auth *auth, struct tl_bytes names)
{
    struct tl_grant grant = {.why = "the certificate's name has no role"};
    const char *const end = (const char *)names.p + names.n;
    for (const char *name = (const char *)names.p; name < end; name += strlen(name) + 1) {
        char who[sizeof "cert:" + sizeof((struct tl_token *)0)->cert];
        uint8_t digest[TL_TOKEN_DIGEST];
        const size_t n = strlen(name);
        if (!n || n + 6 > sizeof who)
            continue;
        memcpy(who, "cert:", 5);
        memcpy(who + 5, name, n + 1);
        if (tl_token_digest(who, n + 5, digest) < 0)
            continue;
        const struct tl_grant found = tl_auth_by_digest(auth, digest);
        if (found.roles)
            return found;
    }
    return grant;
}
