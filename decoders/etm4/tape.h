/* SPDX-License-Identifier: MIT */
/*
 * Packets as the packetizer finds them: a tape of columns, a few bytes per packet, from which each
 * packet is built on demand. Addresses are resolved; the other fields of plain packets are still in
 * the trace bytes.
 *
 *   header   c4  95  f7  90  00  9a       one per packet; 00: one of `other`
 *   at        0   1   3   4   -   9        start of the packet in the run
 *   address       A       A       A       one per address packet
 *   other                     *           complete packets: those that are not plain (etm4/forms.h)
 *
 * Borrowed for the call of the sink, together with the bytes of the run.
 */
#ifndef TL_ETM4_TAPE_H
#define TL_ETM4_TAPE_H

#include "etm4/forms.h"
#include "frame/run.h"

#define TL_TAPE_OTHER   0x00 /* header */
#define TL_TAPE_ENTRIES 1088 /* maximum number of packets; a multiple of 64 */

struct tl_etm4_tape {
    const struct tl_etm4_forms *forms;
    struct tl_run run; /* the run `at` refers to: n <= 65536 */
    size_t n;          /* number of packets, 1..TL_TAPE_ENTRIES */
    size_t n_addresses;
    size_t n_others;
    const uint8_t *header; /* [TL_TAPE_ENTRIES] */
    const uint16_t *at;
    const uint64_t *address; /* bit 0: IS1 */
    const struct tl_etm4_packet *other;
    uint64_t threshold; /* cycle count threshold in force for these packets */
};

/* Receive a tape. A result < 0 stops the push, which returns it. */
typedef int tl_etm4_tape_sink(void *context, const struct tl_etm4_tape *tape);

/* Read position in a tape. Starts as all zero. */
struct tl_etm4_tape_place {
    size_t packet, address, other;
};

/* Build the next packets, at most `max`. Returns how many; 0 at the tape's end. */
size_t tl_etm4_tape_read(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                         struct tl_etm4_packet *out, size_t max);

/* Build the next packet; the tape must not be at its end. */
void tl_etm4_tape_next(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                       struct tl_etm4_packet *out);

/* Bit mask of packets that are not atoms; the tape's end is marked too. */
struct tl_etm4_tape_marks {
    uint64_t words[TL_TAPE_ENTRIES / 64 + 1]; /* packet i: bit i % 64 of word i / 64 */
};

void tl_etm4_tape_mark(const struct tl_etm4_tape *tape, struct tl_etm4_tape_marks *marks);

/* Index of the first packet from `packet` on that is not an atom packet, or the tape's end. */
static inline size_t tl_etm4_tape_marked(const struct tl_etm4_tape_marks *marks, size_t packet)
{
    size_t i = packet / 64;
    uint64_t left = marks->words[i] & ~0ull << packet % 64;
    while (left == 0)
        left = marks->words[++i];
    return i * 64 + (size_t)__builtin_ctzll(left);
}

#endif
