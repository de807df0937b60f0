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

#include "base/state.h"
#include "frame/blocks.h"
#include "frame/deal.h"
#include "frame/gather.h"
#include "frame/lineup.h"
#include "frame/run.h"

/* Values as in enum tl_frame_sync of a setup. */
enum tl_tpiu_sync {
    TL_TPIU_ALIGNED, /* frames back to back from the first byte on, nothing between them */
    TL_TPIU_FSYNC,   /* full-word synchronisation between frames; HSYNC is understood, too */
    TL_TPIU_HSYNC,   /* half-word synchronisation anywhere, and FSYNC */
    TL_TPIU_DSTREAM  /* blocks of 504 bytes with FSYNC and an 8-byte footer, from byte 0 on; found
                        again where frames are cut short (frame/blocks.h) */
};

#define TL_TPIU_NO_ID          0xff /* not known which source is speaking */
#define TL_TPIU_NULL_ID        0x00 /* filling */
#define TL_TPIU_FIRST_RESERVED 0x70

struct tl_tpiu_sink {
    void *context;
    /*
     * Bytes of source `id`, 0x01..0x6f; see frame/run.h for their offsets. Runs of one source
     * come in the order of their offsets, and all runs do unless `apart` says otherwise. A result
     * < 0 stops the push, which returns it.
     */
    int (*run)(void *context, uint8_t id, const struct tl_run *run);
    /*
     * `bytes` capture bytes from `offset` on could not be used; `reason` is static storage. May
     * be NULL.
     */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
    /*
     * Four FSYNC words in an aligned frame, as perf puts between buffers: what comes is not
     * what came continued, for no source. May be NULL.
     */
    int (*reset)(void *context, uint64_t offset);
    /*
     * Sources (bit id % 64 of word id / 64) that care only for the order of their own bytes: up to
     * some KiB of one may be taken together and delivered as one run, before or behind what others
     * of them have said between. Order towards the rest, losses and resets stays. Several times
     * as fast where sources take short turns.
     */
    uint64_t apart[2];
};

#define TL_TPIU_BUFFER 16384 /* longest run in bytes */
#define TL_TPIU_HOLD                                                                               \
    16384 /* bytes kept back at most to tell a cut frame from an inserted FSYNC                    \
           */

/* The members are private. A place counts capture bytes from the first one given, footers left out.
 */
struct tl_tpiu {
    struct tl_tpiu_sink sink;
    tl_gather *gather;
    tl_lineup *lineup;
    tl_deal *dealer;
    enum tl_tpiu_sync sync;
    uint64_t start; /* file offset of the first byte given */
    uint64_t raw;   /* bytes given so far, footers included */

    uint8_t state;
    bool synchronised; /* an FSYNC has been found */
    uint8_t id;        /* in force behind the frames done */
    bool half_fsync;   /* the last half-word was ff ff and is not in `frame` */
    uint64_t window;   /* the last eight bytes, newest lowest */
    size_t fill;       /* bytes of `frame` */
    uint8_t frame[16];
    uint64_t at[16]; /* file offset of each byte of `frame` */

    const char *lost_reason;
    uint64_t lost_at; /* file offset of the first byte of a loss not yet reported */
    uint64_t lost;    /* its bytes, 0: none */

    uint64_t watched_from; /* raw: what comes from there on is looked at for footers; 0: nothing */
    uint64_t quiet_until;  /* block before which nothing is, … */
    uint64_t patience;     /* … so many blocks, since looking has not helped */
    unsigned suspects;     /* frames cut short, since watching began */

    uint64_t turns_until; /* file offset: no source comes apart before it */
    bool mixed;           /* what was dealt last was of several sources */
    uint8_t luck;         /* how many more frames with FSYNCs between them may be tried at once */

    uint64_t ids_sure[2]; /* sources seen in stretches that ended with a proper FSYNC */
    uint64_t ids_new[2];  /* … and since then */

    struct tl_run run;  /* not yet delivered, of source `id`; run.n == 0: none */
    uint64_t run_joins; /* offset of the frame that may lengthen it */
    uint8_t buffer[16 + TL_TPIU_BUFFER + TL_GATHER_SLACK];

    size_t held;        /* bytes of `hold` */
    uint64_t held_from; /* place of hold[0] */
    uint8_t hold[TL_TPIU_HOLD];

    uint8_t recent[TL_BLOCKS_BEHIND]; /* the last bytes, byte i of the capture at i % its size */
    uint8_t watched[TL_BLOCKS_WINDOW];
    size_t n_watched;

    /* Of no meaning between two runs. */
    struct tl_deal deal;
    uint8_t frames[TL_DEAL_GROUPS * 64 + 16]; /* taken out of their surroundings */
    struct tl_run_frame frame_at[TL_DEAL_GROUPS * 4];
    uint16_t place[TL_DEAL_BYTES + 1 + TL_RUN_SLACK];
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
