/* SPDX-License-Identifier: MIT */
/* A part of a response's body: Range and If-Range. Source: RFC 9110, sections 13.1.5 and 14. */
#ifndef TL_NET_HTTPRANGE_H
#define TL_NET_HTTPRANGE_H

#include "net/http.h"

/*
 * Cut a complete response with `ranges` down to what the request wants of it: 206 with
 * Content-Range. Several ranges, other units and what cannot be read are ignored, as they may be.
 * A body in pieces is made once to know its length, and again from its begin. TL_OK; TL_LIMIT:
 * nothing is there, `total` is the length; others: the body could not be made.
 */
TL_MUST_USE int tl_http_range(const struct tl_http_request *request,
                              struct tl_http_response *response, uint64_t *total);

#endif
