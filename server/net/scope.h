/* SPDX-License-Identifier: MIT */
/*
 * What a token is for: rigs by name, traces by label. NULL, where a scope is wanted, is everything.
 * Immutable once shared; references may be taken and given back by any thread.
 */
#ifndef TL_NET_SCOPE_H
#define TL_NET_SCOPE_H

#include "base/err.h"

#include <stdbool.h>

struct tl_scope;

/*
 * Add a word of a tokens file, making the scope if `*scope` is NULL: "rig=GLOB", with more after
 * commas, or "label=KEY=VALUE". TL_USAGE: neither of them; TL_NOMEM.
 */
TL_MUST_USE int tl_scope_add(struct tl_scope **scope, const char *word);

struct tl_scope *tl_scope_get(struct tl_scope *scope); /* NULL is fine, and of the next */
void tl_scope_put(struct tl_scope *scope);

/* May it push as this rig? */
bool tl_scope_has_rig(const struct tl_scope *scope, const char *rig);
/* Is a trace of this rig, with labels as in "key=value\n"…, one of its own? */
bool tl_scope_covers(const struct tl_scope *scope, const char *rig, const char *labels);
/* As it was written, "rig=a,b label=k=v"; "" without one. The caller's to free; NULL: no memory. */
char *tl_scope_text(const struct tl_scope *scope);
/* The labels that its traces have, "key=value\n"…; "" if any will do. Borrowed. */
const char *tl_scope_labels(const struct tl_scope *scope);

#endif
