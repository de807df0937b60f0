/* SPDX-License-Identifier: MIT */
/*
 * A look at the heads of HTTP/1.1 requests before libmicrohttpd reads them: it joins folded lines
 * and ends values at a NUL, so its callbacks cannot tell. A server behind a proxy must refuse
 * what the proxy may have read another way. Source: RFC 9112, sections 2.2 and 5.2; RFC 9110, 5.5.
 */
#ifndef TL_NET_HEADSCAN_H
#define TL_NET_HEADSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins zeroed, one per connection. Not thread-safe. */
struct tl_headscan {
    bool in_fields; /* behind the request line */
    bool named;     /* the line's ':' has come */
    bool body;      /* a field announces one */
    bool blind;     /* bodies have no lines: this connection is not looked at any more */
    bool bad;       /* stopped at a byte that no head may have there */
    size_t line_n;  /* bytes of the line so far */
    char name[17];  /* its first ones, in lower case */
};

/*
 * Look at the next bytes of the connection. Returns how many may pass: all of them, but for a CR
 * at the end, which has to come again with what follows it; or, with scan->bad, those before a
 * byte that no head may have there: NUL, CR without LF, SP or HTAB that begins a line. Behind a
 * head with Content-Length or Transfer-Encoding everything passes; whoever answers that request
 * has to close the connection.
 */
size_t tl_headscan(struct tl_headscan *scan, const uint8_t *p, size_t n);

#endif
