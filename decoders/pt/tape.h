/* SPDX-License-Identifier: MIT */
/*
 * Packets as columns, the representation that is cheapest to write and read. An entry is a packet
 * plus the branch outcomes before it: those of all TNT_8 packets since the previous entry, joined.
 * IPs are decompressed, and the packets that most traces consist of (TNT_8, TIP, FUP, TIP.PGE,
 * TIP.PGD, CYC, MTC, TSC) are never expanded to a struct.
 *
 * How outcomes are grouped in entries depends on where a fill begins and on the vector level; the
 * packet sequence the entries represent does not.
 *
 * Not thread-safe.
 */
#ifndef TL_PT_TAPE_H
#define TL_PT_TAPE_H

#include "base/cpu.h"
#include "base/err.h"
#include "pt/packet.h"

#define TL_PT_TAPE_ENTRIES  1024 /* entries */
#define TL_PT_TAPE_OTHERS   256
#define TL_PT_TAPE_SLACK    64         /* extra space, since kernels write whole blocks */
#define TL_PT_TAPE_OUTCOMES 30         /* outcomes per entry, at most */
#define TL_PT_TAPE_REACH    UINT16_MAX /* bytes of one tape, at most */

/* Flag added to the kind of TIP, TIP.PGE, TIP.PGD and FUP: the IP is suppressed. */
#define TL_PT_TAPE_SUPPRESSED 0x80

/* Entry i consists of tnt[i], at[i], kind[i] and value[i]. */
struct tl_pt_tape {
    uint64_t ip; /* last IP after the last entry */
    size_t n, n_others;
    size_t begin; /* input index of the first packet, or of its outcomes */
    /* Outcomes below a stop bit, the newest in bit 0; 1: none. */
    uint32_t tnt[TL_PT_TAPE_ENTRIES + TL_PT_TAPE_SLACK];
    uint16_t at[TL_PT_TAPE_ENTRIES + TL_PT_TAPE_SLACK];  /* of the packet itself, from `begin` on */
    uint8_t kind[TL_PT_TAPE_ENTRIES + TL_PT_TAPE_SLACK]; /* enum tl_pt_kind; PAD: outcomes only */
    /*
     * By kind:
     *   TNT_8, TNT_64      outcomes after those of `tnt`, below a stop bit
     *   TIP … FUP          last IP after it
     *   TSC MTC CYC CBR    as in struct tl_pt_packet
     *   PAD PSB PSBEND OVF STOP   nothing
     *   others             index in `other`
     */
    uint64_t value[TL_PT_TAPE_ENTRIES + TL_PT_TAPE_SLACK];
    struct tl_pt_packet other[TL_PT_TAPE_OTHERS]; /* `offset`: input index */
};

/* Make empty, with no last IP: for input that begins with a PSB. */
void tl_pt_tape_reset(struct tl_pt_tape *tape);

/*
 * Replace the entries by those for the packets from byte `*at` of `in`, a packet boundary, on;
 * `*at` is advanced past them. Returns
 *   TL_OK            the tape is full;
 *   TL_AGAIN         the packet at `*at`, if any byte is left, is incomplete;
 *   TL_UNSUPPORTED, TL_BAD   as tl_pt_parse() for the packet at `*at`; last IP is reset to 0.
 */
TL_MUST_USE int tl_pt_tape_fill(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                                struct tl_bytes in, size_t *at);

/* The same with vector instructions of at most this level; for tests and benchmarks. */
TL_MUST_USE int tl_pt_tape_fill_at(enum tl_cpu level, struct tl_pt_tape *tape,
                                   const struct tl_pt_config *config, struct tl_bytes in,
                                   size_t *at);

/* Input index of the packet of entry `k`. */
static inline size_t tl_pt_tape_at(const struct tl_pt_tape *tape, size_t k)
{
    return tape->begin + tape->at[k];
}

/* Input index at or after which the outcomes of entry `k` begin, after the packet before: `in` and
 * `config` are those that the tape was filled from. */
size_t tl_pt_tape_from(const struct tl_pt_tape *tape, const struct tl_pt_config *config,
                       struct tl_bytes in, size_t k);

#endif
