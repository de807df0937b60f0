/* SPDX-License-Identifier: MIT */
#include "store/hash.h"

#include <openssl/evp.h>

int tl_hash_text(struct tl_bytes bytes, char out[static TL_HASH_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_Digest(bytes.p, bytes.n, digest, &n, EVP_sha256(), NULL) != 1)
        return TL_NOMEM;
    memcpy(out, "sha256:", 7);
    for (unsigned i = 0; i < n; i++) {
        out[7 + 2 * i] = digits[digest[i] >> 4];
        out[8 + 2 * i] = digits[digest[i] & 15];
    }
    out[7 + 2 * n] = '\0';
    return TL_OK;
}

bool tl_hash_valid(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strlen(text) == 71 &&
           strspn(text + 7, "0123456789abcdef") == 64;
}
