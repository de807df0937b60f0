/* SPDX-License-Identifier: MIT */
/* TLS: the server context, ALPN, and the certificate generated at first start. */
#ifndef TL_NET_TLS_H
#define TL_NET_TLS_H

#include "base/buf.h"

#include <openssl/ssl.h>

struct tl_tls;

/*
 * Load a PEM chain and key, and (unless NULL) the CA certificates for clients: a client certificate
 * is then requested, optional, and rejected if invalid. Errors: TL_BAD, TL_IO, with what to do.
 */
TL_MUST_USE int tl_tls_new(struct tl_tls **out, const char *cert, const char *key,
                           const char *client_ca, struct tl_fail *fail);
void tl_tls_free(struct tl_tls *tls);

/* SHA-256 of the certificate as "AB:CD:…". */
const char *tl_tls_fingerprint(const struct tl_tls *tls);

/* Create a server session; the caller attaches its BIOs. NULL: out of memory. Thread-safe. */
SSL *tl_tls_accept(struct tl_tls *tls);
/* Did ALPN select HTTP/2? */
bool tl_tls_is_h2(const SSL *ssl);
/*
 * Append the names in the client's certificate, NUL-terminated: DNS names, e-mail addresses and
 * URIs, then common names. Nothing without a certificate. TL_NOMEM.
 */
TL_MUST_USE int tl_tls_client_names(const SSL *ssl, struct tl_buf *out);

/*
 * Create a P-256 key and a self-signed certificate for localhost, 127.0.0.1 and ::1, unless both
 * files exist. The key is readable only by its owner. Returns 1 if created, 0 if they existed.
 * TL_IO.
 */
TL_MUST_USE int tl_tls_make_certificate(const char *cert, const char *key, struct tl_fail *fail);

#endif
