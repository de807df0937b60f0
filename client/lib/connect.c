/* SPDX-License-Identifier: MIT */
/*
 * The connection object, which connects when a call needs it. Since a server may have several
 * addresses and several servers may share a lake, a call that fails at one is made at the next.
 */
#include "ask.h"

#include "base/digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    QUIET_MS = 5000,  /* when calls have no time limit */
    AGAIN_MS = 10000, /* how long a call is repeated */
    PAUSE_MS = 20,    /* after all places were tried; doubled each time */
    PAUSE_MAX_MS = 500
};

/* "sha256:AB:CD:…" in any mix of case and colons, to a comma or the end. */
static int parse_pin(const char *text, uint8_t out[static 32])
{
    if (strncasecmp(text, "sha256:", 7) == 0)
        text += 7;
    int digits = 0;
    for (; *text && *text != ','; text++) {
        if (*text == ':')
            continue;
        const int digit = tl_hex_digit(*text);
        if (digit < 0 || digits == 64)
            return TRACELAKE_USAGE;
        out[digits / 2] = (uint8_t)(digits % 2 ? out[digits / 2] | digit : digit << 4);
        digits++;
    }
    return digits == 64 ? TRACELAKE_OK : TRACELAKE_USAGE;
}

/*
 * Parse one or several fingerprints separated by commas: servers may have certificates of their
 * own.
 */
