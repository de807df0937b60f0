/* SPDX-License-Identifier: MIT */
/*
 * Whether an instruction of A32 or T32 reads or writes memory, and how many bytes: data trace does
 * not say it. A pure function.
 *
 * Source: Arm DDI0406C, A5 and A6 (encodings).
 */
#ifndef TL_ISA_ACCESS_H
#define TL_ISA_ACCESS_H

#include "isa/isa.h"

enum tl_access_kind { TL_NO_ACCESS, TL_LOADS, TL_STORES };

struct tl_access {
    uint8_t kind; /* enum tl_access_kind */
    uint8_t size; /* bytes of each transfer: 1, 2, 4 */
};

/* `code`: `size` bytes (2 or 4) in memory. TL_NO_ACCESS also for an instruction that reads and
 * writes (SWP), and for other instruction sets. */
struct tl_access tl_access_of(enum tl_isa isa, const uint8_t *code, uint32_t size);

#endif
