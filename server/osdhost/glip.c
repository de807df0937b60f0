/* SPDX-License-Identifier: MIT */
/*
 * Finds answers to register accesses in a byte stream by their complete header. Searching at every
 * position finds them even if a word was lost and datagram lengths are out of step.
 */
#include "osdhost/glip.h"

#include <string.h>

#define HEADER  8   /* bytes: length, DEST, SRC, FLAGS */
#define ANSWER  10  /* maximum: a header and one value */
#define LENGTHS 255 /* usual maximum words of a packet */

void tl_osd_glip_init(struct tl_osd_glip *g)
{
    *g = (struct tl_osd_glip){0};
    tl_osd_bringup_init(&g->bringup, 0, TL_OSD_GLIP_HOST);
}

void tl_osd_glip_fini(struct tl_osd_glip *g)
{
    tl_osd_bringup_fini(&g->bringup);
}

static void put_word(uint8_t *p, uint16_t word, bool little_endian)
{
    if (little_endian)
        tl_put_le16(p, word);
    else
        tl_put_be16(p, word);
}

/* Find the complete answer with this header: true, and it was processed. */
static bool find(struct tl_osd_glip *g, struct tl_bytes bytes, uint16_t module, uint16_t words,
                 uint16_t flags, bool little_endian, int64_t now)
{
    const uint16_t head[4] = {words, g->bringup.host, module, flags};
    uint8_t pattern[HEADER];
    for (size_t i = 0; i < 4; i++)
        put_word(pattern + 2 * i, head[i], little_endian);
    const uint8_t *const p = memmem(bytes.p, bytes.n, pattern, HEADER);
    const size_t rest = p ? bytes.n - (size_t)(p - bytes.p) - HEADER : 0;
    if (!p || rest < 2 * ((size_t)words - 3))
        return false;
    uint16_t packet[4] = {g->bringup.host, module, flags, 0};
    if (words == 4)
        packet[3] = little_endian ? tl_le16(p + HEADER) : tl_be16(p + HEADER);
    g->little_endian = little_endian;
    g->order_known = true;
    return tl_osd_bringup_take(&g->bringup, packet, words, now);
}

static bool search(struct tl_osd_glip *g, struct tl_bytes bytes, int64_t now)
{
    struct tl_osd_awaited a;
    if (!tl_osd_bringup_awaits(&g->bringup, &a))
        return false;
    for (int order = 0; order < 2; order++)
        if (find(g, bytes, a.module, a.good_words, a.good_flags, order, now) ||
            find(g, bytes, a.module, a.bad_words, a.bad_flags, order, now))
            return true;
    return false;
}

/* A connection begins with a length: check in which order it is valid. */
static void look_at_first(struct tl_osd_glip *g, struct tl_bytes bytes)
{
    if (g->order_known || bytes.n < 2)
        return;
    const unsigned big = tl_be16(bytes.p), little = tl_le16(bytes.p);
    g->order_known = true;
    if ((big >= 3 && big <= LENGTHS) != (little >= 3 && little <= LENGTHS))
        g->little_endian = little <= LENGTHS;
}

void tl_osd_glip_take(struct tl_osd_glip *g, struct tl_bytes bytes, int64_t now)
{
    look_at_first(g, bytes);
    /* First check what crosses the boundary to earlier bytes, then the rest. */
    uint8_t seam[sizeof g->tail + ANSWER];
    const size_t head = bytes.n < ANSWER ? bytes.n : ANSWER;
    if (!g->bringup.asked)
        g->n_tail = 0;
    memcpy(seam, g->tail, g->n_tail);
    memcpy(seam + g->n_tail, bytes.p, head);
    const size_t n = g->n_tail + head;
    const bool found = search(g, (struct tl_bytes){seam, n}, now) || search(g, bytes, now);
    if (found) {
        g->n_tail = 0; /* the next answer follows the next request */
    } else if (bytes.n >= ANSWER) {
        memcpy(g->tail, bytes.p + bytes.n - ANSWER, ANSWER);
        g->n_tail = ANSWER;
    } else {
        const size_t keep = n < ANSWER ? n : ANSWER;
        memcpy(g->tail, seam + n - keep, keep);
        g->n_tail = keep;
    }
}

int tl_osd_glip_next(struct tl_osd_glip *g, struct tl_buf *out, int64_t now)
{
    uint16_t words[TL_OSD_REQUEST_WORDS];
    for (unsigned n; (n = tl_osd_bringup_next(&g->bringup, words, now)) > 0;) {
        const int rc = tl_buf_reserve(out, 2 * (n + 1));
        if (rc < 0)
            return rc;
        put_word(out->p + out->n, (uint16_t)n, g->little_endian);
        for (unsigned i = 0; i < n; i++)
            put_word(out->p + out->n + 2 * (i + 1), words[i], g->little_endian);
        out->n += 2 * (n + 1);
    }
    return TL_OK;
}
