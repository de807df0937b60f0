/* SPDX-License-Identifier: MIT */
/*
 * One table says what follows each letter, so that every reader of flow text has the same names for
 * its fields. A field "-" is left out: it is not known, which differs from 0.
 */
#include "flow/line.h"

#include "flow/hardware.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fields after each letter, in order. */
static const struct {
    char kind;
    bool rest; /* the last field extends to the end of the line, including blanks */
    struct {
        const char *name;
        enum tl_line_type type;
    } fields[TL_LINE_FIELDS];
} kinds[] = {
    {'I', false, {{"pc", TL_LINE_ADDRESS}, {"encoding", TL_LINE_TEXT}}},
    {'N', false, {{"pc", TL_LINE_ADDRESS}}},
    {'B', false, {{"from", TL_LINE_ADDRESS}, {"to", TL_LINE_ADDRESS}}},
    {'X',
     false,
     {{"exception", TL_LINE_TEXT}, {"number", TL_LINE_NUMBER}, {"pc", TL_LINE_ADDRESS}}},
    {'M', false, {{"mode", TL_LINE_TEXT}}},
    {'C', false, {{"context", TL_LINE_ADDRESS}, {"vmid", TL_LINE_ADDRESS}}},
    {'T', false, {{"time", TL_LINE_NUMBER}}},
    {'Y', false, {{"cycles", TL_LINE_NUMBER}}},
    {'V', false, {{"bits", TL_LINE_ADDRESS}}},
    {'S',
     false,
     {{"source", TL_LINE_TEXT},
      {"channel", TL_LINE_TEXT},
      {"payload", TL_LINE_TEXT},
      {"form", TL_LINE_TEXT},
      {"value", TL_LINE_TEXT}}},
    {'G', false, {{"reason", TL_LINE_TEXT}, {"count", TL_LINE_NUMBER}}},
    {'A', true, {{"what", TL_LINE_TEXT}, {"details", TL_LINE_TEXT}}},
};

static uint64_t value_of(enum tl_line_type type, struct tl_bytes text)
{
    char digits[32];
    if (type == TL_LINE_TEXT)
        return 0;
    snprintf(digits, sizeof digits, "%.*s",
             (int)(text.n < sizeof digits ? text.n : sizeof digits - 1), (const char *)text.p);
    return strtoull(digits, NULL, type == TL_LINE_ADDRESS ? 16 : 10);
}

size_t tl_line_fields(struct tl_bytes line, struct tl_line_field out[static TL_LINE_FIELDS])
{
    size_t kind = 0, found = 0;
    if (line.n > 2 && *line.p == 'H')
        return tl_hardware_fields((struct tl_bytes){line.p + 2, line.n - 2}, out);
    while (kind < sizeof kinds / sizeof *kinds && (line.n == 0 || kinds[kind].kind != *line.p))
        kind++;
    if (kind == sizeof kinds / sizeof *kinds || line.n < 2)
        return 0;
    struct tl_bytes left = {line.p + 2, line.n - 2};
    for (size_t i = 0; i < TL_LINE_FIELDS && kinds[kind].fields[i].name && left.n > 0; i++) {
        const bool last = i + 1 == TL_LINE_FIELDS || !kinds[kind].fields[i + 1].name;
        const uint8_t *const space = last && kinds[kind].rest ? NULL : memchr(left.p, ' ', left.n);
        const size_t n = space ? (size_t)(space - left.p) : left.n;
        const struct tl_bytes text = {left.p, n};
        const enum tl_line_type type = kinds[kind].fields[i].type;
        if (n > 0 && !(n == 1 && *text.p == '-'))
            out[found++] = (struct tl_line_field){.name = kinds[kind].fields[i].name,
                                                  .type = type,
                                                  .text = text,
                                                  .value = value_of(type, text)};
        left.p += space ? n + 1 : n;
        left.n -= space ? n + 1 : n;
    }
    return found;
}
