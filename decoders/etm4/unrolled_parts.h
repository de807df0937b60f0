/* SPDX-License-Identifier: MIT */
/* What the kernels share with each other and with the scalar packetizer. Not for users. */
#ifndef TL_ETM4_UNROLLED_PARTS_H
#define TL_ETM4_UNROLLED_PARTS_H

#include "etm4/packetizer.h"

/* From here on, functions may use these instructions: TL_TARGET_BEGIN("avx2,bmi"). */
#define TL_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define TL_TARGET_BEGIN(features)                                                                  \
    TL_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TL_TARGET_END TL_PRAGMA(clang attribute pop)
#else
#define TL_TARGET_BEGIN(features) TL_PRAGMA(GCC push_options) TL_PRAGMA(GCC target(features))
#define TL_TARGET_END             TL_PRAGMA(GCC pop_options)
#endif

/*
 * Action codes of the headers that blocks take: 0xc0..0xff give 0..63 (atoms), 0x90..0x9f give
 * 64..79 (addresses; 70 is a short address of two bytes), 0x0c..0x0e give 76..78 (cycle counts
 * of two bytes: formats 2, and 1 if there is no commit count and but one byte of count), and
 * 0x10..0x1f give 80..95 (cycle counts of format 3).
 */
#define TL_ACTION_ADDRESS 64
#define TL_ACTION_CYCLES  80

enum {
    TL_ACTION_MATCH = TL_ACTION_ADDRESS, /* … + register */
    TL_ACTION_SHORT1 = TL_ACTION_ADDRESS + 5,
    TL_ACTION_SHORT2 = TL_ACTION_ADDRESS + 6,
    TL_ACTION_LONG32 = TL_ACTION_ADDRESS + 10,
    TL_ACTION_CYCLES2 = TL_ACTION_ADDRESS + 12, /* … + bit F */
    TL_ACTION_CYCLES1 = TL_ACTION_ADDRESS + 14
};

#define TL_ACTION_STEPS 16

/*
 * What an address packet does to the newest address register: bits `keep` of it stay, bits
 * `extract` of the eight bytes from its header on are put in from bit 0 on (the two lowest are
 * of the header, `flip` clears them), and register `-back`'s bits `recall` are added.
 */
struct tl_etm4_step {
    uint64_t extract;
    uint64_t flip;
    uint64_t keep;
    uint64_t recall;
    int64_t back;
};

/* By action - TL_ACTION_ADDRESS. */
extern const struct tl_etm4_step tl_etm4_steps[TL_ACTION_STEPS];

/* How many bytes behind a block's first one are read at most. */
#define TL_UNROLLED_REACH 80

/*
 * Deliver the batch, but for atoms at its end to which others may be joined: at most one packet
 * stays. A failure of the sink is in p->failed.
 */
void tl_etm4_batch_flush(struct tl_etm4_packetizer *p);

/* Parse the packet at byte `i` alone. Returns its length, 0 if it is not the block's business. */
size_t tl_etm4_parse_one(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);

/* Bring the action table up to date with the trace state. */
void tl_etm4_actions_update(struct tl_etm4_packetizer *p);

/* Put the count, and the commits, of a cycle count packet of two bytes in: `b` is its header. */
void tl_etm4_cycles_fill(const struct tl_etm4_packetizer *p, const uint8_t *b,
                         struct tl_etm4_packet *out);

/* Place of byte k behind a frame's byte of place r, relative to it: k + (r + k) / 15. */
extern const uint8_t tl_etm4_frame_places[16][64]; /* [15]: not in frames */

size_t tl_etm4_avx2_8(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_avx2_16(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_avx2_32(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_avx2_60(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_avx512_8(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_avx512_16(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_avx512_32(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_avx512_60(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);

#endif
