/* SPDX-License-Identifier: MIT */
/*
 * Splits server URLs into scheme, host and port, and refuses anything else that a URL may contain.
 * A path or a user name would be ignored silently, and the request would go somewhere unintended.
 */
#include "url.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad(struct tracelake_error *error, const char *text)
{
    return tl_client_fail(error, TRACELAKE_USAGE,
                          "%s is not a server's URL; write http://HOST:PORT or https://HOST:PORT",
                          text);
}

static bool port_ok(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    return n > 0 && n <= 5 && !text[n] && atoi(text) > 0 && atoi(text) <= 65535;
}

static int parse_one(struct tl_url *out, const char *text, struct tracelake_error *error)
{
    *out = (struct tl_url){0};
    const char *p = text;
    if (strncmp(p, "http://", 7) == 0) {
        p += 7;
    } else if (strncmp(p, "https://", 8) == 0) {
        p += 8;
        out->tls = true;
    } else {
        return bad(error, text);
    }
    const bool brackets = *p == '[';
    const char *host = p + brackets;
    const size_t n = brackets ? strcspn(host, "]") : strcspn(host, ":/?#@");
    if (n == 0 || n >= sizeof out->host || (brackets && host[n] != ']'))
        return bad(error, text);
    memcpy(out->host, host, n);
    p = host + n + brackets;

    strcpy(out->port, out->tls ? "7443" : "7070");
    if (*p == ':') {
        char port[8] = {0};
        const size_t digits = strcspn(++p, "/");
        if (digits >= sizeof port)
            return bad(error, text);
        memcpy(port, p, digits);
        if (!port_ok(port))
            return bad(error, text);
        strcpy(out->port, port);
        p += digits;
    }
    if (strcmp(p, "") != 0 && strcmp(p, "/") != 0)
        return bad(error, text);
    snprintf(out->authority, sizeof out->authority, brackets ? "[%s]:%s" : "%s:%s", out->host,
             out->port);
    return TRACELAKE_OK;
}

int tl_url_parse(struct tl_url **out, size_t *n, const char *text, struct tracelake_error *error)
{
    struct tl_url *urls = NULL;
    size_t cap = 0, count = 0;
    int result = TRACELAKE_OK;
    for (const char *p = text; result == TRACELAKE_OK; p++) {
        const size_t length = strcspn(p, ",");
        char *const one = strndup(p, length);
        if (!one || tl_grow(&urls, &cap, count + 1, sizeof *urls) < 0)
            result = tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
        else
            result = parse_one(&urls[count++], one, error);
        free(one);
        p += length;
        if (!*p)
            break;
    }
    if (result < 0) {
        free(urls);
        return result;
    }
    *out = urls;
    *n = count;
    return TRACELAKE_OK;
}
