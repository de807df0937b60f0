/* SPDX-License-Identifier: MIT */
/* ADDR:PORT texts to socket addresses and back. Thread-safe. */
#ifndef TL_NET_ADDRESS_H
#define TL_NET_ADDRESS_H

#include "base/err.h"

#include <sys/socket.h>

struct tl_address {
    struct sockaddr_storage at;
    socklen_t n;
};

/*
 * Resolve "127.0.0.1:7070", "[::1]:7070", "localhost:7070", "*:7070" (any address). May ask the
 * name service, thus block. TL_USAGE: not of that form, or the name is not known.
 */
TL_MUST_USE int tl_address_parse(struct tl_address *out, const char *text, bool passive,
                                 struct tl_fail *fail);
/* As "127.0.0.1:7070" or "[::1]:7070" into `out`; returns it. "*" becomes "0.0.0.0". */
char *tl_address_text(const struct tl_address *address, char *out, size_t n);
/* Is "name[:port]" an address or localhost? NULL, too: no browser leaves it out. */
bool tl_host_is_local(const char *host);
bool tl_address_loopback(const struct tl_address *address);

/* A listening, non-blocking socket at the address; `address` gets the true port. TL_IO. */
TL_MUST_USE int tl_address_listen(struct tl_address *address, struct tl_fail *fail);

#endif
