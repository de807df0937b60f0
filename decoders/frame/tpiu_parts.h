/* SPDX-License-Identifier: MIT */
/* What the parts of the de-framer share. Not for users. */
#ifndef TL_FRAME_TPIU_PARTS_H
#define TL_FRAME_TPIU_PARTS_H

#include "frame/tpiu.h"

#define AUX       15
#define FRAME     16
#define BLOCK     TL_BLOCK_BYTES /* DSTREAM */
#define BLOCK_USE TL_BLOCK_USE

#define TL_TPIU_LUCK 3 /* at most; then as many frames are tried as there is room for */
#define FSYNC_LE  0x7fffffffu /* FSYNC as a little-endian number */

enum state {
    HUNT,   /* for an FSYNC */
    FRAMES, /* frame bytes, perhaps with synchronisation between half-words */
    HOLD    /* keeping bytes back until it shows whether an FSYNC had cut the frame */
};

/* Why bytes are lost. The first and the third are no faults: TL_LOSS_NOT_SYNC and TL_LOSS_NO_ID of
 * decode/ops.h. */
extern const char tl_tpiu_not_yet[], tl_tpiu_no_sync[], tl_tpiu_no_id[], tl_tpiu_cut_frame[],
    tl_tpiu_unfinished[];

static inline bool is_source(unsigned id)
{
    return id > TL_TPIU_NULL_ID && id < TL_TPIU_FIRST_RESERVED;
}

/* Deliver the open run, if there is one. */
int tl_tpiu_flush_run(struct tl_tpiu *t);

/* Make the run buffer ready for `n` bytes at `slot` of the frame at `offset`. */
int tl_tpiu_open_run(struct tl_tpiu *t, uint64_t offset, uint8_t slot, size_t n);

/* Where the open run is going on. */
static inline uint8_t *tl_tpiu_run_end(struct tl_tpiu *t)
{
    return t->buffer + FRAME + t->run.n;
}

/*
 * Many frames at once; which source is speaking is known, and no loss is to be told. They return
 * how many frames were taken, 0: none can be, or < 0.
 */
int64_t tl_tpiu_take_turns(struct tl_tpiu *t, const uint8_t *p, size_t frames, uint64_t offset);
int64_t tl_tpiu_take_apart(struct tl_tpiu *t, const uint8_t *p, size_t frames, uint64_t offset);

/*
 * The same of frames with FSYNCs between them, the first one at `p`: in front of each frame, or now
 * and then. `left`: bytes until a footer; SIZE_MAX: there are none. Returns how many bytes were
 * taken: FSYNCs, frames and footers between them, and what follows is an FSYNC, perhaps behind a
 * footer.
 */
int64_t tl_tpiu_take_units(struct tl_tpiu *t, const uint8_t *p, size_t n, size_t left,
                           uint64_t offset);

#endif
