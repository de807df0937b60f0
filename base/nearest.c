/* SPDX-License-Identifier: MIT */
/*
 * Compares names by edit distance. Who gives a wrong name is helped by the right one, not by a list
 * of all: registers in a setup, options and commands on a command line.
 */
#include "base/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

static unsigned min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned tl_name_distance(const char *a, const char *b)
{
    unsigned rows[3][TL_NEAREST_ROOM];
    const size_t n = strlen(b);
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    if (n >= TL_NEAREST_ROOM)
        return UINT_MAX;
    for (unsigned j = 0; j <= n; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned *const free = before;
        before = last, last = row, row = free;
        row[0] = i;
        for (unsigned j = 1; j <= n; j++) {
            const bool same = toupper((unsigned char)a[i - 1]) == toupper((unsigned char)b[j - 1]);
            row[j] = min(last[j - 1] + !same, min(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min(row[j], before[j - 2] + 1);
        }
    }
    return row[n];
}

unsigned tl_name_too_far(const char *name)
{
    return (unsigned)strlen(name) / 3 + 1;
}
