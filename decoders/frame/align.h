/* SPDX-License-Identifier: MIT */
/*
 * Realignment of unmarked frames: in consecutive 16-byte frames, a missing or additional byte
 * misaligns everything after it.
 *
 * Sits between the bytes and a struct tl_tpiu, and only observes while there are no problems. Two
 * things raise an alarm: frame after frame has sources that are not configured, which an odd number
 * of bytes causes immediately; or at a checkpoint the known streams turn out to have lost more than
 * they decoded, which an even number causes. Then it holds back a section of the capture, scores
 * every alignment on it (frame/fit.h), and switches to the best one, from the position where it
 * starts to fit. Damaged streams, bytes that are not trace at all, and unknown sources look the
 * same at first: then the alignment is kept, and the interval to the next attempt doubles.
 *
 * The distance between checkpoints is a sixteenth of the bytes since the frames began, at least
 * TL_ALIGN_CHECK_MIN and at most TL_ALIGN_CHECK_MAX.
 *
 * The same bytes give the same result for any chunking. Not thread-safe.
 */
#ifndef TL_FRAME_ALIGN_H
#define TL_FRAME_ALIGN_H

#include "frame/fit.h"

#define TL_ALIGN_CHECK_MIN  ((uint64_t)1 << 10)
#define TL_ALIGN_CHECK_MAX  ((uint64_t)256 << 10)
#define TL_ALIGN_WINDOW     ((size_t)32 << 10)  /* bytes held back for an attempt */
#define TL_ALIGN_WINDOW_MAX ((size_t)256 << 10) /* maximum, after many failed attempts */

/* What the streams say of the bytes since the last checkpoint. */
enum tl_align_found {
    TL_ALIGN_UNKNOWN, /* too few bytes to tell */
    TL_ALIGN_FITS,    /* they understood most of them */
    TL_ALIGN_TROUBLED /* they lost most of them */
};

/* Source of the alarm at checkpoints. */
struct tl_align_watch {
    void *context;
    /* Returns an enum tl_align_found, or < 0. NULL: no checkpoints. */
    int (*judge)(void *context);
    /* How many bytes the streams understand in frames p[0..n), in front of which source `id` was
     * current, or < 0. NULL: not known. */
    int64_t (*try_frames)(void *context, uint8_t id, const uint8_t *p, size_t n);
    struct tl_fit_sources sources;
};

/* The members are private. */
struct tl_align {
    struct tl_tpiu *tpiu; /* borrowed */
    struct tl_align_watch watch;

    uint64_t check_at;    /* offset of the next checkpoint */
    uint64_t quiet_until; /* offset before which no attempt is made */
    uint64_t patience;    /* bytes until the next attempt if this one fails */
    uint64_t troubled;    /* number (from 1) of the last frame with an unknown source */
    unsigned trouble;     /* recent number of such frames */
    bool alarm;
    uint8_t fits; /* number of checkpoints at which the alignment fitted, up to a limit */

    uint64_t calls; /* number of sink calls in this push */
    uint64_t mute;  /* how many of them repeat earlier ones */
    bool fed_again; /* bytes before an alarm are being pushed a second time */

    uint8_t *window; /* NULL: bytes are passed through */
    size_t held, room;
    uint64_t held_from;          /* file offset */
    uint64_t pass_from, pass_to; /* the bytes being passed on, as file offsets */
};

/*
 * `tpiu` is already initialised; its sink must call tl_align_is_muted() first, and report unknown
 * sources. `watch` is copied. If frames are marked, all bytes are passed through.
 */
void tl_align_init(struct tl_align *a, struct tl_tpiu *tpiu, const struct tl_align_watch *watch);
void tl_align_fini(struct tl_align *a);

/* As tl_tpiu_push() and tl_tpiu_finish(). Also return TL_NOMEM. */
TL_MUST_USE int tl_align_push(struct tl_align *a, const uint8_t *p, size_t n);
TL_MUST_USE int tl_align_finish(struct tl_align *a, const char *cut);

/* Save or restore the state of this and of `tpiu`, as tl_tpiu_state(). */
void tl_align_state(struct tl_align *a, struct tl_state *state);

/* To be called first in each call of the sink: does it repeat an earlier call? */
bool tl_align_is_muted(struct tl_align *a);

/* Report a run of an unknown source. The sink returns what this returns. */
TL_MUST_USE int tl_align_report_unknown(struct tl_align *a, const struct tl_run *run);

#endif
