/* SPDX-License-Identifier: MIT */
/*
 * The unrolled packetizer: many bytes of a trace stream at once.
 *
 * The stages are those of Weingarten, Hossle and Roscoe, "High Throughput Hardware Accelerated
 * CoreSight Trace Decoding", carried over to vector instructions:
 *
 *   header preprocessing   every byte of a block is classified as if it began a packet
 *   stream state           which of them do, for a whole block
 *   action preprocessing   each packet's action code, found in a table, gives its fixed parts
 *   trace state            the address registers, packet after packet
 *
 * Plain packets (etm4/forms.h) go this way: atoms, addresses with and without context, contexts,
 * cycle counts, most exceptions, all packets of one byte; NEON takes some of these one by one. Any
 * other packet is parsed on its own. The output is that of the scalar packetizer, packet by packet.
 *
 * The unroll factor is the number of bytes of a block in which packets may begin; they may end
 * behind it.
 */
#ifndef TL_ETM4_UNROLLED_H
#define TL_ETM4_UNROLLED_H

#include "etm4/packetizer.h"
#include "simd/cpu.h"

struct tl_etm4_kernel {
    enum tl_cpu level; /* what the machine must have */
    unsigned unroll;
    /*
     * Take packets from byte `i` of the run on, in sync and at a header, as long as blocks
     * fit. Returns the first byte not taken: the rest is the scalar packetizer's.
     */
    size_t (*run)(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
};

/* All kernels that this build has, whether this machine can run them or not. */
const struct tl_etm4_kernel *tl_etm4_kernels(size_t *n);

/* The fastest one at `level`, NULL where the scalar packetizer is. Thread-safe. */
const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level);

/* Use this kernel (NULL: none) from now on: for tests and benchmarks. */
void tl_etm4_packetizer_use(struct tl_etm4_packetizer *p, const struct tl_etm4_kernel *kernel);

#endif
