/* SPDX-License-Identifier: MIT */
/*
 * Finding frames again where nothing marks them: in 16-byte frames back to back a byte too few or
 * too many puts everything behind it out of step.
 *
 * Stands between the bytes and a struct tl_tpiu. It does nothing but look on while sources speak
 * that the configuration knows. Where others do in frame after frame, it keeps back a stretch of
 * the capture, tries every alignment on it, and goes on with the one that loses least. A source
 * that nobody has configured, and bytes that are no trace at all, look alike at first: then the
 * old alignment stays, and it takes twice as long until another attempt.
 *
 * Same bytes give the same result for any chunking. Not thread-safe.
 */
#ifndef TL_FRAME_ALIGN_H
#define TL_FRAME_ALIGN_H

#include "frame/tpiu.h"

/* How much would be lost of `n` bytes that begin with a frame? */
typedef uint64_t tl_align_trial(void *context, const uint8_t *p, size_t n);

#define TL_ALIGN_WINDOW 32768 /* bytes kept back at most for an attempt */

/* The members are private. */
struct tl_align {
    struct tl_tpiu *tpiu; /* borrowed */
    tl_align_trial *trial;
    void *context;

    uint64_t quiet_until; /* no attempt before this offset */
    uint64_t patience;    /* bytes until the next one if this one changes nothing */
    uint64_t troubled;    /* the last frame with an unknown source, from 1 */
    unsigned trouble;     /* how many there were lately */
    bool alarm;

    uint64_t calls; /* of the frame decoder's sink, in this push */
    uint64_t mute;  /* those that were made already */
    bool fed_again; /* … in the pass before this one */

    uint8_t *window; /* NULL: passing on */
    size_t held;
    uint64_t held_from; /* file offset */
};

/*
 * `tpiu` is initialised already; its sink asks tl_align_muted() first, and tells of unknown
 * sources. `trial` NULL, or frames that are marked: all bytes are passed on as they are.
 */
void tl_align_init(struct tl_align *a, struct tl_tpiu *tpiu, tl_align_trial *trial, void *context);
void tl_align_fini(struct tl_align *a);

/* As tl_tpiu_push() and tl_tpiu_finish(). TL_NOMEM. */
TL_MUST_USE int tl_align_push(struct tl_align *a, const uint8_t *p, size_t n);
TL_MUST_USE int tl_align_finish(struct tl_align *a);

/* For each call of the sink, first of all: is it one that was made before? */
bool tl_align_muted(struct tl_align *a);

/* A run of a source that is not known. The sink returns what this returns. */
TL_MUST_USE int tl_align_unknown(struct tl_align *a, const struct tl_run *run);

#endif
