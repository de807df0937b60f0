/* SPDX-License-Identifier: MIT */
/*
 * Validates the heads of HTTP/1.1 requests before libmicrohttpd parses them: it joins folded lines
 * and ends values at a NUL, which its callbacks cannot detect. A server behind a proxy must reject
 * what the proxy may have parsed differently. Source: RFC 9112, sections 2.2 and 5.2; RFC 9110,
 * 5.5.
 */
#ifndef TL_NET_HEADSCAN_H
#define TL_NET_HEADSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise, one per connection. Not thread-safe. */
struct tl_headscan {
    bool in_fields; /* after the request line */
    bool named;     /* the line's ':' was seen */
    bool body;      /* a field announces a body */
    /* In or after a body, which has no lines: this connection is not checked any more. */
    bool blind;
    bool bad;      /* stopped at a byte that is not allowed there */
    size_t line_n; /* length of the line so far */
    char name[17]; /* its first characters, in lower case */
};

/*
 * Scan the next bytes of the connection. Returns how many may be passed on: all of them, except for
 * a CR at the end, which must be passed again with what follows it; or, with scan->bad, those
 * before a byte that is not allowed: NUL, CR without LF, SP or HTAB at the begin of a line. After a
 * head with Content-Length or Transfer-Encoding everything is passed; whoever answers that request
 * must close the connection.
 */
size_t tl_headscan(struct tl_headscan *scan, const uint8_t *p, size_t n);

#endif
