/* SPDX-License-Identifier: MIT */
/*
 * Computes and prints SHA-256 hashes as names of contents. Equal contents have equal names
 * everywhere, so that nothing is stored or sent twice.
 */
#include "store/hash.h"

#include <openssl/evp.h>

static void write_text(const unsigned char *digest, unsigned n, char out[static TL_HASH_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    memcpy(out, "sha256:", 7);
    for (unsigned i = 0; i < n; i++) {
        out[7 + 2 * i] = digits[digest[i] >> 4];
        out[8 + 2 * i] = digits[digest[i] & 15];
    }
    out[7 + 2 * n] = '\0';
}

int tl_hash_text(struct tl_bytes bytes, char out[static TL_HASH_TEXT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_Digest(bytes.p, bytes.n, digest, &n, EVP_sha256(), NULL) != 1)
        return TL_NOMEM;
    write_text(digest, n, out);
    return TL_OK;
}

/* A tl_hash is libcrypto's context. */
static EVP_MD_CTX *context_of(struct tl_hash *hash)
{
    return (EVP_MD_CTX *)hash;
}

int tl_hash_new(struct tl_hash **out)
{
    EVP_MD_CTX *const context = EVP_MD_CTX_new();
    if (!context || !EVP_DigestInit_ex(context, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(context);
        return TL_NOMEM;
    }
    *out = (struct tl_hash *)context;
    return TL_OK;
}

int tl_hash_add(struct tl_hash *hash, struct tl_bytes bytes)
{
    return EVP_DigestUpdate(context_of(hash), bytes.p, bytes.n) == 1 ? TL_OK : TL_NOMEM;
}

int tl_hash_end(struct tl_hash *hash, char out[static TL_HASH_TEXT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_DigestFinal_ex(context_of(hash), digest, &n) != 1)
        return TL_NOMEM;
    write_text(digest, n, out);
    return TL_OK;
}

void tl_hash_free(struct tl_hash *hash)
{
    EVP_MD_CTX_free((EVP_MD_CTX *)hash);
}

bool tl_hash_valid(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strlen(text) == 71 &&
           strspn(text + 7, "0123456789abcdef") == 64;
}
