/* SPDX-License-Identifier: MIT */
/*
 * The file of access tokens. A line is who, what and how far:
 *
 *     WHO ROLE [name=NAME] [expires=2027-01-31T00:00:00Z] [rig=GLOB[,GLOB…]] [label=KEY=VALUE]…
 *
 * WHO is "sha256:" and the digest of a token in 64 hex digits; "cert:" and a name that a client's
 * certificate has; or a token itself, 16 to 512 characters. ROLE is read, push or admin; push and
 * admin may also read, admin may also push. Empty lines and those that begin with # are comments.
 *
 * A token is random, so its digest needs no salt: who has the file cannot find the token from it.
 */
#ifndef TL_NET_TOKENS_H
#define TL_NET_TOKENS_H

#include "base/buf.h"
#include "net/net.h"
#include "net/scope.h"

#include <stdbool.h>

#define TL_TOKEN_DIGEST 32 /* bytes: SHA-256 */
#define TL_TOKEN_MAX    512
#define TL_TOKEN_ID     12 /* hex digits by which people name one without a name */

/* One line. Zeroed is empty. */
struct tl_token {
    uint8_t digest[TL_TOKEN_DIGEST]; /* of the token, or of "cert:" and the name */
    char cert[256];                  /* the certificate's name; "": a token */
    bool plain;                      /* the token itself is in the file */
    unsigned roles;                  /* enum tl_role */
    const char *role;                /* "push"; constant */
    char name[64];                   /* "": it has none */
    int64_t expires;                 /* s since 1970; 0: never */
    struct tl_scope *scope;          /* NULL: everything */
};

/*
 * Take a line apart, which is changed meanwhile. TL_EOF: a comment, nothing is in `out`. TL_BAD:
 * `fail` says what is wrong. TL_NOMEM.
 */
TL_MUST_USE int tl_token_parse(struct tl_token *out, char *line, struct tl_fail *fail);
void tl_token_fini(struct tl_token *token);

/* The digest of a token. TL_NOMEM. */
TL_MUST_USE int tl_token_digest(const char *token, size_t n, uint8_t out[static TL_TOKEN_DIGEST]);
/* The first TL_TOKEN_ID digits of its digest. */
void tl_token_id(const struct tl_token *token, char out[static TL_TOKEN_ID + 1]);
/* "2027-01-31", "2027-01-31T12:00:00Z", or so long from now: "90d", "12h". TL_USAGE. */
TL_MUST_USE int tl_token_expiry_parse(const char *text, int64_t *out);
/* Write it as "2027-01-31T12:00:00Z". */
char *tl_token_expiry_text(int64_t expires, char out[static 24]);

/*
 * All of a file. It must not be open to everyone on the machine. TL_IO; TL_BAD, with the line.
 * Free by tl_tokens_free().
 */
TL_MUST_USE int tl_tokens_read(struct tl_token **out, size_t *n, const char *path,
                               struct tl_fail *fail);
void tl_tokens_free(struct tl_token *tokens, size_t n);

/*
 * Add a line to a file, which is made if it is not there (for its owner alone) and replaced as a
 * whole, or not at all. Others who do so at the same time wait. TL_EXISTS: its name or token is
 * there; TL_BAD: the file; TL_IO.
 */
TL_MUST_USE int tl_tokens_add(const char *path, const char *line, struct tl_fail *fail);
/* Remove the lines of this name, or of the one whose id this is. TL_NOTFOUND; the same. */
TL_MUST_USE int tl_tokens_remove(const char *path, const char *who, struct tl_fail *fail);

#endif
