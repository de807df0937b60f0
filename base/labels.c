/* SPDX-License-Identifier: MIT */
/*
 * Looks labels up in their text, line by line. A trace has few, and they are kept as the text that
 * is stored.
 */
#include "base/labels.h"

#include <stddef.h>
#include <string.h>

/* The first line that begins with these bytes, and has one of `ends` behind them. */
static const char *find(const char *labels, const char *begin, size_t n, const char *ends)
{
    for (const char *p = labels; p && *p; p += strcspn(p, "\n"), p += *p == '\n')
        if (strncmp(p, begin, n) == 0 && (!p[n] || strchr(ends, p[n])))
            return p;
    return NULL;
}

const char *tl_label_value(const char *labels, const char *key)
{
    const size_t n = strlen(key);
    const char *const line = find(labels, key, n, "=");
    return line && line[n] ? line + n + 1 : NULL;
}

bool tl_label_is(const char *labels, const char *label)
{
    return find(labels, label, strcspn(label, "\n"), "\n") != NULL;
}
