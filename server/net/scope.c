/* SPDX-License-Identifier: MIT */
/*
 * Parses the restrictions of a token and matches rigs and labels with them. A scope is one
 * immutable object with a count, because requests keep it after the tokens file was read anew.
 */
#include "net/scope.h"

#include "base/buf.h"
#include "base/labels.h"

#include <fnmatch.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct tl_scope {
    atomic_uint refs;
    struct tl_buf rigs;   /* NUL-terminated globs; none: all rigs */
    struct tl_buf labels; /* "key=value\n"…, NUL-terminated */
};

static int add_rigs(struct tl_scope *scope, const char *globs)
{
    while (*globs) {
        const size_t n = strcspn(globs, ",");
        int rc = n ? tl_buf_add(&scope->rigs, globs, n) : TL_USAGE;
        if (rc >= 0)
            rc = tl_buf_add(&scope->rigs, "", 1);
        if (rc < 0)
            return rc;
        globs += n + (globs[n] == ',');
    }
    return scope->rigs.n ? TL_OK : TL_USAGE;
}

static int add_label(struct tl_scope *scope, const char *label)
{
    const char *const equals = strchr(label, '=');
    if (!equals || equals == label)
        return TL_USAGE;
    if (scope->labels.n)
        scope->labels.n--; /* the NUL */
    int rc = tl_buf_add(&scope->labels, label, strlen(label));
    if (rc >= 0)
        rc = tl_buf_add(&scope->labels, "\n", 2);
    return rc;
}

int tl_scope_add(struct tl_scope **scope, const char *word)
{
    const bool rig = !strncmp(word, "rig=", 4);
    if (!rig && strncmp(word, "label=", 6) != 0)
        return TL_USAGE;
    if (!*scope) {
        *scope = calloc(1, sizeof **scope);
        if (!*scope)
            return TL_NOMEM;
        atomic_store(&(*scope)->refs, 1);
    }
    return rig ? add_rigs(*scope, word + 4) : add_label(*scope, word + 6);
}

struct tl_scope *tl_scope_get(struct tl_scope *scope)
{
    if (scope)
        atomic_fetch_add(&scope->refs, 1);
    return scope;
}

void tl_scope_put(struct tl_scope *scope)
{
    if (!scope || atomic_fetch_sub(&scope->refs, 1) > 1)
        return;
    tl_buf_fini(&scope->rigs);
    tl_buf_fini(&scope->labels);
    free(scope);
}

bool tl_scope_has_rig(const struct tl_scope *scope, const char *rig)
{
    if (!scope || !scope->rigs.n)
        return true;
    const char *const end = (const char *)scope->rigs.p + scope->rigs.n;
    for (const char *glob = (const char *)scope->rigs.p; glob < end; glob += strlen(glob) + 1)
        if (!fnmatch(glob, rig, 0))
            return true;
    return false;
}

bool tl_scope_covers(const struct tl_scope *scope, const char *rig, const char *labels)
{
    if (!tl_scope_has_rig(scope, rig))
        return false;
    for (const char *line = tl_scope_labels(scope); *line; line += strcspn(line, "\n") + 1)
        if (!tl_label_is(labels, line))
            return false;
    return true;
}

const char *tl_scope_labels(const struct tl_scope *scope)
{
    return scope && scope->labels.n ? (const char *)scope->labels.p : "";
}

char *tl_scope_text(const struct tl_scope *scope)
{
    struct tl_buf out = {0};
    int rc = TL_OK;
    const char *const rigs = scope && scope->rigs.n ? (const char *)scope->rigs.p : "";
    const char *const end = rigs + (scope ? scope->rigs.n : 0);
    for (const char *glob = rigs; glob < end && rc >= 0; glob += strlen(glob) + 1)
        rc = tl_buf_printf(&out, "%s%s", glob == rigs ? "rig=" : ",", glob);
    for (const char *line = tl_scope_labels(scope); *line && rc >= 0;) {
        const int n = (int)strcspn(line, "\n");
        rc = tl_buf_printf(&out, "%slabel=%.*s", out.n ? " " : "", n, line);
        line += n + 1;
    }
    if (rc >= 0)
        rc = tl_buf_add(&out, "", 1);
    if (rc >= 0)
        return (char *)out.p;
    tl_buf_fini(&out);
    return NULL;
}
