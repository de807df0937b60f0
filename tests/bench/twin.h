/* SPDX-License-Identifier: MIT */
/*
 * The twin of a RISC-V capture: a program for A64 with as many instructions, of the same kinds in
 * the same order, and what an ETMv4 reports of its execution. So that what the formats cost can be
 * compared: the program and the way through it are the same.
 *
 * Instructions that were executed stand behind each other from TWIN_BASE on, in the order of their
 * addresses.
 */
#ifndef TL_BENCH_TWIN_H
#define TL_BENCH_TWIN_H

#include "decode/decode.h"
#include "sim/etm4_encoder.h"

#define TWIN_BASE 0x10000u

struct twin {
    struct tl_image *image; /* frozen; the caller frees it */
    struct tl_source source;
    struct tl_buf trace;
    uint64_t insns; /* that were executed */
};

/*
 * `setup` and `original` are those of the capture, `bytes` all of it: its program must neither trap
 * nor leave the image. Returns TL_NOMEM, TL_BAD if it does, or what decoding returned.
 */
TL_MUST_USE int twin_of(struct twin *out, const struct tl_setup *setup,
                        const struct tl_image *original, struct tl_bytes bytes,
                        const struct tl_sim_etm4_options *options);

#endif
