/* SPDX-License-Identifier: MIT */
/*
 * Names in client certificates. A name that contains NUL is ignored, because as text it would be
 * another one.
 */
#include "net/tls.h"

#include <openssl/x509v3.h>
#include <string.h>

/* A name with an embedded NUL is ignored: when read as text it would be a different name. */
static int add(struct tl_buf *out, const unsigned char *p, int n)
{
    if (n <= 0 || memchr(p, 0, (size_t)n))
        return TL_OK;
    const int rc = tl_buf_add(out, p, (size_t)n);
    return rc < 0 ? rc : tl_buf_add(out, "", 1);
}

static int add_alternative(struct tl_buf *out, const GENERAL_NAME *name)
{
    int type;
    const ASN1_IA5STRING *const text = GENERAL_NAME_get0_value(name, &type);
    if (type != GEN_DNS && type != GEN_EMAIL && type != GEN_URI)
        return TL_OK;
    return add(out, ASN1_STRING_get0_data(text), ASN1_STRING_length(text));
}

static int add_alternatives(struct tl_buf *out, const X509 *cert)
{
    GENERAL_NAMES *const names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    int rc = TL_OK;
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && rc == TL_OK; i++)
        rc = add_alternative(out, sk_GENERAL_NAME_value(names, i));
    GENERAL_NAMES_free(names);
    return rc;
}

static int add_common(struct tl_buf *out, const X509 *cert)
{
    const X509_NAME *const subject = X509_get_subject_name(cert);
    int rc = TL_OK;
    for (int i = -1; rc == TL_OK;) {
        unsigned char *text = NULL;
        i = X509_NAME_get_index_by_NID(subject, NID_commonName, i);
        if (i < 0)
            break;
        const X509_NAME_ENTRY *const entry = X509_NAME_get_entry(subject, i);
        const int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
        rc = n > 0 ? add(out, text, n) : TL_OK;
        OPENSSL_free(text);
    }
    return rc;
}

int tl_tls_client_names(const SSL *ssl, struct tl_buf *out)
{
    X509 *const cert = SSL_get1_peer_certificate(ssl);
    if (!cert)
        return TL_OK;
    int rc = SSL_get_verify_result(ssl) == X509_V_OK ? add_alternatives(out, cert) : TL_EOF;
    if (rc == TL_OK)
        rc = add_common(out, cert);
    X509_free(cert);
    return rc == TL_EOF ? TL_OK : rc;
}
