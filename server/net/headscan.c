/* SPDX-License-Identifier: MIT */
#include "net/headscan.h"

#include <string.h>

static bool name_is(const struct tl_headscan *scan, const char *name)
{
    return scan->line_n == strlen(name) && !memcmp(scan->name, name, scan->line_n);
}

static void end_line(struct tl_headscan *scan)
{
    if (scan->line_n) {
        scan->in_fields = true;
    } else if (scan->in_fields) { /* empty lines before a request line are ignored */
        scan->in_fields = false;
        scan->blind = scan->body;
    }
    scan->named = false;
    scan->line_n = 0;
}

static void add_to_line(struct tl_headscan *scan, uint8_t c)
{
    if (c == ':' && scan->in_fields && !scan->named) {
        scan->named = true;
        scan->body |= name_is(scan, "content-length") || name_is(scan, "transfer-encoding");
    }
    if (scan->line_n < sizeof scan->name)
        scan->name[scan->line_n] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    scan->line_n++;
}

size_t tl_headscan(struct tl_headscan *scan, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n && !scan->blind; i++) {
        const uint8_t c = p[i];
        const bool folded = !scan->line_n && (c == ' ' || c == '\t');
        if (c == '\r' && i + 1 == n)
            return i;
        if (!c || (c == '\r' && p[i + 1] != '\n') || folded) {
            scan->bad = true;
            return i;
        }
        if (c == '\n')
            end_line(scan);
        else if (c != '\r')
            add_to_line(scan, c);
    }
    return n;
}
