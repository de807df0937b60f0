/* SPDX-License-Identifier: MIT */
/*
 * The file of access tokens. A line has the holder, role and restrictions:
 *
 *     WHO ROLE [name=NAME] [expires=2027-01-31T00:00:00Z] [rig=GLOB[,GLOB…]] [label=KEY=VALUE]…
 *         [bytes=SIZE] [traces=N] [rate=SIZE] [calls=N]
 *
 * WHO is "sha256:" and the digest of a token in 64 hex digits; "cert:" and a name in a client's
 * certificate; or a token itself, 16 to 512 characters. ROLE is read, push or admin; push and admin
 * include read, admin includes push. Empty lines and those beginning with # are comments.
 *
 * A token is random, so its digest needs no salt: the file does not reveal the token.
 */
#ifndef TL_NET_TOKENS_H
#define TL_NET_TOKENS_H

#include "base/buf.h"
#include "net/net.h"
#include "net/quota.h"
#include "net/scope.h"

#include <stdbool.h>

#define TL_TOKEN_DIGEST 32 /* bytes: SHA-256 */
#define TL_TOKEN_MAX    512
#define TL_TOKEN_ID     12 /* hex digits that identify a token without a name */

/* One line. Zero-initialised: empty. */
struct tl_token {
    uint8_t digest[TL_TOKEN_DIGEST]; /* of the token, or of "cert:" and the name */
    char cert[256];                  /* name in the certificate; "": a token */
    bool plain;                      /* the token itself is in the file */
    unsigned roles;                  /* enum tl_role */
    const char *role;                /* "push"; constant */
    char name[64];                   /* "": none */
    int64_t expires;                 /* s since 1970; 0: never */
    struct tl_scope *scope;          /* NULL: unrestricted */
    struct tl_quota quota;           /* net/quota.h */
    struct tl_holder *holder;        /* NULL: without a quota */
};

/*
 * Parse a line, which is modified. TL_EOF: a comment, `out` is empty. TL_BAD: `fail` gives the
 * reason. TL_NOMEM.
 */
TL_MUST_USE int tl_token_parse(struct tl_token *out, char *line, struct tl_fail *fail);
void tl_token_fini(struct tl_token *token);

/* Compute the digest of a token. TL_NOMEM. */
TL_MUST_USE int tl_token_digest(const char *token, size_t n, uint8_t out[static TL_TOKEN_DIGEST]);
/* Get the first TL_TOKEN_ID digits of its digest. */
void tl_token_id(const struct tl_token *token, char out[static TL_TOKEN_ID + 1]);
/* Parse "2027-01-31", "2027-01-31T12:00:00Z", or a duration from now: "90d", "12h". TL_USAGE. */
TL_MUST_USE int tl_token_expiry_parse(const char *text, int64_t *out);
/* Format as "2027-01-31T12:00:00Z". */
char *tl_token_expiry_text(int64_t expires, char out[static 24]);

/*
 * Read a whole file, which must not be accessible to all users. TL_IO; TL_BAD, with the line. Free
 * with tl_tokens_free().
 */
TL_MUST_USE int tl_tokens_read(struct tl_token **out, size_t *n, const char *path,
                               struct tl_fail *fail);
void tl_tokens_free(struct tl_token *tokens, size_t n);

/*
 * Add a line to a file, created if missing (for its owner only), and replaced atomically.
 * Concurrent changes wait. TL_EXISTS: its name or token is there; TL_BAD: the file is invalid;
 * TL_IO.
 */
TL_MUST_USE int tl_tokens_add(const char *path, const char *line, struct tl_fail *fail);
/* Remove the lines with this name, certificate's name or token id. TL_NOTFOUND; other errors as
 * above. */
TL_MUST_USE int tl_tokens_remove(const char *path, const char *who, struct tl_fail *fail);

#endif
