/* SPDX-License-Identifier: MIT */
/*
 * Signs cookies that carry a token's digest and an expiry, and verifies them. The server keeps no
 * list of logins, so that no number of them takes memory.
 */
#include "net/login.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define HEX    (2 * TL_TOKEN_DIGEST)
#define SIGNED (HEX + 1 + 16) /* "digest.expiry", the expiry in 16 hex digits */
#define VALUE  (SIGNED + 1 + HEX)

static void put_hex(char *out, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static bool sign(const struct tl_logins *logins, const char *text, char out[static HEX + 1])
{
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (!HMAC(EVP_sha256(), logins->key, sizeof logins->key, (const uint8_t *)text, SIGNED, mac,
              &n) ||
        n != TL_TOKEN_DIGEST)
        return false;
    put_hex(out, mac, n);
    return true;
}

int tl_logins_init(struct tl_logins *logins, struct tl_fail *fail)
{
    uint8_t id[6];
    char text[2 * sizeof id + 1];
    if (RAND_bytes(logins->key, sizeof logins->key) != 1 || RAND_bytes(id, sizeof id) != 1)
        return tl_fail_set(fail, TL_IO, "the system gives no random bytes");
    put_hex(text, id, sizeof id);
    snprintf(logins->name, sizeof logins->name, "tracelake-%s", text);
    return TL_OK;
}

int tl_login_cookie(const struct tl_logins *logins, const struct tl_grant *grant, bool tls,
                    struct tl_fields *headers)
{
    char value[VALUE + 1] = "";
    int64_t lasts = 0;
    if (grant) {
        const int64_t now = (int64_t)time(NULL);
        lasts =
            grant->expires && grant->expires - now < TL_LOGIN_S ? grant->expires - now : TL_LOGIN_S;
        put_hex(value, grant->digest, TL_TOKEN_DIGEST);
        snprintf(value + HEX, sizeof value - HEX, ".%016llx", (unsigned long long)(now + lasts));
        value[SIGNED] = '.';
        if (!sign(logins, value, value + SIGNED + 1))
            return TL_NOMEM;
    }
    return tl_fields_addf(headers, "set-cookie",
                          "%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s", logins->name,
                          value, (long long)lasts, tls ? "; Secure" : "");
}

static bool read_value(const struct tl_logins *logins, const char *value, size_t n,
                       uint8_t digest[static TL_TOKEN_DIGEST])
{
    char text[SIGNED + 1];
    char mac[HEX + 1];
    if (n != VALUE)
        return false;
    memcpy(text, value, SIGNED);
    text[SIGNED] = 0;
    if (value[SIGNED] != '.' || !sign(logins, text, mac) ||
        CRYPTO_memcmp(mac, value + SIGNED + 1, HEX) != 0)
        return false;
    /* The signature guarantees the format. */
    if (strtoull(text + HEX + 1, NULL, 16) <= (unsigned long long)time(NULL))
        return false;
    for (size_t i = 0; i < TL_TOKEN_DIGEST; i++) {
        const char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        digest[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

/* "a=b; c=d". Source: RFC 6265, 4.2.1. */
static bool find_in(const struct tl_logins *logins, const char *cookies,
                    uint8_t digest[static TL_TOKEN_DIGEST])
{
    const size_t name_n = strlen(logins->name);
    while (*cookies) {
        cookies += strspn(cookies, " ;");
        const size_t n = strcspn(cookies, ";");
        if (n > name_n && !strncmp(cookies, logins->name, name_n) && cookies[name_n] == '=' &&
            read_value(logins, cookies + name_n + 1, n - name_n - 1, digest))
            return true;
        cookies += n;
    }
    return false;
}

/* HTTP/2 may have them in several fields. Source: RFC 9113, 8.2.3. */
bool tl_login_find(const struct tl_logins *logins, const struct tl_fields *headers,
                   uint8_t digest[static TL_TOKEN_DIGEST])
{
    for (size_t i = 0; i < headers->n; i++)
        if (!strcasecmp(tl_fields_name(headers, i), "cookie") &&
            find_in(logins, tl_fields_value(headers, i), digest))
            return true;
    return false;
}
