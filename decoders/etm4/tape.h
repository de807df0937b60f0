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

struct tl_etm4_tape {
    const struct tl_etm4_forms *forms;
    struct tl_run run; /* what `at` counts in: n <= 65536 */
    size_t n;          /* packets, >= 1 */
    size_t n_addresses;
    size_t n_others;
    const uint8_t *header;
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

/*
 * Make the next packets, `max` at most. Returns how many, 0 at the tape's end. `merge`: atoms are
 * joined, up to 64 to a packet; those at the tape's beginning to out[-1] if `had` and that is
 * atoms. Then 0 may also mean that all that were left have been joined.
 */
size_t tl_etm4_tape_read(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                         struct tl_etm4_packet *out, size_t max);
size_t tl_etm4_tape_read_merged(const struct tl_etm4_tape *tape, struct tl_etm4_tape_place *place,
                                struct tl_etm4_packet *out, size_t max, bool had);

#endif
