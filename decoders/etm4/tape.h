/* SPDX-License-Identifier: MIT */
/*
 * Packets as the packetizer finds them: a tape of columns, a few bytes a packet, from which each
 * packet can be made when it is wanted. Addresses are resolved; all else that a plain packet says
 * is still in its bytes.
 *
 *   header   c4  95  f7  90  00  9a       one for each packet; 00: one of `other`
 *   at        0   1   3   4   -   9       … where in the run it begins
 *   address       A       A       A       one for each address packet
 *   other                     *           whole packets: those that are not plain (etm4/forms.h)
 *
 * Borrowed for the call of the sink, with the bytes of the run.
 */
#ifndef TL_ETM4_TAPE_H
#define TL_ETM4_TAPE_H

#include "etm4/forms.h"
#include "frame/run.h"

#define TL_TAPE_OTHER 0x00 /* header */
#define TL_TAPE_ROOM  1088 /* packets at most; a multiple of 64 */

struct tl_etm4_tape {
    const struct tl_etm4_forms *forms;
    struct tl_run run; /* what `at` counts in: n <= 65536 */
    size_t n;          /* packets, 1..TL_TAPE_ROOM */
    size_t n_addresses;
    size_t n_others;
    const uint8_t *header; /* [TL_TAPE_ROOM] */
    const uint16_t *at;
    const uint64_t *address; /* bit 0: IS1 */
    const struct tl_etm4_packet *other;
    uint64_t threshold; /* cycle count threshold of these packets */
    bool wide;          /* AVX-512 with VBMI2 may read it */
};

/* A result < 0 stops the push, which returns it. */
typedef int tl_etm4_tape_sink(void *context, const struct tl_etm4_tape *tape);

/* How far a tape has been read. Begin with zeros. */
struct tl_etm4_tape_place {
    size_t packet, address, other;
};

/* Make the next packets, `max` at most. Returns how many, 0 at the tape's end. */
size_t tl_etm4_tape_read(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                         struct tl_etm4_packet *out, size_t max);

/* Make the next packet; the tape is not at its end. */
void tl_etm4_tape_next(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                       struct tl_etm4_packet *out);

/* Where packets are that are not atoms; the tape's end counts as one. */
struct tl_etm4_tape_marks {
    uint64_t words[TL_TAPE_ROOM / 64 + 1]; /* from bit 0 on */
};

void tl_etm4_tape_mark(const struct tl_etm4_tape *tape, struct tl_etm4_tape_marks *marks);

/* The first packet from `packet` on that is not an atom packet, or the tape's end. */
static inline size_t tl_etm4_tape_marked(const struct tl_etm4_tape_marks *marks, size_t packet)
{
    size_t i = packet / 64;
    uint64_t left = marks->words[i] & ~0ull << packet % 64;
    while (left == 0)
        left = marks->words[++i];
    return i * 64 + (size_t)__builtin_ctzll(left);
}

#endif
