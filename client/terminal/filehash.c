/* SPDX-License-Identifier: MIT */
/*
 * Hashes a file for names of images. It is read piece by piece, as an image may be larger than
 * memory.
 */
#include "terminal/filehash.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

int tl_file_hash(const char *path, char out[static TL_FILE_HASH])
{
    static uint8_t piece[1 << 16];
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    FILE *const file = fopen(path, "rbe");
    EVP_MD_CTX *const sum = EVP_MD_CTX_new();
    bool ok = file && sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL);
    for (size_t got; ok && (got = fread(piece, 1, sizeof piece, file)) > 0;)
        ok = EVP_DigestUpdate(sum, piece, got);
    ok = ok && !ferror(file) && EVP_DigestFinal_ex(sum, digest, &n);
    int at = snprintf(out, TL_FILE_HASH, "sha256:");
    for (unsigned i = 0; ok && i < n; i++)
        at += snprintf(out + at, TL_FILE_HASH - (size_t)at, "%02x", digest[i]);
    EVP_MD_CTX_free(sum);
    if (file)
        fclose(file);
    return ok ? TL_OK : TL_IO;
}
