/* SPDX-License-Identifier: MIT */
/*
 * How well bytes fit that are taken for 16-byte frames back to back: the bytes of known sources,
 * and the synchronisation packets that are whole. Where frames are taken apart rightly all of these
 * are, elsewhere few: most of them lie across two frames, and a byte between them is a wrong one.
 *
 * No state; threads as one likes.
 *
 * Source: Arm IHI0064H 6.2 (A-Sync), Arm DDI0403E D4.2.1 (ITM), MIPI STPv2 (ASYNC).
 */
#ifndef TL_FRAME_FIT_H
#define TL_FRAME_FIT_H

#include "frame/tpiu.h"

#define TL_FIT_SLOT  64
#define TL_FIT_SLOTS 4096

/* How a source's synchronisation packets look. */
enum tl_fit_kind {
    TL_FIT_UNKNOWN, /* nobody knows the source */
    TL_FIT_ETM4,    /* 11 bytes of 00 or more, 80 */
    TL_FIT_ITM,     /* 5 bytes of 00 or more, 80; as in PTM and ETMv3 */
    TL_FIT_STM      /* 21 nibbles of f or more, 0 */
};

/* The sources, as far as they are known. */
struct tl_fit_sources {
    uint8_t kinds[128]; /* enum tl_fit_kind by trace ID */
    uint8_t id;         /* in force in front of the first frame, or TL_TPIU_NO_ID */
};

/* By slots of TL_FIT_SLOT bytes. */
struct tl_fit {
    uint8_t syncs[TL_FIT_SLOTS]; /* that begin there and are whole */
    uint8_t known[TL_FIT_SLOTS]; /* bytes of known sources */
};

/* `n` bytes, TL_FIT_SLOT * TL_FIT_SLOTS at most, that begin with a frame. TL_NOMEM. */
TL_MUST_USE int tl_fit_frames(struct tl_fit *fit, const struct tl_fit_sources *sources,
                              const uint8_t *p, size_t n);

#endif
