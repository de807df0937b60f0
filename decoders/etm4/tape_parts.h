/* SPDX-License-Identifier: MIT */
/* What the readers of a tape share with each other. Not for users. */
#ifndef TL_ETM4_TAPE_PARTS_H
#define TL_ETM4_TAPE_PARTS_H

#include "etm4/tape.h"

/* A packet's value: what of the next address, and what beside what its template says. */
struct tl_tape_value {
    uint64_t mask, plus;
};

/* What is left of a tape. */
struct tl_tape_reader {
    const struct tl_etm4_tape *tape;
    const uint8_t *header;
    const uint16_t *at;
    const uint64_t *address;
    const struct tl_etm4_packet *other;
    struct tl_tape_value value[TL_FILLS]; /* from TL_FILL_FIXED on */
};

/* The plain packet at byte `at`, but for its address, by looking at all its bytes. */
void tl_etm4_tape_parse(const struct tl_etm4_tape *tape, size_t at, struct tl_etm4_packet *out);

/* The next `n` packets, for machines with AVX-512 and VBMI2. */
size_t tl_etm4_tape_whole_avx512(struct tl_tape_reader *r, size_t n, struct tl_etm4_packet *out);

#endif
