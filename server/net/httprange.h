/* SPDX-License-Identifier: MIT */
/* A part of a response's body: Range and If-Range. Source: RFC 9110, sections 13.1.5 and 14. */
#ifndef TL_NET_HTTPRANGE_H
#define TL_NET_HTTPRANGE_H

#include "net/http.h"

/*
 * Reduce a complete response with `ranges` to the part that the request asks for: 206 with
 * Content-Range. Multiple ranges, other units and invalid headers are ignored, as permitted. A body
 * in pieces is produced once to determine its length, and again from its begin. TL_OK; TL_LIMIT:
 * the range is outside the body, `total` is its length; other errors: the body could not be
 * produced.
 */
TL_MUST_USE int tl_http_range(const struct tl_http_request *request,
                              struct tl_http_response *response, uint64_t *total);

#endif
