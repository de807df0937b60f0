/* SPDX-License-Identifier: MIT */
/*
 * The unrolled packetizer: processes many bytes of a trace stream at once.
 *
 * The stages are those of Weingarten, Hossle and Roscoe, "High Throughput Hardware Accelerated
 * CoreSight Trace Decoding", adapted to vector instructions:
 *
 *   header preprocessing   every byte of a block is classified as if it began a packet
 *   stream state           for a whole block, determine which of them do
 *   action preprocessing   each packet's action code, from a table, gives its fixed parts
 *   trace state            the address registers, packet after packet
 *
 * This applies to plain packets (etm4/forms.h): atoms, addresses with and without context,
 * contexts, cycle counts, most exceptions, all one-byte packets; NEON handles some of these
 * individually. Any other packet is parsed individually. The output is identical to the scalar
 * packetizer's, packet by packet.
 *
 * The unroll factor is the number of bytes of a block in which packets may begin; they may end
 * after it.
 */
#ifndef TL_ETM4_UNROLLED_H
#define TL_ETM4_UNROLLED_H

#include "base/cpu.h"
#include "etm4/packetizer.h"

struct tl_etm4_kernel {
    enum tl_cpu level; /* required CPU features */
    unsigned unroll;
    /*
     * Process packets from byte `i` of the run on, synchronised and at a header, as long as whole
     * blocks fit. Returns the index of the first unprocessed byte: the scalar packetizer handles
     * the rest.
     */
    size_t (*run)(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
};

/* The kernel at `level`; NULL if that is the scalar packetizer. Thread-safe. */
const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level);

/* Use this kernel (NULL: none) from now on. For tests and benchmarks. */
void tl_etm4_packetizer_use(struct tl_etm4_packetizer *p, const struct tl_etm4_kernel *kernel);

#endif
