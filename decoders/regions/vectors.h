/* SPDX-License-Identifier: MIT */
/*
 * Basic-block vectors: which code an execution spends its instructions in, interval by interval of
 * so many instructions, and which memory it touches there. What SimPoint (Sherwood, Calder et al.)
 * chooses representative regions by.
 *
 *     tl_vectors_new(&vectors, 10000000, on_interval, context);
 *     tl_vectors_insn(vectors, isa, pc, code);      of each instruction, in order
 *     tl_vectors_access(vectors, address);          of each of its memory accesses, if known
 *     tl_vectors_finish(vectors);
 *
 * A block begins behind each instruction that can change the flow, whether it did or not, where the
 * flow went elsewhere, and with each interval, so that an interval's vector does not depend on what
 * was before; it is named by the address of its first instruction. No I/O; not thread-safe. Memory
 * grows with the number of different blocks and pages, not with the trace.
 */
#ifndef TL_REGIONS_VECTORS_H
#define TL_REGIONS_VECTORS_H

#include "base/buf.h"
#include "isa/isa.h"

#define TL_VECTOR_PAGE 12 /* bits: memory is told by pages of 4 KiB */

/* One dimension of a vector. Ids begin at 1, in order of first appearance in the trace. */
struct tl_vector_part {
    uint64_t key; /* address of the block, or number of the page */
    uint32_t id;
    uint32_t n; /* instructions of the block, or accesses of the page, in the interval */
};

struct tl_vector {
    uint64_t first, insns; /* of the interval; all but the last one have the same length */
    const struct tl_vector_part *blocks, *pages; /* by id; borrowed for the call */
    size_t n_blocks, n_pages;
};

/* A result < 0 stops the collector, which returns it. */
typedef int tl_vector_sink(void *context, const struct tl_vector *vector);

struct tl_vectors;

/* Intervals of `interval` (1 to 2^32 - 1) instructions. TL_NOMEM, TL_USAGE. */
TL_MUST_USE int tl_vectors_new(struct tl_vectors **out, uint64_t interval, tl_vector_sink *sink,
                               void *context);
void tl_vectors_free(struct tl_vectors *v); /* NULL is fine */

/* `code`: the instruction's bytes in memory order, n of them its length; n == 0: not known. */
TL_MUST_USE int tl_vectors_insn(struct tl_vectors *v, enum tl_isa isa, uint64_t pc,
                                struct tl_bytes code);
/* Of the instruction told last. */
TL_MUST_USE int tl_vectors_access(struct tl_vectors *v, uint64_t address);
/* Deliver the interval that is not complete, if it has instructions. */
TL_MUST_USE int tl_vectors_finish(struct tl_vectors *v);

/* A line of a `.bb` file as SimPoint 3.2 reads it: "T:1:350 :2:4000 \n". TL_NOMEM. */
TL_MUST_USE int tl_vector_text(struct tl_buf *out, const struct tl_vector *vector);

#endif
