/* SPDX-License-Identifier: MIT */
/* Shared by the readers of a tape. Private to them. */
#ifndef TL_ETM4_TAPE_PARTS_H
#define TL_ETM4_TAPE_PARTS_H

#include "etm4/tape.h"

/* Value of a packet: template's value + `plus` + (next address & `mask`). */
struct tl_tape_value {
    uint64_t mask, plus;
};

/* Read position in a tape, with the values of its packets by fill. */
struct tl_tape_reader {
    const struct tl_etm4_tape *tape;
    const uint8_t *header;
    const uint16_t *at;
    const uint64_t *address;
    const struct tl_etm4_packet *other;
    struct tl_tape_value value[TL_FILLS]; /* from TL_FILL_FIXED on */
};

/* Parse the plain packet at byte `at` from its bytes; its address is not filled in. */
void tl_etm4_tape_parse(const struct tl_etm4_tape *tape, size_t at, struct tl_etm4_packet *out);

/* Build the next `n` packets. Needs AVX-512 VBMI2. */
size_t tl_etm4_tape_whole_avx512(struct tl_tape_reader *r, size_t n, struct tl_etm4_packet *out);

#endif
