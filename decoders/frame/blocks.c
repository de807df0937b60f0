/* SPDX-License-Identifier: MIT */
/*
 * Every phase of a block is tried, and the one after which most FSYNCs are whole frames apart wins:
 * the footer's content is unknown, but removing the wrong 8 bytes breaks the frames. They are tried
 * by distance from 0, so that of equal ones the smallest shift wins.
 */
#include "frame/blocks.h"

#include <string.h>

#define FOOTER (TL_BLOCK_BYTES - TL_BLOCK_USE)
#define FSYNC  4
#define FRAME  16

/*
 * Copy the window without footers, assuming a block begins at `phase`. Returns the number of bytes.
 */
static size_t without_footers(uint8_t *out, const uint8_t *p, size_t n, size_t phase)
{
    size_t plain = phase > FOOTER ? phase - FOOTER : 0;
    memcpy(out, p, plain);
    for (size_t at = phase; at < n; at += TL_BLOCK_BYTES) {
        const size_t left = n - at;
        const size_t use = left < TL_BLOCK_USE ? left : TL_BLOCK_USE;
        memcpy(out + plain, p + at, use);
        plain += use;
    }
    return plain;
}

/* Number of FSYNCs separated from the previous one by whole frames. */
static unsigned fits(const uint8_t *p, size_t n)
{
    static const uint8_t fsync[FSYNC] = {0xff, 0xff, 0xff, 0x7f};
    const uint8_t *const end = p + n;
    const uint8_t *last = NULL;
    unsigned good = 0;
    for (const uint8_t *at = p; (at = memmem(at, (size_t)(end - at), fsync, sizeof fsync));) {
        good += last && (size_t)(at - last) % FRAME == FSYNC;
        last = at;
        at += FSYNC;
    }
    return good;
}

unsigned tl_blocks_find(const uint8_t *p, size_t n)
{
    uint8_t plain[TL_BLOCKS_WINDOW];
    unsigned best = 0, most = 0;
    for (unsigned i = 0; i < TL_BLOCK_BYTES; i++) {
        const unsigned phase = i % 2 ? TL_BLOCK_BYTES - (i + 1) / 2 : i / 2;
        const unsigned good = fits(plain, without_footers(plain, p, n, phase));
        if (good > most) {
            most = good;
            best = phase;
        }
    }
    return best;
}
