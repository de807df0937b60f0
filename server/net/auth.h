/* SPDX-License-Identifier: MIT */
/* Bearer tokens. Read once, then read-only: thread-safe. */
#ifndef TL_NET_AUTH_H
#define TL_NET_AUTH_H

#include "net/net.h"
#include "net/scope.h"

struct tl_auth;

/*
 * Read a file of "token role [scope]" lines: role is read, push or admin; push and admin may also
 * read, admin may also push. The scope is words as of tl_scope_add(); without one the token is for
 * everything. Empty lines and those that begin with # are skipped. TL_BAD with the
 * line's number; TL_IO.
 */
TL_MUST_USE int tl_auth_read(struct tl_auth **out, const char *path, struct tl_fail *fail);
void tl_auth_free(struct tl_auth *auth);

/*
 * Roles of an Authorization value: "Bearer TOKEN", or "Basic …" with the token as password
 * (browsers can ask for that); `*scope` gets a reference to its scope, or NULL. 0: none. How long
 * it takes tells nothing about the tokens.
 */
unsigned tl_auth_roles(const struct tl_auth *auth, const char *authorization,
                       struct tl_scope **scope);

#endif
