/* SPDX-License-Identifier: MIT */
/* Instructions of STF into basic-block vectors, with their memory accesses. Not thread-safe. */
#ifndef TL_CLI_VECTORS_OF_H
#define TL_CLI_VECTORS_OF_H

#include "regions/vectors.h"
#include "stf/insns.h"

/* The instruction set of an instruction of the batch read last, as far as STF tells it: of a T32
 * instruction only if it has 2 bytes. */
enum tl_isa tl_insns_isa(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn);

/* Errors of tl_vectors_insn(). */
TL_MUST_USE int tl_vectors_of_insn(struct tl_vectors *vectors, const struct tl_stf_insns *insns,
                                   const struct tl_stf_insn *insn);

/* Instructions [from, to) of a trace, and the end of the last interval. What is wrong with the
 * trace is in `fail`; what is in front of it was told. */
TL_MUST_USE int tl_vectors_of_source(const struct tl_stf_source *source, uint64_t from, uint64_t to,
                                     struct tl_vectors *vectors, struct tl_fail *fail);

#endif
