/* SPDX-License-Identifier: MIT */
/*
 * TLS over a BIO of our own that sends with MSG_NOSIGNAL. OpenSSL's socket BIO would raise SIGPIPE
 * in a program that only uses this library and never chose how to handle it.
 */
#include "ctls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct tl_ctls {
    SSL_CTX *context;
    SSL *ssl;
    BIO_METHOD *method;
    const struct tl_wire_options *options; /* during the handshake */
    const uint8_t (*pins)[32];             /* borrowed, like the options */
    size_t n_pins;
    bool insecure;
    bool wants_write;
    char host[256];
};

/* ---- a BIO over a socket that never raises SIGPIPE ---------------------------------------- */

static int bio_fd(BIO *bio)
{
    return (int)(intptr_t)BIO_get_data(bio);
}

static int bio_write(BIO *bio, const char *p, int n)
{
    BIO_clear_retry_flags(bio);
    const ssize_t done = send(bio_fd(bio), p, (size_t)n, MSG_NOSIGNAL);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)done;
}

static int bio_read(BIO *bio, char *p, int n)
{
    BIO_clear_retry_flags(bio);
    const ssize_t done = recv(bio_fd(bio), p, (size_t)n, 0);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)done;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    return command == BIO_CTRL_FLUSH;
}

static BIO *bio_new(struct tl_ctls *tls, int fd)
{
    tls->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tracelake socket");
    if (!tls->method)
        return NULL;
    BIO_meth_set_write(tls->method, bio_write);
    BIO_meth_set_read(tls->method, bio_read);
    BIO_meth_set_ctrl(tls->method, bio_ctrl);
    BIO *bio = BIO_new(tls->method);
    if (bio) {
        BIO_set_data(bio, (void *)(intptr_t)fd);
        BIO_set_init(bio, 1);
    }
    return bio;
}

/* ---- set-up ------------------------------------------------------------------------------- */

static int trust(struct tl_ctls *tls, const struct tl_url *url,
                 const struct tl_wire_options *options, struct tracelake_error *error)
{
    if (tls->n_pins > 0 || tls->insecure) {
        SSL_CTX_set_verify(tls->context, SSL_VERIFY_NONE, NULL);
        return TRACELAKE_OK;
    }
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    if (!options->cafile)
        SSL_CTX_set_default_verify_paths(tls->context);
    else if (SSL_CTX_load_verify_locations(tls->context, options->cafile, NULL) != 1)
        return tl_client_fail(error, TRACELAKE_USAGE,
                              "%s: no certificates in it; a PEM file is needed", options->cafile);
    return TRACELAKE_OK;
}

