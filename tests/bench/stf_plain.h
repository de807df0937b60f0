/* SPDX-License-Identifier: MIT */
/*
 * STF read and written in the usual way, as a reference measured in the same run as ours: each
 * record is an object from a pool, filled field by field from a stream according to its descriptor;
 * an instruction owns lists of its records; the reader buffers a window of instructions. The costs
 * are those of C++ libraries for simulators. Supports only regular .zstf files with the common
 * records.
 *
 * Single-threaded. Any error ends the program.
 */
#ifndef TL_BENCH_STF_PLAIN_H
#define TL_BENCH_STF_PLAIN_H

#include "base/buf.h"
#include "base/bytes.h"

/* Read all records of a .zstf, one at a time; returns their number. */
uint64_t plain_read_records(struct tl_bytes file);

/*
 * Read all instructions. `fields`: look at every access with its data, every register and the
 * target of each instruction; otherwise only at PC and opcode. Returns a checksum of the values.
 */
uint64_t plain_read_insns(struct tl_bytes file, bool fields);

/* Write plain STF as .zstf with zstd level `level`, including reading the records one at a time;
 * `out` gets only the chunks. */
void plain_write(struct tl_bytes stf, int level, struct tl_buf *out);
/* The reading part of plain_write(). */
uint64_t plain_parse_records(struct tl_bytes stf);

#endif
