/* SPDX-License-Identifier: MIT */
/* Results and error reporting of the client library. */
#ifndef TL_CLIENT_ERROR_H
#define TL_CLIENT_ERROR_H

#include "base/err.h"
#include "tracelake.h"

/* Fill `error` (may be NULL) and return `code`. */
int tl_client_fail(struct tracelake_error *error, int code, const char *format, ...)
    TL_PRINTF(3, 4);

/* Fill `error` from a server response: `status` is a gRPC status other than 0, `message` its text
 * (may be empty), `method` the name of the call. */
int tl_client_refused(struct tracelake_error *error, int status, const char *message,
                      const char *method);

/* Fill `error`: `server` has ended a connection, by TLS or not, before its first word, so that it
 * has done nothing. The gRPC status is UNAVAILABLE, as if it had said so. Returns
 * TRACELAKE_UNREACHABLE. */
int tl_client_lost(struct tracelake_error *error, const char *server, bool tls);

/* Fill `error` from an internal failure. */
int tl_client_fail_from(struct tracelake_error *error, int code, const struct tl_fail *fail);

#endif
