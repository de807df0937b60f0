/* SPDX-License-Identifier: MIT */
/* Content hashes as the lake writes them. Thread-safe. */
#ifndef TL_STORE_HASH_H
#define TL_STORE_HASH_H

#include "base/bytes.h"
#include "base/err.h"

#define TL_HASH_TEXT 72 /* "sha256:", 64 hex digits and NUL */

/* Write "sha256:<64 hex digits>" of `bytes` to `out`. TL_NOMEM. */
TL_MUST_USE int tl_hash_text(struct tl_bytes bytes, char out[static TL_HASH_TEXT]);

/* Incremental hash. */
struct tl_hash;
TL_MUST_USE int tl_hash_new(struct tl_hash **out);                                /* TL_NOMEM */
TL_MUST_USE int tl_hash_add(struct tl_hash *hash, struct tl_bytes bytes);         /* TL_NOMEM */
TL_MUST_USE int tl_hash_end(struct tl_hash *hash, char out[static TL_HASH_TEXT]); /* TL_NOMEM */
void tl_hash_free(struct tl_hash *hash);                                          /* accepts NULL */

/* Is `text` of that form, in lower case? */
bool tl_hash_valid(const char *text);

#endif
