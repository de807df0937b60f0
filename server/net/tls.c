/* SPDX-License-Identifier: MIT */
/*
 * Sets up OpenSSL's server context and reads what a session negotiated. Suites that HTTP/2 forbids
 * are excluded, since a client may end a connection that uses one.
 */
#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_BUFFER 65536 /* for a connection being read */

struct tl_tls {
    SSL_CTX *ctx;
    char fingerprint[32 * 3];
};

static const char *ssl_reason(void)
{
    const char *const text = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return text ? text : "unknown";
}

/* The server's preference decides: HTTP/2 if the client supports it. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                           const unsigned char *in, unsigned in_n, void *argument)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_n, ours, sizeof ours - 1, in, in_n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool ask_clients(SSL_CTX *ctx, const char *path)
{
    static const unsigned char context[] = "tracelake"; /* for resumed sessions */
    STACK_OF(X509_NAME) *const names = SSL_load_client_CA_file(path);
    if (!names)
        return false;
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    return SSL_CTX_load_verify_file(ctx, path) == 1 &&
           SSL_CTX_set_session_id_context(ctx, context, sizeof context - 1) == 1;
}

static void fingerprint(struct tl_tls *tls)
{
    unsigned char digest[32];
    unsigned n = 0;
    X509 *const cert = SSL_CTX_get0_certificate(tls->ctx);
    if (!cert || !X509_digest(cert, EVP_sha256(), digest, &n))
        return;
    for (unsigned i = 0; i < n; i++)
        snprintf(tls->fingerprint + 3 * i, 4, i + 1 < n ? "%02X:" : "%02X", digest[i]);
}

int tl_tls_new(struct tl_tls **out, const char *cert, const char *key, const char *client_ca,
               struct tl_fail *fail)
{
    struct tl_tls *const tls = calloc(1, sizeof *tls);
    if (!tls)
        return TL_NOMEM;
    int rc = TL_NOMEM;
    tls->ctx = SSL_CTX_new(TLS_server_method());
    if (!tls->ctx)
        goto fail;
    SSL_CTX_set_min_proto_version(tls->ctx, TLS1_2_VERSION);
    /* HTTP/2 forbids the older suites of TLS 1.2 (RFC 9113, appendix A). */
    SSL_CTX_set_cipher_list(tls->ctx, "ECDHE+AESGCM:ECDHE+CHACHA20");
    /* The faster one first. */
    SSL_CTX_set_ciphersuites(tls->ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                       "TLS_CHACHA20_POLY1305_SHA256");
    SSL_CTX_set_options(tls->ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                      SSL_OP_IGNORE_UNEXPECTED_EOF |
                                      SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(tls->ctx, SSL_MODE_RELEASE_BUFFERS);
    /* Read several records with one system call. */
    SSL_CTX_set_read_ahead(tls->ctx, 1);
    SSL_CTX_set_default_read_buffer_len(tls->ctx, READ_BUFFER);
    SSL_CTX_set_alpn_select_cb(tls->ctx, choose_protocol, NULL);
    if (SSL_CTX_use_certificate_chain_file(tls->ctx, cert) != 1) {
        rc = tl_fail_set(fail, TL_BAD, "%.100s: no PEM certificate: %s", cert, ssl_reason());
        goto fail;
    }
    if (SSL_CTX_use_PrivateKey_file(tls->ctx, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(tls->ctx) != 1) {
        rc = tl_fail_set(fail, TL_BAD, "%.100s: no key of that certificate: %s", key, ssl_reason());
        goto fail;
    }
    if (client_ca && !ask_clients(tls->ctx, client_ca)) {
        rc = tl_fail_set(fail, TL_BAD, "%.100s: no PEM certificates to know clients by: %s",
                         client_ca, ssl_reason());
        goto fail;
    }
    fingerprint(tls);
    *out = tls;
    return TL_OK;
fail:
    tl_tls_free(tls);
    return rc;
}

void tl_tls_free(struct tl_tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->ctx);
    free(tls);
}

const char *tl_tls_fingerprint(const struct tl_tls *tls)
{
    return tls->fingerprint;
}

SSL *tl_tls_accept(struct tl_tls *tls)
{
    SSL *const ssl = SSL_new(tls->ctx);
    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}

bool tl_tls_is_h2(const SSL *ssl)
{
    const unsigned char *name;
    unsigned n;
    SSL_get0_alpn_selected(ssl, &name, &n);
    return n == 2 && !memcmp(name, "h2", 2);
}
