/* SPDX-License-Identifier: MIT */
/* TLS for tl_wire: OpenSSL over a non-blocking socket, raises no signals. */
#ifndef TL_CLIENT_CTLS_H
#define TL_CLIENT_CTLS_H

#include "wire.h"

struct tl_ctls;

/* Create. `fd` is borrowed. NOMEM, IO (cafile). */
TL_MUST_USE int tl_ctls_new(struct tl_ctls **out, int fd, const struct tl_url *url,
                            const struct tl_wire_options *options, struct tracelake_error *error);
void tl_ctls_free(struct tl_ctls *tls);

/* Perform one step of the handshake: OK when it is complete and the certificate is accepted, AGAIN
 * (then see tl_ctls_wants_write()), DENIED, UNREACHABLE. */
TL_MUST_USE int tl_ctls_handshake(struct tl_ctls *tls, struct tracelake_error *error);
bool tl_ctls_wants_write(const struct tl_ctls *tls);

/* As tl_wire_read() and tl_wire_write(). */
TL_MUST_USE long tl_ctls_read(struct tl_ctls *tls, void *p, size_t n,
                              struct tracelake_error *error);
TL_MUST_USE long tl_ctls_write(struct tl_ctls *tls, const void *p, size_t n,
                               struct tracelake_error *error);

#endif
