/* SPDX-License-Identifier: MIT */
/*
 * Doubts that an ELF file is the program that ran: the trace of another program loses the way in it
 * again and again, after a few changes of the flow, though its packets are intact. Damage does so,
 * too, but seldom more than once each, and much of it is seen in the packets.
 *
 * All items of a stream are looked at, in batches, by any thread.
 */
#ifndef TL_DECODE_DOUBTS_H
#define TL_DECODE_DOUBTS_H

#include "base/state.h"
#include "flow/item.h"

#include <stdatomic.h>

#define TL_DOUBTED_ELFS 16 /* files that are looked at */

/* The way since the last gap, up to here: changes of the flow, counted up to a limit, and the
 * address of the last block, 0: there was none. */
struct tl_doubts_way {
    uint64_t turns, place;
};

/* All zero: none. */
struct tl_doubts {
    atomic_uint_fast64_t lost[TL_DOUBTED_ELFS];  /* times that the way was lost in a file */
    atomic_uint_fast64_t turns[TL_DOUBTED_ELFS]; /* changes of the flow before that, at most
                                                    so many each time */
    atomic_uint_fast64_t misfits; /* losses by which packets do not fit the program */
    atomic_uint_fast64_t damaged; /* gaps of damaged bytes, and of these */
};

/* Look at a batch, which continues `way`: the same for all batches of a stream in a row, zeroed at
 * the begin. Batches that are looked at by several threads have one each. */
void tl_doubts_look(struct tl_doubts *doubts, const struct tl_image *image,
                    const struct tl_item *items, size_t n, struct tl_doubts_way *way);

/* Packets were lost that do not fit the program: TL_LOSS_MISFIT. */
void tl_doubts_misfit(struct tl_doubts *doubts);

/* Index of an ELF file of the image from `from` on that is not what ran; -1: there is none. */
int64_t tl_doubts_next(const struct tl_doubts *doubts, const struct tl_image *image, size_t from);

/* Save or restore. */
void tl_doubts_state(struct tl_doubts *doubts, struct tl_doubts_way *way, struct tl_state *state);

#endif
