/* SPDX-License-Identifier: MIT */
/*
 * Produces CoreSight formatter frames from the bytes of several trace sources, as a TPIU, an ETB or
 * a DSTREAM probe writes them into a capture. For tests and simulated rigs.
 *
 * Not thread-safe. Deterministic: the same seed and calls give the same bytes.
 *
 * Source: Arm IHI0029E (CoreSight architecture 3.0), chapter D4 "Trace Formatter".
 */
#ifndef TL_SIM_TPIU_ENCODER_H
#define TL_SIM_TPIU_ENCODER_H

#include "base/buf.h"
#include "frame/tpiu.h"

/* Where a byte of a source was placed: what a decoder must find. */
typedef void tl_tpiu_placed(void *context, uint8_t id, uint8_t byte, uint64_t offset);

struct tl_tpiu_encoder {
    struct tl_buf out;       /* capture bytes; the user may drop bytes from it */
    uint64_t written;        /* capture bytes produced so far, including dropped ones */
    uint8_t sync;            /* enum tl_tpiu_sync */
    unsigned fsync_every;    /* frames between FSYNCs; 0: only the first one */
    unsigned hsync_percent;  /* chance of an HSYNC before a half-word, TL_TPIU_HSYNC only */
    unsigned repeat_percent; /* probability that an unchanged ID is repeated */
    tl_tpiu_placed *placed;  /* may be NULL */
    void *context;

    uint64_t random;
    uint64_t frames;
    uint8_t id;   /* current at the frame's fill point */
    uint8_t fill; /* slots used in `frame` */
    uint8_t frame[16];
    uint8_t owner[16]; /* the source of each data byte; 0xff: an ID byte */
};

/*
 * Begin a capture. `sync` as in frame/tpiu.h. The members between `written` and `context` may be
 * set afterwards; defaults: FSYNC every 64 frames (1 for DSTREAM), no HSYNC, IDs repeated with 1 %.
 * An ID change before an odd slot is delayed, as the format requires.
 */
void tl_tpiu_encoder_init(struct tl_tpiu_encoder *e, enum tl_tpiu_sync sync, uint64_t seed);
void tl_tpiu_encoder_fini(struct tl_tpiu_encoder *e);

/* Append `n` bytes of source `id` (0x01..0x6f, or a reserved one on purpose). TL_NOMEM. */
TL_MUST_USE int tl_tpiu_encoder_add(struct tl_tpiu_encoder *e, uint8_t id, const uint8_t *p,
                                    size_t n);

/* Fill the current frame with null bytes (ID 0), so that all bytes are output. */
TL_MUST_USE int tl_tpiu_encoder_flush(struct tl_tpiu_encoder *e);

/* Append an idle FSYNC word (not for TL_TPIU_ALIGNED); at a frame boundary only. */
TL_MUST_USE int tl_tpiu_encoder_fsync(struct tl_tpiu_encoder *e);

#endif
