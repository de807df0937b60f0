/* SPDX-License-Identifier: MIT */
/*
 * CoreSight formatter frames: extracts the bytes of each trace source from 16-byte frames.
 *
 * A push decoder: any chunking gives the same bytes per source, each with its exact file offset.
 * Everything a push completes is delivered before it returns. Constant memory, no allocation, no
 * I/O; not thread-safe.
 *
 * With synchronisation words in the stream (FSYNC ff ff ff 7f, HSYNC ff 7f) frames are found again
 * after any damage: no legal frame has ff in an even byte, so neither word can be mistaken for
 * data. An FSYNC inside a frame ends the frame, unless the following bytes show that the frame
 * continues after it. Without them (TL_TPIU_ALIGNED) frames are assumed to be consecutive.
 *
 * Source: Arm IHI0029E (CoreSight architecture 3.0), chapter D4 "Trace Formatter".
 */
#ifndef TL_FRAME_TPIU_H
#define TL_FRAME_TPIU_H

#include "frame/blocks.h"
#include "frame/demux.h"

/* Values as in enum tl_frame_sync of a setup. */
enum tl_tpiu_sync {
    TL_TPIU_ALIGNED, /* consecutive frames from the first byte on, without synchronisation words */
    TL_TPIU_FSYNC,   /* full-word synchronisation between frames; HSYNC is also accepted */
    TL_TPIU_HSYNC,   /* half-word synchronisation anywhere, and FSYNC */
    /* Blocks of 504 bytes with FSYNC plus an 8-byte footer, starting at byte 0; boundaries are
     * searched again where frames are cut short (frame/blocks.h). */
    TL_TPIU_DSTREAM
};

/* Maximum number of bytes held back to distinguish a cut frame from an inserted FSYNC. */
#define TL_TPIU_HOLD 16384

/*
 * Are there synchronisation words between the frames of these first bytes of a capture, wherever
 * they begin? Barrier packets, four FSYNCs in the place of a frame, are none.
 */
bool tl_tpiu_is_marked(const uint8_t *p, size_t n);

/* All members are private. A place is an offset from the first input byte, not counting footers. */
struct tl_tpiu {
    enum tl_tpiu_sync sync;
    uint64_t start; /* file offset of the first input byte */
    uint64_t raw;   /* input bytes so far, including footers */

    uint8_t state;
    bool synchronised; /* an FSYNC has been found */
    bool half_fsync;   /* the last half-word was ff ff and is not in `frame` */
    uint64_t window;   /* the last eight bytes, newest in the low bits */
    size_t fill;       /* bytes in `frame` */
    uint8_t frame[TL_FRAME_BYTES + TL_FRAME_AUX];
    uint64_t at[TL_FRAME_BYTES]; /* file offset of each byte of `frame` */
    /* Sources seen in sections that ended with a proper FSYNC; demux.ids holds those seen since. */
    uint64_t ids_sure[2];

    /* Raw offset from which footers are searched for; 0: not searching. */
    uint64_t watched_from;
    uint64_t quiet_until; /* block before which no search is made */
    uint64_t patience;    /* number of blocks to wait, since searching did not help */
    unsigned suspects;    /* frames cut short since the search began */

    struct tl_demux demux;

    size_t held;        /* bytes in `hold` */
    uint64_t held_from; /* place of hold[0] */
    uint8_t hold[TL_TPIU_HOLD];

    uint8_t recent[TL_BLOCKS_AFTER]; /* the last bytes; byte i of the capture at i % size */
    uint8_t watched[TL_BLOCKS_WINDOW];
    size_t n_watched;
};

/* Initialise at file offset `offset` with `sync`. `sink` is copied. */
void tl_tpiu_init(struct tl_tpiu *t, enum tl_tpiu_sync sync, uint64_t offset,
                  const struct tl_tpiu_sink *sink);

/* Process the next `n` bytes, all of them. Returns < 0 only from the sink. */
TL_MUST_USE int tl_tpiu_push(struct tl_tpiu *t, const uint8_t *p, size_t n);

/*
 * Save the state between pushes, or restore it into a newly initialised object with the same `sync`
 * and sink. Sets TL_AGAIN if bytes are held back: try a little later.
 */
void tl_tpiu_state(struct tl_tpiu *t, struct tl_state *state);

/* End of input, or of contiguous input: report an incomplete frame as lost, for the reason `cut`.
 */
TL_MUST_USE int tl_tpiu_finish(struct tl_tpiu *t, const char *cut);
/* The reason where frames begin anew in mid-input. */
#define TL_TPIU_UNFINISHED "unfinished frame"

#endif
