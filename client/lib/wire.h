/* SPDX-License-Identifier: MIT */
/*
 * The bytes' way to the server: a non-blocking TCP connection, with or without TLS. One thread.
 * It is watched together with a wake descriptor, so that another thread can end a wait.
 */
#ifndef TL_CLIENT_WIRE_H
#define TL_CLIENT_WIRE_H

#include "url.h"

#include <netdb.h>

struct tl_wire;

struct tl_wire_options {
    const char *cafile;        /* NULL: the system's */
    const uint8_t (*pins)[32]; /* SHA-256 of certificates, one of which it must have, … */
    size_t n_pins;             /* … or 0 */
    bool insecure;
    const char *certfile; /* by which the server knows us; NULL: none */
    const char *keyfile;  /* NULL: in the same file */
    int connect_ms;
    int quiet_ms; /* how long nothing may come while a call waits, before the link is asked whether
                     it lives; and how long it may take to answer */
    int wake_fd;  /* readable: interrupted */
};

/* The addresses of a server, to be freed with freeaddrinfo(). UNREACHABLE. */
TL_MUST_USE int tl_wire_resolve(struct addrinfo **out, const struct tl_url *url,
                                struct tracelake_error *error);
/* Connect to one of them, and shake hands for TLS with ALPN h2. UNREACHABLE, DENIED, TIMEOUT,
 * CANCELLED. */
TL_MUST_USE int tl_wire_open(struct tl_wire **out, const struct tl_url *url,
                             const struct addrinfo *address, const struct tl_wire_options *options,
                             struct tracelake_error *error);
void tl_wire_close(struct tl_wire *wire);

/* Bytes moved (> 0), AGAIN, or UNREACHABLE (also at the orderly end). */
TL_MUST_USE long tl_wire_read(struct tl_wire *wire, void *p, size_t n,
                              struct tracelake_error *error);
TL_MUST_USE long tl_wire_write(struct tl_wire *wire, const void *p, size_t n,
                               struct tracelake_error *error);

/* Wait until it can be read, or (if `writing`) written, for up to `ms` (< 0: for ever). OK,
 * AGAIN when the time is over, CANCELLED. */
TL_MUST_USE int tl_wire_wait(struct tl_wire *wire, bool writing, int ms,
                             struct tracelake_error *error);

/* Bytes that were written and that the other side's system has not taken yet. */
size_t tl_wire_unsent(const struct tl_wire *wire);
/* The socket, to be polled. */
int tl_wire_descriptor(const struct tl_wire *wire);

/* Sleep for `ms`, or until a signal, or CANCELLED. */
TL_MUST_USE int tl_wire_sleep(int ms, int wake_fd, struct tracelake_error *error);

/* Monotonic milliseconds. */
int64_t tl_wire_now(void);

#endif
