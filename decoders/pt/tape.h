/* SPDX-License-Identifier: MIT */
/*
 * Packets as columns: what costs least to make and to read. An entry is a packet and the branch
 * outcomes in front of it: those of all TNT_8 packets since the entry before, joined. Addresses are
 * resolved, and what most traces consist of (TNT_8, TIP, FUP, TIP.PGE, TIP.PGD, CYC, MTC, TSC)
 * never becomes a structure.
 *
 * Which outcomes are joined depends on where a fill begins and on the vector level; the packets
 * that the entries stand for do not.
 *
 * Not thread-safe.
 */
#ifndef TL_PT_TAPE_H
#define TL_PT_TAPE_H

#include "base/err.h"
#include "pt/packet.h"
#include "simd/cpu.h"

#define TL_PT_TAPE_ROOM     1024 /* entries */
#define TL_PT_TAPE_OTHERS   64
#define TL_PT_TAPE_SLACK    64 /* blocks are written whole */
#define TL_PT_TAPE_OUTCOMES 48 /* that an entry has at most */

/* With the kind of TIP, TIP.PGE, TIP.PGD and FUP: the IP is suppressed. */
#define TL_PT_TAPE_SUPPRESSED 0x80

/* About 30 KiB. */
struct tl_pt_tape {
    uint64_t ip; /* last IP behind the last entry */
    size_t n, n_others;
    /* Outcomes below a stop bit, the newest in bit 0; 1: there are none. */
    uint64_t tnt[TL_PT_TAPE_ROOM + TL_PT_TAPE_SLACK];
    uint32_t from[TL_PT_TAPE_ROOM +
                  TL_PT_TAPE_SLACK]; /* index in the bytes given: where they may begin */
    uint32_t at[TL_PT_TAPE_ROOM + TL_PT_TAPE_SLACK]; /* … where the packet begins */
    uint8_t kind[TL_PT_TAPE_ROOM +
                 TL_PT_TAPE_SLACK]; /* enum tl_pt_kind; PAD: there are only outcomes */
    /*
     * By kind:
     *   TNT_8, TNT_64      outcomes behind those of `tnt`, below a stop bit
     *   TIP … FUP          last IP behind it
     *   TSC MTC CYC CBR    as in struct tl_pt_packet
     *   PAD PSB PSBEND OVF STOP   nothing
     *   others             index in `other`
     */
    uint64_t value[TL_PT_TAPE_ROOM + TL_PT_TAPE_SLACK];
    struct tl_pt_packet other[TL_PT_TAPE_OTHERS]; /* `offset`: as `at` */
};

/* Empty, with no last IP: for bytes that begin with a PSB. */
void tl_pt_tape_reset(struct tl_pt_tape *tape);

/*
 * Replace the entries by those of the packets from byte `*at` of `in` on, which is where one
 * begins, and move `*at` behind them. At most 4 GiB. Returns TL_OK           the tape is full;
 *   TL_AGAIN        the packet at `*at`, if there are bytes, goes on behind `in`;
 *   TL_UNSUPPORTED, TL_BAD   as tl_pt_parse() of what is at `*at`; last IP is 0 again.
 */
TL_MUST_USE int tl_pt_tape_fill(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                                struct tl_bytes in, size_t *at);

/* The same by vector instructions of this level or a lower one; for tests and benchmarks. */
TL_MUST_USE int tl_pt_tape_fill_at(enum tl_cpu level, struct tl_pt_tape *tape,
                                   const struct tl_pt_config *config, struct tl_bytes in,
                                   size_t *at);

#endif
