/* SPDX-License-Identifier: MIT */
/* Conversion between ADDR:PORT texts and socket addresses. Thread-safe. */
#ifndef TL_NET_ADDRESS_H
#define TL_NET_ADDRESS_H

#include "base/err.h"

#include <sys/socket.h>

struct tl_address {
    struct sockaddr_storage at;
    socklen_t n;
};

/*
 * Resolve "127.0.0.1:7070", "[::1]:7070", "localhost:7070", "*:7070" (any address). May query the
 * name service, and therefore block. TL_USAGE: not of that form, or the name is unknown.
 */
TL_MUST_USE int tl_address_parse(struct tl_address *out, const char *text, bool passive,
                                 struct tl_fail *fail);
/* Format as "127.0.0.1:7070" or "[::1]:7070" into `out`; returns it. "*" becomes "0.0.0.0". */
char *tl_address_text(const struct tl_address *address, char *out, size_t n);
/* Is "name[:port]" an IP address or localhost? NULL also counts: no browser omits it. */
bool tl_host_is_local(const char *host);
bool tl_address_loopback(const struct tl_address *address);

/* Create a listening, non-blocking socket; `address` receives the actual port. TL_IO. */
TL_MUST_USE int tl_address_listen(struct tl_address *address, struct tl_fail *fail);

#endif
