/* SPDX-License-Identifier: MIT */
/*
 * The bytes of whole CoreSight frames, de-multiplexed: a run (frame/run.h) of each trace source for
 * each TL_DEMUX_BLOCK bytes of the file, and the losses between them in their place. Where frames
 * begin is told by frame/tpiu.h, which is what others use.
 *
 * In a frame, the lowest bit of each even byte tells data (0) from an ID (1); the lowest bits of
 * the data bytes there are in byte 15. A set bit in byte 15 delays an ID by one byte.
 *
 * Constant memory, no allocation; not thread-safe. The result does not depend on the SIMD level.
 *
 * Source: Arm IHI0029E (CoreSight architecture 3.0), D4.2.
 */
#ifndef TL_FRAME_DEMUX_H
#define TL_FRAME_DEMUX_H

#include "base/state.h"
#include "frame/run.h"
#include "simd/cpu.h"

#include <stdbool.h>

#define TL_FRAME_BYTES 16
#define TL_FRAME_AUX   15 /* the byte with the lowest bits */

#define TL_TPIU_NO_ID          0xff /* not known which source is speaking */
#define TL_TPIU_NULL_ID        0x00 /* filling */
#define TL_TPIU_FIRST_RESERVED 0x70

struct tl_tpiu_sink {
    void *context;
    /*
     * Bytes of source `id`, 0x01..0x6f, at most TL_DEMUX_BLOCK. Runs of one source come in the
     * order of their offsets, and all runs do unless `apart` says otherwise. A result < 0 stops the
     * push, which returns it.
     */
    int (*run)(void *context, uint8_t id, const struct tl_run *run);
    /*
     * `bytes` capture bytes from `offset` on could not be used; `reason` is static storage. May
     * be NULL.
     */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
    /*
     * Four FSYNC words in an aligned frame, as perf puts between buffers: what comes does not
     * continue what came, for no source. May be NULL.
     */
    int (*reset)(void *context, uint64_t offset);
    /*
     * Sources (bit id % 64 of word id / 64) that need only their own bytes in order: those of a
     * block are delivered as one run, before or behind what others of them said in the block. The
     * order with respect to other sources, losses and resets stays. Others get a run each time
     * they speak.
     */
    uint64_t apart[2];
};

#define TL_DEMUX_BLOCK   8192
#define TL_DEMUX_SOURCES 16 /* with a buffer; more of them in a block end its runs early */
#define TL_DEMUX_SLACK   64 /* elements that may be written behind the last one */

/* The buffers of one source. */
struct tl_demux_buffer {
    uint16_t place[TL_DEMUX_BLOCK + TL_DEMUX_SLACK];
    uint8_t bytes[TL_DEMUX_BLOCK + TL_DEMUX_SLACK];
};

struct tl_demux;
typedef int64_t tl_demux_kernel(struct tl_demux *d, const uint8_t *p, size_t frames,
                                uint64_t offset, bool marked);

/* `id` and `ids` are for all to see, the other members are private. */
struct tl_demux {
    struct tl_tpiu_sink sink;
    tl_demux_kernel *kernel;
    uint8_t id;      /* of the source that is speaking, or TL_TPIU_NO_ID */
    uint64_t ids[2]; /* sources that have begun to speak; who asks may clear them */

    const char *lost_reason;
    uint64_t lost_at; /* file offset of the first byte of a loss not yet reported */
    uint64_t lost;    /* its bytes, 0: none */

    uint64_t base;    /* file offset of the block; runs count from there */
    unsigned speaker; /* buffer of `id` */
    unsigned used;    /* buffers */
    struct {
        size_t n;     /* bytes, … */
        size_t whole; /* … as many when the last one was the last one of adjacent frame bytes */
        size_t keep;  /* all ones; 0: they are nobody's */
        uint8_t id;
    } source[TL_DEMUX_SOURCES];
    uint8_t buffer_of[128]; /* by trace ID; 0: none yet */

    struct tl_demux_buffer buffer[TL_DEMUX_SOURCES]; /* without meaning where source[].n is 0 */
};

/* `sink` is copied. */
void tl_demux_init(struct tl_demux *d, const struct tl_tpiu_sink *sink);

/*
 * Take frames that lie back to back from file offset `offset` on, p[16 * frames + 15] readable.
 * `marked`: ff in an even byte is a synchronisation word; else four FSYNCs are a reset. Returns how
 * many frames are in front of the first one that has such a thing, or < 0 from the sink.
 */
TL_MUST_USE int64_t tl_demux_frames(struct tl_demux *d, const uint8_t *p, size_t frames,
                                    uint64_t offset, bool marked);

/* Take one frame whose byte i is at file offset at[i]. */
TL_MUST_USE int tl_demux_frame(struct tl_demux *d, const uint8_t frame[static 16],
                               const uint64_t at[static 16]);

/* Bytes are lost. Adjacent losses for one reason (compared by address) are reported as one. */
TL_MUST_USE int tl_demux_lose(struct tl_demux *d, const char *reason, uint64_t offset,
                              uint64_t bytes);

/* Report what is lost up to here. */
TL_MUST_USE int tl_demux_report(struct tl_demux *d);

/* Deliver all runs. */
TL_MUST_USE int tl_demux_flush(struct tl_demux *d);

/* From now on `id` is speaking; TL_TPIU_NO_ID: it is not known who is. All runs are delivered. */
TL_MUST_USE int tl_demux_set_id(struct tl_demux *d, uint8_t id);

/* Has the frame ff in an even byte? */
bool tl_demux_is_marked(const uint8_t frame[static 16]);

/* The best kernel for `level`; all give the same result. Never NULL. */
tl_demux_kernel *tl_demux_variant(enum tl_cpu level);

/* Between two pushes, as tl_tpiu_state(). A loss is for one of `reasons`. */
void tl_demux_state(struct tl_demux *d, struct tl_state *state, const char *const *reasons,
                    size_t n_reasons);

extern const char tl_demux_no_id[]; /* the loss of bytes whose source is not known */

#endif
