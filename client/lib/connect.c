/* SPDX-License-Identifier: MIT */
/* The connection object: made once, reconnected when a call finds it dead. */
#include "ask.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { QUIET_MS = 5000 }; /* where calls have no limit */

/* "sha256:AB:CD:…" in any mix of case and colons. */
static int parse_pin(const char *text, uint8_t out[static 32])
{
    if (strncasecmp(text, "sha256:", 7) == 0)
        text += 7;
    int digits = 0;
    for (; *text; text++) {
        if (*text == ':')
            continue;
        if (!isxdigit((unsigned char)*text) || digits == 64)
            return TRACELAKE_USAGE;
        const int c = tolower((unsigned char)*text);
        const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
        out[digits / 2] = (uint8_t)(digits % 2 ? out[digits / 2] | digit : digit << 4);
        digits++;
    }
    return digits == 64 ? TRACELAKE_OK : TRACELAKE_USAGE;
}

static int take_token(struct tracelake *lake, const char *token, struct tracelake_error *error)
{
    for (const char *p = token; *p; p++)
        if (*p <= ' ' || *p >= 0x7f)
            return tl_client_fail(error, TRACELAKE_USAGE,
                                  "the token holds a character that no token has");
    if (asprintf(&lake->authorization, "Bearer %s", token) < 0) {
        lake->authorization = NULL;
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    }
    return TRACELAKE_OK;
}

/* A copy, or NULL of NULL. */
static int keep(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return text && !*out ? TRACELAKE_NOMEM : TRACELAKE_OK;
}

static int take_options(struct tracelake *lake, const struct tracelake_options *options,
                        struct tracelake_error *error)
{
    lake->timeout_ms = options->timeout_ms ? options->timeout_ms : 60000;
    lake->wire.connect_ms = options->connect_ms > 0 ? options->connect_ms : 10000;
    /* Asked behind a twelfth of what a call may take: behind 5 s, of 60. */
    lake->wire.quiet_ms = lake->timeout_ms > 0 ? lake->timeout_ms / 12 + 1 : QUIET_MS;
    lake->wire.insecure = options->insecure;
    lake->wire.wake_fd = lake->wake_fd;
    if (options->keyfile && !options->certfile)
        return tl_client_fail(error, TRACELAKE_USAGE, "a key file needs a certificate file");
    if (keep(&lake->cafile, options->cafile) < 0 || keep(&lake->certfile, options->certfile) < 0 ||
        keep(&lake->keyfile, options->keyfile) < 0)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    lake->wire.cafile = lake->cafile;
    lake->wire.certfile = lake->certfile;
    lake->wire.keyfile = lake->keyfile;
    if (options->fingerprint) {
        if (parse_pin(options->fingerprint, lake->pin) < 0)
            return tl_client_fail(error, TRACELAKE_USAGE,
                                  "%s is not a fingerprint; 64 hex digits are needed",
                                  options->fingerprint);
        lake->wire.pin = lake->pin;
    }
    return options->token ? take_token(lake, options->token, error) : TRACELAKE_OK;
}

int tracelake_connect(struct tracelake **out, const char *url,
                      const struct tracelake_options *options, struct tracelake_error *error)
{
    static const struct tracelake_options defaults;
    struct tracelake *lake = calloc(1, sizeof *lake);
    if (!lake)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    atomic_init(&lake->interrupted, false);
    lake->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = tl_url_parse(&lake->url, url, error);
    if (result == TRACELAKE_OK && lake->wake_fd < 0)
        result = tl_client_fail(error, TRACELAKE_IO, "no descriptor left");
    if (result == TRACELAKE_OK)
        result = take_options(lake, options ? options : &defaults, error);
    if (result == TRACELAKE_OK)
        result = tl_client_connect(lake, error);
    if (result < 0) {
        tracelake_close(lake);
        return result;
    }
    *out = lake;
    return TRACELAKE_OK;
}

void tracelake_close(struct tracelake *lake)
{
    if (!lake)
        return;
    tl_mux_put(lake->mux);
    if (lake->wake_fd >= 0)
        close(lake->wake_fd);
    free(lake->authorization);
    free(lake->cafile);
    free(lake->certfile);
    free(lake->keyfile);
    free(lake);
}

void tracelake_interrupt(struct tracelake *lake)
{
    const uint64_t one = 1;
    atomic_store(&lake->interrupted, true);
    if (write(lake->wake_fd, &one, sizeof one) < 0)
        return; /* full: it is readable already */
}

void tracelake_resume(struct tracelake *lake)
{
    uint64_t count;
    atomic_store(&lake->interrupted, false);
    if (read(lake->wake_fd, &count, sizeof count) < 0)
        return; /* nobody had interrupted */
}

int tracelake_descriptor(const struct tracelake *lake, bool *writing)
{
    bool write = false;
    const int fd = lake->mux && tl_mux_usable(lake->mux) ? tl_mux_descriptor(lake->mux, &write) : -1;
    if (writing)
        *writing = write;
    return fd;
}

int tl_client_connect(struct tracelake *lake, struct tracelake_error *error)
{
    if (atomic_load(&lake->interrupted))
        return tl_client_fail(error, TRACELAKE_CANCELLED, "interrupted");
    if (lake->mux) {
        /* Notice now that the server has gone since the last call, rather than in this one. */
        if (tl_mux_step(lake->mux, 0, NULL) == TRACELAKE_NOMEM)
            return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
        if (tl_mux_usable(lake->mux))
            return TRACELAKE_OK;
        tl_mux_put(lake->mux);
        lake->mux = NULL;
    }
    return tl_mux_open(&lake->mux, &lake->url, &lake->wire, &lake->interrupted, error);
}
