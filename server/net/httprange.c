/* SPDX-License-Identifier: MIT */
/*
 * Cuts the requested part out of a complete response. A body in pieces is produced twice, first to
 * know its length, as a 206 must tell the total before its first byte.
 */
#include "net/httprange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct wanted {
    bool from_end; /* the last `from` bytes */
    uint64_t from;
    uint64_t to; /* exclusive end */
};

/* Parse digits, UINT64_MAX at most. Returns what follows them, NULL if there are none. */
static const char *number(const char *p, uint64_t *out)
{
    const char *const begin = p;
    for (*out = 0; *p >= '0' && *p <= '9'; p++)
        *out =
            *out > (UINT64_MAX - 9) / 10 ? UINT64_MAX / 10 * 10 : *out * 10 + (uint64_t)(*p - '0');
    return p > begin ? p : NULL;
}

static bool parse(const char *text, struct wanted *out)
{
    uint64_t last;
    *out = (struct wanted){.to = UINT64_MAX};
    if (!text || strncasecmp(text, "bytes=", 6))
        return false;
    text += 6;
    if (*text == '-') {
        out->from_end = true;
        text = number(text + 1, &out->from);
        return text && !*text;
    }
    text = number(text, &out->from);
    if (!text || *text++ != '-')
        return false;
    if (!*text)
        return true;
    text = number(text, &last);
    out->to = last + 1;
    return text && !*text && last >= out->from;
}

/* Is the body unchanged since the client got its part? */
static bool is_current(const struct tl_http_request *request,
                       const struct tl_http_response *response)
{
    const char *const seen = tl_http_header(request, "if-range");
    const char *const tag = tl_fields_get(&response->headers, "etag");
    return !seen || (tag && tag[0] == '"' && !strcmp(seen, tag));
}

/* ---- bodies in pieces ------------------------------------------------------------------- */

struct part {
    int (*produce)(void *producer, struct tl_buf *out);
    void (*release)(void *producer);
    void *producer;
    uint64_t skip;
    uint64_t left;
};

static int produce_part(void *context, struct tl_buf *out)
{
    struct part *const p = context;
    const int rc = p->produce(p->producer, out);
    if (rc != TL_OK && rc != TL_EOF)
        return rc;
    const size_t drop = p->skip < out->n ? (size_t)p->skip : out->n;
    if (drop)
        tl_buf_drop(out, drop);
    p->skip -= drop;
    if (out->n > p->left)
        out->n = (size_t)p->left;
    p->left -= out->n;
    if (!p->left)
        return TL_EOF;
    return rc == TL_EOF ? TL_BAD : TL_OK; /* shorter than before: the client must notice */
}

static void release_part(void *context)
{
    struct part *const p = context;
    p->release(p->producer);
    free(p);
}

static int count_body(struct tl_http_response *r, uint64_t *total)
{
    struct tl_buf piece = {0};
    int rc;
    *total = 0;
    do {
        tl_buf_reset(&piece);
        rc = r->produce(r->producer, &piece);
        *total += piece.n;
    } while (rc == TL_OK);
    tl_buf_fini(&piece);
    return rc == TL_EOF ? r->rewind(r->producer) : rc;
}

static int cut_pieces(struct tl_http_response *r, uint64_t from, uint64_t n)
{
    struct part *const p = malloc(sizeof *p);
    if (!p)
        return TL_NOMEM;
    *p = (struct part){r->produce, r->release, r->producer, from, n};
    r->produce = produce_part;
    r->release = release_part;
    r->producer = p;
    return TL_OK;
}

/* ---- bodies at once --------------------------------------------------------------------- */

static void cut_whole(struct tl_http_response *r, size_t from, size_t n)
{
    if (r->body.n) {
        tl_buf_drop(&r->body, from);
        r->body.n = n;
    } else {
        r->fixed = (struct tl_bytes){r->fixed.p + from, n};
    }
}

int tl_http_range(const struct tl_http_request *request, struct tl_http_response *r,
                  uint64_t *total)
{
    struct wanted w;
    int rc = tl_fields_add(&r->headers, "accept-ranges", "bytes");
    if (rc < 0 || strcmp(request->method, "GET") || !parse(tl_http_header(request, "range"), &w) ||
        !is_current(request, r))
        return rc;
    *total = r->body.n ? r->body.n : r->fixed.n;
    if (r->produce)
        rc = count_body(r, total);
    if (rc < 0)
        return rc;
    if (w.from_end)
        w.from = w.from < *total ? *total - w.from : w.from ? 0 : *total;
    if (w.to > *total)
        w.to = *total;
    if (w.from >= w.to)
        return TL_LIMIT;
    if (r->produce)
        rc = cut_pieces(r, w.from, w.to - w.from);
    else
        cut_whole(r, (size_t)w.from, (size_t)(w.to - w.from));
    r->status = 206;
    return rc < 0 ? rc
                  : tl_fields_addf(&r->headers, "content-range", "bytes %llu-%llu/%llu",
                                   (unsigned long long)w.from, (unsigned long long)w.to - 1,
                                   (unsigned long long)*total);
}
