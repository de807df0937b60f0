/* SPDX-License-Identifier: MIT */
/* Shared by the kernels that fill tapes. Private to them. */
#ifndef TL_PT_TAPE_PARTS_H
#define TL_PT_TAPE_PARTS_H

#include "pt/tape.h"

/* Free entries that a kernel needs for a block of 64 bytes: at most one for each byte, and one for
 * outcomes at its end. */
#define TL_PT_TAPE_BLOCK 65

/*
 * Append the packet at byte `at`. The entry after the last one already has outcomes, and has space
 * for a packet. Returns its size, TL_LIMIT (tape full), or an error of
 * tl_pt_parse().
 */
int tl_pt_tape_add(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                   size_t at);

/*
 * Process packets from byte `*at` on while whole blocks, and the bytes read past them, lie in `in`
 * and the tape has space. Returns TL_OK, or the error of tl_pt_tape_add().
 */
int tl_pt_tape_avx2(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                    size_t *at);

#endif
