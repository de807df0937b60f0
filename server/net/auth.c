/* SPDX-License-Identifier: MIT */
#include "net/auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGEST    32
#define MAX_TOKEN 512

struct entry {
    uint8_t digest[DIGEST]; /* of the token: equal length, and the token is not kept */
    unsigned roles;
    struct tl_scope *scope; /* NULL: everything */
};

struct tl_auth {
    struct entry *entries;
    size_t n;
    size_t cap;
};

static bool digest_of(const char *token, size_t n, uint8_t out[static DIGEST])
{
    return EVP_Digest(token, n, out, NULL, EVP_sha256(), NULL) == 1;
}

static unsigned roles_of(const char *name)
{
    if (!strcmp(name, "read"))
        return TL_ROLE_READ;
    if (!strcmp(name, "push"))
        return TL_ROLE_READ | TL_ROLE_PUSH;
    if (!strcmp(name, "admin"))
        return TL_ROLE_ALL;
    return 0;
}

static bool is_known(const struct tl_auth *auth, const uint8_t digest[static DIGEST])
{
    for (size_t i = 0; i < auth->n; i++)
        if (!memcmp(digest, auth->entries[i].digest, DIGEST))
            return true;
    return false;
}

/* The words behind the role. */
static int read_scope(struct entry *entry, char **save, unsigned number, const char *path,
                      struct tl_fail *fail)
{
    for (const char *word; (word = strtok_r(NULL, " \t\r\n", save));) {
        const int rc = tl_scope_add(&entry->scope, word);
        if (rc == TL_USAGE)
            return tl_fail_set(fail, TL_BAD,
                               "%.100s: line %u: \"%.40s\" is no scope: write rig=GLOB[,GLOB…] or "
                               "label=KEY=VALUE",
                               path, number, word);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

static int add_line(struct tl_auth *auth, char *line, unsigned number, const char *path,
                    struct tl_fail *fail)
{
    char *save = NULL;
    const char *const token = strtok_r(line, " \t\r\n", &save);
    if (!token || *token == '#')
        return TL_OK;
    const char *const role = strtok_r(NULL, " \t\r\n", &save);
    struct entry entry = {.roles = role ? roles_of(role) : 0};
    if (!entry.roles)
        return tl_fail_set(fail, TL_BAD,
                           "%.100s: line %u: write \"token role\", the role is read, push or admin",
                           path, number);
    if (strlen(token) < 16 || strlen(token) > MAX_TOKEN)
        return tl_fail_set(fail, TL_BAD,
                           "%.100s: line %u: a token has 16 to %d characters; "
                           "`openssl rand -hex 24` makes a good one",
                           path, number, MAX_TOKEN);
    if (!digest_of(token, strlen(token), entry.digest))
        return TL_NOMEM;
    if (is_known(auth, entry.digest))
        return tl_fail_set(fail, TL_BAD, "%.100s: line %u: this token is on an earlier line", path,
                           number);
    int rc = read_scope(&entry, &save, number, path, fail);
    if (rc == TL_OK)
        rc = tl_grow(&auth->entries, &auth->cap, auth->n + 1, sizeof *auth->entries);
    if (rc < 0) {
        tl_scope_put(entry.scope);
        return rc;
    }
    auth->entries[auth->n++] = entry;
    return TL_OK;
}

int tl_auth_read(struct tl_auth **out, const char *path, struct tl_fail *fail)
{
    FILE *const file = fopen(path, "re");
    if (!file)
        return tl_fail_set(fail, TL_IO, "%.120s: %s", path, strerror(errno));
    struct tl_auth *const auth = calloc(1, sizeof *auth);
    char *line = NULL;
    size_t cap = 0;
    int rc = auth ? TL_OK : TL_NOMEM;
    for (unsigned number = 1; rc == TL_OK && getline(&line, &cap, file) >= 0; number++)
        rc = add_line(auth, line, number, path, fail);
    free(line);
    fclose(file);
    if (rc == TL_OK && !auth->n)
        rc = tl_fail_set(fail, TL_BAD, "%.120s: no token in it: nobody could come in", path);
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
    for (size_t i = 0; i < auth->n; i++)
        tl_scope_put(auth->entries[i].scope);
    free(auth->entries);
    free(auth);
}

static unsigned look_up(const struct tl_auth *auth, const char *token, size_t n,
                        struct tl_scope **scope)
{
    static const struct entry nobody;
    uint8_t digest[DIGEST];
    const struct entry *found = &nobody;
    if (n == 0 || n > MAX_TOKEN || !digest_of(token, n, digest))
        return 0;
    for (size_t i = 0; i < auth->n; i++)
        if (!CRYPTO_memcmp(digest, auth->entries[i].digest, DIGEST))
            found = &auth->entries[i];
    *scope = tl_scope_get(found->scope);
    return found->roles;
}

/* user:password in base64; the user's name does not matter. */
static unsigned look_up_basic(const struct tl_auth *auth, const char *text, struct tl_scope **scope)
{
    unsigned char plain[MAX_TOKEN * 2];
    const size_t n = strlen(text);
    if (n == 0 || n % 4 || n / 4 * 3 > sizeof plain)
        return 0;
    int got = EVP_DecodeBlock(plain, (const unsigned char *)text, (int)n);
    if (got < 0)
        return 0;
    got -= (text[n - 1] == '=') + (text[n - 2] == '='); /* it counts the padding */
    const unsigned char *const colon = memchr(plain, ':', (size_t)got);
    if (!colon)
        return 0;
    const size_t skip = (size_t)(colon + 1 - plain);
    return look_up(auth, (const char *)colon + 1, (size_t)got - skip, scope);
}

unsigned tl_auth_roles(const struct tl_auth *auth, const char *authorization,
                       struct tl_scope **scope)
{
    *scope = NULL;
    if (!authorization)
        return 0;
    const size_t scheme = strcspn(authorization, " ");
    const char *const rest = authorization + scheme + strspn(authorization + scheme, " ");
    if (scheme == 6 && !strncasecmp(authorization, "Bearer", 6))
        return look_up(auth, rest, strlen(rest), scope);
    if (scheme == 5 && !strncasecmp(authorization, "Basic", 5))
        return look_up_basic(auth, rest, scope);
    return 0;
}