/* Present our certificate, if the server requests it. */
static int identify(struct tl_ctls *tls, const struct tl_wire_options *options,
                    struct tracelake_error *error)
{
    if (!options->certfile)
        return TRACELAKE_OK;
    const char *const key = options->keyfile ? options->keyfile : options->certfile;
    if (SSL_CTX_use_certificate_chain_file(tls->context, options->certfile) != 1)
        return tl_client_fail(error, TRACELAKE_USAGE, "%s: no PEM certificate in it",
                              options->certfile);
    if (SSL_CTX_use_PrivateKey_file(tls->context, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(tls->context) != 1)
        return tl_client_fail(error, TRACELAKE_USAGE, "%s: no key of the certificate in it", key);
    return TRACELAKE_OK;
}

static bool name_host(struct tl_ctls *tls, const struct tl_url *url)
{
    uint8_t address[16];
    if (inet_pton(AF_INET, url->host, address) == 1 || inet_pton(AF_INET6, url->host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), url->host) == 1;
    return SSL_set1_host(tls->ssl, url->host) == 1 &&
           SSL_set_tlsext_host_name(tls->ssl, url->host) == 1;
}

int tl_ctls_new(struct tl_ctls **out, int fd, const struct tl_url *url,
                const struct tl_wire_options *options, struct tracelake_error *error)
{
    static const unsigned char alpn[] = "\x02h2";
    struct tl_ctls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    strcpy(tls->host, url->host);
    tls->insecure = options->insecure;
    tls->pins = options->pins;
    tls->n_pins = options->n_pins;
    int result = tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    tls->context = SSL_CTX_new(TLS_client_method());
    if (!tls->context)
        goto fail;
    SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
    SSL_CTX_set_mode(tls->context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    int set = trust(tls, url, options, error);
    if (set == TRACELAKE_OK)
        set = identify(tls, options, error);
    if (set < 0) {
        result = set;
        goto fail;
    }
    tls->ssl = SSL_new(tls->context);
    if (!tls->ssl || !name_host(tls, url) ||
        SSL_set_alpn_protos(tls->ssl, alpn, sizeof alpn - 1) != 0)
        goto fail;
    BIO *bio = bio_new(tls, fd);
    if (!bio)
        goto fail;
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_connect_state(tls->ssl);
    *out = tls;
    return TRACELAKE_OK;
fail:
    tl_ctls_free(tls);
    return result;
}

void tl_ctls_free(struct tl_ctls *tls)
{
    if (!tls)
        return;
    if (tls->ssl && SSL_is_init_finished(tls->ssl)) {
        ERR_clear_error();
        SSL_shutdown(tls->ssl);
    }
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    free(tls);
}

/* ---- handshake ---------------------------------------------------------------------------- */

static void digest_text(const uint8_t digest[static 32], char out[static 65])
{
    for (int i = 0; i < 32; i++) {
        out[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    out[64] = 0;
}

static bool peer_digest(const struct tl_ctls *tls, uint8_t out[static 32])
{
    X509 *certificate = SSL_get1_peer_certificate(tls->ssl);
    unsigned n = 0;
    const bool ok = certificate && X509_digest(certificate, EVP_sha256(), out, &n) == 1 && n == 32;
    X509_free(certificate);
    return ok;
}

static int refuse(const struct tl_ctls *tls, struct tracelake_error *error)
{
    /* OpenSSL verifies a pinned certificate, too: ignore that result. */
    const bool verifies = SSL_get_verify_mode(tls->ssl) & SSL_VERIFY_PEER;
    const long verify = verifies ? SSL_get_verify_result(tls->ssl) : X509_V_OK;
    const unsigned long code = ERR_peek_error();
    const int why = ERR_GET_REASON(code);
    if (verify == X509_V_OK && (why == SSL_R_WRONG_VERSION_NUMBER || why == SSL_R_HTTP_REQUEST))
        return tl_client_fail(error, TRACELAKE_UNREACHABLE,
                              "%s does not speak TLS at this port: write http:// instead of "
                              "https://, or give the port of its TLS listener",
                              tls->host);
    if (verify == X509_V_OK) {
        const char *reason = ERR_reason_error_string(code);
        return tl_client_fail(error, TRACELAKE_UNREACHABLE, "TLS with %s failed: %s", tls->host,
                              reason ? reason : "connection closed");
    }
    return tl_client_fail(error, TRACELAKE_DENIED,
                          "the certificate of %s is not trusted: %s; give its issuer's file "
                          "(--cafile), or the fingerprint that the server printed (--fingerprint)",
                          tls->host, X509_verify_cert_error_string(verify));
}

static int accept_peer(const struct tl_ctls *tls, struct tracelake_error *error)
{
    const unsigned char *protocol = NULL;
    unsigned n = 0;
    SSL_get0_alpn_selected(tls->ssl, &protocol, &n);
    if (n != 2 || memcmp(protocol, "h2", 2) != 0)
        return tl_client_fail(error, TRACELAKE_UNREACHABLE,
                              "%s does not speak HTTP/2 over TLS; is it a tracelake server?",
                              tls->host);
    if (tls->n_pins == 0)
        return TRACELAKE_OK;
    uint8_t digest[32];
    char text[65];
    if (!peer_digest(tls, digest))
        return tl_client_fail(error, TRACELAKE_DENIED, "%s shows no certificate", tls->host);
    for (size_t i = 0; i < tls->n_pins; i++)
        if (memcmp(digest, tls->pins[i], sizeof digest) == 0)
            return TRACELAKE_OK;
    digest_text(digest, text);
    return tl_client_fail(error, TRACELAKE_DENIED,
                          "the certificate of %s has fingerprint %s, not the one given; compare "
                          "with what the server printed",
                          tls->host, text);
}

/* AGAIN if OpenSSL only waits for the socket, otherwise 0. */
static int waits(struct tl_ctls *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        tls->wants_write = false;
        return TRACELAKE_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        tls->wants_write = true;
        return TRACELAKE_AGAIN;
    default:
        return 0;
    }
}

int tl_ctls_handshake(struct tl_ctls *tls, struct tracelake_error *error)
{
    ERR_clear_error();
    const int done = SSL_do_handshake(tls->ssl);
    if (done == 1) {
        tls->wants_write = false;
        return accept_peer(tls, error);
    }
    return waits(tls, done) == TRACELAKE_AGAIN ? TRACELAKE_AGAIN : refuse(tls, error);
}

bool tl_ctls_wants_write(const struct tl_ctls *tls)
{
    return tls->wants_write;
}

long tl_ctls_read(struct tl_ctls *tls, void *p, size_t n, struct tracelake_error *error)
{
    ERR_clear_error();
    const int done = SSL_read(tls->ssl, p, n > INT_MAX ? INT_MAX : (int)n);
    if (done > 0)
        return done;
    if (waits(tls, done) == TRACELAKE_AGAIN)
        return TRACELAKE_AGAIN;
    return tl_client_fail(error, TRACELAKE_UNREACHABLE, "the server closed the connection");
}

long tl_ctls_write(struct tl_ctls *tls, const void *p, size_t n, struct tracelake_error *error)
{
    ERR_clear_error();
    const int done = SSL_write(tls->ssl, p, n > INT_MAX ? INT_MAX : (int)n);
    if (done > 0) {
        tls->wants_write = false;
        return done;
    }
    if (waits(tls, done) == TRACELAKE_AGAIN)
        return TRACELAKE_AGAIN;
    return tl_client_fail(error, TRACELAKE_UNREACHABLE, "the connection to the server broke");
}
