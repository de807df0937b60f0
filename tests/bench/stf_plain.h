/* SPDX-License-Identifier: MIT */
/*
 * STF read and written the usual way, as a peer for ours in the same run: each record is an object
 * of its own from a pool, made and filled field by field out of a stream by what its descriptor
 * asks for; an instruction owns lists of its records; a window of instructions stands in front of
 * the reader. That is how C++ libraries for simulators do it, as far as costs go. For regular .zstf
 * files of the usual records alone.
 *
 * One thread. What goes wrong ends the program.
 */
#ifndef TL_BENCH_STF_PLAIN_H
#define TL_BENCH_STF_PLAIN_H

#include "base/buf.h"
#include "base/bytes.h"

/* All records of a .zstf, one at a time: how many there are. */
uint64_t plain_read_records(struct tl_bytes file);

/*
 * All its instructions. `fields`: of each one every access with its data, every register, and the
 * target, else PC and opcode alone. Returns a sum of what was looked at.
 */
uint64_t plain_read_insns(struct tl_bytes file, bool fields);

/* Plain STF written as .zstf with zstd's `level`, the records read one at a time, too; `out` gets
 * the chunks alone. */
void plain_write(struct tl_bytes stf, int level, struct tl_buf *out);
/* What of that is reading. */
uint64_t plain_parse_records(struct tl_bytes stf);

#endif
