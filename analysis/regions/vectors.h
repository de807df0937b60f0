/* SPDX-License-Identifier: MIT */
/*
 * Basic-block vectors: for each interval of a fixed number of instructions, how many were executed
 * in which block, and which memory was accessed. SimPoint (Sherwood, Calder et al.) selects
 * representative regions by them.
 *
 *     tl_vectors_new(&vectors, 10000000, on_interval, context);
 *     tl_vectors_insn(vectors, isa, pc, code);      for each instruction, in order
 *     tl_vectors_access(vectors, address);          for each of its memory accesses, if known
 *     tl_vectors_finish(vectors);
 *
 * A block begins after each instruction that can change the flow, whether it did or not, at each
 * discontinuity, and with each interval, so that an interval's vector does not depend on what
 * preceded it. It is identified by the address of its first instruction. No I/O; not thread-safe.
 * Memory use grows with the number of different blocks and pages, not with the trace.
 */
#ifndef TL_REGIONS_VECTORS_H
#define TL_REGIONS_VECTORS_H

#include "base/buf.h"
#include "isa/isa.h"

#define TL_VECTOR_PAGE 12 /* bits: memory is counted in pages of 4 KiB */

/* One dimension of a vector. Ids begin at 1, in order of first appearance in the trace. */
struct tl_vector_part {
    uint64_t key; /* address of the block, or page number */
    uint32_t id;
    uint32_t n; /* instructions of the block, or accesses to the page, in the interval */
};

struct tl_vector {
    uint64_t first, insns; /* length of the interval; all but the last have the same */
    const struct tl_vector_part *blocks, *pages; /* by id; borrowed for the call */
    size_t n_blocks, n_pages;
};

/* A result < 0 stops the collector, which returns it. */
typedef int tl_vector_sink(void *context, const struct tl_vector *vector);

struct tl_vectors;

/* Collect intervals of `interval` (1 to 2^32 - 1) instructions. TL_NOMEM, TL_USAGE. */
TL_MUST_USE int tl_vectors_new(struct tl_vectors **out, uint64_t interval, tl_vector_sink *sink,
                               void *context);
void tl_vectors_free(struct tl_vectors *v); /* accepts NULL */

/* `code`: the instruction's bytes in memory order; n is its length, 0: unknown. */
TL_MUST_USE int tl_vectors_insn(struct tl_vectors *v, enum tl_isa isa, uint64_t pc,
                                struct tl_bytes code);
/* Add a memory access of the last instruction. */
TL_MUST_USE int tl_vectors_access(struct tl_vectors *v, uint64_t address);
/* Deliver the incomplete interval, if it has instructions. */
TL_MUST_USE int tl_vectors_finish(struct tl_vectors *v);

/* Format a line of a `.bb` file as SimPoint 3.2 reads it: "T:1:350 :2:4000 \n". TL_NOMEM. */
TL_MUST_USE int tl_vector_text(struct tl_buf *out, const struct tl_vector *vector);

#endif
