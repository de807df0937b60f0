/* SPDX-License-Identifier: MIT */
/*
 * Finding frames again where nothing marks them: in 16-byte frames back to back a byte too few or
 * too many puts everything behind it out of step.
 *
 * Stands between the bytes and a struct tl_tpiu. It does nothing but look on while all goes well.
 * There are two alarms: sources speak in frame after frame that nobody has configured, which an odd
 * number of bytes leads to at once; and at a checkpoint, the known streams turn out to have lost
 * more than they have understood, which any other number leads to. Then it keeps back a stretch
 * of the capture, tries every alignment on it (frame/fit.h), and changes to the one that fits best,
 * from where on it does so. Streams that are damaged, bytes that are no trace at all or
 * of an unknown source look alike at first: then the old alignment stays, and it takes twice as
 * long until another attempt.
 *
 * Checkpoints lie at a sixteenth of what has come since the frames began, at least
 * TL_ALIGN_CHECK_LEAST and at most TL_ALIGN_CHECK_MOST bytes apart.
 *
 * Same bytes give the same result for any chunking. Not thread-safe.
 */
#ifndef TL_FRAME_ALIGN_H
#define TL_FRAME_ALIGN_H

#include "frame/fit.h"

#define TL_ALIGN_CHECK_LEAST ((uint64_t)1 << 10)
#define TL_ALIGN_CHECK_MOST  ((uint64_t)256 << 10)
#define TL_ALIGN_WINDOW      ((size_t)32 << 10)  /* bytes kept back for an attempt, … */
#define TL_ALIGN_WINDOW_MOST ((size_t)256 << 10) /* … if many have failed */

/* What is watched. */
struct tl_align_watch {
    void *context;
    /* At a checkpoint: have the streams lost most of what came since the last one? 0, 1, or < 0.
     * NULL: nothing is watched. */
    int (*is_troubled)(void *context);
    struct tl_fit_sources sources;
};

/* The members are private. */
struct tl_align {
    struct tl_tpiu *tpiu; /* borrowed */
    struct tl_align_watch watch;

    uint64_t check_at;    /* offset of the next checkpoint */
    uint64_t quiet_until; /* no attempt before this offset */
    uint64_t patience;    /* bytes until the next one if this one changes nothing */
    uint64_t troubled;    /* the last frame with an unknown source, from 1 */
    unsigned trouble;     /* how many there were lately */
    bool alarm;

    uint64_t calls; /* of the frame decoder's sink, in this push */
    uint64_t mute;  /* those that were made already */
    bool fed_again; /* … in the pass before this one */

    uint8_t *window; /* NULL: passing on */
    size_t held, room;
    uint64_t held_from; /* file offset */
};

/*
 * `tpiu` is initialised already; its sink asks tl_align_muted() first, and tells of unknown
 * sources. `watch` is copied. Frames that are marked: all bytes are passed on as they are.
 */
void tl_align_init(struct tl_align *a, struct tl_tpiu *tpiu, const struct tl_align_watch *watch);
void tl_align_fini(struct tl_align *a);

/* As tl_tpiu_push() and tl_tpiu_finish(). TL_NOMEM. */
TL_MUST_USE int tl_align_push(struct tl_align *a, const uint8_t *p, size_t n);
TL_MUST_USE int tl_align_finish(struct tl_align *a);

/* Both, as tl_tpiu_state(). */
void tl_align_state(struct tl_align *a, struct tl_state *state);

/* For each call of the sink, first of all: is it one that was made before? */
bool tl_align_muted(struct tl_align *a);

/* A run of a source that is not known. The sink returns what this returns. */
TL_MUST_USE int tl_align_unknown(struct tl_align *a, const struct tl_run *run);

#endif
