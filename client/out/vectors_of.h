/* SPDX-License-Identifier: MIT */
/* Builds basic-block vectors with memory accesses from STF instructions. Not thread-safe. */
#ifndef TL_OUT_VECTORS_OF_H
#define TL_OUT_VECTORS_OF_H

#include "regions/vectors.h"
#include "stf/insns.h"

/* Instruction set of an instruction of the most recently read batch, as far as STF indicates it: a
 * T32 instruction is recognised only if it has 2 bytes. */
enum tl_isa tl_insns_isa(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn);

/* Add an instruction. Errors as tl_vectors_insn(). */
TL_MUST_USE int tl_vectors_of_insn(struct tl_vectors *vectors, const struct tl_stf_insns *insns,
                                   const struct tl_stf_insn *insn);

/* Add instructions [from, to) of a trace, and end the last interval. Errors in the trace are
 * described in `fail`; everything before the error was added. */
TL_MUST_USE int tl_vectors_of_source(const struct tl_stf_source *source, uint64_t from, uint64_t to,
                                     struct tl_vectors *vectors, struct tl_fail *fail);

#endif
