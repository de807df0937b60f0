/* SPDX-License-Identifier: MIT */
/*
 * A capture of enveloped packets to frames, with synchronisation: envelopes carry no mark, so after
 * bytes that make no sense, and where bytes are missing, the first place is searched from which all
 * frames in the next TL_ETRACE_WINDOW bytes make sense. At the start of a capture those in
 * TL_ETRACE_FIRST bytes are sufficient. Null packets in between are skipped; a run of them, which
 * the standard's alignment sequence is, leads to such a place. Any chunking gives the same frames.
 * Not thread-safe.
 */
#ifndef TL_RISCV_ETRACE_DEFRAME_H
#define TL_RISCV_ETRACE_DEFRAME_H

#include "base/state.h"
#include "riscv/etrace_envelope.h"

#define TL_ETRACE_WINDOW 256u /* bytes that must make sense */
#define TL_ETRACE_FIRST  32u
#define TL_ETRACE_GOOD   32u   /* frames behind which it is known how payloads are shortened */
#define TL_ETRACE_BUFFER 1024u /* bytes */

struct tl_etrace_deframe_sink {
    void *context;
    /* Is this what the trace could contain? `strict`: while searching behind damage. */
    enum tl_etrace_sense (*judge)(void *context, const struct tl_etrace_frame *frame, bool strict);
    int (*frame)(void *context, const struct tl_etrace_frame *frame);
    /* The same as `judge`, not strict, and then `frame` if it makes sense: one after the other,
     * frames are nearly all taken by this. Returns the sense, or the error of `frame`. */
    int (*take)(void *context, const struct tl_etrace_frame *frame);
    /* Bytes that are no frames, or with `bytes` 0 an unknown number of frames that are missing. */
    int (*loss)(void *context, const char *reason, uint64_t offset, uint64_t bytes);
    /* Offset in the capture of byte `at` of what was pushed, of those in the buffer; NULL: the
     * same. */
    uint64_t (*place)(void *context, uint64_t at);
};

struct tl_etrace_deframe {
    struct tl_etrace_envelope envelope;
    struct tl_etrace_deframe_sink sink;
    uint64_t at; /* offset of buffer[0] */
    size_t n;    /* bytes in the buffer */
    bool searching;
    bool fresh;    /* nothing has been examined yet */
    uint8_t good;  /* frames that made sense, up to TL_ETRACE_GOOD */
    uint8_t first; /* while searching: bytes of a frame without sense; try behind it first */
    uint64_t lost, lost_at;
    bool has_index;
    uint16_t index; /* esp32: of the next frame */
    uint8_t buffer[TL_ETRACE_BUFFER];
};

void tl_etrace_deframe_init(struct tl_etrace_deframe *deframe,
                            const struct tl_etrace_envelope *envelope,
                            const struct tl_etrace_deframe_sink *sink);
/* Both return the sink's errors. */
TL_MUST_USE int tl_etrace_deframe_push(struct tl_etrace_deframe *deframe, const uint8_t *p,
                                       size_t n);
/* At the end of the capture, or where bytes are missing: report a frame that is not complete for
 * the reason `cut`. Continues with the byte at `next`. */
TL_MUST_USE int tl_etrace_deframe_finish(struct tl_etrace_deframe *deframe, uint64_t next,
                                         const char *cut);
void tl_etrace_deframe_state(struct tl_etrace_deframe *deframe, struct tl_state *state);

#endif
