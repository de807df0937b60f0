/* SPDX-License-Identifier: MIT */
/*
 * CoreSight formatter frames: takes the bytes of each trace source out of 16-byte frames.
 *
 * A push decoder: any chunking gives the same bytes per source, each with its true file
 * offset. What a push completes is delivered before it returns. Constant memory, no allocation,
 * no I/O; not thread-safe.
 *
 * With synchronisation words in the stream (FSYNC ff ff ff 7f, HSYNC ff 7f) frames are found
 * again after any damage: no legal frame has ff in an even byte, so that neither word can be
 * mistaken for data. An FSYNC inside a frame ends the frame, unless what follows shows that the
 * frame goes on behind it. Without them (TL_TPIU_ALIGNED) frames are taken as they come.
 *
 * Source: Arm IHI0029E (CoreSight architecture 3.0), chapter D4 "Trace Formatter".
 */
#ifndef TL_FRAME_TPIU_H
#define TL_FRAME_TPIU_H

#include "frame/blocks.h"
#include "frame/demux.h"

/* Values as in enum tl_frame_sync of a setup. */
enum tl_tpiu_sync {
    TL_TPIU_ALIGNED, /* frames back to back from the first byte on, nothing between them */
    TL_TPIU_FSYNC,   /* full-word synchronisation between frames; HSYNC is understood, too */
    TL_TPIU_HSYNC,   /* half-word synchronisation anywhere, and FSYNC */
    TL_TPIU_DSTREAM  /* blocks of 504 bytes with FSYNC and an 8-byte footer, from byte 0 on; found
                        again where frames are cut short (frame/blocks.h) */
};

/* Bytes kept back at most to tell a cut frame from an inserted FSYNC. */
#define TL_TPIU_HOLD 16384

/* The members are private. A place counts capture bytes from the first one given, footers left out.
 */
struct tl_tpiu {
    enum tl_tpiu_sync sync;
    uint64_t start; /* file offset of the first byte given */
    uint64_t raw;   /* bytes given so far, footers included */

    uint8_t state;
    bool synchronised; /* an FSYNC has been found */
    bool half_fsync;   /* the last half-word was ff ff and is not in `frame` */
    uint64_t window;   /* the last eight bytes, newest lowest */
    size_t fill;       /* bytes of `frame` */
    uint8_t frame[TL_FRAME_BYTES + TL_FRAME_AUX];
    uint64_t at[TL_FRAME_BYTES]; /* file offset of each byte of `frame` */
    uint64_t ids_sure[2]; /* sources seen in stretches that ended with a proper FSYNC; in demux.ids
                             are those since then */

    uint64_t watched_from; /* raw: what comes from there on is looked at for footers; 0: nothing */
    uint64_t quiet_until;  /* block before which nothing is, … */
    uint64_t patience;     /* … so many blocks, since looking has not helped */
    unsigned suspects;     /* frames cut short, since watching began */

    struct tl_demux demux;

    size_t held;        /* bytes of `hold` */
    uint64_t held_from; /* place of hold[0] */
    uint8_t hold[TL_TPIU_HOLD];

    uint8_t recent[TL_BLOCKS_BEHIND]; /* the last bytes, byte i of the capture at i % its size */
    uint8_t watched[TL_BLOCKS_WINDOW];
    size_t n_watched;
};

/* Begin at file offset `offset` with `sync`. `sink` is copied. */
void tl_tpiu_init(struct tl_tpiu *t, enum tl_tpiu_sync sync, uint64_t offset,
                  const struct tl_tpiu_sink *sink);

/* Take the next `n` bytes, all of them. < 0 only from the sink. */
TL_MUST_USE int tl_tpiu_push(struct tl_tpiu *t, const uint8_t *p, size_t n);

/*
 * Between two pushes: where it stands, into bytes or, of one just begun with the same `sync` and a
 * sink, from them. TL_AGAIN: bytes are kept back to be looked at, it can be told a little later.
 */
void tl_tpiu_state(struct tl_tpiu *t, struct tl_state *state);

/* No more bytes: report what is left of an unfinished frame as lost. */
TL_MUST_USE int tl_tpiu_finish(struct tl_tpiu *t);

#endif
