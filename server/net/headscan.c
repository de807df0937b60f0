/* SPDX-License-Identifier: MIT */
/*
 * Examines a request's head line by line, each once, as its bytes arrive. Whatever is not exactly
 * what the standard allows is refused with a status, so that no parser behind has to guess.
 */
#include "net/headscan.h"

#include <string.h>
#include <strings.h>

#define LENGTH_DIGITS 18 /* of a Content-Length that fits into 63 bits */

struct span {
    const uint8_t *p;
    size_t n;
};

static bool is_token_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_token_char(s.p[i]))
            return false;
    return s.n > 0;
}

static bool is_target(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] == 0x7f)
            return false;
    return s.n > 0;
}

/* Visible characters, blanks and those of other character sets. */
static bool is_value(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] < ' ' && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return true;
}

static bool is(struct span s, const char *text)
{
    return s.n == strlen(text) && !strncasecmp((const char *)s.p, text, s.n);
}

/* Cut off what precedes the first `c`; everything, if there is none. */
static struct span cut(struct span *rest, char c)
{
    const uint8_t *const end = rest->n ? memchr(rest->p, c, rest->n) : NULL;
    const struct span before = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    const size_t skip = before.n + (end != NULL);
    *rest = (struct span){rest->p + skip, rest->n - skip};
    return before;
}

static struct span trim(struct span s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t'))
        s = (struct span){s.p + 1, s.n - 1};
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static int check_request_line(struct tl_headscan *scan, struct span line)
{
    const struct span method = cut(&line, ' ');
    const struct span target = cut(&line, ' ');
    const uint8_t *const v = line.p;
    if (!is_token(method) || !is_target(target) || line.n != 8 || memcmp(v, "HTTP/", 5) != 0 ||
        v[5] < '0' || v[5] > '9' || v[6] != '.' || v[7] < '0' || v[7] > '9')
        return 400;
    scan->old = v[7] == '0';
    scan->in_fields = true;
    return v[5] == '1' ? 0 : 505;
}

static int check_length(struct tl_headscan *scan, struct span value)
{
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] < '0' || value.p[i] > '9')
            return 400;
    scan->body = true;
    if (!value.n || scan->lengths++)
        return 400;
    return value.n > LENGTH_DIGITS ? 413 : 0;
}

static int check_field(struct tl_headscan *scan, struct span line)
{
    const bool named = memchr(line.p, ':', line.n) != NULL;
    const struct span name = cut(&line, ':');
    const struct span value = trim(line);
    if (++scan->fields > TL_HEAD_FIELDS)
        return 431;
    if (!named || !is_token(name) || !is_value(value))
        return 400;
    if (is(name, "host"))
        return scan->hosts++ ? 400 : 0;
    if (is(name, "content-length"))
        return check_length(scan, value);
    if (!is(name, "transfer-encoding"))
        return 0;
    scan->body = true;
    if (scan->coded || scan->old)
        return 400;
    scan->coded = true;
    return is(value, "chunked") ? 0 : 501;
}

/* A body has one length, and a request one host. */
static int check_whole(const struct tl_headscan *scan)
{
    const bool ambiguous = scan->coded && scan->lengths;
    return ambiguous || (!scan->hosts && !scan->old) ? 400 : 0;
}

/* Returns whether the head ends with this line. */
static bool end_line(struct tl_headscan *scan, struct span line)
{
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (line.n) {
        scan->status = scan->in_fields ? check_field(scan, line) : check_request_line(scan, line);
        return false;
    }
    if (scan->in_fields)
        scan->status = check_whole(scan);
    return scan->in_fields;
}

size_t tl_headscan(struct tl_headscan *scan, const uint8_t *p, size_t n)
{
    while (!scan->status && scan->seen < n) {
        const uint8_t *const end = memchr(p + scan->seen, '\n', n - scan->seen);
        scan->seen = end ? (size_t)(end - p) + 1 : n;
        if (scan->seen > TL_HEAD_BYTES)
            scan->status = scan->in_fields ? 431 : 414;
        if (!end || scan->status)
            break;
        const bool ends =
            end_line(scan, (struct span){p + scan->line, (size_t)(end - p) - scan->line});
        scan->line = scan->seen;
        if (ends)
            return scan->status ? 0 : scan->seen;
    }
    return 0;
}

/* ---- refusals ------------------------------------------------------------------------------- */

static const struct {
    int status;
    const char *reason;
    const char *advice;
} refusals[] = {
    {400, "Bad Request", "the request's head is malformed, or can be read in two ways"},
    {408, "Request Timeout", "the request did not arrive in time"},
    {413, "Content Too Large", "the body is longer than any that is accepted"},
    {414, "URI Too Long", "the request target is longer than 8 KiB"},
    {431, "Request Header Fields Too Large",
     "there are more than 128 header fields, or more than 64 KiB of them: send fewer"},
    {415, "Unsupported Media Type",
     "this is a gRPC method: it takes content-type application/grpc"},
    {500, "Internal Server Error", "out of memory"},
    {501, "Not Implemented", "the only transfer coding is chunked"},
    {503, "Service Unavailable", "too many requests of this kind at a time; try again later"},
    {505, "HTTP Version Not Supported", "this server speaks HTTP/1.1, HTTP/1.0 and HTTP/2"},
};

#define N_REFUSALS (sizeof refusals / sizeof *refusals)

static size_t find(int status)
{
    size_t i = 0;
    while (i < N_REFUSALS && refusals[i].status != status)
        i++;
    return i;
}

bool tl_head_is_refusal(int status)
{
    return find(status) < N_REFUSALS;
}

const char *tl_head_reason(int status)
{
    return refusals[find(status) % N_REFUSALS].reason;
}

const char *tl_head_advice(int status)
{
    return refusals[find(status) % N_REFUSALS].advice;
}
