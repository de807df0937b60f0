/* SPDX-License-Identifier: MIT */
/* The configuration of RISC-V trace in perf.data. Not thread-safe. */
#ifndef TL_PERF_RISCV_SETUP_H
#define TL_PERF_RISCV_SETUP_H

#include "perf/container.h"

/*
 * Initialise `setup` for the bytes of an enabling, which may also be of a piece of it: encoders as
 * the file has them, completed by the sources of the decode's setup with the same names. The caller
 * frees it in any case. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_perf_riscv_setup(const struct tl_perf_decode *decode, struct tl_bytes bytes,
                                    struct tl_setup *setup);

#endif
