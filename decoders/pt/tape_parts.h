/* SPDX-License-Identifier: MIT */
/* What the kernels that fill tapes share. Not for users. */
#ifndef TL_PT_TAPE_PARTS_H
#define TL_PT_TAPE_PARTS_H

#include "pt/tape.h"

/* Room that a kernel needs for what begins in its blocks, 256 bytes: an entry a byte. */
#define TL_PT_TAPE_BLOCK 260

/*
 * The entry behind the last one has outcomes already (`tnt`, `from`), and room for a packet. Append
 * the packet at byte `at`. Returns its size, TL_LIMIT (no room), or as tl_pt_parse().
 */
int tl_pt_tape_add(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                   size_t at);

/*
 * Take packets from byte `*at` on as long as blocks, and what is read behind them, lie in
 * `in`, and room is left. Returns TL_OK, or what tl_pt_tape_add() did not take.
 */
int tl_pt_tape_avx2(struct tl_pt_tape *tape, const struct tl_pt_config *config, struct tl_bytes in,
                    size_t *at);

/* The same. */
int tl_pt_tape_avx512(struct tl_pt_tape *tape, const struct tl_pt_config *config,
                      struct tl_bytes in, size_t *at);

#endif
