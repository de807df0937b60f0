/* SPDX-License-Identifier: MIT */
/*
 * Validates the heads of HTTP/1.1 requests before libmicrohttpd sees them. A server behind a proxy
 * must reject what the proxy may have parsed differently, and libmicrohttpd answers some malformed
 * heads twice, others not at all, and joins folded lines. Source: RFC 9112, sections 2.2 to 6.3;
 * RFC 9110, 5.5 and 5.6.2.
 */
#ifndef TL_NET_HEADSCAN_H
#define TL_NET_HEADSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_HEAD_BYTES  65536 /* largest head, with the empty lines before it, which are ignored */
#define TL_HEAD_FIELDS 128

/* One head. Zero-initialise before its first byte. Not thread-safe. */
struct tl_headscan {
    size_t line; /* begin of the line being received */
    size_t seen; /* bytes in which no end of this line is */
    unsigned fields;
    unsigned hosts;
    unsigned lengths;
    bool in_fields; /* after the request line */
    bool coded;     /* has Transfer-Encoding */
    bool old;       /* HTTP/1.0 */
    /* What follows is a body, whose bytes are not examined: whoever answers this request must
     * close the connection. */
    bool body;
    int status; /* of the refusal: 400, 413, 414, 431, 501, 505; 0: nothing is wrong so far */
};

/*
 * Examine a head of which `n` bytes have arrived at `p`, with those of earlier calls. Returns its
 * length once it is complete, otherwise 0: more bytes are needed, or `scan->status` is set.
 */
size_t tl_headscan(struct tl_headscan *scan, const uint8_t *p, size_t n);

/* Can a request be refused with this status before a handler sees it? */
bool tl_head_is_refusal(int status);
/* The reason phrase of such a status, and a sentence that says what is wrong. Constant. */
const char *tl_head_reason(int status);
const char *tl_head_advice(int status);

#endif
