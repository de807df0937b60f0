/* SPDX-License-Identifier: MIT */
/*
 * Scores how well bytes fit the assumption of consecutive 16-byte frames: number of bytes of known
 * sources and of intact synchronisation packets. With the right alignment all synchronisation
 * packets are intact, otherwise few are, since most of them span two frames and the frame's
 * auxiliary byte ends up inside them.
 *
 * Stateless; thread-safe.
 *
 * Source: Arm IHI0064H 6.2 (A-Sync), Arm DDI0403E D4.2.1 (ITM), MIPI STPv2 (ASYNC).
 */
#ifndef TL_FRAME_FIT_H
#define TL_FRAME_FIT_H

#include "frame/tpiu.h"

#define TL_FIT_SLOT  64
#define TL_FIT_SLOTS 4096

/* Form of a source's synchronisation packets. */
enum tl_fit_kind {
    TL_FIT_UNKNOWN, /* unknown source */
    TL_FIT_ETM4,    /* at least 11 bytes of 00, then 80 */
    TL_FIT_ITM,     /* at least 5 bytes of 00, then 80; also PTM and ETMv3 */
    TL_FIT_STM      /* at least 21 nibbles of f, then 0 */
};

/* What is known of the sources. */
struct tl_fit_sources {
    uint8_t kinds[128]; /* enum tl_fit_kind by trace ID */
    uint8_t id;         /* source before the first frame, or TL_TPIU_NO_ID */
};

/* Scores per slot of TL_FIT_SLOT bytes. */
struct tl_fit {
    uint8_t syncs[TL_FIT_SLOTS]; /* intact synchronisation packets that begin in the slot */
    uint8_t known[TL_FIT_SLOTS]; /* bytes of known sources */
};

/* Score `n` bytes, at most TL_FIT_SLOT * TL_FIT_SLOTS, that begin at a frame. Returns TL_NOMEM. */
TL_MUST_USE int tl_fit_frames(struct tl_fit *fit, const struct tl_fit_sources *sources,
                              const uint8_t *p, size_t n);

#endif
