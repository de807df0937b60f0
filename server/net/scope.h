/* SPDX-License-Identifier: MIT */
/*
 * The scope of a token: rigs by name, traces by label. A NULL scope is unrestricted. Immutable once
 * shared; references may be taken and released by any thread.
 */
#ifndef TL_NET_SCOPE_H
#define TL_NET_SCOPE_H

#include "base/err.h"

#include <stdbool.h>

struct tl_scope;

/*
 * Add a word of a tokens file, creating the scope if `*scope` is NULL: "rig=GLOB", optionally with
 * more separated by commas, or "label=KEY=VALUE". TL_USAGE: neither of them; TL_NOMEM.
 */
TL_MUST_USE int tl_scope_add(struct tl_scope **scope, const char *word);

struct tl_scope *tl_scope_get(struct tl_scope *scope); /* both accept NULL */
void tl_scope_put(struct tl_scope *scope);

/* Does it permit pushing as this rig? */
bool tl_scope_has_rig(const struct tl_scope *scope, const char *rig);
/* Does it include a trace of this rig with these labels, "key=value\n"…? */
bool tl_scope_covers(const struct tl_scope *scope, const char *rig, const char *labels);
/*
 * Format as in the file, "rig=a,b label=k=v"; "" if NULL. The caller frees it; NULL: out of memory.
 */
char *tl_scope_text(const struct tl_scope *scope);
/* The labels that its traces must have, "key=value\n"…; "" if any. Borrowed. */
const char *tl_scope_labels(const struct tl_scope *scope);

#endif
