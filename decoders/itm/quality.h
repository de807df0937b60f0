/* SPDX-License-Identifier: MIT */
/*
 * Tells apart what is no ITM trace at all, noise of a wrong baud rate and frames of a TPIU, from
 * single faults. Plain data; not thread-safe.
 */
#ifndef TL_ITM_QUALITY_H
#define TL_ITM_QUALITY_H

#include "base/state.h"

#include <stddef.h>

/* A set of values of a byte. */
struct tl_byte_set {
    uint64_t words[4];
};

struct tl_itm_quality {
    uint32_t last;              /* the last four bytes */
    uint32_t bytes;             /* of the current window */
    uint32_t bad;               /* reserved headers in it, and packets that no trace unit sends */
    uint32_t payload, alike;    /* bytes of stimulus ports; those that are headers, too */
    struct tl_byte_set headers; /* of the window's packets, except timestamps */
    struct tl_byte_set both;    /* those of them that are in payloads, too */
    uint8_t fillers;            /* synchronisation words of a TPIU, up to TL_ITM_FILLERS */
    bool noisy;                 /* so was the last window */
    bool extended;              /* the last packet was an extension */
    bool said;                  /* it has been reported */
};

enum { TL_ITM_WINDOW = 1024, TL_ITM_NOISY = 48, TL_ITM_FILLERS = 4 };

/* End the window. */
void tl_itm_end_window(struct tl_itm_quality *quality);

/* Take the next byte; true: it completes a window. */
static inline bool tl_itm_look_at(struct tl_itm_quality *q, uint8_t b)
{
    const uint32_t full = 0xffffff7f, halves = 0xff7fff7f;
    q->last = q->last << 8 | b;
    if ((q->last == full || q->last == halves) && q->fillers < TL_ITM_FILLERS)
        q->fillers++;
    if (++q->bytes < TL_ITM_WINDOW)
        return false;
    tl_itm_end_window(q);
    return true;
}

/* Take the header of a packet that is no timestamp; and the `n` bytes that a stimulus port sent. */
void tl_itm_look_at_header(struct tl_itm_quality *quality, uint8_t header);
void tl_itm_look_at_payload(struct tl_itm_quality *quality, const uint8_t *p, size_t n);

/* Is what comes noise, or frames of a TPIU? */
static inline bool tl_itm_is_noisy(const struct tl_itm_quality *q)
{
    return q->noisy || q->bad >= TL_ITM_NOISY;
}

static inline bool tl_itm_is_framed(const struct tl_itm_quality *q)
{
    return q->fillers == TL_ITM_FILLERS;
}

void tl_itm_quality_state(struct tl_itm_quality *quality, struct tl_state *state);

#endif
