/* SPDX-License-Identifier: MIT */
/*
 * Byte transport to the server: a non-blocking TCP connection, with or without TLS.
 * Single-threaded. Waits also watch a wake descriptor, so that another thread can end them.
 */
#ifndef TL_CLIENT_WIRE_H
#define TL_CLIENT_WIRE_H

#include "base/now.h"
#include "url.h"

#include <netdb.h>

struct tl_wire;

struct tl_wire_options {
    const char *cafile;        /* NULL: the system's */
    const uint8_t (*pins)[32]; /* accepted SHA-256 hashes of the server's certificate */
    size_t n_pins;             /* 0: not pinned */
    bool insecure;
    const char *certfile; /* client certificate; NULL: none */
    const char *keyfile;  /* NULL: in the same file */
    int connect_ms;
    int quiet_ms; /* silence while a call is pending after which the link is probed; also the time
                     allowed for the answer */
    int wake_fd;  /* readable: interrupted */
};

/* Resolve a server's addresses; free with freeaddrinfo(). UNREACHABLE. */
TL_MUST_USE int tl_wire_resolve(struct addrinfo **out, const struct tl_url *url,
                                struct tracelake_error *error);
/* Connect to one of them, with a TLS handshake that negotiates ALPN h2. UNREACHABLE, DENIED,
 * TIMEOUT, CANCELLED. */
TL_MUST_USE int tl_wire_open(struct tl_wire **out, const struct tl_url *url,
                             const struct addrinfo *address, const struct tl_wire_options *options,
                             struct tracelake_error *error);
void tl_wire_close(struct tl_wire *wire);

/* Return the number of bytes moved (> 0), AGAIN, or UNREACHABLE (also at the orderly end). */
TL_MUST_USE long tl_wire_read(struct tl_wire *wire, void *p, size_t n,
                              struct tracelake_error *error);
TL_MUST_USE long tl_wire_write(struct tl_wire *wire, const void *p, size_t n,
                               struct tracelake_error *error);

/* Wait until the socket is readable, or (if `writing`) writable, for up to `ms` milliseconds (< 0:
 * forever). OK, AGAIN when the time is over, CANCELLED. */
TL_MUST_USE int tl_wire_wait(struct tl_wire *wire, bool writing, int ms,
                             struct tracelake_error *error);

/* Number of bytes written that the peer's system has not acknowledged yet. */
size_t tl_wire_unsent(const struct tl_wire *wire);
/* The socket, for poll(). */
int tl_wire_descriptor(const struct tl_wire *wire);

/* Sleep for `ms` milliseconds, until a signal, or CANCELLED. */
TL_MUST_USE int tl_wire_sleep(int ms, int wake_fd, struct tracelake_error *error);

#endif