static int take_pins(struct tracelake *lake, const char *text, struct tracelake_error *error)
{
    size_t cap = 0;
    for (const char *p = text; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        if (tl_grow(&lake->pins, &cap, lake->wire.n_pins + 1, sizeof *lake->pins) < 0)
            return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
        if (parse_pin(p, lake->pins[lake->wire.n_pins++]) < 0)
            return tl_client_fail(error, TRACELAKE_USAGE,
                                  "%s is not a fingerprint; 64 hex digits are needed", text);
    }
    lake->wire.pins = lake->pins;
    return TRACELAKE_OK;
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

/* Copy a string; NULL gives NULL. */
static int keep(char **out, const char *text)
{
    *out = text ? strdup(text) : NULL;
    return text && !*out ? TRACELAKE_NOMEM : TRACELAKE_OK;
}

static int take_options(struct tracelake *lake, const struct tracelake_options *options,
                        struct tracelake_error *error)
{
    lake->mangled = options->mangled;
    lake->timeout_ms = options->timeout_ms ? options->timeout_ms : 60000;
    lake->wire.connect_ms = options->connect_ms > 0 ? options->connect_ms : 10000;
    /* Probe the link after a twelfth of the time limit of calls: after 5 s, of 60. */
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
        const int pinned = take_pins(lake, options->fingerprint, error);
        if (pinned < 0)
            return pinned;
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
    int result = tl_url_parse(&lake->urls, &lake->n_urls, url, error);
    if (result == TRACELAKE_OK &&
        !(lake->n_addresses = calloc(lake->n_urls, sizeof *lake->n_addresses)))
        result = tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
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
    free(lake->pins);
    free(lake->urls);
    free(lake->n_addresses);
    free(lake);
}

void tracelake_interrupt(struct tracelake *lake)
{
    const uint64_t one = 1;
    atomic_store(&lake->interrupted, true);
    if (write(lake->wake_fd, &one, sizeof one) < 0)
        return; /* full: already readable */
}

void tracelake_resume(struct tracelake *lake)
{
    uint64_t count;
    atomic_store(&lake->interrupted, false);
    if (read(lake->wake_fd, &count, sizeof count) < 0)
        return; /* there was no interrupt */
}

int tracelake_descriptor(const struct tracelake *lake, bool *writing)
{
    bool write = false;
    const int fd =
        lake->mux && tl_mux_usable(lake->mux) ? tl_mux_descriptor(lake->mux, &write) : -1;
    if (writing)
        *writing = write;
    return fd;
}

/* ---- places ------------------------------------------------------------------------------- */

static size_t n_places(const struct tracelake *lake)
{
    size_t n = 0;
    for (size_t i = 0; i < lake->n_urls; i++)
        n += lake->n_addresses[i] > 0 ? lake->n_addresses[i] : 1;
    return n;
}

bool tl_client_others(const struct tracelake *lake)
{
    return n_places(lake) > 1;
}

void tl_client_leave(struct tracelake *lake)
{
    if (!tl_client_others(lake))
        return;
    tl_mux_put(lake->mux);
    lake->mux = NULL;
    if (++lake->address < lake->n_addresses[lake->at])
        return;
    lake->address = 0;
    lake->at = (lake->at + 1) % lake->n_urls;
}

bool tl_client_again(struct tracelake *lake, struct tl_again *again, int result)
{
    const size_t places = n_places(lake);
    if (places == 1 || (result != TRACELAKE_UNREACHABLE && result != TRACELAKE_TIMEOUT))
        return false;
    const int64_t now = tl_monotonic_ms();
    if (!again->begun)
        again->begun = now;
    if (now - again->begun > AGAIN_MS)
        return false;
    if (++again->tries % places == 0) {
        const size_t round = again->tries / places;
        const int pause = round > 5 ? PAUSE_MAX_MS : PAUSE_MS << (round - 1);
        /* Interrupted: reported by the next call. */
        return tl_wire_sleep(pause, lake->wake_fd, NULL) <= TRACELAKE_OK;
    }
    return true;
}

/* Connect to one address, with this time limit in ms. */
static int connect_at(struct tracelake *lake, const struct tl_url *url,
                      const struct addrinfo *address, int64_t ms, struct tracelake_error *error)
{
    struct tl_wire_options options = lake->wire;
    options.connect_ms = ms > 1 ? (int)ms : 1;
    return tl_mux_open(&lake->mux, url, address, &options, &lake->interrupted, error);
}

/* Try the addresses of a server, beginning with number `first`: OK, or the last failure. */
static int connect_to(struct tracelake *lake, size_t at, size_t first, int64_t deadline,
                      struct tracelake_error *error)
{
    struct addrinfo *list;
    int result = tl_wire_resolve(&list, &lake->urls[at], error);
    if (result < 0)
        return result;
    size_t n = 0;
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        n++;
    lake->n_addresses[at] = n;
    for (size_t i = 0; i < n; i++) {
        const size_t number = (first + i) % n;
        const struct addrinfo *address = list;
        for (size_t k = 0; k < number; k++)
            address = address->ai_next;
        result = connect_at(lake, &lake->urls[at], address,
                            (deadline - tl_monotonic_ms()) / (int64_t)(n - i), error);
        if (result == TRACELAKE_OK) {
            lake->at = at;
            lake->address = number;
        }
        if (result == TRACELAKE_OK || result == TRACELAKE_CANCELLED || result == TRACELAKE_NOMEM)
            break;
    }
    freeaddrinfo(list);
    return result;
}

static int connect_any(struct tracelake *lake, struct tracelake_error *error)
{
    struct tracelake_error why = {0};
    const int64_t until = tl_monotonic_ms() + lake->wire.connect_ms;
    const size_t first = lake->at, address = lake->address;
    int result = TRACELAKE_UNREACHABLE;
    for (size_t i = 0; i < lake->n_urls; i++) {
        const int64_t now = tl_monotonic_ms();
        const int64_t share = (until - now) / (int64_t)(lake->n_urls - i);
        result =
            connect_to(lake, (first + i) % lake->n_urls, i == 0 ? address : 0, now + share, &why);
        if (result == TRACELAKE_OK || result == TRACELAKE_CANCELLED || result == TRACELAKE_NOMEM)
            break;
    }
    if (result < 0 && error)
        *error = why;
    if (result < 0 && lake->n_urls > 1 && result != TRACELAKE_CANCELLED)
        tl_client_fail(error, result, "none of %zu servers answers; the last: %.400s", lake->n_urls,
                       why.text);
    return result;
}

int tl_client_connect(struct tracelake *lake, struct tracelake_error *error)
{
    if (atomic_load(&lake->interrupted))
        return tl_client_fail(error, TRACELAKE_CANCELLED, "interrupted");
    if (lake->mux) {
        /* Detect now, rather than during this call, that the server has gone since the last one. */
        if (tl_mux_step(lake->mux, 0, NULL) == TRACELAKE_NOMEM)
            return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
        if (tl_mux_usable(lake->mux))
            return TRACELAKE_OK;
        /* A server that breaks its connections without an answer counts as unavailable. */
        if (!lake->heard)
            tl_client_leave(lake);
        tl_mux_put(lake->mux);
        lake->mux = NULL;
    }
    lake->heard = false;
    return connect_any(lake, error);
}
