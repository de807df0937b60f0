/* SPDX-License-Identifier: MIT */
/*
 * Creates a key and a self-signed certificate. The key is written first, and both are made anew
 * unless both exist, so that an interruption leaves no certificate without its key.
 */
#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAYS 3650

static bool add_extension(X509 *cert, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *const extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    const bool ok = extension && X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of full length */
    BIGNUM *const number = BN_bin2bn(bytes, sizeof bytes, NULL);
    const bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return ok;
}

static X509 *make(EVP_PKEY *key)
{
    X509 *const cert = X509_new();
    if (!cert)
        return NULL;
    X509_NAME *const name = X509_get_subject_name(cert);
    const bool ok =
        X509_set_version(cert, 2) && set_serial(cert) &&
        X509_gmtime_adj(X509_getm_notBefore(cert), -3600) &&
        X509_gmtime_adj(X509_getm_notAfter(cert), 86400L * DAYS) && X509_set_pubkey(cert, key) &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                   (const unsigned char *)"tracelake on this machine", -1, -1, 0) &&
        X509_set_issuer_name(cert, name) &&
        add_extension(cert, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1") &&
        add_extension(cert, NID_basic_constraints, "critical,CA:FALSE") &&
        add_extension(cert, NID_key_usage, "critical,digitalSignature") &&
        add_extension(cert, NID_ext_key_usage, "serverAuth") && X509_sign(cert, key, EVP_sha256());
    if (ok)
        return cert;
    X509_free(cert);
    return NULL;
}

static FILE *create(const char *path, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0)
        return NULL;
    fchmod(fd, mode); /* it may have existed with other permissions */
    FILE *const file = fdopen(fd, "w");
    if (!file)
        close(fd);
    return file;
}

static int finish(FILE *file, bool ok, const char *path, struct tl_fail *fail)
{
    if (file && (fflush(file) || fsync(fileno(file))))
        ok = false;
    if (file && fclose(file))
        ok = false;
    if (file && ok)
        return TL_OK;
    return tl_fail_set(fail, TL_IO, "%.120s: cannot be written: %s", path, strerror(errno));
}

int tl_tls_make_certificate(const char *cert_path, const char *key_path, struct tl_fail *fail)
{
    if (!access(cert_path, R_OK) && !access(key_path, R_OK))
        return 0;
    int rc = tl_fail_set(fail, TL_NOMEM, "cannot make a certificate");
    EVP_PKEY *const key = EVP_EC_gen("P-256");
    X509 *const cert = key ? make(key) : NULL;
    if (cert) {
        FILE *file = create(key_path, 0600);
        rc = finish(file, file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL),
                    key_path, fail);
        if (rc == TL_OK) {
            file = create(cert_path, 0644);
            rc = finish(file, file && PEM_write_X509(file, cert), cert_path, fail);
        }
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    return rc < 0 ? rc : 1;
}
