/* SPDX-License-Identifier: MIT */
/*
 * Everything that identifies a client. The first byte chooses: a line of the tokens file, an
 * Authorization value, a Cookie value (prefixed with our cookie's name, or unchanged), names in a
 * certificate. No input is authorised, since the tokens and the key differ.
 */
#include "net/auth.h"
#include "net/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static struct tl_auth *some_auth(void)
{
    static const char line[] =
        "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
        " admin\n";
    struct tl_auth *auth = NULL;
    struct tl_fail fail = {0};
    char path[] = "/tmp/tl-fuzz-auth-XXXXXX";
    const int fd = mkstemp(path);
    require(fd >= 0 && write(fd, line, sizeof line - 1) == sizeof line - 1);
    close(fd);
    require(tl_auth_read(&auth, path, &fail) == TL_OK);
    unlink(path);
    return auth;
}

static void token_line(char *text)
{
    struct tl_token token;
    struct tl_fail fail = {0};
    char date[24];
    const int rc = tl_token_parse(&token, text, &fail);
    require(rc == TL_OK || rc == TL_EOF || (rc == TL_BAD && fail.text[0]));
    if (rc != TL_OK)
        return;
    require(token.roles && token.role);
    if (token.expires) { /* reading what was written gives the same token */
        int64_t again;
        require(tl_token_expiry_parse(tl_token_expiry_text(token.expires, date), &again) == TL_OK);
        require(again == token.expires);
    }
    char *const scope = tl_scope_text(token.scope);
    require(scope);
    free(scope);
    tl_token_fini(&token);
}

static void cookie(const char *text, bool ours)
{
    static struct tl_logins logins;
    static bool made;
    struct tl_fields headers = {0};
    uint8_t digest[TL_TOKEN_DIGEST];
    struct tl_fail fail = {0};
    if (!made)
        require(tl_logins_init(&logins, &fail) == TL_OK);
    made = true;
    struct tl_buf value = {0};
    require(tl_buf_printf(&value, "%s%s", ours ? logins.name : "", ours ? "=" : "") >= 0 &&
            tl_buf_add(&value, text, strlen(text)) == TL_OK);
    require(tl_fields_add_n(&headers, "cookie", 6, (const char *)value.p, value.n) == TL_OK);
    tl_buf_fini(&value);
    require(!tl_login_find(&logins, &headers, digest));
    tl_fields_fini(&headers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tl_auth *auth;
    if (!auth)
        auth = some_auth();
    if (size == 0)
        return 0;
    char *const text = malloc(size);
    require(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    switch (data[0] % 5) {
    case 0:
        token_line(text);
        break;
    case 1:
        require(!tl_auth_by_token(auth, text).roles);
        break;
    case 2:
    case 3:
        cookie(text, data[0] % 5 == 2);
        break;
    case 4: /* names, each terminated by a NUL */
        require(!tl_auth_by_names(auth, (struct tl_bytes){(const uint8_t *)text, size}).roles);
        break;
    }
    free(text);
    return 0;
}
