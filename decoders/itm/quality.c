/* SPDX-License-Identifier: MIT */
/*
 * Judges a stream in windows of a kilobyte by what no trace unit sends. Bytes received at a wrong
 * rate can all be legal packets: but their headers and payloads then are pieces of the same, so
 * that most payload bytes are headers elsewhere, which text and values hardly are.
 */
#include "itm/quality.h"

static bool is_in(const struct tl_byte_set *set, uint8_t b)
{
    return set->words[b / 64] >> b % 64 & 1;
}

static void put_in(struct tl_byte_set *set, uint8_t b)
{
    set->words[b / 64] |= UINT64_C(1) << b % 64;
}

static unsigned size_of(const struct tl_byte_set *set)
{
    int n = 0;
    for (size_t i = 0; i < sizeof set->words / sizeof *set->words; i++)
        n += __builtin_popcountll(set->words[i]);
    return (unsigned)n;
}

/*
 * Few headers, of which many are half of all payload, or some nearly all of it. Of random payload
 * and MANY headers a quarter would be alike; with text on all ports a fifth is.
 */
static bool is_mixed_up(const struct tl_itm_quality *q)
{
    enum { ENOUGH = 128, SOME = 4, SEVERAL = 8, MANY = 64 };
    const unsigned both = size_of(&q->both);
    if (q->payload < ENOUGH || size_of(&q->headers) > MANY)
        return false;
    return (both >= SEVERAL && 2 * q->alike >= q->payload) ||
           (both >= SOME && 8 * q->alike >= 7 * q->payload);
}

void tl_itm_end_window(struct tl_itm_quality *q)
{
    q->noisy = q->bad >= TL_ITM_NOISY || is_mixed_up(q);
    q->bytes = q->bad = q->payload = q->alike = 0;
    q->headers = q->both = (struct tl_byte_set){0};
}

void tl_itm_look_at_header(struct tl_itm_quality *q, uint8_t header)
{
    put_in(&q->headers, header);
}

void tl_itm_look_at_payload(struct tl_itm_quality *q, const uint8_t *p, size_t n)
{
    q->payload += (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        if (is_in(&q->headers, p[i])) {
            put_in(&q->both, p[i]);
            q->alike++;
        }
}

static void set_state(struct tl_byte_set *set, struct tl_state *s)
{
    for (size_t i = 0; i < sizeof set->words / sizeof *set->words; i++)
        tl_state_u64(s, &set->words[i]);
}

void tl_itm_quality_state(struct tl_itm_quality *q, struct tl_state *s)
{
    tl_state_u32(s, &q->last);
    tl_state_u32(s, &q->bytes);
    tl_state_u32(s, &q->bad);
    tl_state_u32(s, &q->payload);
    tl_state_u32(s, &q->alike);
    set_state(&q->headers, s);
    set_state(&q->both, s);
    tl_state_u8(s, &q->fillers, TL_ITM_FILLERS);
    tl_state_bool(s, &q->noisy);
    tl_state_bool(s, &q->extended);
    tl_state_bool(s, &q->said);
}
