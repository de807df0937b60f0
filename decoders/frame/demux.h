/* SPDX-License-Identifier: MIT */
/*
 * Demultiplexing of complete CoreSight frames: a run (frame/run.h) per trace source and
 * TL_DEMUX_BLOCK bytes of the file, and losses at their positions in between. frame/tpiu.h finds
 * the frame boundaries and is the interface for other folders.
 *
 * In a frame, bit 0 of each even byte distinguishes data (0) from an ID (1); bit 0 of the data in
 * those bytes is in byte 15. A set bit in byte 15 delays an ID change by one byte.
 *
 * Constant memory, no allocation; not thread-safe. The result does not depend on the SIMD level.
 *
 * Source: Arm IHI0029E (CoreSight architecture 3.0), D4.2.
 */
#ifndef TL_FRAME_DEMUX_H
#define TL_FRAME_DEMUX_H

#include "base/cpu.h"
#include "base/state.h"
#include "frame/run.h"

#include <stdbool.h>

#define TL_FRAME_BYTES 16
#define TL_FRAME_AUX   15 /* index of the byte with the auxiliary bits */

#define TL_TPIU_NO_ID          0xff /* current source unknown */
#define TL_TPIU_NULL_ID        0x00 /* padding */
#define TL_TPIU_FIRST_RESERVED 0x70

struct tl_tpiu_sink {
    void *context;
    /*
     * Receive bytes of source `id`, 0x01..0x6f, at most TL_DEMUX_BLOCK. Runs are in order of
     * offset, for each source and, unless `apart` says otherwise, across sources. A result < 0
     * stops the push, which returns it.
     */
    int (*run)(void *context, uint8_t id, const struct tl_run *run);
    /*
     * Receive a loss: `bytes` capture bytes from `offset` on could not be used; `reason` is static
     * storage. May be NULL.
     */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
    /*
     * Four FSYNC words in an aligned frame, which perf inserts between buffers: for all sources,
     * the following bytes do not continue the preceding ones. The same where another capture
     * follows the padding that completes one, and where frames turn out to be `out_of_step`. May be
     * NULL.
     */
    int (*reset)(void *context, uint64_t offset, bool out_of_step);
    /*
     * Set of sources (bit id % 64 of word id / 64) for which only the order of their own bytes
     * matters: their bytes in a block are delivered as one run, before or after the block's other
     * runs. Order relative to losses and resets is preserved. Other sources get a separate run each
     * time they are selected.
     */
    uint64_t apart[2];
};

#define TL_DEMUX_BLOCK 8192
/* Sources with a buffer; more than that in a block end its runs early */
#define TL_DEMUX_SOURCES 16
#define TL_DEMUX_SLACK   64 /* elements that may be written past the end */

/* The buffers of one source. */
struct tl_demux_buffer {
    uint16_t place[TL_DEMUX_BLOCK + TL_DEMUX_SLACK];
    uint8_t bytes[TL_DEMUX_BLOCK + TL_DEMUX_SLACK];
};

struct tl_demux;
typedef int64_t tl_demux_kernel(struct tl_demux *d, const uint8_t *p, size_t frames,
                                uint64_t offset, bool marked);

/* `id` and `ids` may be read by users; the other members are private. */
struct tl_demux {
    struct tl_tpiu_sink sink;
    tl_demux_kernel *kernel;
    uint8_t id;      /* current source, or TL_TPIU_NO_ID */
    uint64_t ids[2]; /* sources seen so far; the reader may clear them */
    bool padded;     /* zeros of ID 0 filled the rest of the last frame with an ID */

    const char *lost_reason;
    uint64_t lost_at; /* file offset of the first byte of an unreported loss */
    uint64_t lost;    /* bytes of that loss, 0: none */

    uint64_t base;    /* file offset of the block; places in runs are relative to it */
    unsigned current; /* buffer index of `id` */
    unsigned used;    /* number of buffers in use */
    struct {
        size_t n;     /* bytes in the buffer */
        size_t whole; /* `n` if the last byte was its frame's last data byte: the auxiliary byte
                         belongs to it */
        size_t keep;  /* all ones; 0: discard the bytes */
        uint8_t id;
    } source[TL_DEMUX_SOURCES];
    uint8_t buffer_of[128]; /* by trace ID; 0: not assigned */

    struct tl_demux_buffer buffer[TL_DEMUX_SOURCES]; /* undefined if source[].n is 0 */
};

/* `sink` is copied. */
void tl_demux_init(struct tl_demux *d, const struct tl_tpiu_sink *sink);

/*
 * Process consecutive frames that start at file offset `offset`; p[16 * frames + 15] must be
 * readable. `marked`: ff in an even byte is a synchronisation word; otherwise four FSYNCs are a
 * reset, and so is a frame that cannot follow the padding in front of it. Returns the number of
 * frames before the first one of these, or < 0 from the sink.
 */
TL_MUST_USE int64_t tl_demux_frames(struct tl_demux *d, const uint8_t *p, size_t frames,
                                    uint64_t offset, bool marked);

/* Process one frame whose byte i is at file offset at[i]. */
TL_MUST_USE int tl_demux_frame(struct tl_demux *d, const uint8_t frame[static 16],
                               const uint64_t at[static 16]);

/* Record lost bytes. Adjacent losses with the same reason (compared by address) are reported as
 * one. */
TL_MUST_USE int tl_demux_lose(struct tl_demux *d, const char *reason, uint64_t offset,
                              uint64_t bytes);

/* Report the loss recorded so far. */
TL_MUST_USE int tl_demux_report(struct tl_demux *d);

/* Deliver all runs. */
TL_MUST_USE int tl_demux_flush(struct tl_demux *d);

/* Set the current source to `id`; TL_TPIU_NO_ID: unknown. Delivers all runs first. */
TL_MUST_USE int tl_demux_set_id(struct tl_demux *d, uint8_t id);

/* The fastest kernel for `level`; all give the same result. Never NULL. */
tl_demux_kernel *tl_demux_variant(enum tl_cpu level);

/* Save or restore the state between pushes, as tl_tpiu_state(). `reasons` lists all possible loss
 * reasons. */
void tl_demux_state(struct tl_demux *d, struct tl_state *state, const char *const *reasons,
                    size_t n_reasons);

extern const char tl_demux_no_id[]; /* loss reason for bytes of an unknown source */

#endif
